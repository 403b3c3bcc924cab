//! Who among the holders of leases is alive.
//!
//! A store that takes its first lease creates `<database>-lease-<token>` and keeps it locked; the token, a random
//! nonce, goes into the row with the lease. The operating system lets go of the lock when the process ends, whatever
//! ended it, so a file that can be locked belongs to nobody any more. Tokens are never used twice: a holder that was
//! once seen dead stays dead, and its file may be removed by whoever sees it.
//!
//! A file is created and locked only inside a write transaction of the database. Nobody can come upon a token in a row
//! before its file is locked, and nobody who looks for the files of the dead can mistake a file that was just created
//! for one of them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::file::MARK;
use crate::cursor::StoreError;

/// The lock files beside one database.
#[derive(Debug)]
pub(super) struct Holders {
    /// The database; the lock files are named after it.
    database: PathBuf,
    token: String,
    /// The own lock file, once there is one. It is locked as long as it is open.
    own: Option<File>,
    /// The files of the dead are left where they are.
    only_looks: bool,
}

impl Holders {
    /// The holders of leases in `database`, of which this store is `token`.
    pub(super) fn new(database: &Path, token: String) -> Self {
        Self { database: database.to_owned(), token, own: None, only_looks: false }
    }

    /// The same for somebody who takes no lease and changes nothing.
    pub(super) fn looked_at(database: &Path) -> Self {
        Self { database: database.to_owned(), token: String::new(), own: None, only_looks: true }
    }

    /// The token of this store, locked from the first call on. Only to be called inside a write transaction.
    pub(super) fn own(&mut self) -> Result<&str, StoreError> {
        if self.own.is_none() {
            self.remove_dead();
            self.own = Some(self.lock()?);
        }
        Ok(&self.token)
    }

    fn lock(&self) -> Result<File, StoreError> {
        let path = self.path(&self.token);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|error| self.denied(&path, "created", &error, "the folder must be writable, and its disk not full"))?;
        file.lock().map_err(|error| {
            self.denied(&path, "locked", &error, "the file system must support locks; put the database on a local disk")
        })?;
        Ok(file)
    }

    /// Whether the holder that a row names is alive. A lease without a holder was not taken through a store, so it
    /// has none.
    pub(super) fn is_alive(&self, holder: Option<&str>) -> Result<bool, StoreError> {
        // What is not a token of ours is no part of a file name.
        let Some(token) = holder.filter(|token| is_token(token)) else { return Ok(false) };
        if token == self.token {
            return Ok(self.own.is_some());
        }
        let path = self.path(token);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(self.denied(&path, "opened", &error, "run as a user who may read what the sweep's user creates")),
        };
        // Shared, so that two who look at once do not take each other for the holder.
        match file.try_lock_shared() {
            Ok(()) => {
                if !self.only_looks {
                    self.forget(&path);
                }
                Ok(false)
            }
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => {
                Err(self.denied(&path, "locked", &error, "the file system must support locks; put the database on a local disk"))
            }
        }
    }

    /// Removes the files that holders left when they died, for tidiness: one that cannot be looked at stays.
    fn remove_dead(&self) {
        let (Some(folder), Some(prefix)) = (self.database.parent(), self.path("").file_name().map(std::ffi::OsStr::to_owned)) else {
            return;
        };
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let token = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
            if let Some(Ok(token)) = token.map(std::str::from_utf8)
                && is_token(token)
                && token != self.token
                && let Ok(file) = File::open(entry.path())
                && file.try_lock_shared().is_ok()
            {
                self.forget(&entry.path());
            }
        }
    }

    /// Removes the file of a dead holder.
    fn forget(&self, path: &Path) {
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != ErrorKind::NotFound
        {
            // It is in nobody's way: it says that its holder is dead, today and tomorrow.
            tracing::debug!(file = %path.display(), %error, "the lock file of an ended sweep stays");
        }
    }

    fn path(&self, token: &str) -> PathBuf {
        let mut path = self.database.clone().into_os_string();
        path.push(MARK);
        path.push(token);
        path.into()
    }

    fn denied(&self, path: &Path, what: &str, error: &std::io::Error, remedy: &str) -> StoreError {
        StoreError::Denied {
            store: format!("sqlite:{}", self.database.display()),
            detail: format!("its lock file {} cannot be {what} ({error}): {remedy}", path.display()),
        }
    }
}

impl Drop for Holders {
    fn drop(&mut self) {
        // The name goes before the lock does; in between, a missing file says the same as a free one.
        if self.own.is_some() {
            self.forget(&self.path(&self.token));
        }
    }
}

/// Whether `text` is what [`crate::host::Host::nonce`] gives.
fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
