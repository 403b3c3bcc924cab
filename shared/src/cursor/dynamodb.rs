//! The cursor store of the functions: one DynamoDB table.
//!
//! # The table
//!
//! Partition key `connector` (string), sort key `place` (string), time to live on `expires`. An item is a cursor or a
//! blob. A cursor has the attributes
//!
//! | attribute | | |
//! |---|---|---|
//! | `format`, `revision`, `write_id` | N, N, S | as in [`Item`] |
//! | `owner`, `until` | S, N | the lease; absent while nobody holds it |
//! | `tries`, `started` | N, N | as in [`Item`] |
//! | `paused`, `parked`, `next_try` | S, S, N | how the table stands, in JSON, and when a parked one is next tried; absent while active |
//! | `rewound_by` | S | as in [`Item`] |
//! | `identity`, `progress` | S, S | the rest, in JSON |
//!
//! What a condition needs is an attribute of its own, and what one write replaces as a whole is one attribute: so no
//! write of a sweep needs to have read the item, and one of a usual size (see `layout`) is one write unit. A blob has
//! `bytes` (B), `revision`, `write_id` and `expires` (N, epoch seconds). Numbers are numbers, so that conditions compare
//! them as such.
//!
//! # A write
//!
//! A sweep's write is one `UpdateItem` whose condition says what [`apply`] would check. `apply` stays the judge: when
//! the condition fails, DynamoDB hands back the item as it is, in the same answer, and `apply` says of it what to tell
//! the writer. Three things come out of that. The refusal is the same as in every other store. A write whose answer was
//! lost, and which the SDK sent again, finds its own id in the item and counts as done. And a write that `apply` accepts
//! where the condition did not (the fourth death, which parks the table) is put under the condition that the item is
//! still the one that was judged.
//!
//! An operator's write, or the one that follows a renamed alias, is rare and may depend on more of the item than a condition
//! can say, so it goes that second way from the start: read, judge, put if unchanged.

mod errors;
mod layout;
mod probe;
mod table;
#[cfg(test)]
mod tests;
mod update;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure as OnFailure};

use self::errors::{Attempts, Target};
use self::layout as attribute;
use self::update::Update;
use super::{Blob, Change, CursorStore, Expect, Item, Key, Listing, Refusal, StoreError, Write, WriteError, apply};
use crate::host::Host;

pub use table::{create_table, local_client};

type Attributes = HashMap<String, AttributeValue>;

/// Establishing a connection takes milliseconds inside a region.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// So does an answer; what takes this long is lost.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(3);

/// All attempts of one call. This is more than a sweep keeps for its last commit (`LAST_COMMIT`), which covers an attempt and not all of
/// them: a store that is slow just then costs that commit, and the next sweep sends the last pages again.
const CALL_WITHIN: Duration = Duration::from_secs(8);

/// How often a write is judged anew because the item changed in between. Each time somebody else's write was taken,
/// so more than a few in a row is no accident.
const JUDGEMENTS: usize = 8;

/// A store in a DynamoDB table.
#[derive(Clone)]
pub struct DynamoStore {
    client: Client,
    target: Target,
    host: Host,
}

impl std::fmt::Debug for DynamoStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamoStore").field("table", &self.target.table).finish_non_exhaustive()
    }
}

/// What came of a conditional write.
enum Sent<T> {
    Done(T),
    /// The condition did not hold for the item as it is: `None` if there is none.
    Failed(Option<Attributes>),
}

/// What a write starts from.
enum Start {
    /// One update whose condition says it all.
    Update(Update),
    /// The guess that there is no item.
    Nothing,
    /// The item as it is.
    Read,
}

