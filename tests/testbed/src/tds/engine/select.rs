//! Running a plan.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::super::sql::{JoinKind, Operator};
use super::super::types::Type;
use super::super::value::Value;
use super::access::{Access, Found};
use super::database::Table;
use super::error::{SqlError, Stop};
use super::eval::{Context, number_of};
use super::plan::{Aggregate, Aggregation, Input, Line, Node, Plan, SelectPlan};
use super::{compare, numbers, text};

/// A column of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputColumn {
    pub name: String,
    pub ty: Type,
    pub nullable: bool,
    pub identity: bool,
    pub computed: bool,
    pub hidden: bool,
    /// The table, which `text`, `ntext` and `image` name in their metadata.
    pub table: Vec<String>,
}

/// Rows and what is still to be done to each of them.
pub struct Selected {
    pub lines: Vec<Line>,
    /// `None`: the lines are the rows.
    pub project: Option<Vec<Node>>,
}

/// A place of the row that a filter holds within bounds.
struct Range {
    place: usize,
    low: Bound<i128>,
    high: Bound<i128>,
}

impl Plan {
    /// The rows of the plan. What can be computed from a row alone is left for later.
    pub fn run(&self, cx: &mut Context<'_>) -> Result<Selected, Stop> {
        if let [part] = &self.parts[..]
            && self.offset.is_none()
        {
            return part.run(cx);
        }
        let mut lines = Vec::new();
        for part in &self.parts {
            lines.extend(part.run(cx)?.materialize(cx)?);
        }
        if self.parts.len() > 1 {
            lines.sort_by(|left, right| {
                let mut keys = self.order.iter();
                keys.find_map(|(place, descending)| {
                    let ordering = compare::order(&left[*place], &right[*place], &self.columns[*place].ty);
                    directed(ordering, *descending)
                })
                .unwrap_or(Ordering::Equal)
            });
        }
        if let Some(offset) = &self.offset {
            let offset = number_of(&cx.eval(offset, &[])?)?;
            lines.drain(..offset.min(lines.len()));
        }
        if let Some(fetch) = &self.fetch {
            lines.truncate(number_of(&cx.eval(fetch, &[])?)?);
        }
        Ok(Selected { lines, project: None })
    }

    /// The rows of the plan, whole.
    pub fn lines(&self, cx: &mut Context<'_>) -> Result<Vec<Line>, Stop> {
        self.run(cx)?.materialize(cx)
    }
}

impl Selected {
    fn materialize(self, cx: &mut Context<'_>) -> Result<Vec<Line>, Stop> {
        let Some(project) = self.project else { return Ok(self.lines) };
        self.lines.iter().map(|line| project.iter().map(|node| cx.eval(node, line)).collect()).collect()
    }
}

fn directed(ordering: Ordering, descending: bool) -> Option<Ordering> {
    (ordering != Ordering::Equal).then_some(if descending { ordering.reverse() } else { ordering })
}

impl SelectPlan {
    fn run(&self, cx: &mut Context<'_>) -> Result<Selected, Stop> {
        let top = match &self.top {
            Some(node) => Some(number_of(&cx.eval(node, &[])?)?),
            None => None,
        };
        let (mut lines, sorted) = self.filtered(cx, top)?;
        if let Some((keys, aggregates)) = &self.group {
            lines = self.grouped(lines, keys, aggregates, cx)?;
        }
        if !self.order.is_empty() && !sorted {
            lines = self.sorted(lines, cx)?;
        }
        let local = self.project.iter().all(Node::is_local) && !self.distinct;
        if local {
            lines.truncate(top.unwrap_or(usize::MAX));
            return Ok(Selected { lines, project: Some(self.project.clone()) });
        }
        let mut rows: Vec<Line> = Selected { lines, project: Some(self.project.clone()) }.materialize(cx)?;
        if self.distinct {
            let mut seen: BTreeSet<String> = BTreeSet::new();
            rows.retain(|row| seen.insert(format!("{row:?}")));
        }
        rows.truncate(top.unwrap_or(usize::MAX));
        Ok(Selected { lines: rows, project: None })
    }

