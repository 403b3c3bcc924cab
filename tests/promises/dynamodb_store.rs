//! The cursor store in DynamoDB keeps what every store promises, and survives what only a network does to it.
//!
//! The server is moto, over a socket, through the SDK with its retries on. A proxy in between loses answers: that is
//! where the second copy of a write comes from, and a store that took its own write for somebody else's would stop a
//! sweep that did nothing wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tablesweep::cursor::conformance::Bed;
use tablesweep::cursor::dynamodb::{DynamoStore, create_table, local_client};
use tablesweep::cursor::{
    Acquire, Change, CursorStore, Expect, Hold, Identity, Item, Key, Phase, Position, Progress, Refusal, Rewind, Standing, StoreError,
    Write, WriteError,
};
use tablesweep_testbed::moto;
use tablesweep_testbed::proxy::{Action, Fault, Proxy};

const START: i64 = 1_800_000_000_000;
const TERM: i64 = 60_000;

/// How long an order to the proxy may take to show.
const SOON: Duration = Duration::from_secs(20);

/// A table of its own in the server that all tests share, behind a proxy.
struct Place {
    table: String,
    proxy: Proxy,
}

impl Place {
    async fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let server = moto::shared().await.expect("moto starts");
        let table = format!("cursors-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        create_table(&local_client(&server.endpoint()).await, &table).await.expect("the table is created");
        Self { table, proxy: Proxy::http(server.address()).await.expect("the proxy starts") }
    }

    async fn store(&self) -> DynamoStore {
        self.store_of(&self.table).await
    }

    async fn store_of(&self, table: &str) -> DynamoStore {
        DynamoStore::new(local_client(&self.proxy.url()).await, table)
    }

    /// Asks the server past the store and the proxy.
    async fn call(&self, operation: &str, mut request: Value) -> Value {
        request["TableName"] = self.table.clone().into();
        let server = moto::shared().await.expect("moto runs");
        let (status, answer) = server.call(&format!("DynamoDB_20120810.{operation}"), &request).await.expect("an answer");
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// How many requests for `operation` reached the proxy.
    fn requests(&self, operation: &str) -> usize {
        self.proxy.carried().iter().filter(|carried| carried.contains(&format!("DynamoDB_20120810.{operation}"))).count()
    }
}

#[async_trait]
impl Bed for Place {
    async fn open(&self) -> Arc<dyn CursorStore> {
        Arc::new(self.store().await)
    }

    async fn set_format(&self, key: &Key, format: u32) {
        self.call(
            "UpdateItem",
            json!({
                "Key": {"connector": {"S": key.connector}, "place": {"S": key.place}},
                "UpdateExpression": "SET #format = :format",
                "ConditionExpression": "attribute_exists(place)",
                "ExpressionAttributeNames": {"#format": "format"},
                "ExpressionAttributeValues": {":format": {"N": format.to_string()}},
            }),
        )
        .await;
    }
}

tablesweep::cursor_store_promises!(Place::new().await);

fn identity() -> Identity {
    Identity {
        connector: "servicenow-prod".to_owned(),
        alias: "incident".to_owned(),
        source: "servicenow".to_owned(),
        instance: "acme.service-now.com".to_owned(),
        table: "incident".to_owned(),
        field: "sys_updated_on".to_owned(),
        id_field: "sys_id".to_owned(),
        fingerprint: Identity::fingerprint_of(&["incident"]),
    }
}

fn write(id: &str, change: Change) -> Write {
    Write { id: id.to_owned(), change }
}

fn acquire(owner: &str, now_ms: i64) -> Write {
    let wish = Acquire { owner: owner.to_owned(), until_ms: now_ms + TERM, now_ms, scheduled: Some(1_000) };
    write(&format!("acquire-{owner}"), Change::Acquire(wish))
}

fn hold_of(item: &Item) -> Hold {
    Hold { owner: item.lease.as_ref().expect("a lease").owner.clone(), revision: item.revision }
}

fn progress(number: u64) -> Progress {
    Progress { cursor: Some(Position::new([("sequence", Some(number.to_string()))])), ..Progress::default() }
}

/// An answer of DynamoDB that refuses a request.
fn refusing(code: &str) -> Action {
    let body = json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "said the server"});
    let content = ("content-type".to_owned(), "application/x-amz-json-1.0".to_owned());
    Action::Answer { status: 400, headers: vec![content], body: body.to_string() }
}

