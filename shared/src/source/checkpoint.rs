//! What a source says about its position with each page.

use std::collections::BTreeMap;

use crate::cursor::{Phase, Position};
use crate::sweep::WindowChange;

/// What a commit stores, as far as the source decides it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// The cursor.
    pub cursor: Option<Position>,
    /// What the page does to the dedup window.
    pub window: WindowChange,
    /// Up to when everything was seen, if this page ends an exhausted sweep; in epoch milliseconds.
    pub swept_to_ms: Option<i64>,
    /// Backfill or stream after this page.
    pub phase: Phase,
    /// The page size that works.
    pub page_size: Option<u32>,
    /// The instance's clock less the local one, in milliseconds.
    pub clock_difference_ms: Option<i64>,
    /// The source's own notes.
    pub notes: BTreeMap<String, String>,
}
