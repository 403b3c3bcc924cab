//! Whether a row passes a condition, and which of two values comes first.

use std::cmp::Ordering;

use super::data::Table;
use super::database::Database;
use super::grammar::Operator;
use super::plan::Test;
use super::row::Kind;

/// Does a row pass a test?
pub(super) fn holds(db: &Database, table: &Table, slot: u32, test: &Test) -> bool {
    use Operator::*;
    let value = db.walk(table, slot, &test.path);
    let order = |literal: &str| compare(table, test.kind, &value, literal);
    let same = |literal: &str| sorted(table, test.kind, &value, literal).is_eq();
    // An empty field is no value: it is neither before nor after anything.
    let ordered = |literal: &str, wanted: fn(Ordering) -> bool| !value.is_empty() && wanted(order(literal));
    let folded = || table.collation.fold(&value);
    let literal = || table.collation.fold(&test.values[0]);
    match test.operator {
        Equal => same(&test.values[0]),
        NotEqual => !same(&test.values[0]),
        Greater => ordered(&test.values[0], Ordering::is_gt),
        GreaterOrEqual => ordered(&test.values[0], Ordering::is_ge),
        Less => ordered(&test.values[0], Ordering::is_lt),
        LessOrEqual => ordered(&test.values[0], Ordering::is_le),
        Between => ordered(&test.values[0], Ordering::is_ge) && ordered(&test.values[1], Ordering::is_le),
        Like => folded().contains(&*literal()),
        NotLike => !folded().contains(&*literal()),
        StartsWith => folded().starts_with(&*literal()),
        EndsWith => folded().ends_with(&*literal()),
        In => test.values.iter().any(|literal| same(literal)),
        NotIn => !test.values.iter().any(|literal| same(literal)),
        IsEmpty | EmptyString => value.is_empty(),
        IsNotEmpty => !value.is_empty(),
        Anything => true,
        SameAs => same(&db.walk(table, slot, &test.other)),
        NotSameAs => !same(&db.walk(table, slot, &test.other)),
    }
}

/// The order of a comparison: whole numbers in a text column, a choice's `3` or `10`, compare as numbers.
fn compare(table: &Table, kind: Kind, left: &str, right: &str) -> Ordering {
    match (kind, left.parse::<i64>(), right.parse::<i64>()) {
        (Kind::Text, Ok(left), Ok(right)) => left.cmp(&right),
        _ => sorted(table, kind, left, right),
    }
}

/// The order of rows, which has to be one order for all values of a column.
pub(super) fn sorted(table: &Table, kind: Kind, left: &str, right: &str) -> Ordering {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NEG_INFINITY);
    match kind {
        Kind::DateTime => left.cmp(right),
        Kind::Id | Kind::Text => table.collation.compare(left, right),
        Kind::Number => {
            number(left).total_cmp(&number(right)).then_with(|| if number(left).is_finite() { Ordering::Equal } else { left.cmp(right) })
        }
    }
}
