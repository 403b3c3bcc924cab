//! The functions of the language, as far as they are asked for here.

use super::super::sql::Operator;
use super::super::types::{Length, Type};
use super::super::value::Value;
use super::bind::Bound;
use super::convert::characters;
use super::database::World;
use super::error::SqlError;
use super::plan::{Node, Typed};
use super::run::Session;
use super::{compare, numbers};

/// A function whose value depends on a row or on the databases. The others are constants of the session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    /// Arithmetic of decimals, which keep their own scales.
    Decimal(Operator, Type),
    ObjectId,
    ObjectName,
    ObjectSchemaName,
    SchemaId,
    SchemaName,
    TypeName,
    HasPermission,
    VariantProperty,
    Length,
    DataLength,
    Upper,
    Lower,
    TrimLeft,
    TrimRight,
    Trim,
    Substring,
    Left,
    Right,
    Replace,
    Replicate,
    Char,
    NChar,
    Concat,
    Quote,
    Absolute,
    NewId,
}

/// The product version that this server claims to be.
pub const VERSION: &str = "16.0.4105.2";

fn wide(collation_of: &World, session: &Session, length: u16) -> Type {
    Type::NVarChar(Length::Limited(length), collation_of.databases[session.database].collation)
}

fn known(value: Value, ty: Type) -> Bound<Typed> {
    Ok(Typed { nullable: value.is_null(), node: Node::Value(value), ty })
}

fn integer(number: i64) -> Value {
    Value::Integer(number)
}

/// `@@VERSION` and the like.
pub fn global(name: &str, world: &World, session: &Session) -> Bound<Typed> {
    match name.to_ascii_lowercase().as_str() {
        "@@version" => {
            let text = if world.babelfish {
                "Babelfish for Aurora PostgreSQL with SQL Server Compatibility - 12.0.2000.8"
            } else {
                "Microsoft SQL Server 2022 (test server of tablesweep) - 16.0.4105.2 (X64)"
            };
            known(Value::wide(text), wide(world, session, 300))
        }
        "@@servername" => known(Value::wide(&world.server_name), wide(world, session, 128)),
        "@@spid" => known(integer(session.id.into()), Type::SmallInt),
        "@@trancount" => known(integer(session.nesting.into()), Type::Int),
        "@@rowcount" => known(integer(session.row_count), Type::Int),
        "@@error" => known(integer(session.last_error.into()), Type::Int),
        "@@lock_timeout" => known(integer(session.lock_timeout), Type::Int),
        "@@max_precision" => known(integer(38), Type::TinyInt),
        "@@microsoftversion" => known(integer(0x1000_1009), Type::Int),
        "@@language" => known(Value::wide("us_english"), wide(world, session, 128)),
        "@@textsize" => known(integer(2_147_483_647), Type::Int),
        "@@options" => known(integer(5496), Type::Int),
        other => Err(SqlError::refused(other)),
    }
}

