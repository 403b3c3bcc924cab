//! What the settings of a converter say of Confluent's registry.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::Error;
use crate::config;
use crate::record::converter::registration::{Candidate, Part};
use crate::tls::{Place, Store};

/// How a registry is reached and asked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is, without the credentials that an address may carry. One at least.
    pub addresses: Vec<Url>,
    /// Whether any of them is asked first.
    pub randomize: bool,
    /// Who signs in.
    pub credential: Option<Credential>,
    /// Whom to trust.
    pub truststore: Option<Store>,
    /// Who we are.
    pub keystore: Option<Store>,
    /// The prefix of the keys, for messages: `value.converter.`.
    pub prefix: String,
    /// The proxy to ask by.
    pub proxy: Option<Url>,
    /// The longest wait for a connection.
    pub connect_timeout: Duration,
    /// The longest wait for an answer.
    pub read_timeout: Duration,
    /// How often a round of attempts is repeated.
    pub max_retries: u32,
    /// The longest pause before the first repetition.
    pub wait: Duration,
    /// The longest pause before any.
    pub max_wait: Duration,
    /// Whether schemas are registered.
    pub auto_register: bool,
    /// Whether the latest version is written with.
    pub use_latest: bool,
    /// How long the latest version counts as that; without end if not given.
    pub latest_ttl: Option<Duration>,
    /// Whether the registry compares schemas in their normal form.
    pub normalize: bool,
    /// What the subjects of keys are named after.
    pub key_strategy: Strategy,
    /// What the subjects of values are named after.
    pub value_strategy: Strategy,
}

/// Who signs in.
#[derive(Debug, Clone)]
pub enum Credential {
    /// A user and a password.
    Basic(String, SecretString),
    /// A token.
    Bearer(SecretString),
}

impl PartialEq for Credential {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Basic(user, password), Self::Basic(other, its)) => user == other && password.expose_secret() == its.expose_secret(),
            (Self::Bearer(token), Self::Bearer(other)) => token.expose_secret() == other.expose_secret(),
            _ => false,
        }
    }
}

/// What a subject is named after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The topic, with `-key` or `-value`.
    Topic,
    /// The record.
    Record,
    /// Both.
    TopicRecord,
}

impl Strategy {
    fn of(name: &str) -> Self {
        match name.rsplit('.').next() {
            Some(name) if name.eq_ignore_ascii_case("RecordNameStrategy") => Self::Record,
            Some(name) if name.eq_ignore_ascii_case("TopicRecordNameStrategy") => Self::TopicRecord,
            _ => Self::Topic,
        }
    }

    /// The subject of a schema.
    ///
    /// # Errors
    /// It is to be named after a record, and describes none.
    pub fn subject(self, candidate: &Candidate) -> Result<String, Error> {
        let part = match candidate.part {
            Part::Key => "key",
            Part::Value => "value",
        };
        let topic = &candidate.topic;
        let record = |strategy| candidate.record.as_deref().ok_or(Error::NoSubject { strategy, part });
        Ok(match self {
            Self::Topic => format!("{topic}-{part}"),
            Self::Record => record("RecordNameStrategy")?.to_owned(),
            Self::TopicRecord => format!("{topic}-{}", record("TopicRecordNameStrategy")?),
        })
    }
}

impl Settings {
    /// Reads the settings of a converter, which were checked.
    pub fn read(settings: &config::Settings<'_>) -> Self {
        let proxy = settings.text("proxy.host").zip(settings.integer::<u16>("proxy.port"));
        let strategy = |name| settings.text(name).map_or(Strategy::Topic, Strategy::of);
        let addresses = settings.addresses("schema.registry.url");
        Self {
            randomize: settings.boolean("schema.registry.url.randomize"),
            credential: Credential::read(settings).or_else(|| addresses.iter().find_map(Credential::of_address)),
            addresses: addresses.into_iter().map(without_credential).collect(),
            truststore: store(settings, "truststore", settings.secret("schema.registry.ssl.truststore.certificates")),
            keystore: store(settings, "keystore", pair(settings)),
            prefix: settings.key(""),
            proxy: proxy.and_then(|(host, port)| Url::parse(&format!("http://{host}:{port}")).ok()),
            connect_timeout: settings.millis("http.connect.timeout.ms"),
            read_timeout: settings.millis("http.read.timeout.ms"),
            max_retries: settings.integer("max.retries").unwrap_or_default(),
            wait: settings.millis("retries.wait.ms"),
            max_wait: settings.millis("retries.max.wait.ms"),
            auto_register: settings.boolean("auto.register.schemas"),
            use_latest: settings.boolean("use.latest.version"),
            latest_ttl: settings.integer("latest.cache.ttl.sec").map(Duration::from_secs),
            normalize: settings.boolean("normalize.schemas"),
            key_strategy: strategy("key.subject.name.strategy"),
            value_strategy: strategy("value.subject.name.strategy"),
        }
    }

