//! Values and rows as JSON.
//!
//! Bytes are appended to the row as the values come; no value is built in between. Everything is computed from what the
//! driver read off the wire and not by its conversions, some of which round, panic or apply an offset twice. A value
//! that no server should send (a 40th digit, a 25th hour) has some output too; nothing here panics.
//!
//! * Times are epoch milliseconds, rounded down; `datetime` counts three-hundredths of a second and is rounded to the
//!   nearest. What carries no zone is read in the configured one by the rules of `java.time`: a time that was skipped
//!   moves on by the length of the gap, of two equal times the first is meant. `time` is milliseconds past midnight.
//! * Decimals keep their scale and all their digits.
//! * Bytes are Base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::tz::TimeZone;
use tiberius::numeric::Numeric;
use tiberius::{ColumnData, Uuid};

use super::catalog::Cells;
use super::column::{Column, Kind};
use super::sequence::Sequence;

mod fields;
mod time;

use self::time::{date_ms, datetime_ms, datetime2_ms, instant, smalldatetime_ms, time_ms};

/// What the document says about values.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The zone of dates and times that carry none.
    pub zone: TimeZone,
    /// Whether decimals and money are texts.
    pub decimal_as_string: bool,
}

/// A row that cannot be passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A value of another type than the catalog says. The table was altered after the look at the catalog.
    #[error("column {column} holds {found}, and the catalog says {expected:?}: the table was altered in between")]
    Altered {
        /// The column.
        column: String,
        /// What the catalog says.
        expected: Kind,
        /// What came.
        found: &'static str,
    },
    /// The row has more or fewer values than were asked for.
    #[error("the row has not the {expected} values that were asked for")]
    Length {
        /// How many were asked for.
        expected: usize,
    },
    /// The sequence is NULL or no whole number.
    #[error("the row has no readable sequence in column {column}")]
    NoSequence {
        /// The column.
        column: String,
    },
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The row's sequence.
    pub sequence: Sequence,
    /// Values with a replacement in them: texts with U+FFFD, numbers that are none.
    pub replaced: u64,
}

/// Writes the rows of one table.
#[derive(Debug, Clone)]
pub struct RowWriter {
    fields: Vec<Field>,
    cells: usize,
    sequence: (String, usize),
    settings: Settings,
}

#[derive(Debug, Clone)]
struct Field {
    /// `{"name":` or `,"name":`
    opening: Vec<u8>,
    column: Column,
}

impl RowWriter {
    /// A writer of rows of `columns`, whose sequence is the column at `sequence`.
    ///
    /// # Panics
    /// If there is no column at `sequence`.
    pub fn new(columns: &[Column], sequence: usize, settings: Settings) -> Self {
        let field = |(at, column): (usize, &Column)| {
            let mut opening = vec![if at == 0 { b'{' } else { b',' }];
            write_text(&column.name, &mut opening);
            opening.push(b':');
            Field { opening, column: column.clone() }
        };
        let before = columns[..sequence].iter().map(Column::cells).sum();
        Self {
            fields: columns.iter().enumerate().map(field).collect(),
            cells: columns.iter().map(Column::cells).sum(),
            sequence: (columns[sequence].name.clone(), before),
            settings,
        }
    }

    /// Appends `row` as a JSON object whose fields are the columns in their order.
    ///
    /// # Errors
    /// The row is not what was asked for. What was appended by then is of no use.
    pub fn write<R: Cells>(&self, row: &R, out: &mut Vec<u8>) -> Result<Written, Error> {
        let length = || Error::Length { expected: self.cells };
        let (column, at) = &self.sequence;
        let sequence = row.cell(*at).ok_or_else(length).map(Sequence::read)?;
        let sequence = sequence.ok_or_else(|| Error::NoSequence { column: column.clone() })?;
        let (mut at, mut replaced) = (0, 0);
        for Field { opening, column } in &self.fields {
            out.extend_from_slice(opening);
            // Of the three values of a sql_variant at most one is not NULL.
            let mut cell = row.cell(at).ok_or_else(length)?;
            for other in at + 1..at + column.cells() {
                let next = row.cell(other).ok_or_else(length)?;
                if !is_null(next) {
                    cell = next;
                }
            }
            at += column.cells();
            replaced += u64::from(write(cell, column, &self.settings, out)?);
        }
        if row.cell(at).is_some() {
            return Err(length());
        }
        out.push(b'}');
        Ok(Written { sequence, replaced })
    }
}

