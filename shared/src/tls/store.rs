//! Files of certificates: what they are is told by their content.
//!
//! ```text
//! PEM      -----BEGIN …     certificates and a key, in any order of the two; the key may be encrypted (PKCS #8)
//! PKCS12   DER              as openssl and keytool write it, with the ciphers of today and of then
//! JKS      FE ED FE ED      Java's own form, refused with the command that converts it
//! ```

use std::fmt::Write as _;

use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12Archive, Pkcs12ImportPolicy, PrivateKeyChain};
use reqwest::{Certificate, Identity};
use secrecy::ExposeSecret as _;

use super::pem::{self, Section};
use super::{Error, Place, Store};
use crate::http::describe;

/// The first bytes of a JKS and of a JCEKS store.
const JAVA: [[u8; 4]; 2] = [[0xfe, 0xed, 0xfe, 0xed], [0xce, 0xce, 0xce, 0xce]];

/// The authorities of a trust store.
///
/// # Errors
/// The file cannot be read as one.
pub(crate) fn trust(store: &Store) -> Result<Vec<Certificate>, Error> {
    let certificate = |der: &Vec<u8>| {
        Certificate::from_der(der).map_err(|error| refused(store, format!("holds a certificate that cannot be read: {error}")))
    };
    authorities(store)?.iter().map(certificate).collect()
}

/// The same as one text in PEM.
///
/// # Errors
/// The file cannot be read as one.
pub(crate) fn bundle(store: &Store) -> Result<String, Error> {
    Ok(authorities(store)?.iter().map(|der| pem::written("CERTIFICATE", der)).collect())
}

fn authorities(store: &Store) -> Result<Vec<Vec<u8>>, Error> {
    read(store).and_then(|content| content.authorities(store)).map_err(|problem| refused(store, problem))
}

/// The certificate of a key store, with its chain and its key.
///
/// # Errors
/// The file cannot be read as one.
pub(crate) fn identity(store: &Store) -> Result<Identity, Error> {
    read(store).and_then(|content| content.identity(store)).map_err(|problem| refused(store, problem))
}

/// The error that a store cannot be used.
pub(crate) fn refused(store: &Store, problem: impl Into<String>) -> Error {
    Error { key: store.key.clone(), place: store.place.shown(), problem: problem.into() }
}

enum Content {
    Pem(String),
    Pkcs12(Vec<u8>),
}

fn read(store: &Store) -> Result<Content, String> {
    let bytes = match &store.place {
        Place::File(path) => std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?,
        Place::Text(text) => text.expose_secret().as_bytes().to_vec(),
    };
    if bytes.is_empty() {
        return Err("is empty".to_owned());
    }
    let content = match bytes[..] {
        [a, b, c, d, ..] if JAVA.contains(&[a, b, c, d]) => return Err(convert(&store.place.shown())),
        _ if pem::is_pem(&bytes) => Content::Pem(String::from_utf8(bytes).map_err(|_| "is PEM with characters that are not UTF-8")?),
        // DER: a sequence.
        [0x30, ..] => Content::Pkcs12(bytes),
        _ => return Err("is neither PEM nor PKCS12".to_owned()),
    };
    // Java reads either of its own two forms under either name, so only a mistake about PEM is one.
    match (&content, store.format.as_deref()) {
        (Content::Pem(_), Some(format @ ("JKS" | "PKCS12"))) => Err(contradicted(store, format, "PEM")),
        (Content::Pkcs12(_), Some("PEM")) => Err(contradicted(store, "PEM", "PKCS12")),
        _ => Ok(content),
    }
}

fn contradicted(store: &Store, said: &str, is: &str) -> String {
    let key = store.beside("type");
    format!("is {is} by its content, and {key} says {said}; correct it, or leave the type out")
}

/// What to do with a JKS store.
fn convert(path: &str) -> String {
    let stem = path.strip_suffix(".jks").unwrap_or(path);
    format!(
        "is a JKS store, which only Java reads; convert it and name the new file: keytool -importkeystore -srckeystore {path} -destkeystore \
         {stem}.p12 -deststoretype PKCS12"
    )
}