    /// Whether these settings show the registry the same credential and certificates, and trust the same.
    pub(super) fn shows_the_same(&self, other: &Self) -> bool {
        let same = |one: &Option<Store>, other: &Option<Store>| match (one, other) {
            (Some(one), Some(other)) => one.is(other),
            (None, None) => true,
            _ => false,
        };
        self.credential == other.credential && same(&self.truststore, &other.truststore) && same(&self.keystore, &other.keystore)
    }

    /// The registry and how it is asked: answers to the same question under the same identity are the same.
    pub fn identity(&self) -> String {
        let addresses: Vec<String> = self.addresses.iter().map(super::shown).collect();
        let how = match (self.auto_register, self.use_latest) {
            (true, _) => "register",
            (false, true) => "latest",
            (false, false) => "find",
        };
        format!("{} ({how}{})", addresses.join(","), if self.normalize { ", normal form" } else { "" })
    }
}

impl Credential {
    /// What the settings say, beside the address.
    fn read(settings: &config::Settings<'_>) -> Option<Self> {
        if let Some(token) = settings.secret("bearer.auth.token") {
            return Some(Self::Bearer(token));
        }
        if !settings.text("basic.auth.credentials.source")?.eq_ignore_ascii_case("USER_INFO") {
            return None;
        }
        let info = settings.text("basic.auth.user.info").or_else(|| settings.text("schema.registry.basic.auth.user.info"))?;
        let (user, password) = info.split_once(':')?;
        Some(Self::Basic(user.to_owned(), SecretString::from(password)))
    }

    /// What an address carries.
    fn of_address(address: &Url) -> Option<Self> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        if address.username().is_empty() && address.password().is_none() {
            return None;
        }
        Some(Self::Basic(decoded(address.username()), SecretString::from(decoded(address.password().unwrap_or_default()))))
    }
}

/// The address alone: what it carries is sent as a header, and an address is shown in messages.
fn without_credential(mut address: Url) -> Url {
    // What has a host takes both, and an address of a registry has one.
    let cleared = address.set_username("").and_then(|()| address.set_password(None));
    debug_assert_eq!(cleared, Ok(()));
    address
}

/// A store, as a file or as the text that is given for it.
fn store(settings: &config::Settings<'_>, which: &str, text: Option<SecretString>) -> Option<Store> {
    let setting = |name: &str| format!("schema.registry.ssl.{which}.{name}");
    let (name, place) = match (settings.text(&setting("location")), text) {
        (Some(path), _) => ("location", Place::File(path.to_owned())),
        (None, Some(text)) => (if which == "truststore" { "certificates" } else { "key" }, Place::Text(text)),
        (None, None) => return None,
    };
    let of_key = if which == "keystore" { settings.secret("schema.registry.ssl.key.password") } else { None };
    Some(Store {
        key: settings.key(&setting(name)),
        place,
        password: of_key.or_else(|| settings.secret(&setting("password"))),
        format: settings.text(&setting("type")).map(str::to_ascii_uppercase),
    })
}

/// A key and its certificates in one text.
fn pair(settings: &config::Settings<'_>) -> Option<SecretString> {
    let key = settings.text("schema.registry.ssl.keystore.key")?;
    let chain = settings.text("schema.registry.ssl.keystore.certificate.chain")?;
    Some(SecretString::from(format!("{key}\n{chain}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::converter::registration::Language;

    fn candidate(part: Part, record: Option<&str>) -> Candidate {
        let record = record.map(str::to_owned);
        Candidate { topic: "snow.incident".to_owned(), part, record, language: Language::Avro, text: String::new() }
    }

    #[test]
    fn subjects_are_named_as_confluents_strategies_name_them() {
        let value = candidate(Part::Value, Some("sh.oso.servicenow.incident.Value"));
        for (class, subject) in [
            ("io.confluent.kafka.serializers.subject.TopicNameStrategy", "snow.incident-value"),
            ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "sh.oso.servicenow.incident.Value"),
            ("TopicRecordNameStrategy", "snow.incident-sh.oso.servicenow.incident.Value"),
        ] {
            assert_eq!(Strategy::of(class).subject(&value).expect("a subject"), subject);
        }
        let key = candidate(Part::Key, None);
        assert_eq!(Strategy::Topic.subject(&key).expect("a subject"), "snow.incident-key");
        for strategy in [Strategy::Record, Strategy::TopicRecord] {
            let error = strategy.subject(&key).expect_err("a text has no record").of("topic", "t");
            assert!(error.code == "Registry.NoSubject" && error.message.contains("Use TopicNameStrategy"), "{error}");
        }
    }

    #[test]
    fn what_an_address_carries_is_decoded() {
        let url = Url::parse("https://a%40b:p%3Aw@registry/").expect("an address");
        assert_eq!(Credential::of_address(&url), Some(Credential::Basic("a@b".to_owned(), "p:w".to_owned().into())));
        let bare = Url::parse("https://registry/").expect("an address");
        assert_eq!((without_credential(url), Credential::of_address(&bare)), (bare, None));
    }
}
