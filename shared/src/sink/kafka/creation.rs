//! Topics that do not exist and that the documents ask to be made.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic as Wish, TopicReplication};
use rdkafka::config::{ClientConfig, FromClientConfigAndContext as _};
use rdkafka::error::RDKafkaErrorCode as Code;

use super::connection::Connection;
use super::context::Context;
use super::error::{self, KafkaError};

/// How a topic is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// The number of partitions; -1 for the broker's default.
    pub partitions: i32,
    /// The replication factor; -1 for the broker's default.
    pub replication_factor: i32,
    /// Further settings of the topic, by Kafka's names.
    pub config: BTreeMap<String, String>,
}

/// How the topic of a name is made.
type Of = dyn Fn(&str) -> Option<NewTopic> + Send + Sync;

/// Says how a topic is made, and of which topics that they must exist.
#[derive(Clone)]
pub struct TopicMaker(Arc<Of>);

impl TopicMaker {
    /// `None` of a topic that must exist.
    pub fn new(of: impl Fn(&str) -> Option<NewTopic> + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// Of every topic that it must exist.
    pub fn none() -> Self {
        Self::new(|_| None)
    }

    pub(super) fn of(&self, topic: &str) -> Option<NewTopic> {
        (self.0)(topic)
    }
}

impl fmt::Debug for TopicMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TopicMaker").finish()
    }
}

/// What the brokers are asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To make the topic.
    Create,
    /// To say whether they would.
    Ask,
}

/// Makes `topic`, or asks whether it could be made. That somebody else was quicker is as good.
///
/// A client of its own is opened for this and closed again: a topic is made once in its life.
///
/// # Errors
/// `Sink.TopicRefused` says what the brokers have against it; `Sink.Credentials` if there is no token to sign in with.
pub(super) async fn create(topic: &str, new: &NewTopic, connection: &Connection, purpose: Purpose) -> Result<(), KafkaError> {
    let settings = connection.settings();
    let config: ClientConfig = settings.client_config();
    let context = Context::new(connection.host().clone(), settings.secrets(), None);
    let admin = AdminClient::from_config_and_context(&config, context).map_err(|error| settings.refused(&error))?;
    if let Some(signer) = connection.signer() {
        signer.sign_in(admin.inner()).await?;
    }
    let mut wish = Wish::new(topic, new.partitions, TopicReplication::Fixed(new.replication_factor));
    for (name, value) in &new.config {
        wish = wish.set(name, value);
    }
    let limit = settings.check_timeout();
    let options = AdminOptions::new().operation_timeout(Some(limit)).request_timeout(Some(limit)).validate_only(purpose == Purpose::Ask);
    let answers = admin.create_topics([&wish], &options).await;
    // Ending a client joins its thread.
    let ended = tokio::task::spawn_blocking(move || drop(admin)).await;
    if let Err(ended) = ended {
        tracing::error!(%ended, "the end of a Kafka client was broken off");
    }
    match answers.map(|answers| answers.into_iter().next()) {
        Ok(None | Some(Ok(_))) if purpose == Purpose::Ask => Ok(()),
        Ok(None | Some(Ok(_))) => {
            let NewTopic { partitions, replication_factor, .. } = new;
            tracing::info!(topic, partitions, replication_factor, "the topic was missing and has been created");
            Ok(())
        }
        Ok(Some(Err((_, Code::TopicAlreadyExists)))) => Ok(()),
        Ok(Some(Err((_, code)))) => Err(error::not_created(topic, new, code, &settings)),
        Err(failed) => Err(error::not_created(topic, new, failed.rdkafka_error_code().unwrap_or(Code::Unknown), &settings)),
    }
}
