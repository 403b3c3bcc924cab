//! Reading an answer's body: one pass, rows stay the bytes that the server sent.
//!
//! Of each row only the cursor fields are looked at. The row itself is a slice of the body, unless the alias asks for
//! display values, which the instance mixes with raw ones so that the cursor stays readable.

mod skipped;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::Error;
use super::keys::{BadRow, DisplayValue};
use super::range::{CursorFields, Head};
use super::time;
use skipped::Versions;
pub(super) use skipped::{NO_ID, Skipped};

/// The rows of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rows {
    /// Visible rows in the server's order.
    pub(super) rows: Vec<(Head, Bytes)>,
    /// Rows without a readable cursor, left out by policy.
    pub(super) skipped: Vec<Skipped>,
}

/// Whether a query can ask for rows after this id. An instance runs a value that begins like this as a script.
fn is_value(id: &str) -> bool {
    let script = "javascript:";
    !id.is_empty() && !id.trim_start().get(..script.len()).is_some_and(|start| start.eq_ignore_ascii_case(script))
}

/// How to read rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) fields: CursorFields,
    pub(super) display: DisplayValue,
    pub(super) bad_row: BadRow,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    result: Option<Listed<'a>>,
    error: Option<ErrorBody>,
}

/// The rows of a result, found in the one pass over the body. A result that is no list, as comes with some errors, is
/// `None` inside.
struct Listed<'a>(Option<Vec<&'a RawValue>>);

impl<'de: 'a, 'a> Deserialize<'de> for Listed<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Listed<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of rows")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut rows = Vec::new();
                while let Some(row) = seq.next_element()? {
                    rows.push(row);
                }
                Ok(Listed(Some(rows)))
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Listed(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Listed(None))
            }
        }
        deserializer.deserialize_any(List)
    }
}

/// What an instance says when it refuses or gives up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ErrorBody {
    message: Option<String>,
    detail: Option<String>,
}

impl ErrorBody {
    /// The instance's own words in a body of any kind; empty if there are none.
    pub(super) fn find(body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Outer {
            error: Option<serde_json::Value>,
            error_description: Option<String>,
        }
        let Ok(outer) = serde_json::from_slice::<Outer>(body) else { return Self::default() };
        match outer.error {
            Some(serde_json::Value::String(message)) => Self { message: Some(message), detail: outer.error_description },
            Some(other) => serde_json::from_value(other).unwrap_or_default(),
            None => Self::default(),
        }
    }

    /// Both parts in one line, cut to a length that fits a log line.
    pub(super) fn text(&self) -> String {
        let parts: Vec<&str> =
            [&self.message, &self.detail].into_iter().flatten().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { "no message".to_owned() } else { parts.join(": ").chars().take(300).collect() }
    }

    fn is_cancelled(&self) -> bool {
        is_cancelled(&self.text())
    }
}

/// Whether these words say that the instance stopped the query because it ran too long.
fn is_cancelled(text: &str) -> bool {
    text.contains("Transaction cancelled") || text.contains("maximum execution time")
}

/// The rows in a body that came with status 200 for a request of up to `limit` rows.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Cancelled`] or [`Error::Unable`].
pub(super) fn listed(body: &[u8], limit: u32) -> Result<Vec<&RawValue>, Error> {
    let text =
        std::str::from_utf8(body).map_err(|error| Error::Malformed { detail: format!("byte {} is not UTF-8", error.valid_up_to()) })?;
    if text.trim().is_empty() {
        return Err(Error::Malformed { detail: "the body is empty".to_owned() });
    }
    let malformed = |error: serde_json::Error| match is_cancelled(text) {
        true => Error::Cancelled { limit, detail: "Transaction cancelled".to_owned() },
        false => Error::Malformed { detail: format!("{error}, {} bytes came", body.len()) },
    };
    let parsed: Body = serde_json::from_str(text).map_err(malformed)?;
    if let Some(error) = parsed.error {
        return Err(match error.is_cancelled() {
            true => Error::Cancelled { limit, detail: error.text() },
            false => Error::Unable { status: 200, detail: error.text(), wait_seconds: None },
        });
    }
    parsed.result.and_then(|listed| listed.0).ok_or_else(|| Error::Malformed { detail: "there is no list of rows".to_owned() })
}

