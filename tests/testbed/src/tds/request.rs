//! What a client asks: a batch, a call, an act on a transaction.

use super::reader::{Read, Reader, Unreadable};
use super::value::Value;
use super::wire::{Parameter, parameter};

/// A request of a logged-in client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    /// Statements.
    Batch(String),
    /// `sp_executesql`: statements, the declarations of its parameters, the parameters.
    Execute { text: String, declarations: String, parameters: Vec<Parameter> },
    /// A call of something else, which is refused by name.
    OtherCall(String),
    /// Begin, commit or roll back.
    Transaction(Act),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Begin,
    Commit,
    Rollback,
}

pub(super) fn batch(content: &[u8]) -> Read<Request> {
    let mut reader = Reader::new(content);
    reader.skip_headers()?;
    let units = reader.rest().len() / 2;
    reader.text(units).map(Request::Batch)
}

/// The number of `sp_executesql` among the procedures that have one.
const EXECUTE: u16 = 10;

pub(super) fn call(content: &[u8]) -> Read<Request> {
    let mut reader = Reader::new(content);
    reader.skip_headers()?;
    let name = match reader.u16()? {
        0xffff => match reader.u16()? {
            EXECUTE => "sp_executesql".to_owned(),
            other => format!("procedure number {other}"),
        },
        units => reader.text(units.into())?,
    };
    // How to compile, and whether to leave out metadata: nothing that is done here.
    reader.u16()?;
    let plain = name.rsplit('.').next().unwrap_or(&name).trim_matches(['[', ']']);
    if !plain.eq_ignore_ascii_case("sp_executesql") {
        return Ok(Request::OtherCall(name));
    }
    let mut parameters = Vec::new();
    while !reader.is_empty() {
        parameters.push(parameter(&mut reader)?);
    }
    let text = |parameter: Option<&Parameter>| match parameter.map(|parameter| &parameter.value) {
        Some(Value::Wide(units)) => Ok(String::from_utf16_lossy(units)),
        Some(Value::Chars(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Some(Value::Null) | None => Ok(String::new()),
        Some(other) => Err(Unreadable(format!("a statement that is {other:?}"))),
    };
    let (statement, declarations) = (text(parameters.first())?, text(parameters.get(1))?);
    let parameters = parameters.into_iter().skip(2).collect();
    Ok(Request::Execute { text: statement, declarations, parameters })
}

pub(super) fn transaction(content: &[u8]) -> Read<Request> {
    let mut reader = Reader::new(content);
    reader.skip_headers()?;
    Ok(Request::Transaction(match reader.u16()? {
        5 => Act::Begin,
        7 => Act::Commit,
        8 => Act::Rollback,
        other => return Err(Unreadable(format!("transaction manager request {other}"))),
    }))
}
