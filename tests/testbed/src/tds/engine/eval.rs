//! The value of a node for a row.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::sql::Operator;
use super::super::types::{Length, Type};
use super::super::value::Value;
use super::compare;
use super::convert::{characters, convert};
use super::database::World;
use super::error::{SqlError, Stop};
use super::plan::{Line, Node};
use super::run::Session;

/// What an evaluation may look at.
pub struct Context<'a> {
    pub world: &'a World,
    pub session: &'a Session,
    /// The transaction whose rows are its own.
    pub transaction: Option<u64>,
    /// The rows of the queries around, the nearest last.
    pub outer: Vec<Line>,
}

/// A count out of an expression: not negative, not `NULL`.
pub fn number_of(value: &Value) -> Result<usize, SqlError> {
    let number = value.integer().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| {
        SqlError::new(1060, 1, "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.").class(15)
    })
}

impl Context<'_> {
    pub fn eval(&mut self, node: &Node, row: &[Value]) -> Result<Value, Stop> {
        match node {
            Node::Column { depth, place } if *depth > 0 => {
                let line = self.outer.len().checked_sub(*depth).and_then(|at| self.outer.get(at));
                Ok(line.and_then(|line| line.get(*place)).cloned().unwrap_or_default())
            }
            Node::Scalar(plan) => {
                let lines = self.within(row, |cx| plan.lines(cx))?;
                match &lines[..] {
                    [] => Ok(Value::Null),
                    [line] => Ok(line.first().cloned().unwrap_or_default()),
                    _ => Err(SqlError::new(512, 1, "Subquery returned more than 1 value.").into()),
                }
            }
            Node::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| self.eval(&argument.node, row)).collect::<Result<Vec<_>, _>>()?;
                function.call(&values, arguments, Some((self.world, self.session))).map_err(Stop::from)
            }
            Node::Case(arms, otherwise) => {
                for (when, then) in arms {
                    if self.test(when, row)? {
                        return self.eval(then, row);
                    }
                }
                otherwise.as_ref().map_or(Ok(Value::Null), |otherwise| self.eval(otherwise, row))
            }
            Node::Cast { of, from, to, style, attempt } => cast(&self.eval(of, row)?, from, to, *style, *attempt).map_err(Stop::from),
            Node::Masked(of, ty) => Ok(mask(&self.eval(of, row)?, ty)),
            Node::Negate(of, ty) => negate(&self.eval(of, row)?, ty).map_err(Stop::from),
            Node::Arithmetic(operator, left, right, ty) => {
                arithmetic(*operator, &self.eval(left, row)?, &self.eval(right, row)?, ty).map_err(Stop::from)
            }
            Node::Value(value) => Ok(value.clone()),
            Node::Column { place, .. } => Ok(row.get(*place).cloned().unwrap_or_default()),
            // A condition is no value; binding has seen to that.
            _ => Ok(self.truth(node, row)?.map_or(Value::Null, Value::Bit)),
        }
    }

    fn within<T>(&mut self, row: &[Value], run: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        self.outer.push(Arc::from(row));
        let done = run(self);
        self.outer.pop();
        done
    }

    /// Is it true? Unknown is not.
    pub fn test(&mut self, node: &Node, row: &[Value]) -> Result<bool, Stop> {
        Ok(self.truth(node, row)? == Some(true))
    }

    fn truth(&mut self, node: &Node, row: &[Value]) -> Result<Option<bool>, Stop> {
        Ok(match node {
            Node::Not(of) => self.truth(of, row)?.map(|truth| !truth),
            Node::And(left, right) => match self.truth(left, row)? {
                Some(false) => Some(false),
                left => match self.truth(right, row)? {
                    Some(false) => Some(false),
                    right => left.and(right),
                },
            },
            Node::Or(left, right) => match self.truth(left, row)? {
                Some(true) => Some(true),
                left => match self.truth(right, row)? {
                    Some(true) => Some(true),
                    right => left.and(right),
                },
            },
            Node::Compare(operator, left, right, ty) => {
                let (left, right) = (self.eval(left, row)?, self.eval(right, row)?);
                compare::compare(&left, &right, ty).map(|ordering| holds(*operator, ordering))
            }
            Node::IsNull(of, not) => Some(self.eval(of, row)?.is_null() != *not),
            Node::In(of, list, ty) => {
                let of = self.eval(of, row)?;
                let values = list.iter().map(|item| self.eval(item, row)).collect::<Result<Vec<_>, _>>()?;
                member(&of, values.iter(), ty)
            }
            Node::InQuery(of, plan, ty) => {
                let of = self.eval(of, row)?;
                let lines = self.within(row, |cx| plan.lines(cx))?;
                member(&of, lines.iter().map(|line| &line[0]), ty)
            }
            Node::Exists(plan) => Some(!self.within(row, |cx| plan.run(cx))?.lines.is_empty()),
            Node::Like { of, pattern, escape, of_type, pattern_type } => {
                let of = characters(&self.eval(of, row)?, of_type);
                let pattern = characters(&self.eval(pattern, row)?, pattern_type);
                match (of, pattern) {
                    (Some(of), Some(pattern)) => Some(like(&of, &pattern, *escape, of_type)),
                    _ => None,
                }
            }
            other => match self.eval(other, row)? {
                Value::Bit(bit) => Some(bit),
                _ => None,
            },
        })
    }
}

