//! Where rows come from.
//!
//! A source gives one [`Table`] per alias. A sweep of it is a [`TableSweep`]: it answers one page after the other, each
//! with the [`Checkpoint`] that may be committed once the page's records are acknowledged. The engine knows
//! neither how a source pages nor what its positions mean.

mod checkpoint;
pub mod servicenow;
pub mod sqlserver;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use checkpoint::Checkpoint;

use crate::cursor::{Identity, Position, Progress};
use crate::failure::Failure;
use crate::record::Rows;
use crate::record::schema::Schema;
pub use crate::record::{Content, Row};
use crate::sweep::{Allowance, Kept, Reason, Window};

/// One table of a connector.
#[async_trait]
pub trait Table: Send + Sync {
    /// Which rows, and whose cursor.
    fn identity(&self) -> &Identity;

    /// Who signs in for it, as a short text without secrets: what its instance refuses to one account it does not refuse to another.
    fn account(&self) -> &str;

    /// The topic of its records.
    fn topic(&self) -> &str;

    /// The wait between two sweeps of a table that is caught up.
    fn poll_interval(&self) -> Duration;

    /// The configured rows per page.
    fn page_size(&self) -> u32;

    /// Starts sweeping from where the cursor stands.
    ///
    /// # Errors
    /// A failure if the source cannot be swept from there.
    async fn open(&self, from: Resume) -> Result<Box<dyn TableSweep>, Failure>;

    /// Finds out by asking the source whether the table can be swept as its document says. Moves and remembers nothing.
    ///
    /// # Errors
    /// The failure that a sweep would end with.
    async fn probe(&self, _allowance: &Allowance) -> Result<Probed, Failure> {
        Ok(Probed::default())
    }

    /// Which rows that are there now would never be delivered if the cursor at `from` were dropped, where the document says to
    /// begin after them; `None` where a table that begins anew leaves out none.
    ///
    /// # Errors
    /// The source does not say.
    async fn left_out_by_reset(&self, _from: &Position, _allowance: &Allowance) -> Result<Option<LeftOut>, Failure> {
        Ok(None)
    }
}

/// Rows that a reset leaves out for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// How many.
    pub rows: u64,
    /// All rows of the table lie at or before the cursor: it began anew since, or lost its last rows, and these are all that it has.
    pub began_anew: bool,
}

/// What a probe that found nothing wrong has to say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Probed {
    /// Whether it is proven that the table can be swept. Where that takes a row and there is none, nothing is known beyond
    /// that the source answers.
    pub is_proven: bool,
    /// What a person should know all the same.
    pub remarks: Vec<String>,
    /// Requests and bytes that it took.
    pub spent: Spent,
}

