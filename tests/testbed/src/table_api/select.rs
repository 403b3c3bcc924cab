//! Which rows a page holds.
//!
//! Two ways lead to a page. A query in the order of an index, whose conditions bound a piece of it, is read off that
//! piece: a page costs its own rows and a binary search, and the count of an exact piece is a subtraction. Every other
//! query is evaluated row by row, shuffled, and sorted: shuffled first, so that rows which the order holds equal
//! come differently in every answer, as they may from a database.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;

use super::data::{Index, Table};
use super::database::Database;
use super::evaluate::{holds, sorted};
use super::grammar::Operator;
use super::plan::{Plan, Sort, Test};
use super::random::Random;

/// What of the matching rows is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub offset: usize,
    pub limit: usize,
    /// Is the number of all matching rows wanted?
    pub count: bool,
    /// Are rows of other domains among them?
    pub all_domains: bool,
}

/// A page, before row ACLs.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub slots: Vec<u32>,
    pub total: Option<usize>,
    /// Are there rows behind the page?
    pub more: bool,
    /// Rows that were looked at: what the page cost.
    pub examined: usize,
}

/// Evaluates a plan.
pub(super) fn select(db: &Database, table: &Table, plan: &Plan, window: Window, random: &mut Random) -> Page {
    if plan.nothing {
        return Page { total: Some(0), ..Page::default() };
    }
    let finder = Finder { db, table, plan, window, examined: Cell::new(0) };
    let page = if table.row_cap.is_none() { finder.by_index(random) } else { None };
    let mut page = page.unwrap_or_else(|| finder.by_sorting(random));
    page.examined = finder.examined.get();
    page
}

struct Finder<'a> {
    db: &'a Database,
    table: &'a Table,
    plan: &'a Plan,
    window: Window,
    examined: Cell<usize>,
}

/// Pieces of an index that hold every matching row, in index order, and whether they hold nothing else.
struct Pieces {
    ranges: Vec<Range<usize>>,
    exact: bool,
}

impl Pieces {
    fn positions(&self, descending: bool) -> Box<dyn Iterator<Item = usize> + '_> {
        if descending {
            Box::new(self.ranges.iter().rev().flat_map(|range| range.clone().rev()))
        } else {
            Box::new(self.ranges.iter().flat_map(Clone::clone))
        }
    }
}

impl Finder<'_> {
    fn matches(&self, slot: u32) -> bool {
        self.examined.set(self.examined.get() + 1);
        let table = self.table;
        let others = &table.access.rules.other_domain;
        if !self.window.all_domains && !others.is_empty() && others.contains(&*table.id(slot)) {
            return false;
        }
        self.plan.is_everything() || {
            let holds = |test: &Test| holds(self.db, table, slot, test);
            self.plan.groups.iter().any(|group| group.iter().all(|clause| clause.iter().any(holds)))
        }
    }

    /// The page straight from an index, when the order is that of one.
    fn by_index(&self, random: &mut Random) -> Option<Page> {
        let (index, pieces, descending, ties) = self.fitting()?;
        if ties && self.window.offset > 0 {
            return None;
        }
        let Window { offset, limit, count, .. } = self.window;
        let known = pieces.exact.then(|| pieces.ranges.iter().map(Range::len).sum::<usize>());
        let mut positions = pieces.positions(descending);
        let mut skip = offset;
        if pieces.exact {
            positions = Box::new(positions.skip(offset));
            skip = 0;
        }
        let mut page = Page::default();
        let (mut seen, mut more) = (0, false);
        for position in positions {
            let slot = index.slots[position];
            if pieces.exact {
                self.examined.set(self.examined.get() + 1);
            } else if !self.matches(slot) {
                continue;
            }
            seen += 1;
            if seen <= skip {
                continue;
            }
            let tied = || {
                ties && page.slots.last().is_some_and(|last| self.table.value(*last, index.column) == self.table.value(slot, index.column))
            };
            if page.slots.len() < limit || (!more && tied()) {
                page.slots.push(slot);
                continue;
            }
            more = true;
            if known.is_some() || !count {
                break;
            }
        }
        if ties {
            more |= page.slots.len() > limit;
            self.shuffle_ties(index.column, &mut page.slots, random);
            page.slots.truncate(limit);
        }
        page.more = more;
        page.total = count.then(|| known.unwrap_or(seen));
        Some(page)
    }

    /// The index that has the query's order, the pieces of it, whether it runs backwards, and whether rows of one
    /// second are in no order.
    fn fitting(&self) -> Option<(&Index, Pieces, bool, bool)> {
        let id = self.table.id_column;
        let single = |sort: &Sort| {
            if let [column] = sort.path[..] { Some(column) } else { None }
        };
        let columns: Vec<usize> = self.plan.order.iter().map(single).collect::<Option<_>>()?;
        let descending = self.plan.order.first()?.descending;
        if self.plan.order.iter().any(|sort| sort.descending != descending) {
            return None;
        }
        for index in &self.table.indexes {
            let (pieces, pinned) = self.pieces(index);
            let ties = match columns[..] {
                [first] if first == index.column => true,
                [first] if first == id && pinned => false,
                [first, second] if first == index.column && second == id => false,
                _ => continue,
            };
            return Some((index, pieces, descending, ties));
        }
        None
    }

    /// Also says whether every row of the pieces has one and the same timestamp.
    fn pieces(&self, index: &Index) -> (Pieces, bool) {
        let domains = self.window.all_domains || self.table.access.rules.other_domain.is_empty();
        let mut pieces = Pieces { ranges: Vec::new(), exact: domains };
        if self.plan.is_everything() {
            pieces.ranges.push(0..index.slots.len());
            return (pieces, false);
        }
        let mut pin: Option<&str> = None;
        let mut pinned = true;
        for group in &self.plan.groups {
            let bound = bound(self.table, index, group);
            pieces.exact &= bound.exact;
            match bound.pin {
                Some(stamp) if pin.is_none_or(|known| known == stamp) => pin = Some(stamp),
                _ => pinned = false,
            }
            pieces.ranges.push(bound.range);
        }
        pieces.ranges.retain(|range| !range.is_empty());
        pieces.ranges.sort_by_key(|range| range.start);
        pieces.ranges = pieces.ranges.into_iter().fold(Vec::new(), |mut merged: Vec<Range<usize>>, next| {
            match merged.last_mut() {
                Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
                _ => merged.push(next),
            }
            merged
        });
        (pieces, pinned)
    }

    /// Every matching row, in no order.
    fn candidates(&self) -> Vec<u32> {
        let mut slots: Vec<u32> = match named_ids(self.table, self.plan) {
            Some(slots) => slots.into_iter().filter(|slot| self.matches(*slot)).collect(),
            None => match self.table.indexes.iter().map(|index| (index, self.pieces(index).0)).min_by_key(size) {
                Some((index, pieces)) => {
                    let positions = pieces.ranges.iter().flat_map(Clone::clone);
                    positions.map(|p| index.slots[p]).filter(|slot| self.matches(*slot)).collect()
                }
                None => self.table.slots().filter(|slot| self.matches(*slot)).collect(),
            },
        };
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    fn by_sorting(&self, random: &mut Random) -> Page {
        let mut slots = self.candidates();
        random.shuffle(&mut slots);
        if let Some(cap) = self.table.row_cap {
            slots.truncate(cap);
        }
        slots.sort_by(|a, b| self.compare(*a, *b));
        let total = slots.len();
        let Window { offset, limit, .. } = self.window;
        let more = total > offset.saturating_add(limit);
        let slots = slots.into_iter().skip(offset).take(limit).collect();
        Page { slots, total: self.window.count.then_some(total), more, examined: 0 }
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.plan.order.iter().fold(Ordering::Equal, |so_far, sort| {
            so_far.then_with(|| {
                let value = |slot| self.db.walk(self.table, slot, &sort.path);
                let order = sorted(self.table, sort.kind, &value(a), &value(b));
                if sort.descending { order.reverse() } else { order }
            })
        })
    }

    fn shuffle_ties(&self, column: usize, slots: &mut [u32], random: &mut Random) {
        for tie in slots.chunk_by_mut(|a, b| self.table.value(*a, column) == self.table.value(*b, column)) {
            random.shuffle(tie);
        }
    }
}

