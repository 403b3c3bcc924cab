//! The file or pipe behind the sink: locking, repairing, writing, syncing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::error::NdjsonError;

/// How every line of this sink begins. A torn line that begins otherwise is somebody else's.
const LINE_START: &[u8] = b"{\"topic\":";

/// How much is read at a time in search of the last line break.
const CHUNK: u64 = 64 * 1024;

/// What is written to.
#[derive(Debug)]
pub(super) struct Target {
    name: String,
    file: Arc<File>,
    syncer: Arc<Syncer>,
    /// A regular file that was opened by name: it can be locked, read and cut. Anything else is a stream.
    seekable: bool,
    /// The first error of a stream. What it has taken cannot be taken back, so it is also the last write.
    broken: Option<NdjsonError>,
}

impl Target {
    /// Opens or creates a file, and removes a torn last line.
    pub(super) fn file(path: &Path) -> Result<Self, NdjsonError> {
        let name = path.display().to_string();
        let failed = |error: io::Error| NdjsonError::io(&name, "opened", &error);
        // A FIFO or a device is opened for writing only: reading as well would make this process its own reader.
        let exists = match path.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            Ok(metadata) if !metadata.is_file() => {
                let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
                return Ok(Self::new(name, file, false, false));
            }
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(error)),
        };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        if !exists {
            sync_directory(path).map_err(failed)?;
        }
        let target = Self::new(name, file, true, true);
        // Whoever holds the lock has repaired the file before its own write.
        if target.try_lock()? {
            let repaired = target.repair();
            target.unlock()?;
            repaired?;
        }
        Ok(target)
    }

    /// Standard output of this process.
    pub(super) fn stdout() -> Result<Self, NdjsonError> {
        const NAME: &str = "standard output";
        // The library's own handle buffers by line and takes a closed descriptor for success; a duplicate does neither.
        let failed = |error: io::Error| NdjsonError::io(NAME, "opened", &error);
        let file = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
        let regular = file.metadata().map_err(failed)?.is_file();
        Ok(Self::new(NAME.to_owned(), file, false, regular))
    }

    fn new(name: String, file: File, seekable: bool, durable: bool) -> Self {
        let file = Arc::new(file);
        let syncer = Syncer { name: name.clone(), file: durable.then(|| file.clone()), failed: Mutex::new(None) };
        Self { name, file, syncer: Arc::new(syncer), seekable, broken: None }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn syncer(&self) -> Arc<Syncer> {
        self.syncer.clone()
    }

    /// Takes the file's lock, unless another process holds it. A stream has none.
    pub(super) fn try_lock(&self) -> Result<bool, NdjsonError> {
        if !self.seekable {
            return Ok(true);
        }
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(NdjsonError::io(&self.name, "locked", &error)),
        }
    }

    pub(super) fn locked(&self, waited: Duration) -> NdjsonError {
        NdjsonError::Locked { target: self.name.clone(), waited_ms: waited.as_millis() }
    }

    /// Appends the lines of a page: all of them, or none. The lock is given back in any case.
    pub(super) fn append_and_unlock(&mut self, page: &[u8]) -> Result<(), NdjsonError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if !self.seekable {
            let written = (&*self.file).write_all(page).map_err(|error| NdjsonError::io(&self.name, "written", &error));
            self.broken = written.clone().err();
            return written;
        }
        let appended = self.append(page);
        self.unlock()?;
        appended
    }

    fn append(&self, page: &[u8]) -> Result<(), NdjsonError> {
        let length = self.repair()?;
        (&*self.file).write_all(page).map_err(|error| {
            // If this fails as well, the next write finds the torn line and cuts it off.
            if let Err(kept) = self.file.set_len(length) {
                tracing::warn!(file = self.name, error = %kept, "a half written page could not be taken back");
            }
            NdjsonError::io(&self.name, "written", &error)
        })
    }

    fn unlock(&self) -> Result<(), NdjsonError> {
        self.file.unlock().map_err(|error| NdjsonError::io(&self.name, "unlocked", &error))
    }

    /// Cuts off a last line without an end, and gives the file's length. Only under the lock: without it the line may
    /// be one that another process is writing. A file that begins otherwise than with a record is somebody else's.
    fn repair(&self) -> Result<u64, NdjsonError> {
        let failed = |error: io::Error| NdjsonError::io(&self.name, "read", &error);
        let length = self.file.metadata().map_err(failed)?.len();
        let begin = self.read(0, length.min(LINE_START.len() as u64)).map_err(failed)?;
        if !LINE_START.starts_with(&begin) {
            return Err(NdjsonError::NotRecords { target: self.name.clone() });
        }
        let end = self.end_of_last_line(length).map_err(failed)?;
        if end == length {
            return Ok(length);
        }
        let torn = self.read(end, (end + LINE_START.len() as u64).min(length)).map_err(failed)?;
        if !LINE_START.starts_with(&torn) {
            return Err(NdjsonError::Foreign { target: self.name.clone() });
        }
        tracing::warn!(
            file = self.name,
            bytes = length - end,
            "the last line is torn, a process died while it wrote; it is removed, and its page is sent again"
        );
        self.file.set_len(end).map_err(|error| NdjsonError::io(&self.name, "cut", &error))?;
        Ok(end)
    }

    /// The position after the last line break; 0 when there is none.
    fn end_of_last_line(&self, length: u64) -> io::Result<u64> {
        // Nearly always the file is whole, and its last byte says so.
        let mut end = length;
        let mut size = 1;
        while end > 0 {
            let start = end.saturating_sub(size);
            if let Some(at) = self.read(start, end)?.iter().rposition(|byte| *byte == b'\n') {
                return Ok(start + at as u64 + 1);
            }
            end = start;
            size = CHUNK;
        }
        Ok(0)
    }

    fn read(&self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(end - start).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Makes the name of a new file as durable as its contents will be.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// Brings what was written to the disk.
#[derive(Debug)]
pub(super) struct Syncer {
    name: String,
    /// `None` for what cannot be synced: a pipe, a terminal.
    file: Option<Arc<File>>,
    /// The first sync that failed. The system reports a lost write once and then forgets it: a later sync that succeeds
    /// says nothing about the pages before it, so after one failure none is believed.
    failed: Mutex<Option<String>>,
}

impl Syncer {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn sync(&self) -> Result<(), NdjsonError> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = &*failed {
            return Err(NdjsonError::Unsynced { target: self.name.clone(), reason: reason.clone() });
        }
        file.sync_data().map_err(|error| {
            *failed = Some(error.to_string());
            NdjsonError::io(&self.name, "synced", &error)
        })
    }
}