/// A row that is looked at field by field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// The rows of a body, as [`Reading::rows`] reads them, without looking for a cursor.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Cancelled`] or [`Error::Unable`].
    pub(super) fn of(body: &[u8], limit: u32) -> Result<Vec<Self>, Error> {
        let malformed = |error: serde_json::Error| Error::Malformed { detail: format!("a row is not an object: {error}") };
        let row = |raw: &RawValue| {
            let Ordered(fields) = serde_json::from_str(raw.get()).map_err(malformed)?;
            Ok(Self(fields.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()))
        };
        listed(body, limit)?.into_iter().map(row).collect()
    }

    /// Whether the row has the field, be it empty.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The field's raw value; `None` if it is not in the row, null, or no text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let found = Raw.deserialize(&mut serde_json::Deserializer::from_str(self.0.get(name)?)).ok().flatten();
        found.map(Cow::into_owned)
    }

    /// The names of the fields, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Reading {
    /// The rows of a body that came with status 200 for a request of up to `limit` rows.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Cancelled`], [`Error::Unable`] or [`Error::BadRow`].
    pub(super) fn rows(&self, body: &Bytes, limit: u32) -> Result<Rows, Error> {
        let raw = listed(body, limit)?;
        let mut rows = Rows { rows: Vec::with_capacity(raw.len()), skipped: Vec::new() };
        let mut versions = Versions::default();
        for row in raw {
            self.row(body, row, &mut rows, &mut versions)?;
        }
        Ok(rows)
    }

    fn row(&self, body: &Bytes, raw: &RawValue, rows: &mut Rows, versions: &mut Versions) -> Result<(), Error> {
        let malformed = |error: serde_json::Error| Error::Malformed { detail: format!("a row is not an object: {error}") };
        let found = CursorOf(&self.fields).deserialize(&mut serde_json::Deserializer::from_str(raw.get())).map_err(malformed)?;
        if found.is_blank {
            // Every field is hidden: for us the row is.
            return Ok(());
        }
        let second = found.timestamp.as_deref().and_then(time::parse);
        match (second, found.id) {
            (Some(second), Some(id)) if is_value(&id) => {
                let head = Head { second, id: id.into_owned(), mod_count: found.mod_count.map(Cow::into_owned).unwrap_or_default() };
                let value = match self.display {
                    DisplayValue::True => self.displayed(raw)?,
                    DisplayValue::False | DisplayValue::All => body.slice_ref(raw.get().as_bytes()),
                };
                rows.rows.push((head, value));
                Ok(())
            }
            (second, id) => {
                let (field, value) = match second {
                    Some(_) => (&self.fields.id, id.as_deref()),
                    None => (&self.fields.timestamp, found.timestamp.as_deref()),
                };
                let value = value.map_or_else(|| "it is not in the row".to_owned(), |value| format!("{value:?}"));
                let (field, id) = (field.clone(), id.filter(|id| !id.is_empty()).map(Cow::into_owned));
                if self.bad_row == BadRow::Fail {
                    return Err(Error::BadRow { id: id.unwrap_or_else(|| NO_ID.to_owned()), field, value });
                }
                let version = versions.of(second, id.as_deref(), found.mod_count.as_deref(), raw);
                rows.skipped.push(Skipped { after: rows.rows.len(), second, id, version, field, value });
                Ok(())
            }
        }
    }

    /// The row with each field's display value, the cursor fields raw.
    fn displayed(&self, raw: &RawValue) -> Result<Bytes, Error> {
        #[derive(Deserialize)]
        struct Both<'a> {
            #[serde(borrow)]
            value: Option<&'a RawValue>,
            #[serde(borrow)]
            display_value: Option<&'a RawValue>,
        }
        let malformed =
            |error: serde_json::Error| Error::Malformed { detail: format!("a row is not as display_value=all has it: {error}") };
        let fields: Ordered = serde_json::from_str(raw.get()).map_err(malformed)?;
        let mut out = String::with_capacity(raw.get().len() / 2);
        out.push('{');
        for (name, field) in &fields.0 {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&serde_json::Value::from(name.as_str()).to_string());
            out.push(':');
            let is_cursor = [&self.fields.timestamp, &self.fields.id, &self.fields.mod_count].contains(&name);
            match serde_json::from_str::<Both>(field.get()) {
                Ok(both) => {
                    let chosen = if is_cursor { both.value } else { both.display_value };
                    out.push_str(chosen.map_or("null", RawValue::get));
                }
                // A plain value where a pair was asked for is the only value there is.
                Err(_) => out.push_str(field.get()),
            }
        }
        out.push('}');
        Ok(Bytes::from(out))
    }
}

/// The fields of a row in their order, values as the server sent them.
struct Ordered<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Ordered<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Ordered<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Ordered(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// The cursor fields of a row, found while the rest is passed over.
struct CursorOf<'f>(&'f CursorFields);

#[derive(Default)]
struct Found<'de> {
    timestamp: Option<Cow<'de, str>>,
    id: Option<Cow<'de, str>>,
    mod_count: Option<Cow<'de, str>>,
    is_blank: bool,
}

impl<'de> DeserializeSeed<'de> for CursorOf<'_> {
    type Value = Found<'de>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for CursorOf<'_> {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Found { is_blank: true, ..Found::default() };
        while let Some(which) = map.next_key_seed(Which(self.0))? {
            found.is_blank = false;
            let slot = match which {
                Field::Timestamp => &mut found.timestamp,
                Field::Id => &mut found.id,
                Field::ModCount => &mut found.mod_count,
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *slot = map.next_value_seed(Raw)?;
        }
        Ok(found)
    }
}

enum Field {
    Timestamp,
    Id,
    ModCount,
    Other,
}

struct Which<'f>(&'f CursorFields);