fn size((_, pieces): &(&Index, Pieces)) -> usize {
    pieces.ranges.iter().map(Range::len).sum()
}

/// The rows that a query can match at most because every conjunction names identities.
fn named_ids(table: &Table, plan: &Plan) -> Option<Vec<u32>> {
    if plan.is_everything() {
        return None;
    }
    let mut slots = Vec::new();
    for group in &plan.groups {
        let named = group.iter().find_map(|clause| match &clause[..] {
            [test] if test.path[..] == [table.id_column] && matches!(test.operator, Operator::Equal | Operator::In) => Some(&test.values),
            _ => None,
        })?;
        slots.extend(named.iter().filter_map(|id| table.find(id)));
    }
    Some(slots)
}

struct Bound<'a> {
    range: Range<usize>,
    exact: bool,
    pin: Option<&'a str>,
}

/// The piece of an index that a conjunction's conditions on (timestamp, identity) leave.
fn bound<'a>(table: &Table, index: &Index, group: &'a [Vec<Test>]) -> Bound<'a> {
    let singles = |column: usize| {
        group.iter().filter_map(move |clause| match &clause[..] {
            [test] if test.path[..] == [column] => Some(test),
            _ => None,
        })
    };
    let mut bound = Bound { range: 0..index.slots.len(), exact: true, pin: None };
    let mut used = 0;
    for test in singles(index.column) {
        let stamp = |position: usize| table.value(index.slots[position], index.column);
        used += usize::from(narrow(&mut bound.range, test, |position, literal| (*stamp(position)).cmp(literal)));
        if test.operator == Operator::Equal {
            bound.pin = Some(&test.values[0]);
        }
    }
    if bound.pin.is_some() {
        for test in singles(table.id_column) {
            let id = |position: usize| table.id(index.slots[position]);
            let compare = |position: usize, literal: &str| table.collation.compare(&id(position), literal);
            used += usize::from(narrow(&mut bound.range, test, compare));
        }
    }
    bound.exact = used == group.len();
    bound
}

/// Narrows a sorted range to the positions that pass a test; false when the test is not of a kind that bounds.
fn narrow(range: &mut Range<usize>, test: &Test, compare: impl Fn(usize, &str) -> Ordering) -> bool {
    let before = |literal: &str, or_equal: bool| {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            let order = compare(middle, literal);
            if order.is_lt() || (or_equal && order.is_eq()) { low = middle + 1 } else { high = middle }
        }
        low
    };
    let literal = &test.values[0];
    // Rows without a value stand first, and no comparison but equality holds for them.
    let valued = before("", true);
    let (start, end) = match test.operator {
        Operator::Greater => (before(literal, true), range.end),
        Operator::GreaterOrEqual => (before(literal, false).max(valued), range.end),
        Operator::Less => (valued, before(literal, false)),
        Operator::LessOrEqual => (valued, before(literal, true)),
        Operator::Equal => (before(literal, false), before(literal, true)),
        Operator::Between => (before(literal, false).max(valued), before(&test.values[1], true)),
        _ => return false,
    };
    *range = start..end.max(start);
    true
}
