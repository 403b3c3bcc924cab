//! Types and values as bytes (MS-TDS 2.2.5.4 to 2.2.5.6), for answers and out of parameters.

mod parameters;
mod values;

pub(super) use parameters::{Parameter, parameter};
pub(super) use values::{put_type, put_value};

use bytes::{BufMut as _, BytesMut};

/// A text with one byte for its length in UTF-16 units.
pub(super) fn put_short_text(out: &mut BytesMut, text: &str) {
    let units: Vec<u16> = text.encode_utf16().take(255).collect();
    out.put_u8(u8::try_from(units.len()).unwrap_or(255));
    units.iter().for_each(|unit| out.put_u16_le(*unit));
}

/// A text with two bytes for its length in UTF-16 units.
pub(super) fn put_text(out: &mut BytesMut, text: &str) {
    let units: Vec<u16> = text.encode_utf16().take(65_535).collect();
    out.put_u16_le(u16::try_from(units.len()).unwrap_or(u16::MAX));
    units.iter().for_each(|unit| out.put_u16_le(*unit));
}
