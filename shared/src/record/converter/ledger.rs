//! A registry for tests, which remembers what it was given.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::registration::{Candidate, Kept, Part, Registered, Registry};
use crate::failure::{Failure, Retry};

/// Numbers schemas from 1, by topic, part and text.
#[derive(Debug, Default)]
pub(in crate::record) struct Ledger {
    pub(in crate::record) given: Mutex<Vec<Candidate>>,
    /// How often it was asked.
    pub(in crate::record) asked: Mutex<usize>,
    /// Packs what stands behind the header.
    pub(in crate::record) zlib: bool,
    /// Wants this schema instead.
    pub(in crate::record) instead: Option<String>,
    /// Whether it refuses everything.
    pub(in crate::record) is_out: Mutex<bool>,
}

impl Ledger {
    pub(in crate::record) fn schemas(&self) -> MutexGuard<'_, Vec<Candidate>> {
        self.given.lock().expect("whole")
    }

    /// The schema that the header of a record names, and the data behind it.
    pub(in crate::record) fn open<'b>(&self, record: &'b [u8]) -> (Candidate, &'b [u8]) {
        assert_eq!(record[0], 0, "the magic byte");
        let id = u32::from_be_bytes(record[1..5].try_into().expect("four bytes"));
        (self.schemas()[id as usize - 1].clone(), &record[5..])
    }
}

#[async_trait]
impl Registry for Ledger {
    async fn register(&self, candidate: &Candidate, _by: Option<Duration>) -> Result<Registered, Failure> {
        *self.asked.lock().expect("whole") += 1;
        if *self.is_out.lock().expect("whole") {
            return Err(Failure::new("Registry.Unavailable", Retry::NextTick, "out of reach"));
        }
        let mut schemas = self.schemas();
        let known = schemas.iter().position(|known| known == candidate);
        let at = known.unwrap_or_else(|| {
            schemas.push(candidate.clone());
            schemas.len() - 1
        });
        let mut header = vec![0];
        header.extend_from_slice(&u32::try_from(at + 1).expect("few").to_be_bytes());
        Ok(Registered { header: Bytes::from(header), zlib: self.zlib, instead: self.instead.clone() })
    }

    async fn probe(&self, topic: &str, part: Part) -> Result<Kept, Failure> {
        let is_there = self.schemas().iter().any(|known| known.topic == topic && known.part == part);
        Ok(Kept { name: topic.to_owned(), is_there: Some(is_there), registers: true })
    }
}