/// A call, bound.
pub fn bind(name: &str, arguments: Vec<Typed>, world: &World, session: &Session) -> Bound<Typed> {
    let count = arguments.len();
    let database = &world.databases[session.database];
    let name_type = wide(world, session, 128);
    match (name, count) {
        ("db_name", 0) => return known(Value::wide(&database.name), name_type),
        ("db_id", 0) => return known(integer(i64::try_from(session.database + 1).unwrap_or(0)), Type::SmallInt),
        ("user_name" | "current_user" | "session_user", 0) => {
            let user = if session.login.administrator { "dbo" } else { &session.login.name };
            return known(Value::wide(user), name_type);
        }
        ("suser_name" | "suser_sname" | "system_user" | "original_login", 0) => return known(Value::wide(&session.login.name), name_type),
        ("app_name", 0) => return known(Value::wide(&session.application), name_type),
        ("host_name", 0) => return known(Value::wide(&session.host), name_type),
        ("schema_name", 0) => return known(Value::wide("dbo"), name_type),
        ("schema_id", 0) => return known(integer(1), Type::Int),
        ("xact_state", 0) => return known(integer(i64::from(session.nesting > 0)), Type::SmallInt),
        ("sysutcdatetime" | "sysdatetime", 0) => {
            let (day, ticks) = (world.now)();
            return known(Value::DateTime2(day, ticks), Type::DateTime2(7));
        }
        ("sysdatetimeoffset", 0) => {
            let (day, ticks) = (world.now)();
            return known(Value::DateTimeOffset(day, ticks, 0), Type::DateTimeOffset(7));
        }
        ("getdate" | "getutcdate" | "current_timestamp", 0) => {
            let (day, ticks) = (world.now)();
            return known(super::convert(&Value::DateTime2(day, ticks), &Type::DateTime2(7), &Type::DateTime, 0)?, Type::DateTime);
        }
        ("serverproperty", 1) => return property(&arguments[0], |name| server_property(name, world)),
        ("databasepropertyex", 2) => {
            let Node::Value(of) = &arguments[0].node else { return Err(SqlError::refused("DATABASEPROPERTYEX of a computed name")) };
            let of = world.database(&characters(of, &arguments[0].ty).unwrap_or_default()).map(|at| &world.databases[at]);
            return property(&arguments[1], |name| match name {
                "collation" => Ok(of.map_or(Value::Null, |of| Value::wide(of.collation.name()))),
                "updateability" => Ok(of.map_or(Value::Null, |of| Value::wide(if of.read_only { "READ_ONLY" } else { "READ_WRITE" }))),
                "status" => Ok(of.map_or(Value::Null, |_| Value::wide("ONLINE"))),
                "issnapshotisolation" => Ok(Value::Null),
                other => Err(SqlError::refused(format!("DATABASEPROPERTYEX(…, '{other}')"))),
            });
        }
        ("connectionproperty", 1) => {
            let encrypted = session.encrypted;
            return property(&arguments[0], |name| match name {
                "net_transport" => Ok(Value::wide("TCP")),
                "protocol_type" => Ok(Value::wide("TSQL")),
                "encrypt_option" => Ok(Value::wide(if encrypted { "TRUE" } else { "FALSE" })),
                other => Err(SqlError::refused(format!("CONNECTIONPROPERTY('{other}')"))),
            });
        }
        ("is_srvrolemember" | "is_member" | "is_rolemember", 1) => {
            return known(integer(i64::from(session.login.administrator)), Type::Int);
        }
        _ => {}
    }
    let text = |typed: &Typed| if typed.ty.is_characters() { typed.ty } else { name_type };
    let like_first = arguments.first().map_or(name_type, text);
    let any_wide = arguments.iter().any(|typed| matches!(typed.ty, Type::NVarChar(..) | Type::NChar(..) | Type::NText(_)));
    let (function, ty, nullable) = match (name, count) {
        ("object_id", 1 | 2) => (Function::ObjectId, Type::Int, true),
        ("object_name", 1 | 2) => (Function::ObjectName, name_type, true),
        ("object_schema_name", 1 | 2) => (Function::ObjectSchemaName, name_type, true),
        ("schema_id", 1) => (Function::SchemaId, Type::Int, true),
        ("schema_name", 1) => (Function::SchemaName, name_type, true),
        ("type_name", 1) => (Function::TypeName, name_type, true),
        ("has_perms_by_name", 3 | 5) => (Function::HasPermission, Type::Int, true),
        ("sql_variant_property", 2) => (Function::VariantProperty, Type::Variant, true),
        ("len", 1) => (Function::Length, Type::Int, arguments[0].nullable),
        ("datalength", 1) => (
            Function::DataLength,
            if compare::length(&arguments[0].ty) == Length::Max { Type::BigInt } else { Type::Int },
            arguments[0].nullable,
        ),
        ("upper", 1) => (Function::Upper, like_first, true),
        ("lower", 1) => (Function::Lower, like_first, true),
        ("ltrim", 1) => (Function::TrimLeft, like_first, true),
        ("rtrim", 1) => (Function::TrimRight, like_first, true),
        ("trim", 1) => (Function::Trim, like_first, true),
        ("substring", 3) => (Function::Substring, like_first, true),
        ("left", 2) => (Function::Left, like_first, true),
        ("right", 2) => (Function::Right, like_first, true),
        ("replace", 3) => (Function::Replace, like_first, true),
        ("replicate", 2) => (Function::Replicate, grown(like_first), true),
        ("char", 1) => (Function::Char, Type::VarChar(Length::Limited(1), database.collation), true),
        ("nchar", 1) => (Function::NChar, Type::NVarChar(Length::Limited(1), database.collation), true),
        ("concat", 2..) => (
            Function::Concat,
            if any_wide { Type::NVarChar(Length::Max, database.collation) } else { Type::VarChar(Length::Max, database.collation) },
            false,
        ),
        ("quotename", 1) => (Function::Quote, wide(world, session, 258), true),
        ("abs", 1) => (Function::Absolute, arguments[0].ty, arguments[0].nullable),
        ("newid", 0) => (Function::NewId, Type::UniqueIdentifier, false),
        _ => {
            let mut error = SqlError::new(195, 10, format!("'{name}' is not a recognized built-in function name.")).class(15);
            error.refusal = true;
            return Err(error);
        }
    };
    let arguments =
        arguments.into_iter().enumerate().map(|(place, argument)| if function.counts(place) { whole(argument) } else { argument });
    Ok(Typed { node: Node::Call(function, arguments.collect()), ty, nullable })
}

