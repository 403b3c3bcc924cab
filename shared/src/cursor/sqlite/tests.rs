//! The promises of every store, and what is SQLite's own: files, locks and other processes.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use tempfile::TempDir;

use super::super::conformance::Bed;
use super::super::{Acquire, Change, CursorStore, Identity, Key, Refusal, StoreError, Write, WriteError};
use super::SqliteStore;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("tablesweep.db")
    }

    async fn store(&self) -> SqliteStore {
        SqliteStore::open(self.database()).await.expect("the database opens")
    }

    fn lock_files(&self) -> usize {
        let entries = std::fs::read_dir(self.0.path()).expect("the folder");
        entries.filter(|entry| entry.as_ref().expect("an entry").file_name().to_string_lossy().contains(super::file::MARK)).count()
    }
}

#[async_trait]
impl Bed for Folder {
    async fn open(&self) -> Arc<dyn CursorStore> {
        Arc::new(self.store().await)
    }

    async fn set_format(&self, key: &Key, format: u32) {
        let changed = Connection::open(self.database())
            .and_then(|connection| {
                connection.execute(
                    "UPDATE item SET body = json_set(body, '$.format', ?3) WHERE connector = ?1 AND place = ?2",
                    params![key.connector, key.place, format],
                )
            })
            .expect("the item changes");
        assert_eq!(changed, 1);
    }
}

crate::cursor_store_promises!(Folder::new());

fn identity() -> Identity {
    Identity {
        connector: "sql-prod".to_owned(),
        alias: "orders".to_owned(),
        source: "sqlserver".to_owned(),
        instance: "db.example.com/shop".to_owned(),
        table: "dbo.orders".to_owned(),
        field: "id".to_owned(),
        id_field: String::new(),
        fingerprint: Identity::fingerprint_of(&["dbo.orders"]),
    }
}

async fn create(store: &SqliteStore) {
    let write = Write { id: "create".to_owned(), change: Change::Create(identity()) };
    store.write(&identity().key(), &write).await.expect("the first create");
}

async fn acquire(store: &SqliteStore, owner: &str, now_ms: i64) -> Result<super::Item, WriteError> {
    let wish = Acquire { owner: owner.to_owned(), until_ms: 1_000, now_ms, scheduled: None };
    store.write(&identity().key(), &Write { id: format!("acquire-{owner}-{now_ms}"), change: Change::Acquire(wish) }).await
}

fn refused_as_leased(result: Result<super::Item, WriteError>) {
    assert!(matches!(result, Err(WriteError::Refused(Refusal::Leased { .. }))), "{result:?}");
}

