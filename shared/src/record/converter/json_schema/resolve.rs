//! Rows written by a JSON Schema that somebody else made: the one that a registry holds as the latest.
//!
//! Fields find each other by name. A field that the schema does not name and that is never null, one that it requires and the
//! rows lack, and a type that JSON writes differently are refused before a row is written. A null is written where the schema
//! takes one; else the member is left out, which is how JSON Schema says that there is none, unless it is required. A value of a
//! field that the schema does not name is refused with its row.

use serde_json::{Map, Value as Json};

use crate::record::converter::EncodeError;
use crate::record::converter::framed::{SchemaError, Writer};
use crate::record::converter::json::{DecimalFormat, Form};
use crate::record::schema::{Field, Logical, Schema, Type};
use crate::record::value::{Value, quote};

/// How values are written by another schema.
#[derive(Debug)]
pub(super) enum Tailored {
    Plain(Form),
    Struct(Vec<Member>),
    /// A member that the schema does not name, by its field: no value can be written.
    Absent(String),
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct Member {
    name: String,
    /// The name in JSON, with the colon.
    front: Vec<u8>,
    null: Null,
    value: Tailored,
}

impl Member {
    fn absent(field: &Field) -> Self {
        Self { name: field.name.clone(), front: Vec::new(), null: Null::LeaveOut, value: Tailored::Absent(field.name.clone()) }
    }
}

/// What becomes of a null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    Write,
    LeaveOut,
    Refuse,
}

/// What writes values of `schema` by the JSON Schema `text`.
pub(super) fn resolve(schema: &Schema, text: &str, decimals: DecimalFormat) -> Result<Tailored, SchemaError> {
    let root: Json = serde_json::from_str(text).map_err(|error| unlike(format!("it is no JSON: {error}")))?;
    Theirs { root: &root, decimals }.tailored(schema, &root, "it")
}

fn unlike(what: String) -> SchemaError {
    SchemaError::Unlike(what)
}

struct Theirs<'j> {
    root: &'j Json,
    decimals: DecimalFormat,
}

impl<'j> Theirs<'j> {
    /// The schema that is meant: behind references, and of a choice the one that is not null.
    fn meant(&self, json: &'j Json) -> Result<&'j Json, SchemaError> {
        let mut json = json;
        // References that lead in a circle lead to no type.
        for _ in 0..32 {
            if let Some(reference) = json.get("$ref").and_then(Json::as_str) {
                let found = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
                json = found.ok_or_else(|| unlike(format!("what {reference} stands for is not in it")))?;
                continue;
            }
            let choices = ["oneOf", "anyOf"].into_iter().find_map(|name| json.get(name)).and_then(Json::as_array);
            let Some(choices) = choices else { return Ok(json) };
            let mut others = choices.iter().filter(|choice| !is_null(choice));
            match (others.next(), others.next()) {
                (Some(only), None) => json = only,
                _ => return Err(unlike("it leaves a choice between several types".to_owned())),
            }
        }
        Err(unlike("its references lead in a circle".to_owned()))
    }

    fn takes_null(&self, json: &'j Json) -> bool {
        let choices = ["oneOf", "anyOf"].into_iter().find_map(|name| json.get(name)).and_then(Json::as_array);
        match (choices, types(json)) {
            (Some(choices), _) => choices.iter().any(is_null),
            (None, Some(types)) => types.contains(&"null"),
            (None, None) => self.meant(json).is_ok_and(|meant| !std::ptr::eq(meant, json) && self.takes_null(meant)),
        }
    }

    fn tailored(&self, schema: &Schema, json: &'j Json, shown: &str) -> Result<Tailored, SchemaError> {
        let meant = self.meant(json)?;
        let expected = match &schema.kind {
            Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 => &["integer", "number"][..],
            Type::Float32 | Type::Float64 => &["number"],
            Type::Boolean => &["boolean"],
            Type::Bytes if self.is_number(schema) => &["number"],
            Type::String | Type::Bytes => &["string"],
            Type::Struct(_) => &["object"],
        };
        if let Some(types) = types(meant)
            && !types.iter().any(|kind| expected.contains(kind))
        {
            return Err(unlike(format!("{shown} is {} here and {} there", schema.kind.name(), types.join(" or "))));
        }
        match (&schema.kind, meant.get("properties").and_then(Json::as_object)) {
            (Type::Struct(fields), Some(properties)) => self.members(fields, meant, properties),
            (Type::Struct(_), None) => Err(unlike(format!("{shown} has no properties there"))),
            _ => Ok(Tailored::Plain(Form::of(schema, self.decimals))),
        }
    }

    fn members(&self, fields: &[Field], object: &'j Json, properties: &'j Map<String, Json>) -> Result<Tailored, SchemaError> {
        let required: Vec<&str> = object.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
        let lacking = fields.iter().filter(|field| !field.schema.optional && !properties.contains_key(&field.name));
        let lacking: Vec<&str> = lacking.map(|field| field.name.as_str()).collect();
        if !lacking.is_empty() {
            return Err(unlike(format!("it lacks {}; add it there", lacking.join(", "))));
        }
        if let Some(name) = required.iter().find(|name| !fields.iter().any(|field| field.name == **name)) {
            return Err(unlike(format!("it requires a field {name} that the rows do not have")));
        }
        let member = |field: &Field| {
            let Some(json) = properties.get(&field.name) else { return Ok(Member::absent(field)) };
            let null = match (self.takes_null(json), required.contains(&field.name.as_str())) {
                (true, _) => Null::Write,
                (false, false) => Null::LeaveOut,
                (false, true) => Null::Refuse,
            };
            let mut front = Vec::new();
            quote(&field.name, &mut front);
            front.push(b':');
            let value = self.tailored(&field.schema, json, &format!("field {}", field.name))?;
            Ok(Member { name: field.name.clone(), front, null, value })
        };
        Ok(Tailored::Struct(fields.iter().map(member).collect::<Result<_, _>>()?))
    }

    fn is_number(&self, schema: &Schema) -> bool {
        self.decimals == DecimalFormat::Numeric && matches!(schema.as_logical(), Some(Logical::Decimal(_)))
    }
}

fn is_null(json: &Json) -> bool {
    json.get("type").is_some_and(|kind| kind == "null")
}

/// The types that a schema allows, if it says any.
fn types(json: &Json) -> Option<Vec<&str>> {
    match json.get("type")? {
        Json::String(one) => Some(vec![one]),
        Json::Array(several) => Some(several.iter().filter_map(Json::as_str).collect()),
        _ => None,
    }
}

impl Writer for Tailored {
    fn write(&self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let members = match (self, value) {
            (Self::Plain(form), value) => return form.write(value, out),
            (Self::Absent(field), _) => return Err(EncodeError::lacking(field)),
            (Self::Struct(_), Value::Null) => {
                out.extend_from_slice(b"null");
                return Ok(());
            }
            (Self::Struct(members), Value::Struct(values)) if members.len() == values.len() => members.iter().zip(values),
            (Self::Struct(_), _) => return Err(EncodeError::unlike("its schema")),
        };
        out.push(b'{');
        let start = out.len();
        for (member, value) in members {
            match (value, member.null) {
                (Value::Null, Null::LeaveOut) => continue,
                (Value::Null, Null::Refuse) => {
                    let detail = format!("field {} has no value here, and in the registry's schema it is required", member.name);
                    return Err(EncodeError { detail });
                }
                _ => {}
            }
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(&member.front);
            member.value.write(value, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}