/// A number where one is meant: `NCHAR(0xD83D)` is one of bytes.
fn whole(argument: Typed) -> Typed {
    if argument.ty.is_integer() {
        return argument;
    }
    let node = Node::Cast { of: Box::new(argument.node), from: argument.ty, to: Type::Int, style: 0, attempt: false };
    Typed { node, ty: Type::Int, nullable: argument.nullable }
}

/// `REPLICATE` of a limited string stays limited, at the most that a row takes.
fn grown(ty: Type) -> Type {
    match ty {
        Type::VarChar(Length::Limited(_), collation) | Type::Char(_, collation) => Type::VarChar(Length::Limited(8000), collation),
        Type::NVarChar(Length::Limited(_), collation) | Type::NChar(_, collation) => Type::NVarChar(Length::Limited(4000), collation),
        other => other,
    }
}

/// A property is a `sql_variant`; which one is a constant.
fn property(name: &Typed, value: impl FnOnce(&str) -> Bound<Value>) -> Bound<Typed> {
    let Node::Value(of) = &name.node else { return Err(SqlError::refused("a property whose name is computed")) };
    let name = characters(of, &name.ty).unwrap_or_default().to_ascii_lowercase();
    let value = value(&name)?;
    let ty = match &value {
        Value::Null => return known(Value::Null, Type::Variant),
        Value::Integer(_) => Type::Int,
        _ => Type::NVarChar(Length::Limited(128), super::super::collation::Collation::default_of_server()),
    };
    known(Value::Variant(Box::new((ty, value))), Type::Variant)
}

fn server_property(name: &str, world: &World) -> Bound<Value> {
    Ok(match name {
        "productversion" => Value::wide(VERSION),
        "productmajorversion" => Value::wide("16"),
        "productlevel" => Value::wide("RTM"),
        "edition" => Value::wide("Developer Edition (64-bit)"),
        "engineedition" => integer(3),
        "collation" => Value::wide(world.collation.name()),
        "servername" | "machinename" => Value::wide(&world.server_name),
        "instancename" => Value::Null,
        "isclustered" | "ishadrenabled" | "isintegratedsecurityonly" | "issingleuser" => integer(0),
        // A server that is Babelfish says so here; one that is not has no such property.
        "babelfish" => {
            if world.babelfish {
                integer(1)
            } else {
                Value::Null
            }
        }
        "babelfishversion" => {
            if world.babelfish {
                Value::wide("4.1.0")
            } else {
                Value::Null
            }
        }
        other => return Err(SqlError::refused(format!("SERVERPROPERTY('{other}')"))),
    })
}