    /// The rows that pass the filter, and whether they are in the order that was asked for.
    fn filtered(&self, cx: &mut Context<'_>, top: Option<usize>) -> Result<(Vec<Line>, bool), Stop> {
        let Input::Table { database, object, access } = &self.input else {
            let mut lines = self.input.lines(cx)?;
            if let Some(filter) = &self.filter {
                let mut kept = Vec::with_capacity(lines.len());
                for line in lines {
                    if cx.test(filter, &line)? {
                        kept.push(line);
                    }
                }
                lines = kept;
            }
            return Ok((lines, false));
        };
        let world = cx.world;
        let table = world.databases[*database].object(*object).and_then(super::database::Object::table);
        let table = table.ok_or_else(|| SqlError::invalid_object(&object.to_string()))?;
        let range = match &self.filter {
            Some(filter) => range(filter, table, cx)?,
            None => None,
        };
        let asked = match &self.order[..] {
            [(Node::Column { depth: 0, place }, _, descending)] => Some((*place, *descending)),
            _ => None,
        };
        // The clustered index is the order of a table for whoever asks for none, here as there.
        let index = (0..table.indexes.len()).find(|at| {
            let column = table.ordered_column(*at);
            column.is_some()
                && (column == range.as_ref().map(|range| range.place) || (range.is_none() && column == asked.map(|asked| asked.0)))
        });
        let index =
            index.or_else(|| (0..table.indexes.len()).find(|at| table.indexes[*at].kind == 1 && table.ordered_column(*at).is_some()));
        let place = index.and_then(|at| table.ordered_column(at));
        let sorted = asked.is_some_and(|asked| Some(asked.0) == place);
        let backwards = sorted && asked.is_some_and(|asked| asked.1);
        let single = self.group.as_ref().is_some_and(|(keys, aggregates)| keys.is_empty() && one_end(aggregates, place));
        let enough = match top {
            Some(top) if sorted || self.order.is_empty() => top,
            // MAX of an index is its last row.
            _ if single && self.filter.is_none() => 1,
            _ => usize::MAX,
        };
        let enough = if self.group.is_some() && !single || self.distinct { usize::MAX } else { enough };
        let backwards = backwards || (single && self.group.as_ref().is_some_and(|(_, aggregates)| aggregates[0].kind == Aggregation::Max));
        let ids = ids(table, index, range.as_ref(), backwards);
        Ok((self.scan(table, ids, *access, enough, cx)?, sorted))
    }

    fn scan(
        &self,
        table: &Table,
        ids: Box<dyn Iterator<Item = u64> + '_>,
        access: Access,
        enough: usize,
        cx: &mut Context<'_>,
    ) -> Result<Vec<Line>, Stop> {
        let mut lines = Vec::new();
        if enough == 0 {
            return Ok(lines);
        }
        for id in ids {
            let Some(row) = table.rows.get(&id) else { continue };
            let line = match access.look(row, cx.transaction) {
                Found::Row(line) => line,
                Found::Nothing => continue,
                Found::Locked => {
                    // A lock on a row that the filter would drop is not waited for: its key is known without its lock.
                    let passes = match &self.filter {
                        Some(filter) => cx.test(filter, &row.values)?,
                        None => true,
                    };
                    if passes {
                        return Err(Stop::Blocked);
                    }
                    continue;
                }
            };
            let passes = match &self.filter {
                Some(filter) => cx.test(filter, line)?,
                None => true,
            };
            if passes {
                lines.push(Arc::clone(line));
                if lines.len() >= enough {
                    break;
                }
            }
        }
        Ok(lines)
    }

    fn sorted(&self, lines: Vec<Line>, cx: &mut Context<'_>) -> Result<Vec<Line>, Stop> {
        let mut keyed = Vec::with_capacity(lines.len());
        for line in lines {
            let key: Vec<Value> = self.order.iter().map(|(node, _, _)| cx.eval(node, &line)).collect::<Result<_, _>>()?;
            keyed.push((key, line));
        }
        keyed.sort_by(|(left, _), (right, _)| {
            let mut keys = self.order.iter().enumerate();
            let first = keys.find_map(|(at, (_, ty, descending))| directed(compare::order(&left[at], &right[at], ty), *descending));
            first.unwrap_or(Ordering::Equal)
        });
        Ok(keyed.into_iter().map(|(_, line)| line).collect())
    }