/// Appends the value of `column` as JSON, and says whether it holds a replacement.
///
/// # Errors
/// The value is of another type than the column.
pub fn write(value: &ColumnData<'_>, column: &Column, settings: &Settings, out: &mut Vec<u8>) -> Result<bool, Error> {
    check(value, column)?;
    Ok(append(value, settings, out))
}

/// NULL is of every type.
fn check(value: &ColumnData<'_>, column: &Column) -> Result<(), Error> {
    if is_null(value) || is_of(value, column.kind) {
        return Ok(());
    }
    Err(Error::Altered { column: column.name.clone(), expected: column.kind, found: type_name(value) })
}

fn append(value: &ColumnData<'_>, settings: &Settings, out: &mut Vec<u8>) -> bool {
    match value {
        ColumnData::U8(Some(number)) => write_integer(*number, out),
        ColumnData::I16(Some(number)) => write_integer(*number, out),
        ColumnData::I32(Some(number)) => write_integer(*number, out),
        ColumnData::I64(Some(number)) => write_integer(*number, out),
        ColumnData::Bit(Some(bit)) => out.extend_from_slice(if *bit { b"true" } else { b"false" }),
        ColumnData::F32(Some(number)) => return write_float(*number, number.is_finite(), out),
        ColumnData::F64(Some(number)) => return write_float(*number, number.is_finite(), out),
        ColumnData::Numeric(Some(number)) if settings.decimal_as_string => {
            out.push(b'"');
            write_decimal(*number, out);
            out.push(b'"');
        }
        ColumnData::Numeric(Some(number)) => write_decimal(*number, out),
        ColumnData::String(Some(text)) => return write_text(text, out),
        ColumnData::Xml(Some(xml)) => return write_text(xml.as_ref().as_ref(), out),
        ColumnData::Guid(Some(guid)) => {
            out.push(b'"');
            write_guid(guid, out);
            out.push(b'"');
        }
        ColumnData::Binary(Some(bytes)) => write_base64(bytes, out),
        other => match milliseconds(other, &settings.zone) {
            Some(number) => write_integer(number, out),
            None => out.extend_from_slice(b"null"),
        },
    }
    false
}

/// The milliseconds of a time, past midnight or past 1970; `None` for what is no time.
fn milliseconds(value: &ColumnData<'_>, zone: &TimeZone) -> Option<i64> {
    match value {
        ColumnData::Time(time) => time.map(time_ms),
        ColumnData::Date(date) => date.map(|date| instant(date_ms(date), zone)),
        ColumnData::DateTime(time) => time.map(|time| instant(datetime_ms(time), zone)),
        ColumnData::SmallDateTime(time) => time.map(|time| instant(smalldatetime_ms(time), zone)),
        ColumnData::DateTime2(time) => time.map(|time| instant(datetime2_ms(time), zone)),
        // Its time on the wire is UTC already; the offset says how it was written.
        ColumnData::DateTimeOffset(time) => time.map(|time| datetime2_ms(time.datetime2())),
        _ => None,
    }
}

fn is_null(value: &ColumnData<'_>) -> bool {
    match value {
        ColumnData::U8(value) => value.is_none(),
        ColumnData::I16(value) => value.is_none(),
        ColumnData::I32(value) => value.is_none(),
        ColumnData::I64(value) => value.is_none(),
        ColumnData::F32(value) => value.is_none(),
        ColumnData::F64(value) => value.is_none(),
        ColumnData::Bit(value) => value.is_none(),
        ColumnData::String(value) => value.is_none(),
        ColumnData::Guid(value) => value.is_none(),
        ColumnData::Binary(value) => value.is_none(),
        ColumnData::Numeric(value) => value.is_none(),
        ColumnData::Xml(value) => value.is_none(),
        ColumnData::DateTime(value) => value.is_none(),
        ColumnData::SmallDateTime(value) => value.is_none(),
        ColumnData::Time(value) => value.is_none(),
        ColumnData::Date(value) => value.is_none(),
        ColumnData::DateTime2(value) => value.is_none(),
        ColumnData::DateTimeOffset(value) => value.is_none(),
    }
}