impl Function {
    /// Is the argument at this place a number?
    fn counts(self, place: usize) -> bool {
        match self {
            Self::Char | Self::NChar => place == 0,
            Self::Substring => place > 0,
            Self::Left | Self::Right | Self::Replicate => place == 1,
            _ => false,
        }
    }

    /// Does it give the same value each time?
    pub fn is_stable(self) -> bool {
        self != Self::NewId
    }

    /// Does it need its arguments only?
    pub fn is_local(self) -> bool {
        !matches!(
            self,
            Self::ObjectId
                | Self::ObjectName
                | Self::ObjectSchemaName
                | Self::SchemaId
                | Self::SchemaName
                | Self::TypeName
                | Self::HasPermission
                | Self::NewId
        )
    }

    pub fn call(self, values: &[Value], arguments: &[Typed], at: Option<(&World, &Session)>) -> Bound<Value> {
        if let Some((world, session)) = at.filter(|_| !self.is_local()) {
            return self.ask(values, arguments, world, session);
        }
        let text = |place: usize| values.get(place).and_then(|value| characters(value, &arguments[place].ty));
        let number = |place: usize| values.get(place).and_then(Value::integer);
        let first = arguments.first().map_or(Type::Int, |argument| argument.ty);
        let put = |text: String| match first {
            Type::Char(_, collation) | Type::VarChar(_, collation) | Type::Text(collation) => Value::chars(&collation.encode(&text)),
            _ => Value::wide(&text),
        };
        if values.iter().any(Value::is_null) && self != Self::Concat {
            return Ok(Value::Null);
        }
        Ok(match self {
            Self::Decimal(operator, ty) => decimal(operator, values, arguments, &ty)?,
            Self::VariantProperty => variant_property(&values[0], &text(1).unwrap_or_default())?,
            Self::Length => {
                text(0).map_or(Value::Null, |text| integer(i64::try_from(text.trim_end_matches(' ').encode_utf16().count()).unwrap_or(0)))
            }
            Self::DataLength => integer(data_length(&values[0], &first)),
            Self::Upper => text(0).map_or(Value::Null, |text| put(text.to_uppercase())),
            Self::Lower => text(0).map_or(Value::Null, |text| put(text.to_lowercase())),
            Self::TrimLeft => text(0).map_or(Value::Null, |text| put(text.trim_start_matches(' ').to_owned())),
            Self::TrimRight => text(0).map_or(Value::Null, |text| put(text.trim_end_matches(' ').to_owned())),
            Self::Trim => text(0).map_or(Value::Null, |text| put(text.trim_matches(' ').to_owned())),
            Self::Substring => {
                // Counted from 1; what lies before the text takes from the length.
                let (start, length) = (number(1).unwrap_or(1) - 1, number(2).unwrap_or(0));
                let end = usize::try_from((start + length).max(0)).unwrap_or(usize::MAX);
                let start = usize::try_from(start.max(0)).unwrap_or(usize::MAX);
                text(0).map_or(Value::Null, |text| put(text.chars().skip(start).take(end.saturating_sub(start)).collect()))
            }
            Self::Left => {
                text(0).map_or(Value::Null, |text| put(text.chars().take(usize::try_from(number(1).unwrap_or(0)).unwrap_or(0)).collect()))
            }
            Self::Right => text(0).map_or(Value::Null, |text| {
                let skip = text.chars().count().saturating_sub(usize::try_from(number(1).unwrap_or(0)).unwrap_or(0));
                put(text.chars().skip(skip).collect())
            }),
            Self::Replace => match (text(0), text(1), text(2)) {
                (Some(text), Some(from), Some(to)) => put(text.replace(&from, &to)),
                _ => Value::Null,
            },
            Self::Replicate => text(0).map_or(Value::Null, |text| {
                let times = usize::try_from(number(1).unwrap_or(0)).unwrap_or(0);
                // A limited string is cut at 8,000 bytes, which is how a test with too short a value finds out.
                let most = if compare::length(&first) == Length::Max { usize::MAX } else { 8000 };
                put(text.repeat(times).chars().take(most).collect())
            }),
            Self::Char => u8::try_from(number(0).unwrap_or(-1)).map_or(Value::Null, |byte| Value::chars(&[byte])),
            // Half of a pair is allowed: this is how a lone surrogate gets into a table.
            Self::NChar => u16::try_from(number(0).unwrap_or(-1)).map_or(Value::Null, |unit| Value::Wide([unit].into())),
            Self::Concat => {
                let mut joined = String::new();
                for (value, argument) in values.iter().zip(arguments).filter(|(value, _)| !value.is_null()) {
                    joined += &characters(value, &argument.ty).map_or_else(|| super::text::text(value, &argument.ty, 0), Ok)?;
                }
                let wide = arguments.iter().any(|typed| matches!(typed.ty, Type::NVarChar(..) | Type::NChar(..)));
                if wide {
                    Value::wide(&joined)
                } else {
                    Value::chars(&super::super::collation::Collation::default_of_server().encode(&joined))
                }
            }
            Self::Quote => text(0)
                .filter(|text| text.encode_utf16().count() <= 128)
                .map_or(Value::Null, |text| Value::wide(&format!("[{}]", text.replace(']', "]]")))),
            Self::Absolute => match &values[0] {
                Value::Integer(number) => integer(number.checked_abs().ok_or_else(|| SqlError::overflow(&first))?),
                Value::Decimal(digits) => Value::Decimal(digits.abs()),
                Value::Float(number) => Value::Float(number.abs()),
                other => other.clone(),
            },
            other => return Err(SqlError::refused(format!("{other:?} outside of a statement"))),
        })
    }

