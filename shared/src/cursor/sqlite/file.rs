//! The database file: opening it, its schema, and its errors in words.
//!
//! The file is known by its `application_id`, and its schema by `user_version`. Both are looked at before anything is
//! changed, so a path that was mistyped does not damage somebody else's database.

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
    let given = Place { file: path.to_owned(), name: format!("sqlite:{}", path.display()) };
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
    match content {
        Content::Ours | Content::Nothing => {}
        Content::Foreign => {
            return Err(place
                .denied(format!("{} is the database of another program, and was left as it is: name another path", place.file.display())));
        }
        Content::Newer(version) => {
            return Err(place.denied(format!(
                "{} has schema {version} of a newer tablesweep, and this one knows {SCHEMA}: update tablesweep",
                place.file.display()
            )));
        }
    }
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(place.denied(format!("its file system allows no write-ahead log (journal mode {mode}): put it on a local disk")));
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)
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