/// The value of a node that needs a row only, when the databases are let go.
pub fn local(node: &Node, row: &[Value]) -> Result<Value, SqlError> {
    Ok(match node {
        Node::Value(value) => value.clone(),
        Node::Column { place, .. } => row.get(*place).cloned().unwrap_or_default(),
        Node::Masked(of, ty) => mask(&local(of, row)?, ty),
        Node::Negate(of, ty) => negate(&local(of, row)?, ty)?,
        Node::Arithmetic(operator, left, right, ty) => arithmetic(*operator, &local(left, row)?, &local(right, row)?, ty)?,
        Node::Cast { of, from, to, style, attempt } => cast(&local(of, row)?, from, to, *style, *attempt)?,
        Node::Call(function, arguments) => {
            let values = arguments.iter().map(|argument| local(&argument.node, row)).collect::<Result<Vec<_>, _>>()?;
            function.call(&values, arguments, None)?
        }
        Node::Case(arms, otherwise) => {
            for (when, then) in arms {
                if local_truth(when, row)? == Some(true) {
                    return local(then, row);
                }
            }
            match otherwise {
                Some(otherwise) => local(otherwise, row)?,
                None => Value::Null,
            }
        }
        other => return Err(SqlError::refused(format!("a late evaluation of {other:?}"))),
    })
}

fn local_truth(node: &Node, row: &[Value]) -> Result<Option<bool>, SqlError> {
    Ok(match node {
        Node::Not(of) => local_truth(of, row)?.map(|truth| !truth),
        Node::And(left, right) => match (local_truth(left, row)?, local_truth(right, row)?) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (left, right) => left.and(right),
        },
        Node::Or(left, right) => match (local_truth(left, row)?, local_truth(right, row)?) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (left, right) => left.and(right),
        },
        Node::Compare(operator, left, right, ty) => {
            compare::compare(&local(left, row)?, &local(right, row)?, ty).map(|ordering| holds(*operator, ordering))
        }
        Node::IsNull(of, not) => Some(local(of, row)?.is_null() != *not),
        Node::In(of, list, ty) => {
            let values = list.iter().map(|item| local(item, row)).collect::<Result<Vec<_>, _>>()?;
            member(&local(of, row)?, values.iter(), ty)
        }
        Node::Like { of, pattern, escape, of_type, pattern_type } => {
            match (characters(&local(of, row)?, of_type), characters(&local(pattern, row)?, pattern_type)) {
                (Some(of), Some(pattern)) => Some(like(&of, &pattern, *escape, of_type)),
                _ => None,
            }
        }
        other => return Err(SqlError::refused(format!("a late evaluation of {other:?}"))),
    })
}

fn holds(operator: Operator, ordering: Ordering) -> bool {
    match operator {
        Operator::Equal => ordering.is_eq(),
        Operator::NotEqual => ordering.is_ne(),
        Operator::Less => ordering.is_lt(),
        Operator::LessEqual => ordering.is_le(),
        Operator::Greater => ordering.is_gt(),
        _ => ordering.is_ge(),
    }
}