impl DynamoStore {
    /// A store in `table`, through `client`. The client's retries and time limits are its maker's affair.
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { client, target: Target::new(table.into()), host: Host::system() }
    }

    /// A store in `table` of the account and region that the environment names (`AWS_REGION`, `AWS_PROFILE`,
    /// `AWS_ENDPOINT_URL` and the SDK's other variables and files).
    pub async fn from_env(table: impl Into<String>) -> Self {
        let config = configuration().load().await;
        Self::new(Client::new(&config), table)
    }

    /// The same store, forgetting blobs by the clock of `host`.
    #[must_use]
    pub fn with_host(self, host: Host) -> Self {
        Self { host, ..self }
    }

    async fn get(&self, partition: &str, place: &str) -> Result<Option<Attributes>, StoreError> {
        let request = self.client.get_item().table_name(&self.target.table).consistent_read(true);
        let request = request.set_key(Some(attribute::key(partition, place)));
        match request.send().await {
            Ok(answer) => Ok(answer.item),
            Err(error) => Err(self.target.error("GetItem", &error, &Attempts::default())),
        }
    }

    async fn update(&self, partition: &str, place: &str, update: Update) -> Result<Sent<Attributes>, StoreError> {
        let attempts = Attempts::default();
        let request = self
            .client
            .update_item()
            .table_name(&self.target.table)
            .set_key(Some(attribute::key(partition, place)))
            .update_expression(update.expression())
            .condition_expression(update.condition())
            .set_expression_attribute_names(Some(update.names))
            .set_expression_attribute_values(Some(update.values))
            .return_values(update.returns)
            .return_values_on_condition_check_failure(OnFailure::AllOld);
        match request.customize().interceptor(attempts.clone()).send().await {
            Ok(answer) => Ok(Sent::Done(answer.attributes.unwrap_or_default())),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => Ok(Sent::Failed(failed.item.clone())),
                _ => Err(self.target.error("UpdateItem", &error, &attempts)),
            },
        }
    }

    /// Puts `item` in the place of `before`, if that is still what lies there.
    async fn put(&self, key: &Key, before: Option<&Item>, item: &Item) -> Result<Sent<()>, StoreError> {
        let attempts = Attempts::default();
        let request = self.client.put_item().table_name(&self.target.table).set_item(Some(attribute::item(key, item)));
        let request = match before {
            None => request.condition_expression("attribute_not_exists(#place)").expression_attribute_names("#place", attribute::PLACE),
            // The revision alone could come back after a removal; an id never does.
            Some(before) => request
                .condition_expression("#revision = :revision AND #write_id = :write_id")
                .expression_attribute_names("#revision", attribute::REVISION)
                .expression_attribute_names("#write_id", attribute::WRITE_ID)
                .expression_attribute_values(":revision", attribute::number(before.revision))
                .expression_attribute_values(":write_id", attribute::text(&before.write_id)),
        };
        let request = request.return_values_on_condition_check_failure(OnFailure::AllOld);
        match request.customize().interceptor(attempts.clone()).send().await {
            Ok(_) => Ok(Sent::Done(())),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => Ok(Sent::Failed(failed.item.clone())),
                _ => Err(self.target.error("PutItem", &error, &attempts)),
            },
        }
    }

    /// Lets [`apply`] judge what lies at `key`, and puts what it gives, until the item stands still for that long.
    async fn judge(&self, key: &Key, mut lies: Option<Attributes>, write: &Write) -> Result<Item, WriteError> {
        for _ in 0..JUDGEMENTS {
            let before = lies.map(|lies| attribute::decode_item(key, &lies)).transpose()?;
            let after = apply(before.as_ref(), write)?;
            if before.as_ref().is_some_and(|before| before.revision == after.revision) {
                // It was done before.
                return Ok(after);
            }
            match self.put(key, before.as_ref(), &after).await? {
                Sent::Done(()) => return Ok(after),
                Sent::Failed(now) => lies = now,
            }
        }
        let detail = format!("the cursor {}, {} changes faster than it can be written", key.connector, key.place);
        Err(StoreError::Busy { store: self.target.name.clone(), detail }.into())
    }

    /// All items of a partition that pass `filter`.
    async fn query(
        &self,
        partition: &str,
        filter: &str,
        names: &[(&str, &str)],
        values: &[(&str, AttributeValue)],
    ) -> Result<Vec<Attributes>, StoreError> {
        let mut request = self
            .client
            .query()
            .table_name(&self.target.table)
            .consistent_read(true)
            .key_condition_expression("#connector = :connector")
            .filter_expression(filter)
            .expression_attribute_names("#connector", attribute::CONNECTOR)
            .expression_attribute_values(":connector", attribute::text(partition));
        for (name, is) in names {
            request = request.expression_attribute_names(*name, *is);
        }
        for (name, is) in values {
            request = request.expression_attribute_values(*name, is.clone());
        }
        let items = request.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await;
        items.map_err(|error| self.target.error("Query", &error, &Attempts::default()))
    }

    fn now_s(&self) -> AttributeValue {
        attribute::number(self.host.now_ms().div_euclid(1_000))
    }
}

