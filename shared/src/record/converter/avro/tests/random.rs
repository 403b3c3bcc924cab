//! Random schemas and rows of them.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A schema that is no struct, with a value of it.
fn plain() -> BoxedStrategy<(Schema, Value<'static>)> {
    let of = |kind: Type| move |value| (Schema::of(kind.clone()), value);
    let logical = |logical| move |value| (Schema::logical(logical), value);
    prop_oneof![
        any::<i8>().prop_map(|number| Value::Int(number.into())).prop_map(of(Type::Int8)),
        any::<i16>().prop_map(|number| Value::Int(number.into())).prop_map(of(Type::Int16)),
        any::<i32>().prop_map(|number| Value::Int(number.into())).prop_map(of(Type::Int32)),
        any::<i64>().prop_map(Value::Int).prop_map(of(Type::Int64)),
        any::<f32>().prop_map(Value::Float32).prop_map(of(Type::Float32)),
        any::<f64>().prop_map(Value::Float64).prop_map(of(Type::Float64)),
        any::<bool>().prop_map(Value::Boolean).prop_map(of(Type::Boolean)),
        any::<String>().prop_map(Value::from).prop_map(of(Type::String)),
        vec(any::<u8>(), 0..40).prop_map(|bytes| Value::Bytes(Cow::Owned(bytes))).prop_map(of(Type::Bytes)),
        (0_u8..=38, any::<i128>()).prop_map(|(scale, unscaled)| (Schema::logical(Logical::Decimal(scale)), Value::Decimal(unscaled))),
        any::<i32>().prop_map(|days| Value::Int(days.into())).prop_map(logical(Logical::Date)),
        (0_i64..86_400_000).prop_map(Value::Int).prop_map(logical(Logical::Time)),
        any::<i64>().prop_map(Value::Int).prop_map(logical(Logical::Timestamp)),
    ]
    .boxed()
}

/// The same, or null.
fn maybe(inner: BoxedStrategy<(Schema, Value<'static>)>) -> BoxedStrategy<(Schema, Value<'static>)> {
    (inner, 0..3)
        .prop_map(|((schema, value), what)| match what {
            0 => (schema, value),
            1 => (schema.optional(), value),
            _ => (schema.optional(), Value::Null),
        })
        .boxed()
}

fn structure(level: u32) -> BoxedStrategy<(Schema, Value<'static>)> {
    let field = if level == 0 { maybe(plain()) } else { prop_oneof![4 => maybe(plain()), 1 => maybe(structure(level - 1))].boxed() };
    vec(field, 0..8)
        .prop_map(|fields| {
            let (schemas, values): (Vec<Schema>, Vec<Value<'static>>) = fields.into_iter().unzip();
            let fields = schemas.into_iter().enumerate().map(|(at, schema)| Field::new(format!("f{at}"), schema));
            // Without a name, so that any number of them may be in one.
            (Schema { name: None, ..Schema::structure("", fields.collect()) }, Value::Struct(values))
        })
        .boxed()
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_back_by_the_reference_library((schema, value) in structure(2)) {
        same(&schema, &value, &read(&text(&schema), &encoded(&schema, &value)));
    }
}
