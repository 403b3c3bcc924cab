//! One batch: the statement, and its rows as they come.
//!
//! Rows are written as JSON one behind the other into one buffer and cut out of it without a copy; in typed mode they are values of
//! a schema instead. A batch counts only once
//! its answer has ended well: the server may send an error behind rows (a deadlock), and then none of them is used.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use tiberius::{ColumnData, Query, QueryItem};

use super::catalog;
use super::connect::Open;
use super::error::{Error, Stage};
use super::keys::ReadMode;
use super::limit::Locks;
use super::sequence::{Bound, Sequence};
use super::validate::Pollable;
use super::value::{RowWriter, Settings};
use crate::record::schema::Schema;
use crate::record::value::Value;
use crate::source::{Content, Row};
use crate::sweep::Admission;

/// A batch of more than one row is not larger than this, so that rows of a megabyte do not come by the hundred. A single row may
/// be, or it could never be read.
pub(super) const LARGEST: usize = 32 << 20;

/// Room in the byte budget is asked for in steps of this many bytes.
const STEP: usize = 1 << 20;

/// The statements of one table, as the catalog describes it now.
pub(super) struct Plan {
    pub(super) table: Pollable,
    writer: RowWriter,
    /// What rows are values of, unless they are JSON.
    pub(super) schema: Option<Arc<Schema>>,
    from: String,
}

/// The rows of one answer.
#[derive(Debug, Default)]
pub(super) struct Batch {
    values: Vec<u8>,
    value_ends: Vec<usize>,
    /// In place of `values`, where rows are values of a schema.
    fields: Vec<Vec<Value<'static>>>,
    /// Bytes of `fields`, about.
    fields_size: usize,
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    /// The sequence of the last row.
    pub(super) last: Option<Sequence>,
    /// Values of which a part could not be read and was replaced.
    pub(super) replaced: u64,
}

impl Plan {
    pub(super) fn new(table: Pollable, settings: Settings, mode: ReadMode, schema: Option<Arc<Schema>>) -> Self {
        let hint = match mode {
            ReadMode::Plain => "",
            // Reads wait for writers as they do without row versions: a row that is being written is not passed over, unless the
            // table is `unlocked`.
            ReadMode::Locking => " WITH (READCOMMITTEDLOCK)",
        };
        let writer = RowWriter::new(&table.columns, table.sequence, settings);
        let from = format!("FROM {}{hint}", table.quoted_name());
        Self { table, writer, schema, from }
    }

