//! The grammar of encoded queries.
//!
//! `^` joins conditions; `^OR` belongs to the one condition before it, not to all of them; `^NQ` ends a conjunction and
//! starts the next, and a row matches when any conjunction does; `^^` is a caret inside a value. The order stands at the
//! end. A query copied from a list ends in `^EQ`, and what follows it is ignored: the worst of what instances are
//! reported to do, so a client that appends behind it is found out here.
//!
//! This is a parser of the language, not of what one client sends. It knows the operators that it must not evaluate by
//! name, so that `INSTANCEOF` is refused as such and not read as `IN` with an odd list.

use std::collections::BTreeMap;

/// A condition's operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Like,
    NotLike,
    StartsWith,
    EndsWith,
    In,
    NotIn,
    Between,
    IsEmpty,
    IsNotEmpty,
    EmptyString,
    Anything,
    SameAs,
    NotSameAs,
}

impl Operator {
    /// Does the query ACL of range queries guard it? (The others are guarded as matches.)
    pub fn is_range(self) -> bool {
        use Operator::*;
        matches!(self, Greater | GreaterOrEqual | Less | LessOrEqual | Between | Like | NotLike | StartsWith | EndsWith)
    }

    fn takes_value(self) -> bool {
        use Operator::*;
        !matches!(self, IsEmpty | IsNotEmpty | EmptyString | Anything)
    }
}

/// Longer before shorter where one begins with the other; `None` is an operator that exists and is not evaluated here.
const OPERATORS: &[(&str, Option<Operator>)] = &[
    ("ISNOTEMPTY", Some(Operator::IsNotEmpty)),
    ("ISEMPTY", Some(Operator::IsEmpty)),
    ("EMPTYSTRING", Some(Operator::EmptyString)),
    ("ANYTHING", Some(Operator::Anything)),
    ("NOT LIKE", Some(Operator::NotLike)),
    ("NOT IN", Some(Operator::NotIn)),
    ("NSAMEAS", Some(Operator::NotSameAs)),
    ("SAMEAS", Some(Operator::SameAs)),
    ("STARTSWITH", Some(Operator::StartsWith)),
    ("ENDSWITH", Some(Operator::EndsWith)),
    ("BETWEEN", Some(Operator::Between)),
    ("INSTANCEOF", None),
    ("LIKE", Some(Operator::Like)),
    ("IN", Some(Operator::In)),
    ("!=", Some(Operator::NotEqual)),
    (">=", Some(Operator::GreaterOrEqual)),
    ("<=", Some(Operator::LessOrEqual)),
    ("=", Some(Operator::Equal)),
    (">", Some(Operator::Greater)),
    ("<", Some(Operator::Less)),
];

/// One condition on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    pub field: String,
    pub operator: Operator,
    pub value: String,
}

/// Alternatives joined by `^OR`.
pub(super) type Clause = Vec<Term>;

/// Clauses joined by `^`.
pub(super) type Conjunction = Vec<Clause>;

/// One field of the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub field: String,
    pub descending: bool,
}

/// An encoded query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Conjunctions joined by `^NQ`; none at all matches every row.
    pub groups: Vec<Conjunction>,
    pub order: Vec<Order>,
    /// What stands behind `^EQ`.
    pub ignored: Vec<String>,
}

impl Query {
    /// Puts what the scripts of `javascript:` values return in their place; the error names one that is not known.
    pub fn run_scripts(&mut self, known: &BTreeMap<String, String>) -> Result<(), String> {
        for term in self.groups.iter_mut().flatten().flatten() {
            if let Some(script) = script(&term.value) {
                term.value = known.get(script).ok_or_else(|| format!("the script `{script}` is not known"))?.clone();
            }
        }
        Ok(())
    }
}

/// Reads an encoded query; the error says which part is not understood.
pub(super) fn parse(text: &str) -> Result<Query, String> {
    let mut query = Query::default();
    let mut group: Conjunction = Vec::new();
    let mut parts = split(text).into_iter();
    while let Some(part) = parts.next() {
        if part == "EQ" {
            query.ignored = parts.collect();
            break;
        }
        if let Some(order) = order_of(&part)? {
            query.order.push(order);
            continue;
        }
        if part.is_empty() {
            continue;
        }
        if !query.order.is_empty() {
            return Err(format!("`{part}` stands behind ORDERBY, which must come last"));
        }
        if let Some(rest) = part.strip_prefix("NQ") {
            if group.is_empty() {
                return Err(format!("`^{part}` has no condition before it"));
            }
            query.groups.push(std::mem::take(&mut group));
            if !rest.is_empty() {
                group.push(vec![term(rest)?]);
            }
        } else if let Some(rest) = part.strip_prefix("OR") {
            let Some(clause) = group.last_mut() else {
                return Err(format!("`^{part}` has no condition before it"));
            };
            clause.push(term(rest)?);
        } else {
            group.push(vec![term(&part)?]);
        }
    }
    if group.is_empty() && !query.groups.is_empty() {
        return Err("`^NQ` has no condition behind it".to_owned());
    }
    query.groups.push(group);
    Ok(query)
}

/// Splits at single carets and turns double ones into one.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let last = parts.last_mut().expect("there is always a part");
        if character != '^' {
            last.push(character);
        } else if characters.next_if_eq(&'^').is_some() {
            last.push('^');
        } else {
            parts.push(String::new());
        }
    }
    parts
}