impl<'de> DeserializeSeed<'de> for Which<'_> {
    type Value = Field;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Which<'_> {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Field, E> {
        Ok(match name {
            name if name == self.0.timestamp => Field::Timestamp,
            name if name == self.0.id => Field::Id,
            name if name == self.0.mod_count => Field::ModCount,
            _ => Field::Other,
        })
    }
}

/// A field's raw value: the text itself, or the `value` of a pair of raw and display value.
struct Raw;

impl<'de> DeserializeSeed<'de> for Raw {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Raw {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(number.to_string())))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(number.to_string())))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(value.to_string())))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut value = None;
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name == "value" {
                value = map.next_value_seed(Raw)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(display: DisplayValue, bad_row: BadRow) -> Reading {
        let fields = CursorFields { timestamp: "sys_updated_on".into(), id: "sys_id".into(), mod_count: "sys_mod_count".into() };
        Reading { fields, display, bad_row }
    }

    fn plain() -> Reading {
        reading(DisplayValue::False, BadRow::Fail)
    }

    const ROW: &str =
        r#"{"sys_id":"a1","n":"Zürich ☃ 𝄞 \ud800 \u0000", "sys_updated_on":"1970-01-01 00:00:07","sys_mod_count":"3","u_a$b":"x"}"#;

    #[test]
    fn a_row_is_a_slice_of_the_body_whatever_characters_it_holds() {
        let body = Bytes::from(format!("{{\"result\":[ {ROW} ]}}"));
        let rows = plain().rows(&body, 10).expect("rows");
        let (head, value) = &rows.rows[0];
        assert_eq!(value, ROW.as_bytes());
        assert_eq!(value.as_ptr(), body[12..].as_ptr(), "not copied");
        assert_eq!((head.second, head.id.as_str(), head.mod_count.as_str()), (7, "a1", "3"));
    }

    #[test]
    fn the_cursor_is_read_from_raw_values_in_every_display_mode() {
        let body = Bytes::from_static(
            br#"{"result":[{"sys_id":{"display_value":"a1","value":"a1"},"sys_updated_on":{"display_value":"01/01/1970 03:00:07 AM","value":"1970-01-01 00:00:07"},"sys_mod_count":{"display_value":"1,234","value":"1234"},"u":{"display_value":null,"value":""},"r":{"display_value":"Fred \ud800","value":"9","link":"https://x/9"}}]}"#,
        );
        let all = reading(DisplayValue::All, BadRow::Fail).rows(&body, 10).expect("rows");
        assert_eq!((all.rows[0].0.second, all.rows[0].0.mod_count.as_str()), (7, "1234"));
        let shown = reading(DisplayValue::True, BadRow::Fail).rows(&body, 10).expect("rows");
        assert_eq!(
            shown.rows[0].1,
            r#"{"sys_id":"a1","sys_updated_on":"1970-01-01 00:00:07","sys_mod_count":"1234","u":null,"r":"Fred \ud800"}"#
        );
    }

    #[test]
    fn a_row_without_a_readable_cursor_fails_by_name_or_is_counted() {
        let body = Bytes::from_static(
            br#"{"result":[{"sys_id":"a1","sys_updated_on":""},{},{"sys_id":"a2","sys_updated_on":"1970-01-01 00:00:07"}]}"#,
        );
        let error = plain().rows(&body, 10).expect_err("bad row").to_string();
        assert!(error.contains("a1") && error.contains("sys_updated_on"), "{error}");
        let rows = reading(DisplayValue::False, BadRow::Skip).rows(&body, 10).expect("rows");
        assert_eq!((rows.rows.len(), rows.skipped.len()), (1, 1), "the row without any field is hidden, not bad");
    }

    #[test]
    fn an_answer_that_is_cut_or_malformed_or_an_error_yields_no_row() {
        let whole = format!("{{\"result\":[{ROW},{ROW}]}}");
        for cut in 0..whole.len() {
            if whole.is_char_boundary(cut) {
                let error = plain().rows(&Bytes::copy_from_slice(&whole.as_bytes()[..cut]), 10).expect_err("cut");
                assert!(matches!(error, Error::Malformed { .. }), "cut at {cut}: {error}");
            }
        }
        let cancelled = Bytes::from(format!(
            r#"{{"result":[{ROW}],"error":{{"message":"Transaction cancelled: maximum execution time exceeded","detail":null}},"status":"failure"}}"#
        ));
        assert!(matches!(plain().rows(&cancelled, 10), Err(Error::Cancelled { limit: 10, .. })));
        let stray = Bytes::from_static(br#"{"result":[{"a":"b"}"",{"error":{"message":"Transaction cancelled: x"}}"#);
        assert!(matches!(plain().rows(&stray, 10), Err(Error::Cancelled { .. })));
        let text = Bytes::from_static(br#"{"result":"no","error":{"message":"odd"}}"#);
        assert!(matches!(plain().rows(&text, 10), Err(Error::Unable { status: 200, .. })));
        assert!(matches!(plain().rows(&Bytes::from_static(b"{\"result\":[\"\xff\"]}"), 10), Err(Error::Malformed { .. })));
    }
}
