//! Where a schema that grows is kept, so that all who write to a topic agree on it.

use async_trait::async_trait;

use crate::failure::Failure;

/// Which schema is meant. It belongs to a connector's topic and not to a table or a query: records of several tables
/// in one topic share one schema, and a changed query goes on with the schema that is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaPlace {
    /// The connector's name.
    pub connector: String,
    /// The topic.
    pub topic: String,
    /// The schema mode, since the modes share no fields' types.
    pub mode: &'static str,
}

/// Keeps schemas by place, each with a revision for conditional replacement.
#[async_trait]
pub trait SchemaStore: Send + Sync {
    /// The stored bytes and their revision; read consistently.
    async fn read(&self, place: &SchemaPlace) -> Result<Option<(Vec<u8>, u64)>, Failure>;

    /// Writes `bytes` if the stored revision is still `known`, and `None` stands for nothing stored. Returns the new
    /// revision, or `None` if another writer came first.
    async fn replace(&self, place: &SchemaPlace, bytes: &[u8], known: Option<u64>) -> Result<Option<u64>, Failure>;
}
