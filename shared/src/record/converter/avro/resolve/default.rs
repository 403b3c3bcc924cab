//! The default of a field, as bytes.

use serde_json::Value as Json;

use super::{Found, Place, SchemaError, Theirs, bytes, long, unlike};

impl<'j> Theirs<'j> {
    /// Writes a default, which of a union is one of its first branch.
    pub(super) fn default(&self, place: Place<'j>, default: &Json, out: &mut Vec<u8>) -> Result<(), SchemaError> {
        let refuse = || unlike(format!("the default of its field {} is not of the field's type", place.field));
        match self.found(place)? {
            Found::Union(branches) => {
                let first = branches.first().ok_or_else(refuse)?;
                long(0, out);
                self.default(Place { json: first, ..place }, default, out)?;
            }
            Found::Type("null", _) if default.is_null() => {}
            Found::Type("boolean", _) => out.push(u8::from(default.as_bool().ok_or_else(refuse)?)),
            Found::Type("int", _) => long(default.as_i64().filter(|number| i32::try_from(*number).is_ok()).ok_or_else(refuse)?, out),
            Found::Type("long", _) => long(default.as_i64().ok_or_else(refuse)?, out),
            Found::Type("float", _) => out.extend_from_slice(&(default.as_f64().ok_or_else(refuse)? as f32).to_le_bytes()),
            Found::Type("double", _) => out.extend_from_slice(&default.as_f64().ok_or_else(refuse)?.to_le_bytes()),
            Found::Type("string", _) => bytes(default.as_str().ok_or_else(refuse)?.as_bytes(), out),
            Found::Type("bytes", _) => bytes(&latin(default).ok_or_else(refuse)?, out),
            Found::Type("array", Some(object)) => {
                let json = object.get("items").ok_or_else(refuse)?;
                let items = default.as_array().ok_or_else(refuse)?;
                count(items.len(), out);
                items.iter().try_for_each(|item| self.default(Place { json, ..place }, item, out))?;
                long(0, out);
            }
            Found::Type("map", Some(object)) => {
                let json = object.get("values").ok_or_else(refuse)?;
                let entries = default.as_object().ok_or_else(refuse)?;
                count(entries.len(), out);
                for (name, value) in entries {
                    bytes(name.as_bytes(), out);
                    self.default(Place { json, ..place }, value, out)?;
                }
                long(0, out);
            }
            Found::Named("record", object, namespace) => {
                for field in object.get("fields").and_then(Json::as_array).ok_or_else(refuse)? {
                    let name = field.get("name").and_then(Json::as_str).ok_or_else(refuse)?;
                    let value = default.get(name).or_else(|| field.get("default")).ok_or_else(refuse)?;
                    let json = field.get("type").ok_or_else(refuse)?;
                    self.default(Place { json, namespace, field: place.field }, value, out)?;
                }
            }
            Found::Named("enum", object, _) => {
                let symbols = object.get("symbols").and_then(Json::as_array).ok_or_else(refuse)?;
                let at = symbols.iter().position(|symbol| symbol == default).ok_or_else(refuse)?;
                long(i64::try_from(at).map_err(|_| refuse())?, out);
            }
            Found::Named("fixed", object, _) => {
                let fixed = latin(default).ok_or_else(refuse)?;
                if object.get("size").and_then(Json::as_u64) != u64::try_from(fixed.len()).ok() {
                    return Err(refuse());
                }
                out.extend_from_slice(&fixed);
            }
            Found::Type(..) | Found::Named(..) => return Err(refuse()),
        }
        Ok(())
    }
}

/// The bytes of a default: a text of which each character is one.
fn latin(default: &Json) -> Option<Vec<u8>> {
    default.as_str()?.chars().map(|sign| u8::try_from(u32::from(sign)).ok()).collect()
}

/// Begins a block of so many items. One of none ends them all, and is written in any case.
fn count(items: usize, out: &mut Vec<u8>) {
    if items > 0 {
        long(i64::try_from(items).unwrap_or(i64::MAX), out);
    }
}