/// The store's own failure in a write that must fail in the store.
fn failure(result: Result<Item, WriteError>) -> StoreError {
    match result {
        Err(WriteError::Store(error)) => error,
        other => panic!("the store should have failed: {other:?}"),
    }
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_known_by_its_id_and_counts_once() {
    let place = Place::new().await;
    let store = place.store().await;
    let key = identity().key();
    let mut revision = 0;
    let mut item = None;
    let hold = |item: &Option<Item>| hold_of(item.as_ref().expect("an item"));
    for step in ["create", "acquire", "renew", "commit", "release", "rewind", "pause", "resume", "reset", "import"] {
        let now_ms = START + 1;
        let change = match step {
            "create" => Change::Create(identity()),
            "acquire" => acquire("a", START).change,
            "renew" => Change::Renew(hold(&item), START),
            "commit" => Change::Commit(hold(&item), progress(1)),
            "release" => Change::Release(hold(&item), progress(2), Standing::Active),
            "rewind" => Change::Rewind(Rewind {
                to: Position::new([("sequence", Some("1".to_owned()))]),
                now_ms,
                revision: Some(revision),
                request_id: None,
            }),
            "pause" => Change::Pause { reason: "why".to_owned(), now_ms },
            "resume" => Change::Resume { now_ms },
            "reset" => Change::Reset { identity: identity(), now_ms },
            _ => Change::Import(tablesweep::cursor::Import { item: item.clone().expect("an item"), now_ms }),
        };
        let operation = if matches!(step, "acquire" | "renew" | "commit" | "release") { "UpdateItem" } else { "PutItem" };
        // An import first tries to create; the write that takes effect is its second.
        let which = if step == "import" { 2..=2 } else { 1..=1 };
        place.proxy.clear();
        let lost = place.proxy.on(&format!("DynamoDB_20120810.{operation}"), which, Action::DropResponse);
        let written = store.write(&key, &write(step, change)).await.unwrap_or_else(|error| panic!("{step}: {error}"));
        assert_eq!(lost.fired(), 1, "{step}: no answer was lost");
        revision += 1;
        assert_eq!((written.revision, written.write_id.as_str()), (revision, step), "{step}");
        assert_eq!(store.read(&key).await.expect("a read"), Some(written.clone()), "{step}");
        if step == "acquire" {
            assert_eq!(written.tries, 1);
        }
        item = Some(written);
    }
}

#[tokio::test]
async fn a_blob_whose_answer_was_lost_counts_once() {
    let place = Place::new().await;
    let store = place.store().await;
    for (revision, expect) in [(1, Expect::Absent), (2, Expect::Revision(1)), (3, Expect::Any)] {
        place.proxy.clear();
        let lost = place.proxy.on("DynamoDB_20120810.UpdateItem", 1..=1, Action::DropResponse);
        assert_eq!(store.put_blob("c", "p", b"x", expect, None).await.expect("an answer"), Some(revision), "{expect:?}");
        assert_eq!(lost.fired(), 1, "{expect:?}: no answer was lost");
        assert_eq!(store.get_blob("c", "p").await.expect("an answer").expect("the blob").revision, revision);
    }
}

#[tokio::test]
async fn a_removal_whose_answer_was_lost_is_done() {
    let place = Place::new().await;
    let store = place.store().await;
    let key = identity().key();
    store.write(&key, &write("create", Change::Create(identity()))).await.expect("a create");
    let lost = place.proxy.on("DynamoDB_20120810.DeleteItem", 1..=1, Action::DropResponse);
    store.remove(&key, START).await.expect("nobody holds it");
    assert_eq!(lost.fired(), 1);
    assert_eq!(store.read(&key).await.expect("a read"), None);
}

#[tokio::test]
async fn what_cannot_be_read_and_was_discarded_with_a_lost_answer_is_gone_and_no_error() {
    let place = Place::new().await;
    let store = place.store().await;
    let key = identity().key();
    store.write(&key, &write("create", Change::Create(identity()))).await.expect("a create");
    place.set_format(&key, 99).await;
    let lost = place.proxy.on("DynamoDB_20120810.DeleteItem", 1..=1, Action::DropResponse);
    store.discard(&key, START).await.expect("nobody holds it, and it cannot be read");
    assert_eq!((lost.fired(), place.requests("DeleteItem")), (1, 2));
    assert_eq!(store.read(&key).await.expect("a read"), None);
}

#[tokio::test]
async fn an_idle_tick_costs_two_requests_and_no_read() {
    let place = Place::new().await;
    let store = place.store().await;
    let key = identity().key();
    store.write(&key, &write("create", Change::Create(identity()))).await.expect("a create");
    place.proxy.forget_carried();
    let item = store.write(&key, &acquire("a", START)).await.expect("free");
    let caught_up = Progress { phase: Phase::Stream, ..item.progress.clone() };
    let release = Change::Release(hold_of(&item), caught_up, Standing::Active);
    store.write(&key, &write("release", release)).await.expect("the holder releases");
    assert_eq!((place.proxy.carried().len(), place.requests("UpdateItem")), (2, 2));
    // A refusal costs no more: the failed condition brings the item.
    place.proxy.forget_carried();
    let refusal = store.write(&key, &acquire("b", START + 1)).await;
    assert!(matches!(refusal, Err(WriteError::Refused(Refusal::NotDue { .. }))), "{refusal:?}");
    assert_eq!((place.proxy.carried().len(), place.requests("UpdateItem")), (1, 1));
}

#[tokio::test]
async fn the_parking_of_a_table_that_changed_meanwhile_is_judged_anew() {
    let place = Place::new().await;
    let store = place.store().await;
    let key = identity().key();
    store.write(&key, &write("create", Change::Create(identity()))).await.expect("a create");
    for death in 1..=3 {
        store.write(&key, &acquire(&format!("dead-{death}"), START + death * 2 * TERM)).await.expect("the last one is dead");
    }
    let parking = place.proxy.on("DynamoDB_20120810.PutItem", 1..=1, Action::HoldRequest);
    let late = START + 10 * TERM;
    let fourth = tokio::spawn({
        let (store, key) = (store.clone(), key.clone());
        async move { store.write(&key, &acquire("fourth", late)).await }
    });
    parking.wait_fired(1, SOON).await.expect("it is about to park the table");
    // The third was not dead after all.
    let hold = Hold { owner: "dead-3".to_owned(), revision: 4 };
    let direct = DynamoStore::new(local_client(&moto::shared().await.expect("moto runs").endpoint()).await, &place.table);
    direct.write(&key, &write("commit", Change::Commit(hold, progress(1)))).await.expect("nobody took its lease");
    parking.release();
    let item = fourth.await.expect("no panic").expect("an acquire");
    assert_eq!((item.standing, item.tries, item.revision), (Standing::Active, 1, 6));
    assert_eq!(item.progress, progress(1), "the commit in between is kept");
}

#[tokio::test]
async fn a_throttled_write_is_busy_and_one_that_may_have_been_taken_is_not() {
    let place = Place::new().await;
    let store = place.store().await;
    let key = identity().key();
    store.write(&key, &write("create", Change::Create(identity()))).await.expect("a create");
    for code in ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"] {
        place.proxy.clear();
        place.proxy.on("DynamoDB_20120810", .., refusing(code));
        let error = failure(store.write(&key, &acquire("a", START)).await);
        assert!(matches!(error, StoreError::Busy { .. }) && error.to_string().contains(&place.table), "{error:?}");
    }
    place.proxy.clear();
    assert_eq!(store.read(&key).await.expect("a read").expect("the item").revision, 1, "a throttled write was not taken");

    let lost = place.proxy.on("DynamoDB_20120810.UpdateItem", 1..=1, Action::DropResponse);
    place.proxy.on("DynamoDB_20120810.UpdateItem", 2.., refusing("ThrottlingException"));
    let error = failure(store.write(&key, &acquire("b", START)).await);
    assert_eq!(lost.fired(), 1);
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    place.proxy.clear();
    assert_eq!(store.read(&key).await.expect("a read").expect("the item").revision, 2, "it was taken");
    let again = store.write(&key, &acquire("b", START)).await.expect("the same write is known");
    assert_eq!(again.revision, 2);
}

