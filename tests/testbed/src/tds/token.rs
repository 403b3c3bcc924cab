//! The tokens of an answer (MS-TDS 2.2.7).

use bytes::{BufMut as _, BytesMut};

use super::collation::Collation;
use super::engine::{OutputColumn, SqlError};
use super::types::{Length, Type};
use super::value::Value;
use super::wire::{put_short_text, put_text, put_type, put_value};

/// More answers follow in this message.
pub(super) const MORE: u16 = 0x01;
/// The statement failed.
pub(super) const ERROR: u16 = 0x02;
/// A transaction is open.
pub(super) const IN_TRANSACTION: u16 = 0x04;
/// The row count is one.
pub(super) const COUNT: u16 = 0x10;
/// The answer to an attention.
pub(super) const ATTENTION: u16 = 0x20;

/// Which of the three tokens ends an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// Of a statement of a batch.
    Statement = 0xfd,
    /// Of a procedure.
    Procedure = 0xfe,
    /// Of a statement inside of a procedure.
    InProcedure = 0xff,
}

pub(super) fn done(out: &mut BytesMut, kind: Done, status: u16, command: u16, rows: u64) {
    out.put_u8(kind as u8);
    out.put_u16_le(status);
    out.put_u16_le(command);
    out.put_u64_le(rows);
}

/// A token whose length stands in two bytes in front of its content.
fn sized(out: &mut BytesMut, token: u8, content: &[u8]) {
    out.put_u8(token);
    out.put_u16_le(u16::try_from(content.len()).unwrap_or(u16::MAX));
    out.put_slice(content);
}

/// An error, or a message if its class is 10 or less.
pub(super) fn message(out: &mut BytesMut, error: &SqlError, server: &str) {
    let mut content = BytesMut::new();
    content.put_i32_le(error.number);
    content.put_u8(error.state);
    content.put_u8(error.class);
    put_text(&mut content, &error.message);
    put_short_text(&mut content, server);
    put_short_text(&mut content, "");
    content.put_u32_le(1);
    sized(out, if error.class > 10 { 0xaa } else { 0xab }, &content);
}

pub(super) fn login_acknowledged(out: &mut BytesMut, version: u32, babelfish: bool) {
    let mut content = BytesMut::new();
    content.put_u8(1);
    content.put_u32(version);
    put_short_text(&mut content, if babelfish { "Microsoft SQL Server" } else { "Microsoft SQL Server\0\0" });
    content.put_slice(&[16, 0, 0x10, 0x09]);
    sized(out, 0xad, &content);
}

/// No feature that the client asked for.
pub(super) fn no_features(out: &mut BytesMut) {
    out.put_slice(&[0xae, 0xff]);
}

/// A change of text: the database (1), the language (2), the packet size (4).
pub(super) fn changed(out: &mut BytesMut, what: u8, new: &str, old: &str) {
    let mut content = BytesMut::new();
    content.put_u8(what);
    put_short_text(&mut content, new);
    put_short_text(&mut content, old);
    sized(out, 0xe3, &content);
}

pub(super) fn collation_changed(out: &mut BytesMut, collation: &Collation) {
    let mut content = BytesMut::new();
    content.put_slice(&[7, 5]);
    content.put_slice(&collation.bytes());
    content.put_u8(0);
    sized(out, 0xe3, &content);
}

/// A transaction began (8), was committed (9) or rolled back (10). Its descriptor is its number.
pub(super) fn transaction_changed(out: &mut BytesMut, what: u8, transaction: u64) {
    let mut content = BytesMut::new();
    content.put_u8(what);
    if what == 8 {
        content.put_u8(8);
        content.put_u64_le(transaction);
        content.put_u8(0);
    } else {
        content.put_u8(0);
        content.put_u8(8);
        content.put_u64_le(transaction);
    }
    sized(out, 0xe3, &content);
}

/// Go there instead.
pub(super) fn routed(out: &mut BytesMut, host: &str, port: u16) {
    let mut value = BytesMut::new();
    value.put_u8(0);
    value.put_u16_le(port);
    put_text(&mut value, host);
    let mut content = BytesMut::new();
    content.put_u8(20);
    content.put_u16_le(u16::try_from(value.len()).unwrap_or(0));
    content.put_slice(&value);
    content.put_u16_le(0);
    sized(out, 0xe3, &content);
}

pub(super) fn return_status(out: &mut BytesMut, status: i32) {
    out.put_u8(0x79);
    out.put_i32_le(status);
}

/// How a column goes over the wire: a client that has not asked for UTF-8 is given UTF-16 in its place.
pub(super) fn sent_as(ty: Type, utf8_as_it_is: bool) -> Type {
    match ty {
        _ if utf8_as_it_is || !ty.collation().is_some_and(Collation::is_utf8) => ty,
        // A character of UTF-8 has at least as many bytes as it has units of UTF-16.
        Type::Char(length, collation) | Type::VarChar(Length::Limited(length), collation) if length <= 4000 => {
            Type::NVarChar(Length::Limited(length), collation)
        }
        Type::Char(_, collation) | Type::VarChar(_, collation) | Type::Text(collation) => Type::NVarChar(Length::Max, collation),
        other => other,
    }
}

pub(super) fn columns(out: &mut BytesMut, columns: &[OutputColumn], database: &str, utf8_as_it_is: bool) {
    out.put_u8(0x81);
    out.put_u16_le(u16::try_from(columns.len()).unwrap_or(u16::MAX));
    for column in columns {
        let ty = sent_as(column.ty, utf8_as_it_is);
        // 80 is what clients know a rowversion by.
        out.put_u32_le(if ty == Type::RowVersion { 80 } else { 0 });
        let mut flags = u16::from(column.nullable);
        flags |= if column.computed { 0 } else { 1 << 3 };
        flags |= u16::from(column.identity) << 4;
        flags |= u16::from(column.computed) << 5;
        flags |= u16::from(column.hidden) << 13;
        flags |= u16::from(ty.collation().is_some_and(|collation| !collation.ignores_case())) << 1;
        out.put_u16_le(flags);
        put_type(out, &ty, column.nullable, database);
        if matches!(ty, Type::Text(_) | Type::NText(_) | Type::Image) {
            out.put_u8(u8::try_from(column.table.len()).unwrap_or(0));
            column.table.iter().for_each(|part| put_text(out, part));
        }
        put_short_text(out, &column.name);
    }
}

/// A row. One with a `NULL` in it goes with a bitmap, where its client knows that.
pub(super) fn row(out: &mut BytesMut, values: &[Value], columns: &[OutputColumn], bitmaps: bool, utf8_as_it_is: bool) {
    let compressed = bitmaps && values.iter().any(Value::is_null);
    if compressed {
        out.put_u8(0xd2);
        for eight in values.chunks(8) {
            out.put_u8(eight.iter().enumerate().fold(0, |bits, (at, value)| bits | u8::from(value.is_null()) << at));
        }
    } else {
        out.put_u8(0xd1);
    }
    for (value, column) in values.iter().zip(columns) {
        if compressed && value.is_null() {
            continue;
        }
        let ty = sent_as(column.ty, utf8_as_it_is);
        match (value, column.ty.collation()) {
            (Value::Chars(bytes), Some(collation)) if ty != column.ty => {
                put_value(out, &Value::wide(&collation.decode(bytes)), &ty, column.nullable);
            }
            _ => put_value(out, value, &ty, column.nullable),
        }
    }
}
