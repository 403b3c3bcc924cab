//! Putting the exported schema of a topic in, beside the one that is there.

use super::{CommandError, Operator, Refusal, WRITE_TRIES};
use crate::cursor::{Expect, StoreError};
use crate::record::joined_schemas;

/// The schema of a topic, as it was exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSchema {
    /// The connector's name.
    pub connector: String,
    /// Where it lies.
    pub place: String,
    /// The schema as it is stored.
    pub text: String,
}

impl Operator<'_> {
    /// What putting `schema` in would do, in words; `None` if all of it is there.
    ///
    /// # Errors
    /// What lies there cannot be read, or the store does not answer.
    pub async fn prepare_schema(&self, schema: &TopicSchema) -> Result<Option<String>, CommandError> {
        let TopicSchema { connector, place, .. } = schema;
        Ok(self.joined(schema).await?.map(|(_, expect)| match expect {
            Expect::Absent => format!("puts the schema {place} of {connector} in, as it was exported"),
            _ => format!("joins the exported schema {place} of {connector} with the one that is here: no field of either goes"),
        }))
    }

    /// Puts `schema` in. Sweeps may run: whoever writes records of the topic grows the schema in the same way.
    ///
    /// # Errors
    /// What lies there cannot be read, it changed again and again, or the store does not answer.
    pub async fn put_schema(&self, schema: &TopicSchema) -> Result<(), CommandError> {
        let TopicSchema { connector, place, .. } = schema;
        for _ in 0..WRITE_TRIES {
            let Some((bytes, expect)) = self.joined(schema).await? else { return Ok(()) };
            if self.store.put_blob(connector, place, &bytes, expect, None).await?.is_some() {
                return Ok(());
            }
        }
        let table = format!("{connector} {place}");
        Err(CommandError::Changed { table, refusal: Refusal::Untold })
    }

    /// What is to be stored, and what must be stored until then; `None` if nothing is to be.
    async fn joined(&self, schema: &TopicSchema) -> Result<Option<(Vec<u8>, Expect)>, CommandError> {
        let TopicSchema { connector, place, text } = schema;
        let Some(here) = self.store.get_blob(connector, place).await? else {
            return Ok(Some((text.clone().into_bytes(), Expect::Absent)));
        };
        let joined = joined_schemas(&here.bytes, text.as_bytes()).map_err(|what| StoreError::Format {
            partition: connector.clone(),
            place: place.clone(),
            detail: format!("the schema {what}"),
        })?;
        Ok(joined.map(|bytes| (bytes, Expect::Revision(here.revision))))
    }
}
