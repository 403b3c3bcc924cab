//! The schema registry of AWS Glue.
//!
//! A schema is looked up by its text. Where the settings allow it, what is not there is made: a version of the schema, or
//! the schema itself. Whether a version agrees with the earlier ones is found out by Glue after it took the version, so an
//! answer may be `PENDING` and has to be asked for again (AWS Glue Web API Reference, "RegisterSchemaVersion").
//!
//! It is asked for again by its text too, and not by its id: a call that names an id alone names no registry and no schema, so
//! IAM holds it against `*` and a role that is limited to one registry is refused (awslabs/aws-glue-schema-registry#68, #151).
//! `GetSchemaByDefinition` names both and answers the status as well.
//!
//! A record begins with the header of AWS's own serialisers: the byte 3, a byte that is 5 if the data is compressed with
//! zlib and else 0, and the 16 bytes of the version's id (`awslabs/aws-glue-schema-registry`, `AWSSchemaRegistryConstants`).
//! Other than those, nothing is written to a version's metadata: it would take one more right, for a note of the topic.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use url::Url;

use super::answers::{Answers, Question};
use super::{Error, end};
use crate::aws::{self, Client};
use crate::config;
use crate::failure::Failure;
use crate::host::Host;
use crate::record::converter::registration::{Candidate, Kept, Language, Part, Registered, Registry};

/// The registry that Glue makes itself when it is first needed.
const DEFAULT_REGISTRY: &str = "default-registry";
/// The first pause before a version that is being checked is asked for again; it doubles.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Which registry, and how it is asked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The region; that of the environment if not given.
    pub region: Option<String>,
    /// Where Glue is asked; where the environment says if not given.
    pub endpoint: Option<Url>,
    /// The registry.
    pub registry: String,
    /// The schema; named after the topic if not given.
    pub schema: Option<String>,
    /// Whether schemas and versions are made.
    pub auto_register: bool,
    /// How far the versions of a schema that is made must agree.
    pub compatibility: String,
    /// Whether data is compressed.
    pub zlib: bool,
    /// The description of a schema that is made.
    pub description: Option<String>,
    /// The tags of a schema that is made.
    pub tags: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the settings of a converter, which were checked.
    pub fn read(settings: &config::Settings<'_>) -> Self {
        let text = |name| settings.text(name).map(str::to_owned);
        Self {
            region: text("region"),
            endpoint: settings.address("endpoint"),
            registry: text("registry.name").unwrap_or_else(|| DEFAULT_REGISTRY.to_owned()),
            schema: text("schemaName"),
            auto_register: settings.boolean("schemaAutoRegistrationEnabled"),
            compatibility: text("compatibility").unwrap_or_default().to_ascii_uppercase(),
            zlib: settings.text("compression").is_some_and(|compression| compression.eq_ignore_ascii_case("ZLIB")),
            description: text("description"),
            tags: settings.tags("tags").into_iter().collect(),
        }
    }
}

/// A client of the registry, for the keys or the values of one connector.
pub struct Glue {
    settings: Settings,
    client: OnceCell<Client>,
    /// The registry and how it is asked, as answers are told apart by.
    identity: Arc<str>,
    answers: Answers,
    host: Host,
}

impl fmt::Debug for Glue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Glue").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// A schema of a registry, by its name.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SchemaId<'r> {
    registry_name: &'r str,
    schema_name: &'r str,
}

/// `GetSchemaByDefinition` and `RegisterSchemaVersion`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ByDefinition<'r> {
    schema_id: SchemaId<'r>,
    schema_definition: &'r str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct RegistryId<'r> {
    registry_name: &'r str,
}

/// `CreateSchema`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Create<'r> {
    /// Left out for the default registry, which Glue then makes if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    registry_id: Option<RegistryId<'r>>,
    schema_name: &'r str,
    data_format: &'static str,
    compatibility: &'r str,
    schema_definition: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'r str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: &'r BTreeMap<String, String>,
}

/// A version, as all of these operations answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Version {
    schema_version_id: String,
    #[serde(alias = "SchemaVersionStatus")]
    status: String,
}