/// How every client asks: briefly, and again.
fn configuration() -> aws_config::ConfigLoader {
    let times = aws_config::timeout::TimeoutConfig::builder()
        .connect_timeout(CONNECT_WITHIN)
        .operation_attempt_timeout(ATTEMPT_WITHIN)
        .operation_timeout(CALL_WITHIN)
        .build();
    aws_config::defaults(aws_config::BehaviorVersion::latest())
        .timeout_config(times)
        .retry_config(aws_config::retry::RetryConfig::standard())
}

/// How `write` begins.
fn start(write: &Write) -> Start {
    match &write.change {
        Change::Create(_) | Change::Import(_) => Start::Nothing,
        Change::Acquire(wish) => Start::Update(Update::acquire(write, wish)),
        Change::Commit(hold, progress) => Start::Update(Update::commit(write, hold, progress)),
        Change::Renew(hold, until_ms) => Start::Update(Update::renew(write, hold, *until_ms)),
        Change::Release(hold, progress, standing) => Start::Update(Update::release(write, hold, progress, standing)),
        Change::Rename(..)
        | Change::Rewind(_)
        | Change::Reset { .. }
        | Change::Pause { .. }
        | Change::Resume { .. }
        | Change::Accept { .. } => Start::Read,
    }
}

#[async_trait]
impl CursorStore for DynamoStore {
    fn name(&self) -> &str {
        &self.target.name
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<Item, WriteError> {
        let lies = match start(write) {
            Start::Nothing => None,
            Start::Read => self.get(&key.connector, &key.place).await?,
            Start::Update(update) => match self.update(&key.connector, &key.place, update).await? {
                Sent::Done(item) => return Ok(attribute::decode_item(key, &item)?),
                Sent::Failed(lies) => lies,
            },
        };
        self.judge(key, lies, write).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.get(&key.connector, &key.place).await?.map(|item| attribute::decode_item(key, &item)).transpose()
    }

    async fn survey(&self, connector: &str) -> Result<Listing, StoreError> {
        // Whatever is no blob must be a cursor, or the table is shared with somebody, which is to be said.
        let items = self.query(connector, "attribute_not_exists(#bytes)", &[("#bytes", attribute::BYTES)], &[]).await?;
        let mut listing = Listing::default();
        for item in &items {
            let key = attribute::key_of(item);
            let read = attribute::decode_item(&key, item);
            listing.take(key, read, || attribute::identity_of(item))?;
        }
        Ok(listing)
    }

    async fn connectors(&self) -> Result<Vec<String>, StoreError> {
        let request = self
            .client
            .scan()
            .table_name(&self.target.table)
            .consistent_read(true)
            .filter_expression("attribute_not_exists(#bytes)")
            .projection_expression("#connector")
            .expression_attribute_names("#bytes", attribute::BYTES)
            .expression_attribute_names("#connector", attribute::CONNECTOR);
        let items = request.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await;
        let items = items.map_err(|error| self.target.error("Scan", &error, &Attempts::default()))?;
        let connectors: BTreeSet<String> = items.iter().map(|item| attribute::key_of(item).connector).collect();
        Ok(connectors.into_iter().collect())
    }

    async fn remove(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        let attempts = Attempts::default();
        let request = self
            .client
            .delete_item()
            .table_name(&self.target.table)
            .set_key(Some(attribute::key(&key.connector, &key.place)))
            .condition_expression(
                "attribute_not_exists(#place) OR (#format <= :format AND (attribute_not_exists(#until) OR #until <= :now))",
            )
            .expression_attribute_names("#place", attribute::PLACE)
            .expression_attribute_names("#format", attribute::FORMAT)
            .expression_attribute_names("#until", attribute::UNTIL)
            .expression_attribute_values(":format", attribute::number(super::FORMAT))
            .expression_attribute_values(":now", attribute::number(now_ms))
            .return_values_on_condition_check_failure(OnFailure::AllOld);
        let Err(error) = request.customize().interceptor(attempts.clone()).send().await else { return Ok(()) };
        let Some(DeleteItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() else {
            return Err(self.target.error("DeleteItem", &error, &attempts).into());
        };
        let Some(lies) = &failed.item else { return Ok(()) };
        let until_ms = attribute::decode_item(key, lies)?.lease.map_or(now_ms, |lease| lease.until_ms);
        Err(Refusal::Leased { until_ms }.into())
    }

    async fn discard(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        let Some(lies) = self.get(&key.connector, &key.place).await? else { return Ok(()) };
        if attribute::is_blob(&lies) || attribute::decode_item(key, &lies).is_ok() {
            return Err(Refusal::Exists.into());
        }
        if let Some(until_ms) = attribute::lease_end(&lies).filter(|until_ms| *until_ms > now_ms) {
            return Err(Refusal::Leased { until_ms }.into());
        }
        let attempts = Attempts::default();
        let mut request = self
            .client
            .delete_item()
            .table_name(&self.target.table)
            .set_key(Some(attribute::key(&key.connector, &key.place)))
            .expression_attribute_names("#write_id", attribute::WRITE_ID);
        // Each write of a program like this one brings another id; of any other's nothing is known.
        request = match lies.get(attribute::WRITE_ID) {
            Some(id) => request.condition_expression("#write_id = :write_id").expression_attribute_values(":write_id", id.clone()),
            None => request.condition_expression("attribute_not_exists(#write_id)"),
        };
        let request = request.return_values_on_condition_check_failure(OnFailure::AllOld);
        let Err(error) = request.customize().interceptor(attempts.clone()).send().await else { return Ok(()) };
        match error.as_service_error() {
            // It is gone: by this request, whose first answer was lost, or by another's.
            Some(DeleteItemError::ConditionalCheckFailedException(failed)) if failed.item.is_none() => Ok(()),
            Some(DeleteItemError::ConditionalCheckFailedException(_)) => Err(Refusal::Exists.into()),
            _ => Err(self.target.error("DeleteItem", &error, &attempts).into()),
        }
    }

    async fn get_blob(&self, partition: &str, place: &str) -> Result<Option<Blob>, StoreError> {
        let found = self.get(partition, place).await?;
        let now_s = self.host.now_ms().div_euclid(1_000);
        match found.filter(|item| attribute::is_blob(item) && !attribute::is_past(item, now_s)) {
            Some(item) => attribute::decode_blob(item).map(|(_, blob)| Some(blob)),
            None => Ok(None),
        }
    }

    async fn put_blob(
        &self,
        partition: &str,
        place: &str,
        bytes: &[u8],
        expect: Expect,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<u64>, StoreError> {
        let id = self.host.nonce();
        let update = Update::blob(&id, bytes, expect, expires_at_ms, self.now_s());
        let item = match (self.update(partition, place, update).await?, expect) {
            (Sent::Done(_), Expect::Revision(revision)) => return Ok(Some(expect.next(revision))),
            (Sent::Done(_), Expect::UpTo(revision)) => return Ok(Some(revision)),
            (Sent::Done(item), _) => item,
            (Sent::Failed(Some(lies)), _) if attribute::is_written_by(&lies, &id) => lies,
            (Sent::Failed(Some(lies)), _) if !attribute::is_blob(&lies) => {
                let (partition, place) = (partition.to_owned(), place.to_owned());
                let detail = "it is no blob, so another program or a cursor has this place".to_owned();
                return Err(StoreError::Format { partition, place, detail });
            }
            (Sent::Failed(_), _) => return Ok(None),
        };
        attribute::revision(&item, partition, place).map(Some)
    }

    async fn list_blobs(&self, partition: &str) -> Result<Vec<(String, Blob)>, StoreError> {
        let filter = "attribute_exists(#bytes) AND (attribute_not_exists(#expires) OR #expires > :now)";
        let names = [("#bytes", attribute::BYTES), ("#expires", attribute::EXPIRES)];
        let items = self.query(partition, filter, &names, &[(":now", self.now_s())]).await?;
        items.into_iter().map(attribute::decode_blob).collect()
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.ask_everything().await
    }

    async fn remove_blob(&self, partition: &str, place: &str) -> Result<(), StoreError> {
        let attempts = Attempts::default();
        let request = self
            .client
            .delete_item()
            .table_name(&self.target.table)
            .set_key(Some(attribute::key(partition, place)))
            .condition_expression("attribute_not_exists(#place) OR attribute_exists(#bytes)")
            .expression_attribute_names("#place", attribute::PLACE)
            .expression_attribute_names("#bytes", attribute::BYTES);
        match request.customize().interceptor(attempts.clone()).send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                // What lies there is no blob, so there is none to remove.
                Some(DeleteItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(self.target.error("DeleteItem", &error, &attempts)),
            },
        }
    }
}