impl Content {
    fn authorities(&self, store: &Store) -> Result<Vec<Vec<u8>>, String> {
        let certificates: Vec<Vec<u8>> = match self {
            Self::Pem(text) => certificates(&pem::sections(text)?).cloned().collect(),
            Self::Pkcs12(bytes) => {
                let archive = Pkcs12Archive::from_pkcs12(bytes, password(store)).map_err(|error| unreadable(store, &error))?;
                // A certificate with a key's id is somebody's own and vouches for nobody.
                archive.certs.iter().filter(|bag| bag.local_key_id.is_none()).map(|bag| bag.cert.as_der().to_vec()).collect()
            }
        };
        if certificates.is_empty() {
            return Err("holds no certificate of an authority".to_owned());
        }
        Ok(certificates)
    }

    fn identity(&self, store: &Store) -> Result<Identity, String> {
        let text = match self {
            Self::Pem(text) => from_pem(&pem::sections(text)?, store)?,
            Self::Pkcs12(bytes) => {
                let opened = KeyStore::from_pkcs12(bytes, password(store), Pkcs12ImportPolicy::Strict);
                from_chain(only_chain(&opened.map_err(|error| unreadable(store, &error))?)?)
            }
        };
        Identity::from_pem(text.as_bytes()).map_err(|error| format!("cannot be used: {}", describe(&error)))
    }
}

fn certificates(sections: &[Section]) -> impl Iterator<Item = &Vec<u8>> {
    sections.iter().filter(|section| matches!(section.label.as_str(), "CERTIFICATE" | "X509 CERTIFICATE")).map(|section| &section.der)
}

fn password(store: &Store) -> &str {
    store.password.as_ref().map_or("", |password| password.expose_secret())
}

/// A PKCS12 store that does not open. A wrong password shows as a wrong checksum.
fn unreadable(store: &Store, error: &p12_keystore::error::Error) -> String {
    let key = store.beside("password");
    match error {
        p12_keystore::error::Error::MacError(_) if store.password.is_none() => format!("is protected by a password; give it in {key}"),
        p12_keystore::error::Error::MacError(_) => format!("does not open with the password in {key}"),
        p12_keystore::error::Error::DerError(_) => "is neither PEM nor PKCS12".to_owned(),
        other => format!("cannot be read as PKCS12: {other}"),
    }
}

/// The chain of a store's only key.
fn only_chain(opened: &KeyStore) -> Result<&PrivateKeyChain, String> {
    let chains: Vec<(&String, &PrivateKeyChain)> = opened
        .entries()
        .filter_map(|(alias, entry)| match entry {
            KeyStoreEntry::PrivateKeyChain(chain) => Some((alias, chain)),
            _ => None,
        })
        .collect();
    match chains[..] {
        [(_, chain)] => Ok(chain),
        [] => Err("holds no private key with a certificate".to_owned()),
        _ => {
            let aliases: Vec<&str> = chains.iter().map(|(alias, _)| alias.as_str()).collect();
            Err(format!("holds {} keys ({}); keep the one to sign in with", aliases.len(), aliases.join(", ")))
        }
    }
}

fn from_chain(chain: &PrivateKeyChain) -> String {
    let mut text = pem::written("PRIVATE KEY", chain.key().as_der());
    for certificate in chain.certs() {
        text.push_str(&pem::written("CERTIFICATE", certificate.as_der()));
    }
    text
}

/// Key and certificates of a PEM file, the key in clear.
fn from_pem(sections: &[Section], store: &Store) -> Result<String, String> {
    let mut text = String::new();
    let keys: Vec<&Section> = sections.iter().filter(|section| section.label.ends_with("PRIVATE KEY")).collect();
    let [key] = keys[..] else {
        return Err(format!("holds {} private keys; it needs one, with its certificate", keys.len()));
    };
    if key.label == "ENCRYPTED PRIVATE KEY" {
        text.push_str(&pem::written("PRIVATE KEY", &decrypted(key, store)?));
    } else {
        text.push_str(&pem::written(&key.label, &key.der));
    }
    let mut count = 0;
    for certificate in certificates(sections) {
        count += 1;
        write!(text, "{}", pem::written("CERTIFICATE", certificate)).expect("a String takes every text");
    }
    if count == 0 { Err("holds a private key and no certificate".to_owned()) } else { Ok(text) }
}

