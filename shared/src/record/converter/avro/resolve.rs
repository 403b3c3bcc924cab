//! A plan for writing rows by a schema that somebody else made: the one that a registry holds as the latest.
//!
//! Fields find each other by name. What the rows do not have is written as the default that the schema gives, and whatever cannot
//! be said exactly is refused, with the field. Before a row is written: a field of the rows that the schema lacks and that is
//! never null, a field without a default that the rows lack, and a type that holds something else (a decimal of another scale,
//! microseconds for milliseconds). With the row, since others may fit: a value of a field that the schema lacks, null where the
//! schema takes none, and a decimal of more digits than its precision there.
//!
//! That a lacking field is the row's matter if it can be null is what lets a document leave it out: a schema that grows keeps
//! every field that it ever had, and rows without one have null there.
//!
//! The schema's own JSON is read as it is. It was parsed by the registry that took it in, so this only looks for what it needs.

use std::collections::HashMap;

use serde_json::{Map, Value as Json};

use super::names::Names;
use super::plan::{Plan, Step, bytes, long};
use super::schema::logical_name;
use crate::record::converter::framed::SchemaError;
use crate::record::schema::{Field, Logical, Schema, Type};

mod default;

/// What writes values of `schema` by the Avro schema `text`.
pub(super) fn resolve(schema: &Schema, text: &str, names: Names) -> Result<Plan, SchemaError> {
    let json: Json = serde_json::from_str(text).map_err(|error| unlike(format!("it is no JSON: {error}")))?;
    let mut theirs = Theirs { names, named: HashMap::new() };
    theirs.collect(&json, None);
    theirs.plan(schema, Place { json: &json, namespace: None, field: "" })
}

fn unlike(what: impl Into<String>) -> SchemaError {
    SchemaError::Unlike(what.into())
}

/// A place in the other schema: what stands there, the namespace that names there are of, and the field that it is.
#[derive(Clone, Copy)]
struct Place<'j> {
    json: &'j Json,
    namespace: Option<&'j str>,
    field: &'j str,
}

/// The other schema, with what its names stand for.
struct Theirs<'j> {
    names: Names,
    named: HashMap<String, (&'j Map<String, Json>, Option<&'j str>)>,
}