impl Glue {
    /// Contacts nothing.
    pub fn new(settings: Settings, answers: Answers, host: Host) -> Self {
        let place = settings.endpoint.as_ref().map(Url::as_str).or(settings.region.as_deref()).unwrap_or_default();
        let identity = format!("glue {place} {} ({})", settings.registry, if settings.auto_register { "register" } else { "find" });
        // Whether data is compressed is part of an answer.
        let identity = format!("{identity}{}", if settings.zlib { " zlib" } else { "" });
        Self { identity: identity.into(), settings, client: OnceCell::new(), answers, host }
    }

    /// The client; made when it is first needed, since that asks the machine for region and credentials.
    async fn client(&self) -> Result<&Client, Error> {
        let make = async {
            let mut loader = aws_config::from_env();
            if let Some(region) = &self.settings.region {
                loader = loader.region(aws_config::Region::new(region.clone()));
            }
            let config = Box::pin(loader.load()).await;
            let client = Client::new(&config, aws::GLUE, self.host.clone()).map_err(|error| self.refused(error))?;
            Ok(match &self.settings.endpoint {
                Some(endpoint) => client.at(endpoint.clone()),
                None => client,
            })
        };
        self.client.get_or_try_init(|| make).await
    }

    async fn call(&self, client: &Client, operation: &str, request: &impl Serialize, end: Duration) -> Result<Version, aws::Error> {
        client.call(operation, request, end.saturating_sub(self.host.monotonic())).await
    }

    async fn ask(&self, candidate: &Candidate, name: &str, end: Duration) -> Result<Registered, Error> {
        let client = self.client().await?;
        let schema_id = SchemaId { registry_name: &self.settings.registry, schema_name: name };
        let wanted = ByDefinition { schema_id, schema_definition: &candidate.text };
        let version = match self.find(client, &wanted, end).await? {
            Some(version) => version,
            None if self.settings.auto_register => self.register(client, &wanted, candidate, end).await?,
            None => {
                let detail = format!("registry {}", self.settings.registry);
                return Err(Error::Missing { detail, advice: "Register it, or set schemaAutoRegistrationEnabled=true" });
            }
        };
        let id = self.available(client, version, &wanted, end).await?;
        Ok(Registered { header: header(&id, self.settings.zlib)?, zlib: self.settings.zlib, instead: None })
    }

    /// The version with this text, if there is one.
    async fn find(&self, client: &Client, wanted: &ByDefinition<'_>, end: Duration) -> Result<Option<Version>, Error> {
        match self.call(client, "GetSchemaByDefinition", wanted, end).await {
            Err(error) if error.code() == Some(NOT_FOUND) => Ok(None),
            found => found.map(Some).map_err(|error| self.refused(error)),
        }
    }

    /// Registers a version, of a schema that is made if there is none.
    async fn register(&self, client: &Client, wanted: &ByDefinition<'_>, candidate: &Candidate, end: Duration) -> Result<Version, Error> {
        const REGISTER: &str = "RegisterSchemaVersion";
        match self.call(client, REGISTER, wanted, end).await {
            Err(error) if error.code() == Some(NOT_FOUND) => {}
            registered => return registered.map_err(|error| self.refused(error)),
        }
        let settings = &self.settings;
        let named = (settings.registry != DEFAULT_REGISTRY).then_some(RegistryId { registry_name: &settings.registry });
        let create = Create {
            registry_id: named,
            schema_name: wanted.schema_id.schema_name,
            data_format: match candidate.language {
                Language::Avro => "AVRO",
                Language::JsonSchema => "JSON",
            },
            compatibility: &settings.compatibility,
            schema_definition: wanted.schema_definition,
            description: settings.description.as_deref(),
            tags: &settings.tags,
        };
        match self.call(client, "CreateSchema", &create, end).await {
            // Somebody else made it in between.
            Err(error) if error.code() == Some("AlreadyExistsException") => {
                self.call(client, REGISTER, wanted, end).await.map_err(|error| self.refused(error))
            }
            created => created.map_err(|error| self.refused(error)),
        }
    }