#[tokio::test]
async fn a_table_that_is_missing_or_closed_is_denied_naming_it_and_the_remedy() {
    let place = Place::new().await;
    let missing = place.store_of("nowhere").await;
    let error = failure(missing.write(&identity().key(), &acquire("a", START)).await);
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains("no table nowhere"), "{error}");
    let error = missing.list("c").await.expect_err("there is no table");
    assert!(error.to_string().contains("no table nowhere"), "{error}");

    let store = place.store().await;
    place.proxy.on("DynamoDB_20120810", .., refusing("AccessDeniedException"));
    let error = failure(store.write(&identity().key(), &acquire("a", START)).await);
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("allow dynamodb:UpdateItem on the table {}", place.table)), "{error}");
}

#[tokio::test]
async fn a_store_that_is_out_of_reach_or_ill_says_so() {
    let place = Place::new().await;
    let store = place.store().await;
    let key = identity().key();
    let ill = Action::Answer { status: 500, headers: vec![], body: json!({"__type": "InternalServerError"}).to_string() };
    place.proxy.on("DynamoDB_20120810", .., ill);
    let error = failure(store.write(&key, &acquire("a", START)).await);
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    place.proxy.clear();
    place.proxy.set(Fault::Refuse);
    let error = failure(store.write(&key, &acquire("a", START)).await);
    assert!(matches!(error, StoreError::Unreachable { .. }) && error.to_string().contains(&place.table), "{error:?}");
    let error = store.get_blob("c", "p").await.expect_err("out of reach");
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_given_up_in_time() {
    let place = Place::new().await;
    let store = place.store().await;
    place.proxy.set(Fault::Blackhole);
    let started = tokio::time::Instant::now();
    let error = failure(store.write(&identity().key(), &acquire("a", START)).await);
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_table_of_another_program_is_refused_and_its_items_stay() {
    let place = Place::new().await;
    let store = place.store().await;
    let key = identity().key();
    let foreign = json!({"connector": {"S": key.connector}, "place": {"S": key.place}, "theirs": {"S": "x"}});
    place.call("PutItem", json!({"Item": foreign})).await;
    for change in [Change::Create(identity()), acquire("a", START).change, Change::Pause { reason: "why".to_owned(), now_ms: START }] {
        let error = failure(store.write(&key, &write("id", change)).await);
        assert!(matches!(error, StoreError::Format { .. }) && error.to_string().contains("another program"), "{error:?}");
    }
    let error = store.list(&key.connector).await.expect_err("foreign");
    assert!(error.to_string().contains("another program"), "{error}");
    let error = store.put_blob(&key.connector, &key.place, b"x", Expect::Any, None).await.expect_err("foreign");
    assert!(matches!(error, StoreError::Format { .. }), "{error:?}");
    assert_eq!(store.get_blob(&key.connector, &key.place).await.expect("an answer"), None);
    store.remove_blob(&key.connector, &key.place).await.expect("there is no blob");
    let lies = place.call("GetItem", json!({"Key": {"connector": {"S": key.connector}, "place": {"S": key.place}}})).await;
    assert_eq!(lies["Item"], foreign);
}