    fn grouped(
        &self,
        lines: Vec<Line>,
        keys: &[super::plan::Typed],
        aggregates: &[Aggregate],
        cx: &mut Context<'_>,
    ) -> Result<Vec<Line>, Stop> {
        let mut groups: Vec<(Vec<Value>, Vec<Line>)> = Vec::new();
        if keys.is_empty() {
            groups.push((Vec::new(), lines));
        } else {
            for line in lines {
                let key: Vec<Value> = keys.iter().map(|key| cx.eval(&key.node, &line)).collect::<Result<_, _>>()?;
                let same = |other: &[Value]| {
                    key.iter().zip(other).zip(keys).all(|((left, right), typed)| compare::order(left, right, &typed.ty).is_eq())
                };
                match groups.iter_mut().find(|(known, _)| same(known)) {
                    Some((_, members)) => members.push(line),
                    None => groups.push((key, vec![line])),
                }
            }
        }
        let mut rows = Vec::new();
        for (key, members) in groups {
            let mut row = key;
            for aggregate in aggregates {
                row.push(aggregate.over(&members, cx)?);
            }
            let keep = match &self.having {
                Some(having) => cx.test(having, &row)?,
                None => true,
            };
            if keep {
                rows.push(row.into());
            }
        }
        Ok(rows)
    }
}

/// Is the answer one end of the index on this place? Only for a column that cannot be `NULL`.
fn one_end(aggregates: &[Aggregate], place: Option<usize>) -> bool {
    matches!(aggregates, [Aggregate { kind: Aggregation::Max | Aggregation::Min, of: Node::Column { depth: 0, place: of }, .. }] if Some(*of) == place)
}

/// The rows of a table in an order that serves: by index and range, else as they were inserted.
fn ids<'a>(table: &'a Table, index: Option<usize>, range: Option<&Range>, backwards: bool) -> Box<dyn Iterator<Item = u64> + 'a> {
    let Some(order) = index.and_then(|at| table.orders.get(&at)) else {
        // An index without an order in memory belongs to an empty table.
        return Box::new(table.rows.keys().copied());
    };
    let place = index.and_then(|at| table.ordered_column(at));
    let bounds = match range.filter(|range| Some(range.place) == place) {
        None => (Bound::Unbounded, Bound::Unbounded),
        Some(range) => (
            match range.low {
                Bound::Included(low) => Bound::Included((low, 0)),
                Bound::Excluded(low) => Bound::Excluded((low, u64::MAX)),
                Bound::Unbounded => Bound::Unbounded,
            },
            match range.high {
                Bound::Included(high) => Bound::Included((high, u64::MAX)),
                Bound::Excluded(high) => Bound::Excluded((high, 0)),
                Bound::Unbounded => Bound::Unbounded,
            },
        ),
    };
    // A range whose ends have crossed is empty, and a panic for the set.
    if let (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) = bounds
        && low >= high
    {
        return Box::new(std::iter::empty());
    }
    let found = order.range(bounds).map(|(_, id)| *id);
    if backwards { Box::new(found.rev()) } else { Box::new(found) }
}

