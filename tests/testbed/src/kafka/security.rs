//! A broker that asks who is there: listeners with TLS, with client certificates and with SASL, users, and rights.
//!
//! The certificates are those of `data/certificates`. The settings are what the operator of a cluster writes, with the keys as PEM.
//! Amazon MSK's way to sign in with IAM is not in Apache Kafka; `parts/security/MskIamHandler.java` stands in for it, which
//! checks a token's signature by its own computation.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::process::Command;

use super::properties::{Listener, Ports};
use super::{Broker, PART, START_WITHIN};
use crate::parts::{self, PartError};
use crate::process::Process;

/// The authority that signed the broker's certificate, in PEM.
pub const AUTHORITY: &str = include_str!("../../data/certificates/authority.pem");
/// An authority that has signed nothing here.
pub const OTHER_AUTHORITY: &str = include_str!("../../data/certificates/other-authority.pem");
/// A client's chain and key: the principal `CN=sweep`, which may do everything.
pub const CLIENT: &str = include_str!("../../data/certificates/client.pem");
/// The chain and key of somebody whom the broker's authority does not know.
pub const STRANGER: &str = include_str!("../../data/certificates/stranger.pem");
/// The chain and key of the broker.
pub const SERVER: &str = include_str!("../../data/certificates/server.pem");

