//! The database file: opening it, its schema, and its errors in words.
//!
//! The file is known by its `application_id`, and its schema by `user_version`. Both are looked at before anything is
//! changed, so a path that was mistyped does not damage somebody else's database.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::cursor::StoreError;
use crate::host::Host;

/// Between the name of the database and the token of a holder, in the names of lock files.
pub(super) const MARK: &str = "-lease-";

/// `tswp`: says that a database is ours.
const APPLICATION: i64 = 0x7473_7770;

/// The schema this program writes.
const SCHEMA: i64 = 1;

/// What helps when the file is damaged. Nothing can be written into it, so that an import needs another one.
const DAMAGED: &str = "the file is damaged: move it away, with the files beside it that begin with its name, then put a backup in its place \
                       or `tablesweep cursor import` a copy. Without either every table starts anew where its document says";

/// What a look needs.
const READABLE: &str = "it must be a file that this user may read, and so must those beside it that begin with its name";

/// How often a database that somebody begins to use is copied anew. Then its log is there, and it is read with that.
const COPIES: u32 = 5;

/// How long a call waits for another process to finish its transaction. Transactions last milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

const CREATE: &str = "
CREATE TABLE item (
    connector TEXT NOT NULL,
    place TEXT NOT NULL,
    body TEXT NOT NULL,
    holder TEXT,
    PRIMARY KEY (connector, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE blob (
    partition TEXT NOT NULL,
    place TEXT NOT NULL,
    bytes BLOB NOT NULL,
    revision INTEGER NOT NULL,
    expires_ms INTEGER,
    PRIMARY KEY (partition, place)
) STRICT;
";

/// Which file it is, for messages.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    name: String,
    /// Nothing is to be written there.
    only_looks: bool,
}

/// What the file holds.
enum Content {
    Nothing,
    Ours,
    /// A schema of a newer program.
    Newer(i64),
    /// Somebody else's tables.
    Foreign,
}

/// Opens or creates the database at `path`.
pub(super) fn open(path: &Path) -> Result<(Place, Connection), StoreError> {
    let given = Place { file: path.to_owned(), name: format!("sqlite:{}", path.display()), only_looks: false };
    let file = std::path::absolute(path).map_err(|error| given.denied(format!("its path cannot be used ({error})")))?;
    let given = Place { file, ..given };
    if let Some(folder) = given.file.parent().filter(|folder| !folder.is_dir()) {
        return Err(given.denied(format!("the folder {} does not exist: create it, or name another path", folder.display())));
    }
    if !std::fs::exists(&given.file).unwrap_or(true) {
        create_aside(&given)?;
    }
    let connection = connect(&given, &given.file)?;
    // Two paths to one file must lead to the same lock files.
    let file = std::fs::canonicalize(&given.file).map_err(|error| given.denied(format!("its path cannot be resolved ({error})")))?;
    Ok((Place { file, ..given }, connection))
}

/// Creates the database under another name and gives it its own when it is whole.
///
/// A database cannot be put into WAL mode while another process looks at it. So that two sweeps may start at once
/// where there is no database yet, nobody ever sees an unfinished one.
fn create_aside(place: &Place) -> Result<(), StoreError> {
    let mut aside = place.file.clone().into_os_string();
    aside.push(format!("-new-{}", Host::system().nonce()));
    let aside = PathBuf::from(aside);
    let created =
        connect(place, &aside).and_then(|connection| connection.close().map_err(|(_, error)| place.error("create the database", &error)));
    let linked = std::fs::hard_link(&aside, &place.file);
    if let Err(error) = std::fs::remove_file(&aside) {
        tracing::debug!(file = %aside.display(), %error, "a file stays that was needed to create the database");
    }
    created?;
    if let Err(error) = linked
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        // A file system without links: the database is created in its place, which only a race can notice.
        tracing::debug!(file = %place.file.display(), %error, "the database is not created aside");
    }
    Ok(())
}