fn is_of(value: &ColumnData<'_>, kind: Kind) -> bool {
    match (kind, value) {
        (Kind::Variant, _) => true,
        (Kind::Decimal { scale, .. }, ColumnData::Numeric(Some(number))) => number.scale() == scale,
        (kind, value) => matches!(
            (kind, value),
            (Kind::TinyInt, ColumnData::U8(_))
                | (Kind::SmallInt, ColumnData::I16(_))
                | (Kind::Int, ColumnData::I32(_))
                | (Kind::BigInt, ColumnData::I64(_))
                | (Kind::Bit, ColumnData::Bit(_))
                | (Kind::Real, ColumnData::F32(_))
                | (Kind::Float, ColumnData::F64(_))
                | (Kind::Date, ColumnData::Date(_))
                | (Kind::Time, ColumnData::Time(_))
                | (Kind::DateTime, ColumnData::DateTime(_))
                | (Kind::SmallDateTime, ColumnData::SmallDateTime(_))
                | (Kind::DateTime2, ColumnData::DateTime2(_))
                | (Kind::DateTimeOffset, ColumnData::DateTimeOffset(_))
                | (Kind::UniqueIdentifier, ColumnData::Guid(_))
                | (Kind::Text, ColumnData::String(_) | ColumnData::Xml(_))
                | (Kind::Binary, ColumnData::Binary(_))
        ),
    }
}

fn type_name(value: &ColumnData<'_>) -> &'static str {
    match value {
        ColumnData::U8(_) => "a tinyint",
        ColumnData::I16(_) => "a smallint",
        ColumnData::I32(_) => "an int",
        ColumnData::I64(_) => "a bigint",
        ColumnData::F32(_) => "a real",
        ColumnData::F64(_) => "a float",
        ColumnData::Bit(_) => "a bit",
        ColumnData::String(_) => "text",
        ColumnData::Guid(_) => "a uniqueidentifier",
        ColumnData::Binary(_) => "bytes",
        ColumnData::Numeric(_) => "a decimal",
        ColumnData::Xml(_) => "xml",
        ColumnData::DateTime(_) => "a datetime",
        ColumnData::SmallDateTime(_) => "a smalldatetime",
        ColumnData::Time(_) => "a time",
        ColumnData::Date(_) => "a date",
        ColumnData::DateTime2(_) => "a datetime2",
        ColumnData::DateTimeOffset(_) => "a datetimeoffset",
    }
}

fn write_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The shortest digits that name the number. SQL Server stores no NaN and no infinity, and JSON has none; should one come
/// all the same, it is null and counted.
fn write_float(number: impl serde::Serialize, is_finite: bool, out: &mut Vec<u8>) -> bool {
    // Writing a number to memory cannot fail; not finite ones are written as null.
    let _ = serde_json::to_writer(out, &number);
    !is_finite
}

fn write_decimal(number: Numeric, out: &mut Vec<u8>) {
    if number.value() < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number.value().unsigned_abs()).as_bytes();
    let scale = usize::from(number.scale());
    if scale == 0 {
        out.extend_from_slice(digits);
        return;
    }
    let whole = digits.len().saturating_sub(scale);
    out.extend_from_slice(if whole == 0 { b"0" } else { &digits[..whole] });
    out.push(b'.');
    out.extend(std::iter::repeat_n(b'0', scale.saturating_sub(digits.len())));
    out.extend_from_slice(&digits[whole..]);
}

/// Whether the text holds U+FFFD: the driver puts it where UTF-16 was broken, and the server where bytes were.
fn write_text(text: &str, out: &mut Vec<u8>) -> bool {
    // Writing text to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
    text.contains(char::REPLACEMENT_CHARACTER)
}

/// Upper case, as SQL Server itself writes it.
fn write_guid(guid: &Uuid, out: &mut Vec<u8>) {
    out.extend_from_slice(guid.hyphenated().encode_upper(&mut Uuid::encode_buffer()).as_bytes());
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // The room is exactly what padded Base64 takes.
    let written = BASE64.encode_slice(bytes, &mut out[start..]).unwrap_or_default();
    out.truncate(start + written);
    out.push(b'"');
}

#[cfg(test)]
mod tests;
