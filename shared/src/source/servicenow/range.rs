//! Which rows a request asks for, and whether the answer kept to it.
//!
//! There are two shapes, as the specification has them: whole seconds from one on, and the rest of one second after an
//! id. Both are ordered by timestamp and id. An instance drops a part of a query that it does not accept and runs the rest,
//! so each row is checked against what was asked for.

use super::error::Error;
use super::time;

/// The rows asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Range {
    /// Rows at or after (`inclusive`) or after second `from`, up to second `to`.
    Seconds { from: i64, inclusive: bool, to: Option<i64> },
    /// Rows of second `at` whose id lies after `after` (all if that is empty), up to `through`.
    Second { at: i64, after: String, through: Option<String> },
}

/// The names of the fields that a table is ordered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CursorFields {
    pub(super) timestamp: String,
    pub(super) id: String,
    pub(super) mod_count: String,
}

impl CursorFields {
    /// Whether the ids are an instance's own, of hexadecimal digits; in a view they carry its prefix.
    pub(super) fn has_hexadecimal_ids(&self) -> bool {
        self.id.ends_with("sys_id")
    }
}

/// Timestamp, id and version of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Head {
    pub(super) second: i64,
    pub(super) id: String,
    pub(super) mod_count: String,
}

impl Head {
    /// The row's version: what the dedup window knows it by.
    pub(super) fn version(&self) -> crate::sweep::Version {
        use sha2::{Digest, Sha256};
        let mut digest = Sha256::new();
        digest.update(self.second.to_be_bytes());
        digest.update((self.id.len() as u64).to_be_bytes());
        digest.update(self.id.as_bytes());
        digest.update(self.mod_count.as_bytes());
        let mut version = [0; 16];
        version.copy_from_slice(&digest.finalize()[..16]);
        version
    }

    fn tuple(&self) -> String {
        format!("({}, {})", time::format(self.second), self.id)
    }
}

impl Range {
    /// From second `from` on, that second included.
    pub(super) fn from(from: i64, to: Option<i64>) -> Self {
        Self::Seconds { from, inclusive: true, to }
    }

    /// After second `second`.
    pub(super) fn after(second: i64, to: Option<i64>) -> Self {
        Self::Seconds { from: second, inclusive: false, to }
    }

    /// The rest of second `at` after the id `after`.
    pub(super) fn rest_of(at: i64, after: &str) -> Self {
        Self::Second { at, after: after.to_owned(), through: None }
    }

    /// The first second that the range includes.
    pub(super) fn first_second(&self) -> i64 {
        match self {
            Self::Seconds { from, inclusive, .. } => from.saturating_add(i64::from(!inclusive)),
            Self::Second { at, .. } => *at,
        }
    }

    /// The cursor terms of the encoded query, joined by `^`.
    pub(super) fn terms(&self, fields: &CursorFields) -> String {
        let CursorFields { timestamp, id, .. } = fields;
        match self {
            Self::Seconds { from, inclusive, to } => {
                let operator = if *inclusive { ">=" } else { ">" };
                let upper = to.map(|to| format!("^{timestamp}<={}", time::format(to))).unwrap_or_default();
                format!("{timestamp}{operator}{}{upper}", time::format(*from))
            }
            Self::Second { at, after, through } => {
                let lower = if after.is_empty() { String::new() } else { format!("^{id}>{}", escape(after)) };
                let upper = through.as_ref().map(|through| format!("^{id}<={}", escape(through))).unwrap_or_default();
                format!("{timestamp}={}{lower}{upper}", time::format(*at))
            }
        }
    }

    /// Checks the rows of an answer against what was asked for: bounds, order, number.
    ///
    /// The order of ids is the server's. It is compared only where every collation agrees: between two ids of lower-case
    /// hexadecimal digits of one length.
    pub(super) fn check<R>(&self, rows: &[(Head, R)], limit: u32, fields: &CursorFields) -> Result<(), Error> {
        if rows.len() > limit as usize {
            let detail = format!("{} rows came where sysparm_limit={limit} was asked for", rows.len());
            return Err(Error::PredicateIgnored { predicate: format!("sysparm_limit={limit}"), detail });
        }
        if let Some((head, _)) = rows.iter().find(|(head, _)| !self.contains(head)) {
            let detail = format!("the row {} lies outside of it", head.tuple());
            return Err(Error::PredicateIgnored { predicate: self.terms(fields), detail });
        }
        for ((before, _), (after, _)) in rows.iter().zip(rows.iter().skip(1)) {
            let ordered = before.second < after.second || (before.second == after.second && !surely_not_before(&before.id, &after.id));
            if !ordered {
                return Err(Error::OutOfOrder { before: before.tuple(), after: after.tuple() });
            }
        }
        Ok(())
    }

    fn contains(&self, head: &Head) -> bool {
        match self {
            Self::Seconds { to, .. } => head.second >= self.first_second() && to.is_none_or(|to| head.second <= to),
            Self::Second { at, after, through } => {
                let above = after.is_empty() || !surely_not_before(after, &head.id);
                let below = through.as_ref().is_none_or(|through| *through == head.id || !surely_not_before(&head.id, through));
                head.second == *at && above && below
            }
        }
    }
}

/// Whether `a` does not come before `b` in any collation: they are equal, or hexadecimal and in the other order.
fn surely_not_before(a: &str, b: &str) -> bool {
    a == b || (a.len() == b.len() && is_hex(a) && is_hex(b) && a > b)
}

/// Whether the text is of lower-case hexadecimal digits only, or empty.
pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A value inside an encoded query: `^` separates terms, and `^^` stands for itself.
pub(super) fn escape(value: &str) -> String {
    value.replace('^', "^^")
}