/// `NULL` among the values makes a miss unknown.
fn member<'a>(of: &Value, values: impl Iterator<Item = &'a Value>, ty: &Type) -> Option<bool> {
    let mut unknown = false;
    for value in values {
        match compare::compare(of, value, ty) {
            Some(Ordering::Equal) => return Some(true),
            Some(_) => {}
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(false) }
}

fn cast(value: &Value, from: &Type, to: &Type, style: i64, attempt: bool) -> Result<Value, SqlError> {
    match convert(value, from, to, style) {
        // TRY_CAST forgives a value, not a conversion that does not exist.
        Err(error) if attempt && !error.refusal && error.number != 529 => Ok(Value::Null),
        converted => converted,
    }
}

fn negate(value: &Value, ty: &Type) -> Result<Value, SqlError> {
    Ok(match value {
        Value::Integer(number) => Value::Integer(number.checked_neg().ok_or_else(|| SqlError::overflow(ty))?),
        Value::Decimal(digits) => Value::Decimal(-digits),
        Value::Real(number) => Value::Real(-number),
        Value::Float(number) => Value::Float(-number),
        other => other.clone(),
    })
}

fn arithmetic(operator: Operator, left: &Value, right: &Value, ty: &Type) -> Result<Value, SqlError> {
    let overflow = || SqlError::overflow(ty);
    let by_zero = || SqlError::new(8134, 1, "Divide by zero error encountered.");
    Ok(match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Value::Null,
        (Value::Chars(left), Value::Chars(right)) => Value::Chars(left.iter().chain(right.iter()).copied().collect()),
        (Value::Wide(left), Value::Wide(right)) => Value::Wide(left.iter().chain(right.iter()).copied().collect()),
        (Value::Float(left), Value::Float(right)) => Value::Float(match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide if *right == 0.0 => return Err(by_zero()),
            Operator::Divide => left / right,
            _ => return Err(SqlError::refused("this operation of floats")),
        }),
        _ => {
            let (Some(left), Some(right)) = (left.integer(), right.integer()) else {
                return Err(SqlError::refused(format!("arithmetic of {ty}")));
            };
            let result = match operator {
                Operator::Add => left.checked_add(right),
                Operator::Subtract => left.checked_sub(right),
                // Two amounts of money have eight digits after the point before they are cut to four.
                Operator::Multiply if matches!(ty, Type::Money | Type::SmallMoney) => left.checked_mul(right).map(|digits| digits / 10_000),
                Operator::Multiply => left.checked_mul(right),
                Operator::Divide | Operator::Modulo if right == 0 => return Err(by_zero()),
                Operator::Divide if !ty.is_integer() => return Err(SqlError::refused(format!("division of {ty}"))),
                Operator::Divide => left.checked_div(right),
                Operator::Modulo => left.checked_rem(right),
                Operator::BitAnd => Some(left & right),
                Operator::BitOr => Some(left | right),
                _ => None,
            };
            let result = result.ok_or_else(overflow)?;
            let scale = ty.precision_scale().1;
            convert(&Value::Decimal(result), &Type::Decimal(38, scale), ty, 0)?
        }
    })
}

/// `%`, `_`, `[a-z]`, `[^a]`, and an escape.
fn like(text: &str, pattern: &str, escape: Option<char>, ty: &Type) -> bool {
    let fold = ty.collation().is_some_and(|collation| collation.ignores_case());
    let prepare =
        |text: &str| -> Vec<char> { if fold { text.chars().flat_map(char::to_lowercase).collect() } else { text.chars().collect() } };
    matches(&prepare(text), &prepare(pattern), escape)
}

fn matches(text: &[char], pattern: &[char], escape: Option<char>) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return text.iter().all(|char| *char == ' ');
    };
    if Some(*first) == escape {
        let Some((literal, rest)) = rest.split_first() else { return false };
        return text.first() == Some(literal) && matches(&text[1..], rest, escape);
    }
    match first {
        '%' => (0..=text.len()).any(|skip| matches(&text[skip..], rest, escape)),
        '_' => !text.is_empty() && matches(&text[1..], rest, escape),
        '[' if rest.contains(&']') => {
            let end = rest.iter().position(|char| *char == ']').unwrap_or(0);
            let Some(char) = text.first() else { return false };
            in_set(*char, &rest[..end]) && matches(&text[1..], &rest[end + 1..], escape)
        }
        literal => text.first() == Some(literal) && matches(&text[1..], rest, escape),
    }
}

fn in_set(char: char, set: &[char]) -> bool {
    let (negated, set) = match set {
        ['^', rest @ ..] => (true, rest),
        set => (false, set),
    };
    let ranges = set.windows(3).any(|range| range[1] == '-' && (range[0]..=range[2]).contains(&char));
    (ranges || set.contains(&char)) != negated
}

/// The mask `default()`: zeros, crosses, the first day of 1900.
fn mask(value: &Value, ty: &Type) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    match ty {
        Type::Bit => Value::Bit(false),
        Type::Real => Value::Real(0.0),
        Type::Float => Value::Float(0.0),
        _ if ty.is_integer() => Value::Integer(0),
        _ if ty.is_number() => Value::Decimal(0),
        Type::NChar(..) | Type::NVarChar(..) | Type::NText(_) => Value::wide(&crosses(ty)),
        _ if ty.is_characters() => Value::chars(crosses(ty).as_bytes()),
        _ if ty.is_temporal() => convert(
            &Value::wide("1900-01-01"),
            &Type::NVarChar(Length::Max, super::super::collation::Collation::default_of_server()),
            ty,
            0,
        )
        .unwrap_or_default(),
        _ => Value::binary(&[0]),
    }
}

fn crosses(ty: &Type) -> String {
    match compare::length(ty) {
        Length::Limited(length) if length < 4 => "x".repeat(length.into()),
        _ => "xxxx".to_owned(),
    }
}
