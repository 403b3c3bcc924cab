//! The values of a record, each as its schema's type says; without a map per row.
//!
//! A row of a struct is a list of values in the order of the schema's fields. Text stays what came over the wire where
//! it can: a JSON string is kept with its quotes and escapes, so that a converter that writes JSON copies it.

use std::borrow::Cow;

use bytes::Bytes;

/// One value. Which variant stands for which type is said at the variant.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// The null of any optional type.
    Null,
    /// `boolean`.
    Boolean(bool),
    /// `int8` to `int64`, and the logical types over them: days, milliseconds of the day, epoch milliseconds.
    Int(i64),
    /// `float32`; finite.
    Float32(f32),
    /// `float64`; finite.
    Float64(f64),
    /// `string`.
    Text(Text<'a>),
    /// `bytes`.
    Bytes(Cow<'a, [u8]>),
    /// A decimal: its digits without the point, which the schema's scale places.
    Decimal(i128),
    /// `struct`: a value per field, in the order of the schema.
    Struct(Vec<Value<'a>>),
    /// A whole value without a schema, as JSON.
    Json(Bytes),
}

/// A text, in the form in which it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text<'a> {
    /// The text itself.
    Plain(Cow<'a, str>),
    /// A JSON string, quotes included, that was found valid.
    Quoted(&'a str),
}

impl<'a> Text<'a> {
    /// The text itself. Half of a surrogate pair, which JSON can say and UTF-8 cannot, becomes U+FFFD.
    pub fn plain(&self) -> Cow<'_, str> {
        match self {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Quoted(quoted) => unquoted(quoted),
        }
    }

    /// Writes the text as a JSON string.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Text::Plain(text) => quote(text, out),
            Text::Quoted(quoted) => out.extend_from_slice(quoted.as_bytes()),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Text::Plain(Cow::Borrowed(text)))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Text::Plain(Cow::Owned(text)))
    }
}

/// The text of a valid JSON string.
fn unquoted(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let Some(first) = inner.find('\\') else { return Cow::Borrowed(inner) };
    let mut text = String::with_capacity(inner.len());
    let (plain, mut rest) = inner.split_at(first);
    text.push_str(plain);
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (read, length) = escape(&rest[at..]);
        text.push(read);
        rest = &rest[at + length..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character that an escape stands for, and the bytes that it takes.
fn escape(text: &str) -> (char, usize) {
    match text.as_bytes().get(1) {
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(b'u') => unicode(text),
        // `\"`, `\\`, `\/`; a JSON string has no other.
        Some(other) if other.is_ascii() => (char::from(*other), 2),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}

/// The character of `\uXXXX`, or of two of them that make a pair.
fn unicode(text: &str) -> (char, usize) {
    const ONE: usize = 6;
    let Some(first) = unit(text) else { return (char::REPLACEMENT_CHARACTER, text.len().min(ONE)) };
    if let Some(read) = char::from_u32(u32::from(first)) {
        return (read, ONE);
    }
    let second = text.get(ONE..).and_then(unit);
    match second.map(|second| char::decode_utf16([first, second]).next()) {
        Some(Some(Ok(read))) => (read, 2 * ONE),
        _ => (char::REPLACEMENT_CHARACTER, ONE),
    }
}

fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// Writes `text` as a JSON string, escaped as Jackson does it, which is what Connect writes with.
pub(super) fn quote(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push(b'"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[from..at]);
        from = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.extend_from_slice(&text.as_bytes()[from..]);
    out.push(b'"');
}

/// The digits of a decimal as Java's `BigDecimal.toString` writes them: plain, or with an exponent below 10^-6.
pub fn decimal_text(unscaled: i128, scale: u8) -> String {
    let digits = unscaled.unsigned_abs().to_string();
    let sign = if unscaled < 0 { "-" } else { "" };
    let scale = usize::from(scale);
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    if scale >= digits.len() + 6 {
        let exponent = scale + 1 - digits.len();
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E-{exponent}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// The shortest two's complement bytes of `unscaled`, most significant first: Java's `BigInteger.toByteArray`.
pub fn decimal_bytes(unscaled: i128) -> Vec<u8> {
    let bytes = unscaled.to_be_bytes();
    let sign = if unscaled < 0 { 0xff } else { 0 };
    let is_spare = |pair: &[u8]| pair[0] == sign && (pair[1] & 0x80) == (sign & 0x80);
    let spare = bytes.windows(2).take_while(|pair| is_spare(pair)).count();
    bytes[spare..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_reads_as_the_text_that_json_says() {
        for quoted in [r#""""#, r#""plain ä 𝄞""#, r#""a\"b\\c\/d\b\f\n\r\t""#, r#""\u0000\u00e4\ud834\udd1e""#, r#""x\u001Fy""#] {
            let expected: String = serde_json::from_str(quoted).expect("valid JSON");
            assert_eq!(Text::Quoted(quoted).plain(), expected, "{quoted}");
            let mut out = Vec::new();
            Text::Plain(expected.as_str().into()).write_json(&mut out);
            assert_eq!(serde_json::from_slice::<String>(&out).expect("valid JSON"), expected, "{quoted}");
        }
        for (lone, expected) in [
            (r#""\ud800""#, "\u{fffd}"),
            (r#""\udc00x""#, "\u{fffd}x"),
            (r#""\ud800\u0041""#, "\u{fffd}A"),
            (r#""\ud834\ud834\udd1e""#, "\u{fffd}𝄞"),
        ] {
            assert_eq!(Text::Quoted(lone).plain(), expected, "{lone}");
        }
    }

    #[test]
    fn a_decimal_is_written_as_java_writes_it() {
        for (unscaled, scale, text) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 1, "-0.5"),
            (1050, 2, "10.50"),
            (1, 6, "0.000001"),
            (1, 7, "1E-7"),
            (-123, 9, "-1.23E-7"),
            (0, 7, "0E-7"),
            (i128::MIN, 38, "-1.70141183460469231731687303715884105728"),
        ] {
            assert_eq!(decimal_text(unscaled, scale), text);
        }
        for (unscaled, bytes) in
            [(0, &[0][..]), (127, &[127]), (128, &[0, 128]), (-1, &[255]), (-128, &[128]), (-129, &[255, 127]), (256, &[1, 0])]
        {
            assert_eq!(decimal_bytes(unscaled), bytes, "{unscaled}");
        }
        assert_eq!(decimal_bytes(i128::MAX).len(), 16);
    }
}
