//! What the documents' settings of a producer have against each other, before anybody signs in with them.

use std::collections::{BTreeMap, BTreeSet};

use super::KafkaOptions;
use super::error::KafkaError;
use super::settings::Settings;
use crate::host::Host;

/// A setting that cannot be as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// librdkafka's name of it.
    pub setting: String,
    /// What is wrong with it, and what it should be.
    pub message: String,
}

/// Why no producer can be made of these settings, by librdkafka's names: what they have against each other, against our own values
/// where nobody chose, and against what a producer must promise. Nothing is connected, and no file is read.
///
/// `pending` are those whose value is not known yet. Names and secrets are taken to be right; while a number or a choice is
/// pending nothing is found. What depends on the function's timeout is found where there is one.
pub fn conflicts(settings: &BTreeMap<String, String>, pending: &BTreeSet<&str>) -> Vec<Conflict> {
    if !pending.iter().all(|setting| is_free_text(setting)) {
        return Vec::new();
    }
    let stand_ins = pending.iter().map(|setting| ((*setting).to_owned(), "pending".to_owned()));
    let settings = stand_ins.chain(settings.clone()).collect();
    let region = Some("pending".to_owned());
    let options = KafkaOptions { function_timeout: None, client_id: "pending".to_owned(), host: Host::system(), credentials: None, region };
    let conflict = |fault| match fault {
        KafkaError::Setting { key, message } => Conflict { setting: key, message },
        other => Conflict { setting: "producer".to_owned(), message: other.to_string() },
    };
    Settings::faults(&settings, &options).into_iter().map(conflict).collect()
}

/// Whether any text may stand here.
fn is_free_text(setting: &str) -> bool {
    let is_of_tls = setting.starts_with("ssl.") && [".location", ".password", ".pem"].iter().any(|end| setting.ends_with(end));
    is_of_tls || ["bootstrap.servers", "client.id", "client.rack", "sasl.password", "sasl.username"].contains(&setting)
}