fn order_of(part: &str) -> Result<Option<Order>, String> {
    let Some(rest) = part.strip_prefix("ORDERBY") else {
        return Ok(None);
    };
    let (field, descending) = match rest.strip_prefix("DESC") {
        Some(field) => (field, true),
        None => (rest, false),
    };
    let named = !field.is_empty() && operator_at(field) == field.len();
    if named { Ok(Some(Order { field: field.to_owned(), descending })) } else { Err(format!("`{part}` does not name a field to order by")) }
}

/// Where the operator begins: names are lower case, operators are capitals or signs.
fn operator_at(text: &str) -> usize {
    text.find(|c: char| c.is_ascii_uppercase() || "=!<>*%~".contains(c)).unwrap_or(text.len())
}

/// The script that a value is, if it is one: the instance puts what the script returns in its place.
pub(super) fn script(value: &str) -> Option<&str> {
    value.strip_prefix("javascript:")
}

fn term(text: &str) -> Result<Term, String> {
    let (field, rest) = text.split_at(operator_at(text));
    if field.is_empty() {
        return Err(format!("`{text}` names no field"));
    }
    let known = OPERATORS.iter().find_map(|(name, operator)| Some((rest.strip_prefix(name)?, *operator)));
    let Some((value, Some(operator))) = known else {
        return Err(format!("the operator of `{text}` is not understood"));
    };
    if value.contains("javascript:") && script(value).is_none() {
        return Err(format!("the script in `{text}` is not the whole value"));
    }
    if !operator.takes_value() && !value.is_empty() {
        return Err(format!("`{text}` has a value behind an operator that takes none"));
    }
    if operator == Operator::Between && value.split('@').count() != 2 {
        return Err(format!("`{text}` needs two values with `@` between them"));
    }
    Ok(Term { field: field.to_owned(), operator, value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Vec<Vec<Vec<String>>> {
        let query = parse(text).expect("the query is well formed");
        let named = |t: &Term| format!("{}|{:?}|{}", t.field, t.operator, t.value);
        query.groups.iter().map(|g| g.iter().map(|c| c.iter().map(named).collect()).collect()).collect()
    }

    #[test]
    fn an_or_belongs_to_the_one_condition_before_it() {
        assert_eq!(shape("a=1^b=2^ORc=3^d=4"), vec![vec![vec!["a|Equal|1"], vec!["b|Equal|2", "c|Equal|3"], vec!["d|Equal|4"]]]);
    }

    #[test]
    fn a_new_query_takes_the_whole_conjunction_with_it() {
        assert_eq!(shape("a=1^b=2^NQc=3^ORd=4"), vec![vec![vec!["a|Equal|1"], vec!["b|Equal|2"]], vec![vec!["c|Equal|3", "d|Equal|4"]]]);
    }

    #[test]
    fn two_carets_are_one_caret_of_the_value_even_before_a_keyword() {
        assert_eq!(shape("a=x^^ORb^c=^^"), vec![vec![vec!["a|Equal|x^ORb"], vec!["c|Equal|^"]]]);
        assert_eq!(shape("a=x^^^b=1"), vec![vec![vec!["a|Equal|x^"], vec!["b|Equal|1"]]]);
    }

    #[test]
    fn a_script_is_a_value_of_any_characters() {
        assert_eq!(shape("a>javascript:f('x, y&z=%+#')^b=1"), vec![vec![vec!["a|Greater|javascript:f('x, y&z=%+#')"], vec!["b|Equal|1"]]]);
    }

    #[test]
    fn the_longer_operator_wins() {
        assert_eq!(
            shape("aISNOTEMPTY^bNOT INx,y^cNOT LIKEz^d>=3^eNSAMEASf"),
            vec![vec![vec!["a|IsNotEmpty|"], vec!["b|NotIn|x,y"], vec!["c|NotLike|z"], vec!["d|GreaterOrEqual|3"], vec!["e|NotSameAs|f"]]]
        );
    }

    #[test]
    fn the_order_is_read_with_its_direction() {
        let query = parse("a=1^ORDERBYsys_updated_on^ORDERBYDESCsys_id").expect("well formed");
        let order: Vec<_> = query.order.iter().map(|o| (o.field.as_str(), o.descending)).collect();
        assert_eq!(order, vec![("sys_updated_on", false), ("sys_id", true)]);
    }

    #[test]
    fn what_follows_a_trailing_eq_is_ignored_and_kept_for_the_log() {
        let query = parse("a=1^EQ^b=2").expect("well formed");
        assert_eq!(query.ignored, ["b=2"]);
        assert_eq!(shape("a=1^EQ^b=2"), vec![vec![vec!["a|Equal|1"]]]);
    }

    #[test]
    fn what_is_not_understood_is_refused_and_named() {
        for (text, named) in [
            ("aINSTANCEOFb", "aINSTANCEOFb"),
            ("aDYNAMICx", "aDYNAMICx"),
            ("123TEXTQUERY321=x", "TEXTQUERY"),
            ("RLQUERYx.y,>=1^ENDRLQUERY", "RLQUERY"),
            ("aONtoday@javascript:gs.now()", "aONtoday"),
            ("aBETWEEN1@javascript:gs.now()", "javascript"),
            ("^ORa=1", "ORa=1"),
            ("^NQa=1", "NQa=1"),
            ("a=1^NQ", "NQ"),
            ("aISEMPTYx", "aISEMPTYx"),
            ("aBETWEEN1", "aBETWEEN1"),
            ("ORDERBYa^b=1", "b=1"),
            ("ORDERBY", "ORDERBY"),
            ("GROUPBYa", "GROUPBYa"),
            ("a", "`a`"),
        ] {
            let why = parse(text).expect_err(text);
            assert!(why.contains(named), "{text}: {why}");
        }
    }
}