    /// Asks for the first `rows` rows above `position`. The text is the same for every batch that may wait as long, and its parameters
    /// have the same types, so that the server plans it once.
    fn batch(&self, position: Option<Sequence>, rows: u32, locks: Locks) -> Query<'static> {
        let (list, sequence) = (self.table.select_list(), self.table.quoted_sequence());
        let bound = self.table.sequence_type.above(position);
        let predicate = match &bound {
            Bound::All => String::new(),
            Bound::Above(_) => format!(" WHERE {sequence} > {}", self.table.sequence_type.placeholder(2)),
        };
        let mut query = Query::new(format!("{locks}SELECT TOP (@P1) {list} {}{predicate} ORDER BY {sequence} ASC", self.from));
        query.bind(i64::from(rows));
        if let Bound::Above(parameter) = bound {
            parameter.bind(&mut query);
        }
        query
    }

    /// Asks for no row of a batch: the server checks the rights to read all of its columns.
    pub(super) fn none(&self, locks: Locks) -> Query<'static> {
        self.batch(None, 0, locks)
    }

    /// Asks for the highest sequence.
    pub(super) fn highest(&self, locks: Locks) -> Query<'static> {
        Query::new(format!("{locks}SELECT MAX({}) {}", self.table.quoted_sequence(), self.from))
    }

    /// Asks how many rows there are above `from` and, unless it is left open, up to `to`.
    pub(super) fn count(&self, from: Option<Sequence>, to: Option<Sequence>, locks: Locks) -> Query<'static> {
        let (sequence, kind) = (self.table.quoted_sequence(), self.table.sequence_type);
        let (mut terms, mut parameters) = (Vec::new(), Vec::new());
        if let Bound::Above(above) = kind.above(from) {
            parameters.push(above);
            terms.push(format!("{sequence} > {}", kind.placeholder(parameters.len())));
        }
        if let Some(to) = to {
            parameters.push(kind.parameter(to));
            terms.push(format!("{sequence} <= {}", kind.placeholder(parameters.len())));
        }
        let predicate = if terms.is_empty() { String::new() } else { format!(" WHERE {}", terms.join(" AND ")) };
        let mut query = Query::new(format!("{locks}SELECT COUNT_BIG(*) {}{predicate}", self.from));
        parameters.into_iter().for_each(|parameter| parameter.bind(&mut query));
        query
    }

    /// Reads the first `rows` rows above `position` into `batch`, which is given as [`Batch::above`] that position. What is in it when
    /// the time is over tells whether rows were coming.
    ///
    /// # Errors
    /// Nothing of the batch counts, and the connection must not be used any more.
    pub(super) async fn read(
        &self,
        open: &mut Open,
        batch: &mut Batch,
        rows: u32,
        locks: Locks,
        admission: &Admission,
    ) -> Result<(), Error> {
        let driver = |error| Error::of_driver(Stage::Statement, error);
        let mut stream = self.batch(batch.last, rows, locks).query(&mut open.client).await.map_err(driver)?;
        let (mut results, mut room) = (0, 0);
        while let Some(item) = stream.try_next().await.map_err(driver)? {
            match item {
                QueryItem::Metadata(_) => results += 1,
                QueryItem::Row(row) => {
                    self.take(row, batch)?;
                    let size = batch.size();
                    if size > LARGEST && batch.len() > 1 {
                        return Err(Error::Squeezed { rows: batch.rows() - 1, bytes: size as u64 });
                    }
                    if size > room {
                        room = size + STEP;
                        if !admission.grow_to(room as u64) {
                            return Err(Error::Squeezed { rows: batch.rows() - 1, bytes: room as u64 });
                        }
                    }
                }
            }
        }
        match results {
            0 => Err(Error::NoResult { statement: "the batch" }),
            1 if batch.len() <= rows as usize => Ok(()),
            1 => Err(malformed(format!("{} rows where {rows} were asked for", batch.len()))),
            _ => Err(malformed(format!("{results} results where one was asked for"))),
        }
    }

    fn take<R>(&self, row: R, batch: &mut Batch) -> Result<(), Error>
    where
        R: catalog::Cells + IntoIterator<Item = ColumnData<'static>>,
    {
        let written = if self.schema.is_some() {
            let (fields, written) = self.writer.fields(row)?;
            batch.fields_size += fields.iter().map(size_of_field).sum::<usize>();
            batch.fields.push(fields);
            written
        } else {
            let written = self.writer.write(&row, &mut batch.values)?;
            batch.value_ends.push(batch.values.len());
            written
        };
        if let Some(before) = batch.last.filter(|before| written.sequence <= *before) {
            return Err(Error::OutOfOrder { before, after: written.sequence });
        }
        batch.last = Some(written.sequence);
        batch.replaced += written.replaced;
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
    /// No rows yet, and room for `expected` bytes of those above `position`.
    pub(super) fn above(position: Option<Sequence>, expected: usize) -> Self {
        Self { values: Vec::with_capacity(expected), last: position, ..Self::default() }
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// Bytes of keys and values.
    pub(super) fn size(&self) -> usize {
        self.values.len() + self.fields_size + self.keys.len()
    }

    /// The rows, cut out of the buffers.
    pub(super) fn into_rows(self) -> Vec<Row> {
        let (values, keys) = (Bytes::from(self.values), Bytes::from(self.keys));
        let mut value_start = 0;
        let json = self.value_ends.into_iter().map(|end| Content::Json(values.slice(std::mem::replace(&mut value_start, end)..end)));
        let contents = json.chain(self.fields.into_iter().map(Content::Fields));
        let mut key_start = 0;
        let cut = |(key_end, content): (usize, Content)| {
            let key = keys.slice(std::mem::replace(&mut key_start, key_end)..key_end);
            Row { key, content, timestamp_ms: None }
        };
        self.key_ends.into_iter().zip(contents).map(cut).collect()
    }
}

/// The bytes that a value takes, about.
fn size_of_field(value: &Value<'_>) -> usize {
    let beside = match value {
        Value::Text(text) => text.plain().len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Value<'_>>() + beside
}

#[cfg(test)]
mod tests {
    use super::super::catalog::{ColumnInfo, IndexInfo, Lookup, ObjectKind, TableInfo};
    use super::super::keys::TableName;
    use super::super::validate;
    use super::*;
    use jiff::tz::TimeZone;

    fn plan() -> Plan {
        let base_type = Some("bigint".to_owned());
        let column = ColumnInfo {
            ordinal: 1,
            name: "id".to_owned(),
            is_asked_for: true,
            declared_type: base_type.clone(),
            base_type,
            max_length: 8,
            precision: 19,
            ..ColumnInfo::default()
        };
        let index = IndexInfo { id: 1, kind: 1, is_unique: true, is_constraint: true, key: vec![1], ..IndexInfo::default() };
        let name = TableName { schema: "dbo".to_owned(), table: "orders".to_owned() };
        let table = TableInfo {
            schema: name.schema.clone(),
            name: name.table.clone(),
            kind: ObjectKind::Table,
            unlocked: None,
            columns: vec![column],
            indexes: vec![index],
        };
        let table = validate::check(Lookup::Found(Box::new(table)), &name, "id").expect("a table that can be polled");
        Plan::new(table, Settings { zone: TimeZone::UTC, decimal_as_string: false }, ReadMode::Plain, None)
    }

    fn row(id: i64) -> Vec<ColumnData<'static>> {
        vec![ColumnData::I64(Some(id))]
    }

    fn at(id: i128) -> Sequence {
        Sequence::new(id).expect("in range")
    }

    #[test]
    fn a_value_that_does_not_grow_stops_the_table_and_both_values_are_named() {
        for odd in [7, 3, 5] {
            let plan = plan();
            let mut batch = Batch { last: Some(at(5)), ..Batch::default() };
            assert_eq!((plan.take(row(6), &mut batch), plan.take(row(7), &mut batch)), (Ok(()), Ok(())));
            assert_eq!(plan.take(row(odd), &mut batch), Err(Error::OutOfOrder { before: at(7), after: at(odd.into()) }));
        }
        let mut batch = Batch { last: Some(at(5)), ..Batch::default() };
        assert!(plan().take(row(5), &mut batch).is_err(), "the row of the cursor again");
    }

    #[test]
    fn rows_are_cut_out_of_the_buffer_as_they_were_written() {
        let plan = plan();
        let mut batch = Batch::default();
        for id in [-3, 0, 12_345] {
            plan.take(row(id), &mut batch).expect("in order");
        }
        let rows: Vec<(Bytes, Bytes)> = batch
            .into_rows()
            .into_iter()
            .map(|row| match row.content {
                Content::Json(json) => (row.key, json),
                Content::Fields(_) => panic!("rows of this batch are JSON"),
            })
            .collect();
        let expected = [("-3", "{\"id\":-3}"), ("0", "{\"id\":0}"), ("12345", "{\"id\":12345}")];
        assert_eq!(rows, expected.map(|(key, json)| (Bytes::from(key), Bytes::from(json))));
    }
}