    /// The id of a version, once Glue has compared it with the earlier ones.
    async fn available(&self, client: &Client, mut version: Version, wanted: &ByDefinition<'_>, end: Duration) -> Result<String, Error> {
        let mut pause = PAUSE;
        loop {
            match version.status.as_str() {
                "AVAILABLE" => return Ok(version.schema_version_id),
                "FAILURE" => {
                    return Err(Error::Incompatible { detail: format!("version {} failed Glue's check", version.schema_version_id) });
                }
                "PENDING" => {}
                other => return Err(Error::Refused { detail: format!("version {} is {other}", version.schema_version_id) }),
            }
            if end.saturating_sub(self.host.monotonic()) <= pause {
                let detail = format!("version {} is still being checked", version.schema_version_id);
                return Err(Error::Unable { address: "Glue".to_owned(), detail });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            // A version that was taken a moment ago and is not found yet is one that is not checked yet.
            version = self.find(client, wanted, end).await?.unwrap_or(version);
        }
    }

    /// What a failed call means.
    fn refused(&self, error: aws::Error) -> Error {
        let detail = error.to_string();
        let registry = &self.settings.registry;
        if error.is_transient() || error.code() == Some("ConcurrentModificationException") {
            return Error::Unable { address: "Glue".to_owned(), detail };
        }
        match error.code() {
            None => Error::Settings(detail),
            Some("AccessDeniedException") => Error::Forbidden {
                detail,
                advice: format!(
                    "The role needs glue:GetSchemaByDefinition on the registry {registry} and its schemas, and with \
                     schemaAutoRegistrationEnabled=true glue:RegisterSchemaVersion and glue:CreateSchema"
                ),
            },
            Some(NOT_FOUND) => Error::Refused { detail: format!("{detail}; is there a registry {registry} in this region and account?") },
            Some(code) if CREDENTIALS.contains(&code) => Error::Unauthorized {
                address: "Glue".to_owned(),
                detail,
                advice: "Check the credentials that this runs with, and the clock",
            },
            Some(_) => Error::Refused { detail },
        }
    }
}

/// What Glue says of a schema, a version or a registry that does not exist.
const NOT_FOUND: &str = "EntityNotFoundException";
/// What AWS says of credentials that do not count.
const CREDENTIALS: [&str; 5] = [
    "UnrecognizedClientException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "IncompleteSignatureException",
    "MissingAuthenticationTokenException",
];

#[async_trait]
impl Registry for Glue {
    async fn register(&self, candidate: &Candidate, by: Option<Duration>) -> Result<Registered, Failure> {
        let name = self.settings.schema.as_ref().unwrap_or(&candidate.topic).clone();
        let question = Question { registry: Arc::clone(&self.identity), name, language: candidate.language, text: candidate.text.clone() };
        if let Some(known) = self.answers.get(&question, self.host.monotonic()) {
            return Ok(known);
        }
        let end = end(self.host.monotonic(), by);
        let registered = self.ask(candidate, &question.name, end).await.map_err(|error| error.of("schema", &question.name))?;
        self.answers.put(question, registered.clone(), None);
        Ok(registered)
    }

    async fn probe(&self, topic: &str, _part: Part) -> Result<Kept, Failure> {
        let name = self.settings.schema.clone().unwrap_or_else(|| topic.to_owned());
        let told = |error: Error| error.of("schema", &name);
        let client = self.client().await.map_err(told)?;
        // Any text will do. Glue says the same of a schema, of a version and of a registry that is not there.
        let schema_id = SchemaId { registry_name: &self.settings.registry, schema_name: &name };
        let wanted = ByDefinition { schema_id, schema_definition: "\"string\"" };
        self.find(client, &wanted, end(self.host.monotonic(), None)).await.map_err(told)?;
        Ok(Kept { name: name.clone(), is_there: None, registers: self.settings.auto_register })
    }
}

/// What goes before the data.
fn header(id: &str, zlib: bool) -> Result<Bytes, Error> {
    let digits: Vec<u32> = id.chars().filter(|c| *c != '-').filter_map(|c| c.to_digit(16)).collect();
    if digits.len() != 32 {
        return Err(Error::NotARegistry { address: "Glue".to_owned(), detail: "the id of a version is no UUID".to_owned() });
    }
    let bytes = digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap_or_default());
    Ok([3, if zlib { 5 } else { 0 }].into_iter().chain(bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_18_bytes_version_compression_and_the_id() {
        let id = "00112233-4455-6677-8899-aabbccddeeff";
        let bytes: Vec<u8> = (0..16).map(|n| n * 0x11).collect();
        assert_eq!(header(id, false).expect("a header")[..], [&[3, 0], &bytes[..]].concat());
        assert_eq!(header(id, true).expect("a header")[..], [&[3, 5], &bytes[..]].concat());
        for wrong in ["", "00112233", "00112233-4455-6677-8899-aabbccddeeff00"] {
            assert!(header(wrong, false).is_err(), "{wrong}");
        }
    }
}