fn decrypted(section: &Section, store: &Store) -> Result<Vec<u8>, String> {
    let key = store.beside("password");
    let Some(password) = &store.password else {
        return Err(format!("holds an encrypted key; give its password in {key}"));
    };
    let encrypted = pkcs8::EncryptedPrivateKeyInfoRef::try_from(section.der.as_slice())
        .map_err(|error| format!("holds a key that cannot be read: {error}"))?;
    let opened =
        encrypted.decrypt(password.expose_secret()).map_err(|_| format!("holds a key that does not open with the password in {key}"))?;
    Ok(opened.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use secrecy::SecretString;

    use super::*;

    const PASSWORD: &str = "changeit";

    fn store(which: &str, file: &str) -> Store {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/testbed/data/certificates").join(file);
        let path = path.to_str().expect("a path in UTF-8").to_owned();
        Store {
            key: format!("snow.tls.{which}.path"),
            place: Place::File(path),
            password: Some(SecretString::from(PASSWORD)),
            format: None,
        }
    }

    fn problem(store: &Store, of: fn(&Store) -> Result<(), Error>) -> String {
        let text = of(store).expect_err("an error").to_string();
        assert!(text.contains(&store.place.shown()) && text.contains(&store.key) && !text.contains(PASSWORD), "{text}");
        text
    }

    #[test]
    fn a_client_certificate_is_read_from_every_form_that_tools_write() {
        for file in ["client.pem", "client-encrypted.pem", "client.p12", "client-legacy.p12", "client-java.p12"] {
            identity(&store("keystore", file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
    }

    #[test]
    fn authorities_are_read_from_every_form_that_tools_write() {
        for file in ["authority.pem", "trust.p12", "trust-openssl.p12"] {
            let found = trust(&store("truststore", file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(found.len(), 1, "{file}");
        }
    }

    #[test]
    fn a_jks_store_is_refused_with_the_command_that_converts_it() {
        for (which, file, of) in [
            ("keystore", "client.jks", (|store| identity(store).map(drop)) as fn(&Store) -> Result<(), Error>),
            ("truststore", "trust.jks", |store| trust(store).map(drop)),
        ] {
            let store = store(which, file);
            let text = problem(&store, of);
            let path = store.place.shown();
            let converted = path.replace(".jks", ".p12");
            let line = format!("keytool -importkeystore -srckeystore {path} -destkeystore {converted} -deststoretype PKCS12");
            assert!(text.contains(&line), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_key_store_is_said_with_its_key() {
        let of: fn(&Store) -> Result<(), Error> = |store| identity(store).map(drop);
        let with = |file: &str, password: Option<&str>, format: Option<&str>| Store {
            password: password.map(SecretString::from),
            format: format.map(str::to_owned),
            ..store("keystore", file)
        };
        for (store, words) in [
            (with("absent.p12", None, None), "cannot be read"),
            (with("client.p12", None, None), "give it in snow.tls.keystore.password"),
            (with("client.p12", Some("wrong"), None), "does not open with the password in snow.tls.keystore.password"),
            (with("client-legacy.p12", Some("wrong"), None), "does not open"),
            (with("client-encrypted.pem", None, None), "give its password in snow.tls.keystore.password"),
            (with("client-encrypted.pem", Some("wrong"), None), "does not open"),
            (with("authority.pem", None, None), "0 private keys"),
            (with("signing.key", None, None), "no certificate"),
            (with("trust.p12", Some(PASSWORD), None), "no private key"),
            (with("signed.txt", None, None), "neither PEM nor PKCS12"),
            (with("client.pem", None, Some("PKCS12")), "snow.tls.keystore.type says PKCS12"),
            (with("client.p12", Some(PASSWORD), Some("PEM")), "snow.tls.keystore.type says PEM"),
        ] {
            let text = problem(&store, of);
            assert!(text.contains(words), "{text}");
        }
        let text = std::fs::read_to_string(store("keystore", "client.pem").place.shown()).expect("a file");
        let given = |text: &str| Store { place: Place::Text(text.to_owned().into()), password: None, ..store("keystore", "client.pem") };
        identity(&given(&text)).expect("a text is read as a file is");
        let told = identity(&given("no PEM")).expect_err("an error").to_string();
        assert!(told.starts_with("snow.tls.keystore.path: the text is neither PEM") && !told.contains("no PEM"), "{told}");
        identity(&with("client.p12", Some(PASSWORD), Some("JKS"))).expect("Java reads PKCS12 under the name of JKS, and so do we");
    }
}