/// The bounds that a filter sets to a column with an order, as far as they can be read off it.
fn range(filter: &Node, table: &Table, cx: &mut Context<'_>) -> Result<Option<Range>, Stop> {
    let mut terms = Vec::new();
    conjuncts(filter, &mut terms);
    let mut found: Option<Range> = None;
    for term in terms {
        let Node::Compare(operator, left, right, ty) = term else { continue };
        let whole = ty.is_integer() || (ty.is_decimal() && ty.precision_scale().1 == 0);
        let (operator, place, constant) = match (plain_column(left), plain_column(right)) {
            (Some(place), None) if right.is_constant() => (*operator, place, right),
            (None, Some(place)) if left.is_constant() => (mirrored(*operator), place, left),
            _ => continue,
        };
        let ordered = (0..table.indexes.len()).any(|at| table.ordered_column(at) == Some(place));
        if !whole || !ordered || found.as_ref().is_some_and(|found| found.place != place) {
            continue;
        }
        let Some(limit) = cx.eval(constant, &[])?.integer() else { continue };
        let range = found.get_or_insert(Range { place, low: Bound::Unbounded, high: Bound::Unbounded });
        // Of several bounds on one side the last is taken; the filter itself is still applied to every row.
        match operator {
            Operator::Greater => range.low = Bound::Excluded(limit),
            Operator::GreaterEqual => range.low = Bound::Included(limit),
            Operator::Less => range.high = Bound::Excluded(limit),
            Operator::LessEqual => range.high = Bound::Included(limit),
            Operator::Equal => {
                range.low = Bound::Included(limit);
                range.high = Bound::Included(limit);
            }
            _ => {}
        }
    }
    Ok(found)
}

fn conjuncts<'a>(node: &'a Node, terms: &mut Vec<&'a Node>) {
    if let Node::And(left, right) = node {
        conjuncts(left, terms);
        conjuncts(right, terms);
    } else {
        terms.push(node);
    }
}

/// A column, alone or widened to a number that holds every value of it.
fn plain_column(node: &Node) -> Option<usize> {
    match node {
        Node::Column { depth: 0, place } => Some(*place),
        Node::Cast { of, from, to, .. } if from.is_number() && to.is_number() && to.precedence() <= from.precedence() => plain_column(of),
        _ => None,
    }
}

fn mirrored(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessEqual => Operator::GreaterEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterEqual => Operator::LessEqual,
        other => other,
    }
}

impl Input {
    fn lines(&self, cx: &mut Context<'_>) -> Result<Vec<Line>, Stop> {
        match self {
            Self::Nothing => Ok(vec![Vec::new().into()]),
            Self::Lines(lines) => Ok(lines.clone()),
            Self::Rows(rows) => rows.iter().map(|row| row.iter().map(|node| cx.eval(node, &[])).collect()).collect(),
            Self::Query(plan) => plan.lines(cx),
            Self::Series(from, to) => {
                let (from, to) = (cx.eval(from, &[])?, cx.eval(to, &[])?);
                let bound = |value: Value| value.integer().and_then(|number| i64::try_from(number).ok());
                let (Some(from), Some(to)) = (bound(from), bound(to)) else { return Ok(Vec::new()) };
                Ok((from..=to).map(|number| vec![Value::Integer(number)].into()).collect())
            }
            Self::Table { .. } => {
                let whole = SelectPlan {
                    input: self.clone(),
                    filter: None,
                    group: None,
                    having: None,
                    project: Vec::new(),
                    distinct: false,
                    order: Vec::new(),
                    top: None,
                };
                whole.filtered(cx, None).map(|(lines, _)| lines)
            }
            Self::Join { kind, left, right, on, width } => join(*kind, left, right, on.as_ref(), *width, cx),
        }
    }
}

fn join(kind: JoinKind, left: &Input, right: &Input, on: Option<&Node>, width: usize, cx: &mut Context<'_>) -> Result<Vec<Line>, Stop> {
    let mut joined = Vec::new();
    let apply = matches!(kind, JoinKind::CrossApply | JoinKind::OuterApply);
    let fixed = if apply { Vec::new() } else { right.lines(cx)? };
    for line in left.lines(cx)? {
        let mut matched = false;
        let applied = if apply {
            cx.outer.push(Arc::clone(&line));
            let lines = right.lines(cx);
            cx.outer.pop();
            lines?
        } else {
            Vec::new()
        };
        for other in if apply { &applied } else { &fixed } {
            let both: Line = line.iter().chain(other.iter()).cloned().collect();
            let keep = match on {
                Some(on) => cx.test(on, &both)?,
                None => true,
            };
            if keep {
                matched = true;
                joined.push(both);
            }
        }
        if !matched && matches!(kind, JoinKind::Left | JoinKind::OuterApply) {
            joined.push(line.iter().cloned().chain(std::iter::repeat_n(Value::Null, width)).collect());
        }
    }
    Ok(joined)
}

