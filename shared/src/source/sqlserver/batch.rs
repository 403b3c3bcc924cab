//! One batch: the statement, and its rows as they come.
//!
//! Rows are written as JSON one behind the other into one buffer and cut out of it without a copy. A batch counts only once
//! its answer has ended well: the server may send an error behind rows (a deadlock), and then none of them is used.

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use tiberius::{Query, QueryItem};

use super::catalog;
use super::connect::Open;
use super::error::{Error, Stage};
use super::keys::ReadMode;
use super::sequence::{Bound, Sequence};
use super::validate::Pollable;
use super::value::{RowWriter, Settings};
use crate::source::{Content, Row};
use crate::sweep::Admission;

/// A batch of more than one row is not larger than this, so that rows of a megabyte do not come by the hundred. A single row may
/// be, or it could never be read.
const LARGEST: usize = 32 << 20;

/// Room in the byte budget is asked for in steps of this many bytes.
const STEP: usize = 1 << 20;

/// The statements of one table, as the catalog describes it now.
pub(super) struct Plan {
    pub(super) table: Pollable,
    writer: RowWriter,
    from: String,
}

/// The rows of one answer.
#[derive(Debug, Default)]
pub(super) struct Batch {
    values: Vec<u8>,
    value_ends: Vec<usize>,
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    /// The sequence of the last row.
    pub(super) last: Option<Sequence>,
    /// Values of which a part could not be read and was replaced.
    pub(super) replaced: u64,
}

impl Plan {
    pub(super) fn new(table: Pollable, settings: Settings, mode: ReadMode) -> Self {
        let hint = match mode {
            ReadMode::Plain => "",
            // Reads wait for writers as they do without row versions: a row that is being written is not passed over.
            ReadMode::Locking => " WITH (READCOMMITTEDLOCK)",
        };
        let writer = RowWriter::new(&table.columns, table.sequence, settings);
        let from = format!("FROM {}{hint}", table.quoted_name());
        Self { table, writer, from }
    }

    /// Asks for the first `rows` rows above `position`. The text is the same for every batch, and its parameters have the same types,
    /// so that the server plans it once.
    fn batch(&self, position: Option<Sequence>, rows: u32) -> Query<'static> {
        let (list, sequence) = (self.table.select_list(), self.table.quoted_sequence());
        let bound = self.table.sequence_type.above(position);
        let predicate = match &bound {
            Bound::All => String::new(),
            Bound::Above(_) => format!(" WHERE {sequence} > {}", self.table.sequence_type.placeholder(2)),
        };
        let mut query = Query::new(format!("SELECT TOP (@P1) {list} {}{predicate} ORDER BY {sequence} ASC", self.from));
        query.bind(i64::from(rows));
        if let Bound::Above(parameter) = bound {
            parameter.bind(&mut query);
        }
        query
    }

    /// Asks for the highest sequence.
    pub(super) fn highest(&self) -> Query<'static> {
        Query::new(format!("SELECT MAX({}) {}", self.table.quoted_sequence(), self.from))
    }

    /// Asks how many rows there are above `from` and up to `to`.
    pub(super) fn count(&self, from: Option<Sequence>, to: Sequence) -> Query<'static> {
        let (sequence, kind) = (self.table.quoted_sequence(), self.table.sequence_type);
        let bound = kind.above(from);
        let above = match &bound {
            Bound::All => String::new(),
            Bound::Above(_) => format!(" AND {sequence} > {}", kind.placeholder(2)),
        };
        let mut query = Query::new(format!("SELECT COUNT_BIG(*) {} WHERE {sequence} <= {}{above}", self.from, kind.placeholder(1)));
        kind.parameter(to).bind(&mut query);
        if let Bound::Above(parameter) = bound {
            parameter.bind(&mut query);
        }
        query
    }

    /// Reads the first `rows` rows above `position`.
    ///
    /// # Errors
    /// Nothing of the batch counts, and the connection must not be used any more.
    pub(super) async fn read(
        &self,
        open: &mut Open,
        position: Option<Sequence>,
        rows: u32,
        expected: usize,
        admission: &Admission,
    ) -> Result<Batch, Error> {
        let driver = |error| Error::of_driver(Stage::Statement, error);
        let mut stream = self.batch(position, rows).query(&mut open.client).await.map_err(driver)?;
        let mut batch = Batch { values: Vec::with_capacity(expected), last: position, ..Batch::default() };
        let (mut results, mut room) = (0, 0);
        while let Some(item) = stream.try_next().await.map_err(driver)? {
            match item {
                QueryItem::Metadata(_) => results += 1,
                QueryItem::Row(row) => {
                    self.take(&row, &mut batch)?;
                    let size = batch.size();
                    let is_one = batch.len() == 1;
                    if (size > LARGEST && !is_one) || (size > room && !batch.has_room(&mut room, admission)) {
                        return Err(Error::Squeezed);
                    }
                }
            }
        }
        match results {
            0 => Err(Error::NoResult { statement: "the batch" }),
            1 if batch.len() <= rows as usize => Ok(batch),
            1 => Err(malformed(format!("{} rows where {rows} were asked for", batch.len()))),
            _ => Err(malformed(format!("{results} results where one was asked for"))),
        }
    }

    fn take<R: catalog::Cells>(&self, row: &R, batch: &mut Batch) -> Result<(), Error> {
        let written = self.writer.write(row, &mut batch.values)?;
        if let Some(before) = batch.last.filter(|before| written.sequence <= *before) {
            return Err(Error::OutOfOrder { before, after: written.sequence });
        }
        batch.last = Some(written.sequence);
        batch.replaced += written.replaced;
        batch.value_ends.push(batch.values.len());
        // The key is short and written for every row: without a text in between.
        std::io::Write::write_fmt(&mut batch.keys, format_args!("{}", written.sequence)).map_err(|error| malformed(error.to_string()))?;
        batch.key_ends.push(batch.keys.len());
        Ok(())
    }
}

fn malformed(detail: String) -> Error {
    Error::Malformed { stage: Stage::Statement, detail }
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.value_ends.len()
    }

    /// Bytes of keys and values.
    pub(super) fn size(&self) -> usize {
        self.values.len() + self.keys.len()
    }

    /// Asks for more room than was given so far.
    fn has_room(&self, room: &mut usize, admission: &Admission) -> bool {
        *room = self.size() + STEP;
        admission.grow_to(*room as u64)
    }

    /// The rows, cut out of the buffers.
    pub(super) fn into_rows(self) -> Vec<Row> {
        let (values, keys) = (Bytes::from(self.values), Bytes::from(self.keys));
        let (mut value_start, mut key_start) = (0, 0);
        let cut = |(value_end, key_end): (usize, usize)| {
            let row = Row {
                key: keys.slice(key_start..key_end),
                content: Content::Json(values.slice(value_start..value_end)),
                timestamp_ms: None,
            };
            (value_start, key_start) = (value_end, key_end);
            row
        };
        self.value_ends.into_iter().zip(self.key_ends).map(cut).collect()
    }
}
