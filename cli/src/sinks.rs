//! Where records go, and opening it.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use tablesweep::assembly::Sinks;
use tablesweep::config::{Documents, Resolver};
use tablesweep::delivery::{ToKafka, ToOne};
use tablesweep::host::Host;
use tablesweep::sink::kafka::KafkaOptions;
use tablesweep::sink::ndjson::NdjsonSink;

use crate::exit::Stop;

/// The worker's key that a sweep into Kafka cannot do without.
pub const BROKERS: &str = "bootstrap.servers";

/// A sink, as it is named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkSpec {
    /// `kafka`.
    Kafka,
    /// `ndjson:PATH`.
    File(PathBuf),
    /// `-`.
    Stdout,
}

impl FromStr for SinkSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("ndjson", "-")) => Ok(Self::Stdout),
            Some(("ndjson", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            None if text == "kafka" => Ok(Self::Kafka),
            None if text == "-" => Ok(Self::Stdout),
            _ => Err("write kafka, ndjson:PATH or -".to_owned()),
        }
    }
}

impl SinkSpec {
    /// Makes ready to give every connector its sink. Nothing is connected yet.
    pub async fn open(&self, documents: &Documents, resolver: &Arc<Resolver>, host: &Host) -> Result<Arc<dyn Sinks>, Stop> {
        Ok(match self {
            Self::File(path) => Arc::new(ToOne(Arc::new(NdjsonSink::open(path)?))),
            Self::Stdout => Arc::new(ToOne(Arc::new(NdjsonSink::stdout()?))),
            Self::Kafka => {
                if !documents.worker.values.is_set(BROKERS) {
                    return Err(Stop::wrong(format!(
                        "Config.Invalid: worker.json: {BROKERS} is missing, and a sweep into Kafka needs it; \
                         `--sink ndjson:PATH` or `--sink -` needs no broker"
                    )));
                }
                let worker = documents.worker.resolve(resolver).await.map_err(|error| {
                    let message = format!("{}: {error}", error.code());
                    if error.is_transient() { Stop::failed(message) } else { Stop::wrong(message) }
                })?;
                let options = KafkaOptions::new("tablesweep", host.clone());
                Arc::new(ToKafka::new(worker, Arc::clone(resolver), options))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_is_named_by_its_kind_and_place() {
        assert_eq!("kafka".parse(), Ok(SinkSpec::Kafka));
        assert_eq!("-".parse(), Ok(SinkSpec::Stdout));
        assert_eq!("ndjson:rows:1.ndjson".parse(), Ok(SinkSpec::File("rows:1.ndjson".into())));
        for text in ["", "ndjson", "ndjson:", "kafka:", "file:x"] {
            assert!(text.parse::<SinkSpec>().is_err(), "{text}");
        }
    }
}
