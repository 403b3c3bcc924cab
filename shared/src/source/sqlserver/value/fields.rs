//! Rows as values of a record schema, for the modes and formats in which records have one.
//!
//! The values are those of [`super`] before they become JSON: the same instants, the same digits. Which field is of which
//! type is said by [`Baseline::fields`](super::super::schema::Baseline::fields).

use std::borrow::Cow;

use tiberius::ColumnData;

use super::{Error, RowWriter, Settings, Written, append, check, is_null, milliseconds, write_decimal, write_guid};
use crate::record::value::{Text, Value};
use crate::source::sqlserver::column::{Column, Kind};
use crate::source::sqlserver::sequence::Sequence;

impl RowWriter {
    /// The values of `row`, one per column in order; texts and bytes are moved out of it.
    ///
    /// # Errors
    /// The row is not what was asked for.
    pub fn fields(&self, row: impl IntoIterator<Item = ColumnData<'static>>) -> Result<(Vec<Value<'static>>, Written), Error> {
        let length = || Error::Length { expected: self.cells };
        let mut cells = row.into_iter();
        let mut values = Vec::with_capacity(self.fields.len());
        let (mut sequence, mut replaced, mut at) = (None, 0, 0);
        for field in &self.fields {
            let mut cell = cells.next().ok_or_else(length)?;
            if at == self.sequence.1 {
                sequence = Sequence::read(&cell);
            }
            for _ in 1..field.column.cells() {
                let next = cells.next().ok_or_else(length)?;
                cell = if is_null(&next) { cell } else { next };
            }
            at += field.column.cells();
            check(&cell, &field.column)?;
            let value = value(cell, &field.column, &self.settings);
            replaced += u64::from(value.1);
            values.push(value.0);
        }
        if cells.next().is_some() {
            return Err(length());
        }
        let sequence = sequence.ok_or_else(|| Error::NoSequence { column: self.sequence.0.clone() })?;
        Ok((values, Written { sequence, replaced }))
    }
}

/// The value of a cell that was checked, and whether it holds a replacement.
fn value(cell: ColumnData<'static>, column: &Column, settings: &Settings) -> (Value<'static>, bool) {
    if is_null(&cell) {
        return (Value::Null, false);
    }
    if column.kind == Kind::Variant {
        return variant(cell, settings);
    }
    let value = match cell {
        ColumnData::U8(Some(number)) => Value::Int(number.into()),
        ColumnData::I16(Some(number)) => Value::Int(number.into()),
        ColumnData::I32(Some(number)) => Value::Int(number.into()),
        ColumnData::I64(Some(number)) => Value::Int(number),
        ColumnData::Bit(Some(bit)) => Value::Boolean(bit),
        ColumnData::F32(Some(number)) if number.is_finite() => Value::Float32(number),
        ColumnData::F64(Some(number)) if number.is_finite() => Value::Float64(number),
        ColumnData::F32(_) | ColumnData::F64(_) => return (Value::Null, true),
        ColumnData::Numeric(Some(number)) if settings.decimal_as_string => written(|out| write_decimal(number, out)),
        ColumnData::Numeric(Some(number)) => Value::Decimal(number.value()),
        ColumnData::Guid(Some(guid)) => written(|out| write_guid(&guid, out)),
        ColumnData::Binary(Some(bytes)) => Value::Bytes(bytes),
        ColumnData::String(Some(text)) => return plain(text),
        ColumnData::Xml(Some(xml)) => return plain(xml.into_owned().into_string().into()),
        time => milliseconds(&time, &settings.zone).map_or(Value::Null, Value::Int),
    };
    (value, false)
}

fn plain(text: Cow<'static, str>) -> (Value<'static>, bool) {
    let replaced = text.contains(char::REPLACEMENT_CHARACTER);
    (Value::Text(Text::Plain(text)), replaced)
}

/// Text that the writers of JSON make, which is ASCII.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> Value<'static> {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8_lossy(&out).into_owned().into()
}

/// A `sql_variant` has no type of its own: it is text, and what is no text in it is its JSON.
fn variant(cell: ColumnData<'static>, settings: &Settings) -> (Value<'static>, bool) {
    let mut json = Vec::new();
    let replaced = append(&cell, settings, &mut json);
    let text = match serde_json::from_slice::<String>(&json) {
        Ok(text) => text,
        Err(_) => String::from_utf8_lossy(&json).into_owned(),
    };
    (text.into(), replaced)
}