/// Connects to the database at `path` for a look: `None` if there is none yet. It needs no right to write, and nothing is written.
///
/// While somebody has the database open, or died with it, its log lies beside it (`-wal`), and SQLite reads both. At rest there is none,
/// and SQLite would make one to read a database in WAL mode, which takes a right to write into the folder. Read as a file that nobody
/// changes it takes none, but then somebody could change it: so it is copied into memory in one go, and copied anew if a log has come or the file
/// has changed meanwhile.
pub(super) fn look_at(path: &Path) -> Result<Option<(Place, Connection)>, StoreError> {
    let place = Place { file: path.to_owned(), name: format!("sqlite:{}", path.display()), only_looks: true };
    let state = |file: &Path| match std::fs::metadata(file) {
        Ok(found) => Ok(Some((found.len(), found.modified().ok()))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(place.denied(format!("its file cannot be looked at ({error}): {READABLE}"))),
    };
    let Ok(file) = std::fs::canonicalize(path) else {
        return match state(path)? {
            Some(_) => Err(place.denied("its path cannot be resolved".to_owned())),
            None => Ok(None),
        };
    };
    if file.is_dir() {
        return Err(place.denied(format!("it is a folder: {READABLE}")));
    }
    let mut log = file.clone().into_os_string();
    log.push("-wal");
    let log = PathBuf::from(log);
    for _ in 0..COPIES {
        let before = state(&file)?;
        // A file of no bytes is what is left of a start that was cut off.
        if before.is_none_or(|(length, _)| length == 0) {
            return Ok(None);
        }
        let connection = if state(&log)?.is_some() { Some(read(&place, &file)?) } else { None };
        let connection = match connection {
            Some(connection) => connection,
            None => match copied(&place, &file) {
                Ok(copy) if state(&log)?.is_none() && state(&file)? == before => copy,
                Err(error) if state(&log)?.is_none() && state(&file)? == before => return Err(error),
                _ => continue,
            },
        };
        return Ok(Some((Place { file, ..place }, connection)));
    }
    let detail = "it changes faster than it can be looked at; try again".to_owned();
    Err(StoreError::Busy { store: place.name, detail })
}

/// A connection that reads the database in `file` beside others that write.
fn read(place: &Place, file: &Path) -> Result<Connection, StoreError> {
    let mut connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .and_then(|connection| connection.busy_timeout(PATIENCE).map(|()| connection))
        .map_err(|error| place.error("open the file", &error))?;
    let content = connection.transaction().and_then(|reading| look(&reading));
    refuse_others(place, content.map_err(|error| place.error("read the database", &error))?)?;
    Ok(connection)
}

/// The content of the database in `file`, which nobody changes meanwhile, in memory.
fn copied(place: &Place, file: &Path) -> Result<Connection, StoreError> {
    let failed = |error| place.error("read the database", &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let at_rest = at_rest(file);
    let mut stored = Connection::open_with_flags(&at_rest, flags).map_err(|error| place.error("open the file", &error))?;
    let content = stored.transaction().and_then(|reading| look(&reading)).map_err(failed)?;
    let is_empty = matches!(content, Content::Nothing);
    refuse_others(place, content)?;
    let memory = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copy = Connection::open_with_flags(":memory:", memory).map_err(failed)?;
    copy.execute_batch(CREATE).map_err(failed)?;
    if !is_empty {
        copy.execute("ATTACH ?1 AS stored", [&at_rest])
            .and_then(|_| {
                copy.execute_batch(
                    "INSERT INTO item SELECT * FROM stored.item;
                     INSERT INTO blob SELECT * FROM stored.blob;
                     DETACH stored",
                )
            })
            .map_err(failed)?;
    }
    // What is written here would be gone, and nobody would be told.
    copy.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(copy)
}

/// The address of a database file that nobody changes. https://www.sqlite.org/uri.html
fn at_rest(file: &Path) -> String {
    let path = file.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// Connects to the database in `file`, and prepares it if it is empty.
fn connect(place: &Place, file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags)
        .and_then(|connection| connection.busy_timeout(PATIENCE).map(|()| connection))
        .map_err(|error| place.error("open the file", &error))?;
    prepare(place, &mut connection)?;
    Ok(connection)
}

/// Creates the schema in an empty file, refuses what is not ours, and sets how the connection works.
fn prepare(place: &Place, connection: &mut Connection) -> Result<(), StoreError> {
    let failed = |error| place.error("prepare the database", &error);
    let mut content = connection.transaction().and_then(|reading| look(&reading)).map_err(failed)?;
    if matches!(content, Content::Nothing) {
        // Another process may be doing the same: the second one finds it done.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        content = look(&transaction).map_err(failed)?;
        if matches!(content, Content::Nothing) {
            transaction
                .execute_batch(CREATE)
                .and_then(|()| transaction.pragma_update(None, "application_id", APPLICATION))
                .and_then(|()| transaction.pragma_update(None, "user_version", SCHEMA))
                .map_err(failed)?;
            transaction.commit().map_err(failed)?;
            content = Content::Ours;
        }
    }
    refuse_others(place, content)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(place.denied(format!("its file system allows no write-ahead log (journal mode {mode}): put it on a local disk")));
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)
}

/// Refuses what is not ours.
fn refuse_others(place: &Place, content: Content) -> Result<(), StoreError> {
    let file = place.file.display();
    match content {
        Content::Ours | Content::Nothing => Ok(()),
        Content::Foreign => {
            Err(place.denied(format!("{file} is the database of another program, and was left as it is: name another path")))
        }
        Content::Newer(version) => {
            Err(place.denied(format!("{file} has schema {version} of a newer tablesweep, and this one knows {SCHEMA}: update tablesweep")))
        }
    }
}

/// Looks in one transaction, or it could see half of what another process creates.
fn look(connection: &Transaction<'_>) -> rusqlite::Result<Content> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version, tables) {
        (0, 0, 0) => Content::Nothing,
        (APPLICATION, SCHEMA, _) => Content::Ours,
        (APPLICATION, newer, _) if newer > SCHEMA => Content::Newer(newer),
        _ => Content::Foreign,
    })
}

impl Place {
    /// The database, without symbolic links on the way.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// As the user named it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn denied(&self, detail: String) -> StoreError {
        StoreError::Denied { store: self.name.clone(), detail }
    }

    /// What `error`, met on the way to `what`, means and what to do about it.
    pub(super) fn error(&self, what: &str, error: &rusqlite::Error) -> StoreError {
        let store = self.name.clone();
        let said = |remedy: &str| format!("cannot {what} ({error}): {remedy}");
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Busy { store, detail: said("another process has kept it locked for 5 s; end that process, or wait for it") }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) if self.only_looks => {
                StoreError::Denied { store, detail: said(READABLE) }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
                StoreError::Denied { store, detail: said("the file and its folder must be writable for this user") }
            }
            Some(ErrorCode::CannotOpen) => {
                StoreError::Denied { store, detail: said("the path must be a file, in a folder that this user may write to") }
            }
            Some(ErrorCode::DiskFull) => StoreError::Denied { store, detail: said("the disk is full; make room on it") },
            Some(ErrorCode::NotADatabase) => {
                StoreError::Denied { store, detail: said("the file is no SQLite database and was left as it is; name another path") }
            }
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Denied { store, detail: said(DAMAGED) },
            // Nothing is known about a write that met an error of the disk.
            _ => StoreError::Unreachable { store, detail: said("check the disk and the file") },
        }
    }
}
