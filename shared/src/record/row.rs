//! A row's JSON object, read field by field into the places of a schema.
//!
//! Rows of one table name their fields in one order, page after page. So the field after the last one found is looked
//! at first, and the map of names is asked only when that is not it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::schema::Field;
use super::value::{Text, Value};

/// The fields of a schema, by name.
#[derive(Debug, Default)]
pub(super) struct Columns {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    pub(super) fn of(fields: &[Field]) -> Self {
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        let by_name = names.iter().enumerate().map(|(place, name)| (name.clone(), place)).collect();
        Self { names, by_name }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The place of a field that was met `expected` fields after the first.
    fn find(&self, name: &str, expected: usize) -> Option<usize> {
        match self.names.get(expected) {
            Some(found) if found == name => Some(expected),
            _ => self.by_name.get(name).copied(),
        }
    }
}

/// What is done with the fields of a row.
pub(super) trait Fields<'a> {
    /// A field at its place in the schema, its value as the JSON that was sent.
    fn known(&mut self, place: usize, json: &'a str);

    /// A field that the schema does not have.
    fn unknown(&mut self, name: &str, json: &'a str);
}

/// Gives the fields of the object `row` to `fields`, in their order.
///
/// # Errors
/// `row` is no JSON object.
pub(super) fn read<'a>(row: &'a [u8], columns: &Columns, fields: &mut impl Fields<'a>) -> Result<(), serde_json::Error> {
    let text = std::str::from_utf8(row).map_err(serde_json::Error::custom)?;
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Reading { columns, fields })?;
    json.end()
}

struct Reading<'r, F> {
    columns: &'r Columns,
    fields: &'r mut F,
}

impl<'de, F: Fields<'de>> Visitor<'de> for Reading<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut expected = 0;
        while let Some(name) = map.next_key_seed(Name)? {
            let json: &'de RawValue = map.next_value()?;
            match self.columns.find(&name, expected) {
                Some(place) => {
                    expected = place + 1;
                    self.fields.known(place, json.get());
                }
                None => self.fields.unknown(&name, json.get()),
            }
        }
        Ok(())
    }
}

/// A field's name, borrowed where it has no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// A field's value as text: a string is itself, null is null, and everything else is the JSON that was sent.
pub(super) fn text_of(json: &str) -> Value<'_> {
    match json.as_bytes().first() {
        Some(b'"') => Value::Text(Text::Quoted(json)),
        Some(b'n') => Value::Null,
        _ => Value::from(json),
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::{Schema, Type};
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(String, String)>);

    impl<'a> Fields<'a> for Seen {
        fn known(&mut self, place: usize, json: &'a str) {
            self.0.push((place.to_string(), json.to_owned()));
        }

        fn unknown(&mut self, name: &str, json: &'a str) {
            self.0.push((name.to_owned(), json.to_owned()));
        }
    }

    fn seen(row: &str) -> Result<Vec<(String, String)>, serde_json::Error> {
        let fields = ["a", "b", "c"].map(|name| Field::new(name, Schema::of(Type::String)));
        let mut seen = Seen::default();
        read(row.as_bytes(), &Columns::of(&fields), &mut seen)?;
        Ok(seen.0)
    }

    #[test]
    fn fields_find_their_places_in_any_order_and_keep_what_was_sent() {
        let expected = [("2", "\"\\u00e4\""), ("0", "1.50"), ("x", "{ \"y\": [1] }"), ("1", "null"), ("2", "true")];
        let expected = expected.map(|(name, json)| (name.to_owned(), json.to_owned()));
        assert_eq!(seen(r#"{"c":"\u00e4","\u0061":1.50,"x":{ "y": [1] },"b":null,"c":true}"#).expect("a row"), expected);
        assert!(seen("{}").expect("a row").is_empty());
        for no_row in ["[]", "1", "", "{\"a\":1}{}", "{\"a\":}"] {
            assert!(seen(no_row).is_err(), "{no_row}");
        }
    }
}