/// The whole encoded query: the cursor terms in every branch of the base query, and the order.
///
/// `^NQ` begins a new branch that takes nothing over from the ones before it, so terms appended at the end
/// would bind only the last one.
pub(super) fn encoded(base: &str, terms: &str, fields: &CursorFields) -> String {
    format!("{}^ORDERBY{}^ORDERBY{}", in_branches(base, terms), fields.timestamp, fields.id)
}

fn in_branches(base: &str, terms: &str) -> String {
    let branches: Vec<String> =
        branches(base).into_iter().map(|branch| if branch.is_empty() { terms.to_owned() } else { format!("{branch}^{terms}") }).collect();
    branches.join("^NQ")
}

/// The encoded query for the newest row. One without a time may come first or last in the order, and is none.
pub(super) fn newest(base: &str, fields: &CursorFields) -> String {
    let term = format!("{}ISNOTEMPTY", fields.timestamp);
    format!("{}^ORDERBYDESC{}", in_branches(base, &term), fields.timestamp)
}

fn branches(base: &str) -> Vec<&str> {
    let mut branches = Vec::new();
    let (mut start, mut at) = (0, 0);
    let bytes = base.as_bytes();
    while at < bytes.len() {
        if bytes[at] != b'^' {
            at += 1;
        } else if bytes.get(at + 1) == Some(&b'^') {
            at += 2;
        } else if bytes[at..].starts_with(b"^NQ") {
            branches.push(&base[start..at]);
            at += 3;
            start = at;
        } else {
            at += 1;
        }
    }
    branches.push(&base[start..]);
    branches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> CursorFields {
        CursorFields { timestamp: "sys_updated_on".into(), id: "sys_id".into(), mod_count: "sys_mod_count".into() }
    }

    fn head(second: i64, id: &str) -> Head {
        Head { second, id: id.into(), mod_count: "0".into() }
    }

    fn row(second: i64, id: &str) -> (Head, ()) {
        (head(second, id), ())
    }

    #[test]
    fn the_cursor_terms_bind_every_branch_of_the_base_query() {
        let terms = Range::from(0, None).terms(&fields());
        assert_eq!(
            encoded("active=true^NQpriority=1^ORpriority=2", &terms, &fields()),
            "active=true^sys_updated_on>=1970-01-01 00:00:00^NQpriority=1^ORpriority=2^sys_updated_on>=1970-01-01 00:00:00\
             ^ORDERBYsys_updated_on^ORDERBYsys_id"
        );
    }

    #[test]
    fn a_doubled_caret_is_a_value_and_begins_no_branch() {
        assert_eq!(branches("a=x^^NQy^NQb=1"), ["a=x^^NQy", "b=1"]);
        assert_eq!(branches(""), [""]);
        assert_eq!(branches("^^^NQ"), ["^^", ""]);
    }

    #[test]
    fn both_shapes_are_written_as_the_instance_reads_them() {
        let seconds = Range::after(59, Some(61)).terms(&fields());
        assert_eq!(seconds, "sys_updated_on>1970-01-01 00:00:59^sys_updated_on<=1970-01-01 00:01:01");
        let rest = Range::Second { at: 1, after: "a^b".into(), through: Some("f".into()) }.terms(&fields());
        assert_eq!(rest, "sys_updated_on=1970-01-01 00:00:01^sys_id>a^^b^sys_id<=f");
    }

    #[test]
    fn a_row_outside_of_the_range_names_the_predicate_that_was_ignored() {
        let error = Range::from(10, Some(20)).check(&[row(9, "a")], 5, &fields()).expect_err("before the range");
        assert!(error.to_string().contains("sys_updated_on>=1970-01-01 00:00:10"), "{error}");
        for (range, outside) in [
            (Range::from(10, Some(20)), row(21, "a")),
            (Range::rest_of(5, "aa"), row(6, "b")),
            (Range::rest_of(5, "bb"), row(5, "aa")),
            (Range::rest_of(5, "bb"), row(5, "bb")),
        ] {
            assert!(matches!(range.check(&[outside], 5, &fields()), Err(Error::PredicateIgnored { .. })), "{range:?}");
        }
        assert!(Range::from(0, None).check(&[row(1, "a"), row(2, "b")], 1, &fields()).is_err(), "more rows than the limit");
    }

    #[test]
    fn rows_out_of_order_name_both_tuples_and_a_foreign_collation_does_not() {
        let error = Range::from(0, None).check(&[row(2, "a"), row(1, "b")], 5, &fields()).expect_err("seconds go back").to_string();
        assert!(error.contains("(1970-01-01 00:00:02, a)") && error.contains("(1970-01-01 00:00:01, b)"), "{error}");
        assert!(Range::from(0, None).check(&[row(1, "bb"), row(1, "aa")], 5, &fields()).is_err());
        assert!(Range::from(0, None).check(&[row(1, "aa"), row(1, "aa")], 5, &fields()).is_err(), "the same row twice");
        assert!(Range::from(0, None).check(&[row(1, "b_x"), row(1, "B-y"), row(1, "a")], 5, &fields()).is_ok());
    }

    #[test]
    fn a_version_changes_with_each_of_its_parts() {
        let base = head(1, "ab").version();
        assert_ne!(base, head(2, "ab").version());
        assert_ne!(base, head(1, "ac").version());
        assert_ne!(base, Head { mod_count: "1".into(), ..head(1, "ab") }.version());
        assert_ne!(Head { mod_count: "b1".into(), ..head(1, "a") }.version(), Head { mod_count: "1".into(), ..head(1, "ab") }.version());
    }
}