/// What stands at a place.
enum Found<'j> {
    /// A type by its name, with its properties if it has any.
    Type(&'j str, Option<&'j Map<String, Json>>),
    /// A record, enum or fixed, and the namespace that is in force within.
    Named(&'j str, &'j Map<String, Json>, Option<&'j str>),
    Union(&'j [Json]),
}

impl<'j> Theirs<'j> {
    /// Notes the named types below `json`.
    fn collect(&mut self, json: &'j Json, enclosing: Option<&'j str>) {
        match json {
            Json::Array(branches) => branches.iter().for_each(|branch| self.collect(branch, enclosing)),
            Json::Object(object) => {
                let namespace = match object.get("name").and_then(Json::as_str) {
                    Some(name) if is_named(object) => {
                        let namespace = namespace_of(object, name, enclosing);
                        let full = qualified(name, namespace);
                        self.named.insert(full, (object, namespace));
                        namespace
                    }
                    _ => enclosing,
                };
                let fields = object.get("fields").and_then(Json::as_array);
                for field in fields.into_iter().flatten().filter_map(|field| field.get("type")) {
                    self.collect(field, namespace);
                }
                for within in ["type", "items", "values"].into_iter().filter_map(|name| object.get(name)) {
                    self.collect(within, namespace);
                }
            }
            _ => {}
        }
    }

    fn found(&self, place: Place<'j>) -> Result<Found<'j>, SchemaError> {
        const PLAIN: [&str; 8] = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];
        match place.json {
            Json::Array(branches) => Ok(Found::Union(branches)),
            Json::String(name) if PLAIN.contains(&name.as_str()) => Ok(Found::Type(name, None)),
            Json::String(name) => {
                let known = self.named.get(&qualified(name, place.namespace)).or_else(|| self.named.get(name));
                let (object, namespace) = known.ok_or_else(|| unlike(format!("{name} is nowhere defined in it")))?;
                Ok(Found::Named(kind(object), object, *namespace))
            }
            Json::Object(object) => match object.get("type") {
                Some(Json::String(_)) if is_named(object) => {
                    let name = object.get("name").and_then(Json::as_str).unwrap_or_default();
                    Ok(Found::Named(kind(object), object, namespace_of(object, name, place.namespace)))
                }
                Some(Json::String(name)) if PLAIN.contains(&name.as_str()) || name == "array" || name == "map" => {
                    Ok(Found::Type(name, Some(object)))
                }
                Some(within) => self.found(Place { json: within, ..place }),
                None => Err(unlike("it has a type without `type`")),
            },
            other => Err(unlike(format!("{other} is no type"))),
        }
    }

    fn plan(&self, schema: &Schema, place: Place<'j>) -> Result<Plan, SchemaError> {
        let required = |branch, plan| Plan::Required { branch, name: place.field.to_owned(), plan: Box::new(plan) };
        let Found::Union(branches) = self.found(place)? else {
            let plan = self.exact(schema, place)?;
            return Ok(if schema.optional { required(None, plan) } else { plan });
        };
        let is_null = |branch: &Json| branch == "null" || branch.get("type").is_some_and(|kind| kind == "null");
        let null = branches.iter().position(is_null);
        let mut refusal = unlike(format!("{} has no type there but null", shown(place.field)));
        for (at, json) in (0_i64..).zip(branches).filter(|(_, json)| !is_null(json)) {
            match self.exact(schema, Place { json, ..place }) {
                Ok(plan) => {
                    let null = null.and_then(|null| i64::try_from(null).ok()).filter(|_| schema.optional);
                    return Ok(match null {
                        Some(null) => Plan::Nullable { null, other: at, plan: Box::new(plan) },
                        None => required(Some(at), plan),
                    });
                }
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    /// The plan for values of `schema` that are not null.
    fn exact(&self, schema: &Schema, place: Place<'j>) -> Result<Plan, SchemaError> {
        let (name, object) = match self.found(place)? {
            Found::Type(name, object) => (name, object),
            Found::Named("record", object, namespace) => match &schema.kind {
                Type::Struct(fields) => return self.record(fields, object, Place { namespace, ..place }),
                _ => ("record", None),
            },
            Found::Named(kind, ..) => (kind, None),
            Found::Union(_) => ("union", None),
        };
        let theirs = object.and_then(|object| object.get("logicalType")).and_then(Json::as_str);
        let ours = schema.as_logical();
        let plan = match (&schema.kind, name) {
            (Type::Int8 | Type::Int16 | Type::Int32, "int") => Some(Plan::Int),
            (Type::Int8 | Type::Int16 | Type::Int32, "long") if ours.is_none() && theirs.is_none() => Some(Plan::Long),
            (Type::Int8 | Type::Int16 | Type::Int32, "double") if ours.is_none() => Some(Plan::Double),
            (Type::Int64, "long") => Some(Plan::Long),
            (Type::Float32, "float") => Some(Plan::Float),
            (Type::Float32 | Type::Float64, "double") => Some(Plan::Double),
            (Type::Boolean, "boolean") => Some(Plan::Boolean),
            (Type::String, "string") => Some(Plan::String),
            (Type::Bytes, "bytes") if matches!(ours, Some(Logical::Decimal(_))) => {
                precision(object).map(|precision| Plan::DecimalWithin { precision, name: place.field.to_owned() })
            }
            (Type::Bytes, "bytes") => Some(Plan::Bytes),
            _ => None,
        };
        plan.filter(|_| says_the_same(ours, theirs, object)).ok_or_else(|| {
            let there = match (theirs, object.and_then(|object| object.get("scale"))) {
                (Some(logical), Some(scale)) => format!("{name} ({logical}, scale {scale})"),
                (Some(logical), None) => format!("{name} ({logical})"),
                (None, _) => name.to_owned(),
            };
            unlike(format!("{} is {} here and {there} there", shown(place.field), described(schema)))
        })
    }

    fn record(&self, ours: &[Field], object: &'j Map<String, Json>, within: Place<'j>) -> Result<Plan, SchemaError> {
        let mut left: Vec<(usize, &Field, String)> = Vec::with_capacity(ours.len());
        for (place, field) in ours.iter().enumerate() {
            left.push((place, field, self.names.field(&field.name)?.into_owned()));
        }
        let theirs = object.get("fields").and_then(Json::as_array).ok_or_else(|| unlike("it has a record without fields"))?;
        let mut steps = Vec::with_capacity(theirs.len());
        for field in theirs {
            let name = field.get("name").and_then(Json::as_str).unwrap_or_default();
            let json = field.get("type").ok_or_else(|| unlike(format!("its field {name} has no type")))?;
            let place = Place { json, field: name, ..within };
            if let Some(at) = left.iter().position(|(_, _, known)| known == name) {
                let (at, own, _) = left.remove(at);
                steps.push(Step::Value { place: at, plan: self.plan(&own.schema, place)? });
            } else {
                let Some(default) = field.get("default") else {
                    return Err(unlike(format!("it requires a field {name} that the rows do not have; give it a default there")));
                };
                let mut out = Vec::new();
                self.default(place, default, &mut out)?;
                steps.push(Step::Constant(out));
            }
        }
        let never_null: Vec<&str> = left.iter().filter(|(_, own, _)| !own.schema.optional).map(|(_, _, name)| name.as_str()).collect();
        if !never_null.is_empty() {
            return Err(unlike(format!("it lacks {}; add it there", never_null.join(", "))));
        }
        steps.extend(left.into_iter().map(|(place, field, _)| Step::Absent { place, name: field.name.clone() }));
        Ok(Plan::Record(steps))
    }
}

/// Whether a logical type there stands for the same as the one here. Without one there it is the plain number that a
/// reader may know about; the bytes of a decimal mean nothing without their scale.
fn says_the_same(ours: Option<Logical>, theirs: Option<&str>, object: Option<&Map<String, Json>>) -> bool {
    match (ours, theirs) {
        (Some(Logical::Decimal(scale)), Some("decimal")) => {
            let there = object.and_then(|object| object.get("scale")).and_then(Json::as_u64).unwrap_or(0);
            there == u64::from(scale)
        }
        (Some(Logical::Decimal(_)), _) => false,
        (Some(ours), Some(theirs)) => logical_name(ours) == theirs,
        (_, None) => true,
        (None, Some(_)) => false,
    }
}

/// The most digits of a decimal; Avro takes one that does not say for plain bytes ("Logical Types" of its specification).
fn precision(object: Option<&Map<String, Json>>) -> Option<u32> {
    let digits = object?.get("precision")?.as_u64().filter(|digits| *digits > 0)?;
    Some(u32::try_from(digits).unwrap_or(u32::MAX))
}

fn is_named(object: &Map<String, Json>) -> bool {
    ["record", "enum", "fixed"].contains(&kind(object))
}

fn kind(object: &Map<String, Json>) -> &str {
    object.get("type").and_then(Json::as_str).unwrap_or_default()
}

/// The namespace of a named type, which its name may say, or a member beside it, or whatever is around it.
fn namespace_of<'j>(object: &'j Map<String, Json>, name: &'j str, enclosing: Option<&'j str>) -> Option<&'j str> {
    match (name.rsplit_once('.'), object.get("namespace").and_then(Json::as_str)) {
        (Some((namespace, _)), _) => Some(namespace),
        (None, Some("")) => None,
        (None, Some(namespace)) => Some(namespace),
        (None, None) => enclosing,
    }
}

fn qualified(name: &str, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) if !name.contains('.') => format!("{namespace}.{name}"),
        _ => name.to_owned(),
    }
}

fn shown(field: &str) -> String {
    if field.is_empty() { "it".to_owned() } else { format!("field {field}") }
}

fn described(schema: &Schema) -> String {
    match schema.as_logical() {
        Some(Logical::Decimal(scale)) => format!("decimal({scale})"),
        Some(logical) => logical_name(logical).to_owned(),
        None => schema.kind.name().to_owned(),
    }
}