/// What a source keeps beside the cursor of one table: few and small things, each under a name of its own, that live as
/// long as the cursor does (a schema baseline, what a start-up probe found out). Up to 256 KB each.
///
/// The sweep that is given them holds the table's lease, so nobody else writes them. Still they are not one with the
/// cursor: a process may die between the two writes, and one that was frozen for longer than its lease may write late.
/// Whoever needs both to agree writes the sibling first and names its digest in the notes of the checkpoint that
/// follows; what the stored notes do not name counts for nothing.
#[async_trait]
pub trait Siblings: Send + Sync + std::fmt::Debug {
    /// What lies under `name`.
    ///
    /// # Errors
    /// The store does not answer.
    async fn get(&self, name: &'static str) -> Result<Option<Vec<u8>>, Failure>;

    /// Puts `bytes` under `name`, in place of what lies there.
    ///
    /// # Errors
    /// The store does not answer; whether it took them is not known.
    async fn put(&self, name: &'static str, bytes: &[u8]) -> Result<(), Failure>;

    /// Removes what lies under `name`, if anything does.
    ///
    /// # Errors
    /// The store does not answer.
    async fn remove(&self, name: &'static str) -> Result<(), Failure>;
}

/// The sibling with the schema that a table must have. The note [`BASELINE_NOTE`](crate::cursor::BASELINE_NOTE) of its cursor
/// holds the digest.
pub const BASELINE: &str = "baseline";

/// The sibling with the schema that a waiting table was found with instead; `cursor accept-schema` makes it the baseline.
pub const FOUND_SCHEMA: &str = "found-schema";

/// The code of the failure of a table whose schema is not its baseline; it comes with [`Retry::Wait`](crate::failure::Retry).
pub const SCHEMA_CHANGED: &str = "Source.SchemaChanged";

/// A sweep that brought nothing fails if the end of the invocation cut a wait of at least this long for the source. A shorter wait
/// says nothing of the source, and the next sweep goes on; but a source that takes connections and hangs would else look, tick by
/// tick, like one that is merely busy.
pub const UNANSWERED: Duration = Duration::from_secs(10);

/// Where a sweep starts.
#[derive(Debug, Clone)]
pub struct Resume {
    /// What is stored.
    pub progress: Progress,
    /// What is known of the rows that were delivered before.
    pub kept: Kept,
    /// Rows per page to begin with.
    pub page_size: u32,
    /// The most new rows to deliver.
    pub max_rows: Option<u64>,
    /// What is kept beside the table's cursor.
    pub siblings: Arc<dyn Siblings>,
    /// The code that the table is parked with: what was once found to be in order may not be so any more.
    pub parked: Option<String>,
}

/// Sweeps of one table in a row.
#[async_trait]
pub trait TableSweep: Send {
    /// The next page; `None` when what is allowed is spent. After a page that ends a sweep the next call begins
    /// another one.
    ///
    /// # Errors
    /// A failure; nothing after the last answered page was delivered.
    async fn next_page(&mut self, allowance: &Allowance) -> Result<Option<Page>, Failure>;

    /// The requests and bytes since the last call, whether or not they ended in a page, and the page size by now.
    fn spent(&mut self) -> Spent;

    /// The dedup window as it was when the sweep began; `None` if this source needs none.
    fn window(&self) -> Option<Window>;

    /// What a person should know though nothing failed, since the last call. It goes to the log, and into the report of a
    /// sweep that has nothing worse to say.
    fn remarks(&mut self) -> Vec<Reason> {
        Vec::new()
    }
}

/// Requests and bytes, and what they taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Requests sent, repeated ones included.
    pub requests: u64,
    /// Bytes of the answers' bodies as they came over the wire.
    pub bytes_in: u64,
    /// Values of which a part could not be read and was replaced, by U+FFFD or null.
    pub values_replaced: u64,
    /// The page size that works, if it is smaller than the configured one. It is kept even if no page came of it.
    pub page_size: Option<u32>,
}

/// A page: rows, where the cursor stands after them, and whether the sweep ends here.
#[derive(Debug, Clone)]
pub struct Page {
    /// New rows, in the server's order.
    pub rows: Vec<Row>,
    /// What the fields of rows with [`Content::Fields`] are, the same value for as long as it stays the same; `None` where
    /// rows are JSON.
    pub schema: Option<Arc<Schema>>,
    /// When the rows were read, in epoch milliseconds of the local clock.
    pub extracted_at_ms: i64,
    /// What may be committed once the rows are acknowledged.
    pub checkpoint: Checkpoint,
    /// Set on the last page of a sweep.
    pub end: Option<SweepEnd>,
    /// Rows read again and not sent again.
    pub suppressed: u64,
    /// Rows left out because their cursor cannot be read.
    pub skipped: u64,
    /// Hidden rows found with this page.
    pub hidden: u64,
    /// Rows found behind the cursor that were not delivered.
    pub late: u64,
    /// What holds the page's bytes in the byte budget until it is acknowledged.
    pub admission: Option<Arc<crate::sweep::Admission>>,
}

impl Page {
    /// The rows, as records are made of them.
    pub fn as_rows(&self) -> Rows<'_> {
        Rows { rows: &self.rows, schema: self.schema.as_ref(), extracted_at_ms: self.extracted_at_ms }
    }
}

/// How a sweep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SweepEnd {
    /// Nothing is left to deliver for now; otherwise the next sweep is to start at once.
    pub caught_up: bool,
}