fn denied<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(error @ StoreError::Denied { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Names the database for the process that [`another_process_that_holds_a_lease`] becomes.
const DATABASE_OF_THE_OTHER: &str = "TABLESWEEP_TEST_DATABASE";

#[tokio::test]
#[ignore = "it is the other process of a_lease_dies_with_its_process_and_not_by_the_clock"]
async fn another_process_that_holds_a_lease() {
    let path = std::env::var(DATABASE_OF_THE_OTHER).expect("the database is named");
    let store = SqliteStore::open(path).await.expect("the database opens");
    acquire(&store, "other", 0).await.expect("free");
    println!("\nheld");
    // Held until this process is killed; its end of input only guards against outliving the test.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("input");
}

#[tokio::test]
async fn a_lease_dies_with_its_process_and_not_by_the_clock() {
    use std::io::BufRead;
    use std::process::{Command, Stdio};

    let folder = Folder::new();
    let store = folder.store().await;
    create(&store).await;
    let path = module_path!();
    let name = format!("{}::another_process_that_holds_a_lease", path.split_once("::").map_or(path, |(_, inner)| inner));
    let mut other = Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--nocapture", "--exact", &name])
        .env(DATABASE_OF_THE_OTHER, folder.database())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the other process starts");
    // Kept to the end: the other process must not die early of an output that nobody reads.
    let mut said = std::io::BufReader::new(other.stdout.take().expect("its output")).lines();
    assert!(said.any(|line| line.expect("a line") == "held"), "the other process holds the lease");

    refused_as_leased(acquire(&store, "own", 1_000_000_000).await);
    assert!(store.read(&identity().key()).await.expect("a read").expect("the item").lease.is_some());
    other.kill().expect("it is killed");
    other.wait().expect("it ends");
    assert_eq!(folder.lock_files(), 1, "it left its lock file");
    let item = acquire(&store, "own", 0).await.expect("the holder is dead");
    assert_eq!(item.tries, 2);
    assert_eq!(folder.lock_files(), 1, "the dead holder's file is gone, and there is our own");
    drop(store);
    assert_eq!(folder.lock_files(), 0);
}

#[tokio::test]
async fn files_that_the_dead_left_are_removed_by_the_next_sweep() {
    let folder = Folder::new();
    let store = folder.store().await;
    create(&store).await;
    let left = format!("{}{}{}", folder.database().display(), super::file::MARK, "0".repeat(32));
    std::fs::write(&left, "").expect("a file");
    let other = format!("{}{}notes.txt", folder.database().display(), super::file::MARK);
    std::fs::write(&other, "").expect("a file");
    acquire(&store, "own", 0).await.expect("free");
    assert!(!std::fs::exists(left).expect("an answer"));
    assert!(std::fs::exists(other).expect("an answer"), "what is not a lock file of ours stays");
}

#[cfg(unix)]
#[tokio::test]
async fn a_holder_is_seen_through_a_symbolic_link() {
    let folder = Folder::new();
    let store = folder.store().await;
    create(&store).await;
    let elsewhere = TempDir::new().expect("a temporary folder");
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(folder.database(), &link).expect("a link");
    let linked = SqliteStore::open(&link).await.expect("the database opens");
    acquire(&store, "own", 0).await.expect("free");
    refused_as_leased(acquire(&linked, "linked", 0).await);
    drop(store);
    acquire(&linked, "linked", 1).await.expect("the holder is gone");
}

#[tokio::test]
async fn a_holder_that_is_no_token_of_ours_names_no_file() {
    let folder = Folder::new();
    let store = folder.store().await;
    create(&store).await;
    acquire(&store, "own", 0).await.expect("free");
    let other = folder.store().await;
    let connection = Connection::open(folder.database()).expect("the database opens");
    connection.execute("UPDATE item SET holder = '/../../../etc/passwd'", []).expect("the row changes");
    acquire(&other, "other", 0).await.expect("nobody holds it");
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_and_left_as_it_was() {
    let folder = Folder::new();
    let path = folder.database();
    Connection::open(&path).and_then(|foreign| foreign.execute_batch("CREATE TABLE mine (x)")).expect("a database");
    let before = std::fs::read(&path).expect("the file");
    let said = denied(SqliteStore::open(&path).await);
    assert!(said.contains("another program") && said.contains("tablesweep.db"), "{said}");
    assert_eq!(std::fs::read(&path).expect("the file"), before);

    std::fs::write(&path, "incident,active\n".repeat(100)).expect("a file");
    let said = denied(SqliteStore::open(&path).await);
    assert!(said.contains("no SQLite database") && said.contains("tablesweep.db"), "{said}");
    assert_eq!(std::fs::read(&path).expect("the file"), "incident,active\n".repeat(100).into_bytes());
}

#[tokio::test]
async fn the_database_of_a_newer_program_is_refused_naming_both_schemas() {
    let folder = Folder::new();
    create(&folder.store().await).await;
    let connection = Connection::open(folder.database()).expect("the database opens");
    connection.pragma_update(None, "user_version", 7).expect("the version changes");
    let said = denied(SqliteStore::open(folder.database()).await);
    assert!(said.contains("schema 7") && said.contains("update tablesweep") && said.contains("tablesweep.db"), "{said}");
}

#[tokio::test]
async fn a_path_that_cannot_be_a_database_is_refused_saying_what_to_do() {
    let folder = Folder::new();
    let said = denied(SqliteStore::open(folder.0.path().join("missing/tablesweep.db")).await);
    assert!(said.contains("missing does not exist") && said.contains("create it"), "{said}");
    let said = denied(SqliteStore::open(folder.0.path()).await);
    assert!(said.contains("the path must be a file"), "{said}");
}

#[tokio::test]
async fn a_database_that_another_keeps_locked_is_busy() {
    let folder = Folder::new();
    let store = folder.store().await;
    create(&store).await;
    store.shared.open.lock().expect("the connection").connection.busy_timeout(std::time::Duration::ZERO).expect("no patience");
    let other = Connection::open(folder.database()).expect("the database opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    match acquire(&store, "own", 0).await {
        Err(WriteError::Store(error @ StoreError::Busy { .. })) => assert!(error.to_string().contains("tablesweep.db"), "{error}"),
        result => panic!("{result:?}"),
    }
    other.execute_batch("ROLLBACK").expect("the lock is given back");
    acquire(&store, "own", 0).await.expect("free");
}

#[tokio::test]
async fn a_full_disk_is_said_and_harms_nothing() {
    let folder = Folder::new();
    let store = folder.store().await;
    create(&store).await;
    {
        let open = store.shared.open.lock().expect("the connection");
        let pages: i64 = open.connection.pragma_query_value(None, "page_count", |row| row.get(0)).expect("a number");
        open.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).expect("no page more");
    }
    let said = denied(store.put_blob("c", "p", &[7; 100_000], super::Expect::Any, None).await);
    assert!(said.contains("disk is full"), "{said}");
    assert_eq!(store.get_blob("c", "p").await.expect("an answer"), None);
    acquire(&store, "own", 0).await.expect("what fits is still written");
}

#[tokio::test]
async fn a_commit_reaches_the_disk_before_it_is_answered() {
    let store = Folder::new().store().await;
    let open = store.shared.open.lock().expect("the connection");
    let mode: String = open.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a mode");
    let synchronous: i64 = open.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).expect("a number");
    assert_eq!((mode.as_str(), synchronous), ("wal", 2), "FULL syncs the log at each commit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_may_open_a_new_database_at_once() {
    let folder = Folder::new();
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..16 {
        opening.spawn(SqliteStore::open(folder.database()));
    }
    while let Some(opened) = opening.join_next().await {
        opened.expect("no panic").expect("the database opens");
    }
}

/// The files of a folder and what is in them, but for the index of the log, in which readers leave marks.
fn files(folder: &std::path::Path) -> std::collections::BTreeMap<std::ffi::OsString, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let read = |path: PathBuf| {
        let is_index = path.to_string_lossy().ends_with("-shm");
        let bytes = if is_index { Vec::new() } else { std::fs::read(&path).expect("the file") };
        (path.into_os_string(), bytes)
    };
    entries.map(read).collect()
}

/// What a look at `database` tells must be what the store has, and nothing may be written, not even if it is asked for.
async fn look_tells(database: &std::path::Path, expected: &super::Item) {
    let folder = database.parent().expect("a folder");
    let before = files(folder);
    let look = SqliteStore::look(database).await.expect("it can be read").expect("a database");
    assert_eq!(look.read(&identity().key()).await.expect("a read").as_ref(), Some(expected));
    assert_eq!(look.list("sql-prod").await.expect("a list").len(), 1);
    assert_eq!(look.connectors().await.expect("a list"), ["sql-prod"]);
    assert_eq!(look.get_blob("c", "p").await.expect("a read").expect("the blob").bytes, [7]);
    assert!(denied(look.put_blob("c", "p", &[8], super::Expect::Any, None).await).contains("may read"));
    drop(look);
    assert_eq!(files(folder), before);
}

#[cfg(unix)]
#[tokio::test]
async fn a_look_writes_nothing_and_needs_no_right_to_write_whether_a_sweep_runs_died_or_ended() {
    use std::os::unix::fs::PermissionsExt;

    // Characters that mean something in an address.
    let place = TempDir::new().expect("a temporary folder");
    let folder = place.path().join("a 100% #1 folder?");
    std::fs::create_dir(&folder).expect("a folder");
    let database = folder.join("tablesweep.db");
    let store = SqliteStore::open(&database).await.expect("the database opens");
    create(&store).await;
    store.put_blob("c", "p", &[7], super::Expect::Any, None).await.expect("written");
    let held = acquire(&store, "own", 0).await.expect("free");

    // Whoever runs the tests as root may write all the same; the files tell.
    let rights = |files: u32, folders: u32| {
        for entry in std::fs::read_dir(&folder).expect("the folder") {
            std::fs::set_permissions(entry.expect("an entry").path(), std::fs::Permissions::from_mode(files)).expect("set");
        }
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(folders)).expect("set");
    };
    rights(0o444, 0o555);
    look_tells(&database, &held).await;
    rights(0o644, 0o755);

    // What a process that died leaves: the log, its index, and a lock file that nobody holds.
    let died = place.path().join("died");
    std::fs::create_dir(&died).expect("a folder");
    for entry in std::fs::read_dir(&folder).expect("the folder") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), died.join(entry.file_name())).expect("copied");
    }
    assert!(died.join("tablesweep.db-wal").exists());
    look_tells(&died.join("tablesweep.db"), &super::Item { lease: None, ..held.clone() }).await;

    drop(store);
    assert!(!folder.join("tablesweep.db-wal").exists(), "it is at rest");
    rights(0o444, 0o555);
    look_tells(&database, &super::Item { lease: None, ..held }).await;
    rights(0o644, 0o755);
}

#[tokio::test]
async fn a_look_finds_no_database_in_no_file_and_in_one_of_no_bytes_and_refuses_those_of_others() {
    let folder = Folder::new();
    let path = folder.database();
    assert!(SqliteStore::look(&path).await.expect("an answer").is_none());
    assert!(SqliteStore::look(folder.0.path().join("missing/tablesweep.db")).await.expect("an answer").is_none());
    std::fs::write(&path, "").expect("a file");
    assert!(SqliteStore::look(&path).await.expect("an answer").is_none());
    assert_eq!(files(folder.0.path()).len(), 1);

    Connection::open(&path).and_then(|foreign| foreign.execute_batch("CREATE TABLE mine (x)")).expect("a database");
    assert!(denied(SqliteStore::look(&path).await).contains("another program"));
    std::fs::write(&path, "incident,active\n".repeat(100)).expect("a file");
    assert!(denied(SqliteStore::look(&path).await).contains("no SQLite database"));
    let said = denied(SqliteStore::look(folder.0.path()).await);
    assert!(said.contains("must be a file that this user may read"), "{said}");
}