    /// What only the databases know.
    fn ask(self, values: &[Value], arguments: &[Typed], world: &World, session: &Session) -> Bound<Value> {
        let database = &world.databases[session.database];
        let text = |place: usize| values.get(place).and_then(|value| characters(value, &arguments[place].ty));
        let number = values.first().and_then(Value::integer).and_then(|number| i32::try_from(number).ok());
        let object = || number.and_then(|id| database.object(id)).filter(|object| database.shows(object.id, &session.login));
        Ok(match self {
            Self::ObjectId => {
                let kind = text(1);
                let found = text(0).and_then(|name| find(&name, database)).map(|at| &database.objects[at]);
                let found = found.filter(|object| database.shows(object.id, &session.login));
                let found = found.filter(|object| {
                    kind.as_ref().is_none_or(|kind| object.type_code().0.trim_end().eq_ignore_ascii_case(kind.trim_end()))
                });
                found.map_or(Value::Null, |object| integer(object.id.into()))
            }
            Self::ObjectName => object().map_or(Value::Null, |object| Value::wide(&object.name)),
            Self::ObjectSchemaName => object().map_or(Value::Null, |object| Value::wide(database.schema_name(object.schema))),
            Self::SchemaId => text(0).and_then(|name| database.schema(&name)).map_or(Value::Null, |id| integer(id.into())),
            Self::SchemaName => number.map(|id| database.schema_name(id)).filter(|name| !name.is_empty()).map_or(Value::Null, Value::wide),
            Self::TypeName => {
                let base = super::super::types::CATALOG.iter().find(|row| Some(row.2) == number).map(|row| row.0);
                let alias = database.alias_types.iter().find(|alias| Some(alias.id) == number).map(|alias| alias.name.as_str());
                base.or(alias).map_or(Value::Null, Value::wide)
            }
            Self::HasPermission => {
                let permission = text(2).unwrap_or_default().to_ascii_lowercase();
                let found = text(0).and_then(|name| find(&name, database)).map(|at| &database.objects[at]);
                match found {
                    None => Value::Null,
                    Some(object) => {
                        let column = text(3);
                        let denied = database.denied(object.id, &session.login, &permission, None)
                            || column.is_some_and(|column| database.denied(object.id, &session.login, &permission, Some(&column)));
                        integer(i64::from(!denied))
                    }
                }
            }
            Self::NewId => {
                // Different from all before it is all that is asked of it.
                let (day, ticks) = (world.now)();
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&ticks.to_be_bytes());
                bytes[8..12].copy_from_slice(&day.to_be_bytes());
                bytes[12..].copy_from_slice(&session.id.to_be_bytes());
                Value::Guid(bytes)
            }
            other => return Err(SqlError::refused(format!("{other:?}"))),
        })
    }
}