/// A user by PLAIN, with the password, who may do everything.
pub const PLAIN: (&str, &str) = ("paul", "plain-battery-staple");
/// A user by SCRAM-SHA-512, with the first password, who may do everything.
pub const SCRAM: (&str, &str) = ("rita", "scram-correct-horse");
/// A user by PLAIN, with the password, without any right.
pub const GUEST: (&str, &str) = ("guest", "guest-has-no-rights");
/// An access key with its secret, who may do everything in [`REGION`].
pub const ACCESS_KEY: (&str, &str) = ("AKIDSWEEPEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
/// Another one.
pub const OTHER_ACCESS_KEY: (&str, &str) = ("AKIDOTHEREXAMPLE", "je7MtGbClwBF/2Zp9Utk+h3yCo8nvbEXAMPLEKEY");
/// And one of somebody without any right.
pub const GUEST_ACCESS_KEY: (&str, &str) = ("AKIDGUESTEXAMPLE", "q8ZkVxUtnGEMI/R3MPNrS+cTyDgjDZEXAMPLEKEY");
/// Where tokens must be signed for.
pub const REGION: &str = "us-east-1";

/// The PEM blocks of `text` whose label contains `kind`: `CERTIFICATE` or `PRIVATE KEY`.
pub fn pem(text: &str, kind: &str) -> String {
    let mut found = String::new();
    let mut inside = false;
    for line in text.lines() {
        inside |= line.starts_with("-----BEGIN") && line.contains(kind);
        if inside {
            found.push_str(line);
            found.push('\n');
        }
        inside &= !line.starts_with("-----END");
    }
    found
}

/// The ports of the listeners that ask.
#[derive(Debug, Clone, Copy)]
pub(super) struct SecurePorts {
    pub(super) tls: u16,
    pub(super) mutual: u16,
    pub(super) sasl: u16,
}

/// The listeners that ask, by the name that their certificate bears.
pub(super) fn listeners(ports: &Ports) -> Vec<Listener> {
    let Some(secure) = ports.secure else { return Vec::new() };
    let listener = |name, port, protocol| Listener { name, port, protocol, advertised: Some(format!("localhost:{port}")) };
    vec![listener("TLS", secure.tls, "SSL"), listener("MUTUAL", secure.mutual, "SSL"), listener("SASL", secure.sasl, "SASL_SSL")]
}

/// What a broker that asks is told beyond its listeners.
pub(super) fn settings() -> BTreeMap<String, String> {
    let module = "org.apache.kafka.common.security";
    let (plain, guest) = (PLAIN, GUEST);
    let keys = [ACCESS_KEY, OTHER_ACCESS_KEY, GUEST_ACCESS_KEY].map(|(id, secret)| format!("key_{id}=\"{secret}\"")).join(" ");
    let mut settings: BTreeMap<String, String> = [
        ("ssl.keystore.type", "PEM".to_owned()),
        ("ssl.keystore.certificate.chain", escaped(&pem(SERVER, "CERTIFICATE"))),
        ("ssl.keystore.key", escaped(&pem(SERVER, "PRIVATE KEY"))),
        ("ssl.truststore.type", "PEM".to_owned()),
        ("ssl.truststore.certificates", escaped(AUTHORITY)),
        ("listener.name.mutual.ssl.client.auth", "required".to_owned()),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer".to_owned()),
        (
            "super.users",
            format!("User:ANONYMOUS;User:CN=sweep;User:{};User:{};User:{};User:{}", plain.0, SCRAM.0, ACCESS_KEY.0, OTHER_ACCESS_KEY.0),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for listener in ["sasl", "proxied"] {
        let mut set = |name: &str, value: String| settings.insert(format!("listener.name.{listener}.{name}"), value);
        set("sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-512,OAUTHBEARER".to_owned());
        set(
            "plain.sasl.jaas.config",
            format!("{module}.plain.PlainLoginModule required user_{}=\"{}\" user_{}=\"{}\";", plain.0, plain.1, guest.0, guest.1),
        );
        set("scram-sha-512.sasl.jaas.config", format!("{module}.scram.ScramLoginModule required;"));
        set("oauthbearer.sasl.jaas.config", format!("{module}.oauthbearer.OAuthBearerLoginModule required region=\"{REGION}\" {keys};"));
        set("oauthbearer.sasl.server.callback.handler.class", "MskIamHandler".to_owned());
        set("oauthbearer.sasl.login.callback.handler.class", "MskIamHandler".to_owned());
    }
    settings
}

/// As a value of a properties file.
fn escaped(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// A token that was shown to the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The token.
    pub token: String,
    /// Why it was refused; `None` if it was accepted.
    pub refused: Option<String>,
}

/// The verdicts in a broker's log, in their order.
pub(super) fn verdicts(log: &str) -> Vec<Verdict> {
    let verdict = |line: &str| {
        if let Some((_, rest)) = line.split_once(" token accepted ") {
            return Some(Verdict { token: rest.split(' ').next()?.to_owned(), refused: None });
        }
        let (token, why) = line.split_once(" token refused ")?.1.split_once(": ")?;
        Some(Verdict { token: token.to_owned(), refused: Some(why.to_owned()) })
    };
    log.lines().filter_map(verdict).collect()
}

impl Broker {
    /// `bootstrap.servers` of the listener with TLS.
    pub fn tls_bootstrap(&self) -> String {
        self.secure("TLS", |ports| ports.tls)
    }

    /// `bootstrap.servers` of the listener with TLS that asks for a certificate.
    pub fn mutual_bootstrap(&self) -> String {
        self.secure("client certificates", |ports| ports.mutual)
    }

    /// `bootstrap.servers` of the listener with TLS and SASL.
    pub fn sasl_bootstrap(&self) -> String {
        self.secure("SASL", |ports| ports.sasl)
    }

    fn secure(&self, what: &str, port: impl Fn(SecurePorts) -> u16) -> String {
        let ports = self.ports.secure.unwrap_or_else(|| panic!("this broker was started without a listener for {what}"));
        format!("localhost:{}", port(ports))
    }

    /// Sets the password of a user by SCRAM-SHA-512.
    pub async fn set_password(&self, user: &str, password: &str) -> Result<(), PartError> {
        self.administer(&["password", user, password]).await
    }

    /// Lets a user do these operations to a topic.
    pub async fn grant(&self, user: &str, topic: &str, operations: &[&str]) -> Result<(), PartError> {
        self.administer(&[&["allow", user, topic], operations].concat()).await
    }

    /// The tokens that the broker was shown, with its verdicts.
    pub fn tokens(&self) -> Vec<Verdict> {
        verdicts(&self.log())
    }

    async fn administer(&self, arguments: &[&str]) -> Result<(), PartError> {
        let mut java = self.java()?;
        java.arg("BrokerAdmin").arg(self.bootstrap()).args(arguments);
        let tool = Process::spawn(PART, java, None).await?;
        match tokio::time::timeout(START_WITHIN, tool.wait()).await {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(status) => Err(PartError::failed(PART, arguments[0], format!("{status:?}: {}", tool.logs().text()))),
            Err(_) => Err(PartError::failed(PART, arguments[0], "it takes too long")),
        }
    }
}

/// Where the classes of `parts/security` are.
pub(super) fn jar() -> Result<std::path::PathBuf, PartError> {
    parts::fetched(PART, "security/security.jar")
}

/// The address that a token signs, and the one that botocore signs at the same moment, for the same region and access key.
pub async fn addresses(token: &str, secret: &str) -> Result<(String, String), PartError> {
    let failed = |why: String| PartError::failed(PART, "signing a token anew", why);
    let address = URL_SAFE_NO_PAD.decode(token).map_err(|error| failed(error.to_string()))?;
    let address = String::from_utf8(address).map_err(|error| failed(error.to_string()))?;
    let python = parts::fetched("botocore", "venv/bin/python")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/parts/security/signature.py");
    let signed = Command::new(python).args([script, &address, secret]).output().await.map_err(|error| failed(error.to_string()))?;
    if !signed.status.success() {
        return Err(failed(String::from_utf8_lossy(&signed.stderr).into_owned()));
    }
    Ok((address, String::from_utf8_lossy(&signed.stdout).trim().to_owned()))
}