impl Aggregate {
    fn over(&self, lines: &[Line], cx: &mut Context<'_>) -> Result<Value, Stop> {
        let counted = |count: usize| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
        if self.kind == Aggregation::CountAll {
            return Ok(counted(lines.len()));
        }
        let mut ordered: Vec<&Line> = lines.iter().collect();
        if let [(key, ty, descending)] = &self.order[..] {
            let mut keyed = Vec::new();
            for line in ordered {
                keyed.push((cx.eval(key, line)?, line));
            }
            keyed.sort_by(|left, right| directed(compare::order(&left.0, &right.0, ty), *descending).unwrap_or(Ordering::Equal));
            ordered = keyed.into_iter().map(|(_, line)| line).collect();
        }
        let mut values = Vec::new();
        for line in ordered {
            let value = cx.eval(&self.of, line)?;
            if !value.is_null() {
                values.push(value);
            }
        }
        match self.kind {
            Aggregation::CountAll | Aggregation::Count => Ok(counted(values.len())),
            Aggregation::CountDistinct => {
                values.sort_by(|left, right| compare::order(left, right, &self.of_type));
                values.dedup_by(|left, right| compare::order(left, right, &self.of_type).is_eq());
                Ok(counted(values.len()))
            }
            Aggregation::Max => Ok(values.into_iter().max_by(|left, right| compare::order(left, right, &self.of_type)).unwrap_or_default()),
            Aggregation::Min => Ok(values.into_iter().min_by(|left, right| compare::order(left, right, &self.of_type)).unwrap_or_default()),
            Aggregation::Sum | Aggregation::Average => self.sum(&values),
            Aggregation::Join => {
                let separator = match &self.separator {
                    Some(node) => cx.eval(node, &[])?.to_string(),
                    None => String::new(),
                };
                if values.is_empty() {
                    return Ok(Value::Null);
                }
                let texts: Vec<String> =
                    values.iter().map(|value| super::convert::characters(value, &self.of_type).unwrap_or_default()).collect();
                let joined = texts.join(&separator);
                match self.ty {
                    Type::VarChar(_, collation) => Ok(Value::chars(&collation.encode(&joined))),
                    _ => Ok(Value::wide(&joined)),
                }
            }
        }
    }

    fn sum(&self, values: &[Value]) -> Result<Value, Stop> {
        if values.is_empty() {
            return Ok(Value::Null);
        }
        if matches!(self.ty, Type::Float) {
            let sum: f64 = values.iter().map(|value| if let Value::Float(number) = value { *number } else { 0.0 }).sum();
            #[allow(clippy::cast_precision_loss, reason = "an average of floats")]
            return Ok(Value::Float(if self.kind == Aggregation::Average { sum / values.len() as f64 } else { sum }));
        }
        let sum =
            values.iter().try_fold(0_i128, |sum, value| sum.checked_add(value.integer()?)).ok_or_else(|| SqlError::overflow(&self.ty))?;
        let sum = if self.kind == Aggregation::Average { sum / i128::try_from(values.len()).unwrap_or(1) } else { sum };
        let scale = self.of_type.precision_scale().1;
        if self.ty.is_integer() {
            return super::convert(&Value::Decimal(sum), &Type::Decimal(38, 0), &self.ty, 0).map_err(Stop::from);
        }
        let digits = numbers::rescale(sum, scale, self.ty.precision_scale().1).ok_or_else(|| SqlError::overflow(&self.ty))?;
        Ok(Value::Decimal(digits))
    }
}

/// How a key is written in a message about a duplicate.
pub fn written(value: &Value, ty: &Type) -> String {
    super::convert::characters(value, ty).or_else(|| text::text(value, ty, 0).ok()).unwrap_or_else(|| "<NULL>".to_owned())
}