/// An object by a text such as `dbo.t` or `[a.b].[c]`.
pub fn find(name: &str, database: &super::database::Database) -> Option<usize> {
    let mut parts = super::super::sql::Parser::name_of(name)?;
    let last = parts.pop()?;
    database.find(parts.last().map(String::as_str).filter(|schema| !schema.is_empty()), &last)
}

fn decimal(operator: Operator, values: &[Value], arguments: &[Typed], ty: &Type) -> Bound<Value> {
    let overflow = || SqlError::overflow(ty);
    let scale_of = |place: usize| arguments[place].ty.precision_scale().1;
    let scale_of = |place: usize| if arguments[place].ty.is_integer() { 0 } else { scale_of(place) };
    let (Some(left), Some(right)) = (values[0].integer(), values[1].integer()) else {
        return Err(SqlError::refused("arithmetic of decimals and something else"));
    };
    let (scale, wanted) = (scale_of(0).max(scale_of(1)), ty.precision_scale().1);
    let same = |digits: i128, from: u8| numbers::rescale(digits, from, scale).ok_or_else(overflow);
    let (digits, scale) = match operator {
        Operator::Add => (same(left, scale_of(0))?.checked_add(same(right, scale_of(1))?), scale),
        Operator::Subtract => (same(left, scale_of(0))?.checked_sub(same(right, scale_of(1))?), scale),
        Operator::Modulo => (same(left, scale_of(0))?.checked_rem(same(right, scale_of(1))?), scale),
        _ => (left.checked_mul(right), scale_of(0) + scale_of(1)),
    };
    let digits = digits.and_then(|digits| numbers::rescale(digits, scale, wanted)).ok_or_else(overflow)?;
    if numbers::fits(digits, ty.precision_scale().0) { Ok(Value::Decimal(digits)) } else { Err(overflow()) }
}

fn variant_property(value: &Value, name: &str) -> Bound<Value> {
    let Value::Variant(inner) = value else { return Ok(Value::Null) };
    let (precision, scale) = inner.0.precision_scale();
    let (ty, value) = match name.to_ascii_lowercase().as_str() {
        "basetype" => {
            (Type::NVarChar(Length::Limited(128), super::super::collation::Collation::default_of_server()), Value::wide(inner.0.name()))
        }
        "precision" => (Type::Int, integer(precision.into())),
        "scale" => (Type::Int, integer(scale.into())),
        "maxlength" => (Type::Int, integer(inner.0.max_length().into())),
        "collation" => match inner.0.collation() {
            Some(collation) => (Type::NVarChar(Length::Limited(128), collation), Value::wide(collation.name())),
            None => return Ok(Value::Null),
        },
        other => return Err(SqlError::refused(format!("SQL_VARIANT_PROPERTY(…, '{other}')"))),
    };
    Ok(Value::Variant(Box::new((ty, value))))
}

fn data_length(value: &Value, ty: &Type) -> i64 {
    let length = match value {
        Value::Chars(bytes) | Value::Binary(bytes) => bytes.len(),
        Value::Wide(units) => units.len() * 2,
        Value::Variant(inner) => return data_length(&inner.1, &inner.0),
        _ => return ty.max_length().into(),
    };
    i64::try_from(length).unwrap_or(i64::MAX)
}
