//! From a parsed query to what is really evaluated.
//!
//! Here the instance's quiet habits live: a part that names no field, holds no date where one belongs, or uses a field
//! that the user may not query is dropped, and the rest runs. Whatever was dropped is noted for the request log, so that
//! a test can tell a client that was lied to from one that lied.

use super::acl::Denied;
use super::clock::literal_to_utc;
use super::data::Table;
use super::database::Database;
use super::grammar::{Operator, Order, Query, Term};
use super::row::Kind;

/// A condition whose field is found and whose literals are in the form in which they are compared.
#[derive(Debug, Clone)]
pub(super) struct Test {
    pub path: Vec<usize>,
    pub kind: Kind,
    pub operator: Operator,
    /// The literal, or the literals of a list.
    pub values: Vec<String>,
    /// The other field of `SAMEAS`.
    pub other: Vec<usize>,
}

/// A field of the order that was found.
#[derive(Debug, Clone)]
pub(super) struct Sort {
    pub path: Vec<usize>,
    pub kind: Kind,
    pub descending: bool,
}

/// What to evaluate.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// Any conjunction of clauses of alternatives; an empty list, or an empty conjunction, matches every row.
    pub groups: Vec<Vec<Vec<Test>>>,
    pub order: Vec<Sort>,
    /// The instance answers an invalid query with no row at all.
    pub nothing: bool,
    /// Parts that were dropped, as the client wrote them.
    pub dropped: Vec<String>,
}

impl Plan {
    /// Does the query select every row?
    pub fn is_everything(&self) -> bool {
        !self.nothing && (self.groups.is_empty() || self.groups.iter().any(Vec::is_empty))
    }
}

/// How the instance treats literals and mistakes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habits {
    pub literal_offset_seconds: i64,
    pub invalid_returns_no_rows: bool,
}

/// A query that uses a field the user may not query, on a table that refuses such queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldDenied;

enum Verdict {
    Good(Test),
    Invalid,
    Denied,
}

/// Resolves a query against a table.
pub(super) fn plan(db: &Database, table: &Table, query: &Query, habits: Habits) -> Result<Plan, FieldDenied> {
    let mut plan = Plan { dropped: query.ignored.clone(), ..Plan::default() };
    for group in &query.groups {
        let mut clauses = Vec::new();
        for clause in group {
            let mut tests = Vec::new();
            for term in clause {
                match judge(db, table, term, habits) {
                    Verdict::Good(test) => tests.push(test),
                    Verdict::Denied if table.access.rules.denied == Denied::Refused => {
                        return Err(FieldDenied);
                    }
                    Verdict::Denied => plan.dropped.push(written(term)),
                    Verdict::Invalid => {
                        plan.dropped.push(written(term));
                        plan.nothing |= habits.invalid_returns_no_rows;
                    }
                }
            }
            if !tests.is_empty() {
                clauses.push(tests);
            }
        }
        plan.groups.push(clauses);
    }
    for order in &query.order {
        sort_by(db, table, order, habits, &mut plan)?;
    }
    Ok(plan)
}

fn sort_by(db: &Database, table: &Table, order: &Order, habits: Habits, plan: &mut Plan) -> Result<(), FieldDenied> {
    let found = db.resolve(table, &order.field);
    let kind = found.as_ref().and_then(|path| db.column_at(table, path)).map(|column| column.kind);
    let Some((path, kind)) = found.zip(kind) else {
        plan.dropped.push(format!("ORDERBY{}", order.field));
        plan.nothing |= habits.invalid_returns_no_rows;
        return Ok(());
    };
    let rules = &table.access.rules;
    if rules.no_range.contains(&order.field) || rules.hidden_fields.contains(&order.field) {
        if table.access.rules.denied == Denied::Refused {
            return Err(FieldDenied);
        }
        plan.dropped.push(format!("ORDERBY{}", order.field));
        return Ok(());
    }
    plan.order.push(Sort { path, kind, descending: order.descending });
    Ok(())
}

fn written(term: &Term) -> String {
    format!("{} {:?} {}", term.field, term.operator, term.value)
}

fn judge(db: &Database, table: &Table, term: &Term, habits: Habits) -> Verdict {
    let Some(path) = db.resolve(table, &term.field) else {
        return Verdict::Invalid;
    };
    let Some(kind) = db.column_at(table, &path).map(|column| column.kind) else {
        return Verdict::Invalid;
    };
    let rules = &table.access.rules;
    let guarded = if term.operator.is_range() { &rules.no_range } else { &rules.no_match };
    if guarded.contains(&term.field) || rules.hidden_fields.contains(&term.field) {
        return Verdict::Denied;
    }
    let other = if matches!(term.operator, Operator::SameAs | Operator::NotSameAs) {
        match db.resolve(table, &term.value) {
            Some(other) => other,
            None => return Verdict::Invalid,
        }
    } else {
        Vec::new()
    };
    match literals(term, kind, habits) {
        Some(values) => Verdict::Good(Test { path, kind, operator: term.operator, values, other }),
        None => Verdict::Invalid,
    }
}

/// The literals of a condition; none when one of them cannot be a value of the field.
fn literals(term: &Term, kind: Kind, habits: Habits) -> Option<Vec<String>> {
    use Operator::*;
    let parts: Vec<&str> = match term.operator {
        In | NotIn => term.value.split(',').map(str::trim).collect(),
        Between => term.value.split('@').collect(),
        _ => vec![&term.value],
    };
    let compared = matches!(term.operator, Equal | NotEqual | Greater | GreaterOrEqual | Less | LessOrEqual | In | NotIn | Between);
    let read = |part: &str| match kind {
        Kind::DateTime if compared && !part.is_empty() => literal_to_utc(part, habits.literal_offset_seconds),
        Kind::Number if compared && !part.is_empty() => part.parse::<f64>().ok().map(|_| part.to_owned()),
        _ => Some(part.to_owned()),
    };
    parts.into_iter().map(read).collect()
}
