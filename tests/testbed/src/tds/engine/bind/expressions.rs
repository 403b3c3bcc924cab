//! Expressions and predicates. The two are told apart: `SELECT a = b` and `WHERE a` are errors here as there.

use super::super::super::sql::{Expr, Literal, Operator};
use super::super::super::types::{Length, Type};
use super::super::super::value::Value;
use super::super::define::resolve_type;
use super::super::error::SqlError;
use super::super::functions::{self, Function};
use super::super::plan::{Aggregate, Aggregation, Node, Typed};
use super::super::{compare, numbers};
use super::{Binder, Bound, constant, is_aggregate};
use crate::tds::collation::Collation;

fn boxed(node: Node) -> Box<Node> {
    Box::new(node)
}

fn not_a_value(near: &str) -> SqlError {
    SqlError::new(102, 1, format!("Incorrect syntax near '{near}'.")).class(15)
}

impl Binder<'_> {
    /// Something that has a value.
    pub fn scalar(&mut self, expr: &Expr) -> Bound<Typed> {
        if let Some(key) = self.grouped(expr)? {
            return Ok(key);
        }
        match expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Column(parts) => self.column(parts),
            Expr::Variable(name) => self.variable(name),
            Expr::Negate(of) => {
                let of = self.scalar(of)?;
                if !of.ty.is_number() {
                    return Err(SqlError::new(8117, 1, format!("Operand data type {} is invalid for minus operator.", of.ty.name())));
                }
                Ok(Typed { node: Node::Negate(boxed(of.node), of.ty), ..of })
            }
            Expr::Binary(operator, left, right) => self.arithmetic(*operator, left, right),
            Expr::Scalar(query) => {
                let plan = self.query(query)?;
                let [column] = &plan.columns[..] else {
                    return Err(SqlError::new(
                        116,
                        1,
                        "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.",
                    ));
                };
                Ok(Typed { ty: column.ty, nullable: true, node: Node::Scalar(Box::new(plan)) })
            }
            Expr::Case { operand, arms, otherwise } => self.case(operand.as_deref(), arms, otherwise.as_deref()),
            Expr::Cast { of, to, style, attempt } => self.cast(of, to, style.as_deref(), *attempt),
            Expr::Collate(of, name) => {
                let collation = Collation::named(name).or(
                    if name.eq_ignore_ascii_case("database_default") || name.eq_ignore_ascii_case("catalog_default") {
                        Some(self.collation())
                    } else {
                        None
                    },
                );
                let collation = collation.ok_or_else(|| SqlError::new(448, 1, format!("Invalid collation '{name}'.")))?;
                let of = self.scalar(of)?;
                // The bytes change their code page.
                let to = of.ty.collated(collation);
                Ok(self.implicit(of, to))
            }
            Expr::Call { name, arguments, star, distinct } => self.call(name, arguments, *star, *distinct),
            Expr::Method { of, name, arguments } => self.method(of, name, arguments),
            Expr::Not(_) | Expr::IsNull { .. } | Expr::In { .. } | Expr::InQuery { .. } | Expr::Like { .. } | Expr::Exists(_) => {
                Err(not_a_value("a condition where a value is expected"))
            }
        }
    }

    /// In a grouped query: what is a key or an aggregate is read from the group's row.
    fn grouped(&mut self, expr: &Expr) -> Bound<Option<Typed>> {
        if self.grouping.is_none() || matches!(expr, Expr::Literal(_) | Expr::Variable(_)) {
            return Ok(None);
        }
        if let Expr::Call { name, arguments, star, distinct } = expr
            && is_aggregate(name)
        {
            return self.aggregate(name, arguments, *star, *distinct).map(Some);
        }
        let Some(grouping) = self.grouping.take() else { return Ok(None) };
        let masking = std::mem::replace(&mut self.masking, false);
        let plain = if super::has_aggregate(expr) { None } else { Some(self.scalar(expr)) };
        self.masking = masking;
        let found = match &plain {
            Some(Ok(plain)) => grouping.keys.iter().position(|key| key.node == plain.node),
            _ => None,
        };
        let key = found.map(|place| Typed { node: Node::Column { depth: 0, place }, ..grouping.keys[place].clone() });
        self.grouping = Some(grouping);
        if key.is_none()
            && let (Expr::Column(parts), Some(Ok(Typed { node: Node::Column { depth: 0, .. }, .. }))) = (expr, &plain)
        {
            let name = parts.join(".");
            return Err(SqlError::new(
                8120,
                1,
                format!(
                    "Column '{name}' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause."
                ),
            ));
        }
        Ok(key)
    }

    fn literal(&self, literal: &Literal) -> Bound<Typed> {
        let collation = self.collation();
        Ok(match literal {
            Literal::Null => constant(Value::Null, Type::Int),
            Literal::Integer(text) => match text.parse::<i32>() {
                Ok(number) => constant(Value::from(number), Type::Int),
                Err(_) => self.literal(&Literal::Decimal(text.clone()))?,
            },
            Literal::Decimal(text) => {
                let (precision, scale) = numbers::literal_shape(text);
                let digits = numbers::parse(text, scale).filter(|digits| numbers::fits(*digits, 38));
                let digits = digits.ok_or_else(|| {
                    SqlError::new(
                        1007,
                        1,
                        format!("The number '{text}' is out of the range for numeric representation (maximum precision 38)."),
                    )
                    .class(15)
                })?;
                constant(Value::Decimal(digits), Type::Numeric(precision, scale))
            }
            Literal::Float(text) => constant(Value::Float(text.parse().map_err(|_| not_a_value(text))?), Type::Float),
            Literal::Chars(text) => {
                let bytes = collation.encode(text);
                let length = u16::try_from(bytes.len().max(1)).ok().filter(|length| *length <= 8000).map_or(Length::Max, Length::Limited);
                constant(Value::chars(&bytes), Type::VarChar(length, collation))
            }
            Literal::Wide(text) => {
                let value = Value::wide(text);
                let units = text.encode_utf16().count().max(1);
                let length = u16::try_from(units).ok().filter(|length| *length <= 4000).map_or(Length::Max, Length::Limited);
                constant(value, Type::NVarChar(length, collation))
            }
            Literal::Binary(bytes) => {
                let length = u16::try_from(bytes.len().max(1)).ok().filter(|length| *length <= 8000).map_or(Length::Max, Length::Limited);
                constant(Value::binary(bytes), Type::VarBinary(length))
            }
        })
    }

    fn column(&self, parts: &[String]) -> Bound<Typed> {
        for (depth, scope) in self.scopes.iter().rev().enumerate() {
            let Some(place) = self.find_in(scope, parts)? else { continue };
            let field = &scope.fields[place];
            if field.denied {
                let [database, schema, table] = &field.table[..] else { return Err(SqlError::invalid_column(&field.name)) };
                return Err(SqlError::new(230, 1, format!("The SELECT permission was denied on the column '{}' of the object '{table}', database '{database}', schema '{schema}'.", field.name)).class(14));
            }
            let node = Node::Column { depth, place };
            let node = if field.masked && self.masking { Node::Masked(boxed(node), field.ty) } else { node };
            return Ok(Typed { node, ty: field.ty, nullable: field.nullable });
        }
        let name = parts.join(".");
        let mut error = if parts.len() > 1 {
            SqlError::new(4104, 1, format!("The multi-part identifier \"{name}\" could not be bound."))
        } else {
            SqlError::invalid_column(&name)
        };
        // A relation of the catalog may have a column that this server has not.
        error.refusal = self.scopes.iter().any(|scope| scope.fields.iter().any(|field| field.catalog));
        Err(error)
    }

    fn variable(&self, name: &str) -> Bound<Typed> {
        if name.starts_with("@@") {
            return functions::global(name, self.world, self.session);
        }
        let known = self.session.variables.iter().rev().find(|(known, _, _)| known.eq_ignore_ascii_case(name));
        let (_, ty, value) =
            known.ok_or_else(|| SqlError::new(137, 2, format!("Must declare the scalar variable \"{name}\".")).class(15))?;
        Ok(Typed { node: Node::Value(value.clone()), ty: *ty, nullable: true })
    }

    fn arithmetic(&mut self, operator: Operator, left: &Expr, right: &Expr) -> Bound<Typed> {
        let symbol = match operator {
            Operator::Add => "add",
            Operator::Subtract => "subtract",
            Operator::Multiply => "multiply",
            Operator::Divide => "divide",
            Operator::Modulo => "modulo",
            Operator::BitAnd => "'&'",
            Operator::BitOr => "'|'",
            _ => return Err(not_a_value("a condition where a value is expected")),
        };
        let (left, right) = (self.scalar(left)?, self.scalar(right)?);
        let nullable = left.nullable || right.nullable;
        let common = compare::common(left.ty, right.ty);
        if common.is_characters() && operator == Operator::Add {
            let total = match (compare::length(&left.ty), compare::length(&right.ty)) {
                (Length::Limited(left), Length::Limited(right)) => Some(left + right),
                _ => None,
            };
            let (most, wide) = if matches!(common, Type::NVarChar(..)) { (4000, true) } else { (8000, false) };
            let length = total.map_or(Length::Max, |total| Length::Limited(total.min(most)));
            let ty = if wide { Type::NVarChar(length, self.collation()) } else { Type::VarChar(length, self.collation()) };
            let (left, right) = (self.implicit(left, common), self.implicit(right, common));
            return Ok(Typed { node: Node::Arithmetic(operator, boxed(left.node), boxed(right.node), ty), ty, nullable });
        }
        if !common.is_number() || matches!(common, Type::Bit) {
            return Err(SqlError::new(8117, 1, format!("Operand data type {} is invalid for {symbol} operator.", common.name())));
        }
        let exact = |typed: &Typed| if typed.ty.is_characters() { common.digits() } else { typed.ty.digits() };
        let ty = if common.is_decimal() {
            let ((left, left_scale), (right, right_scale)) = (exact(&left), exact(&right));
            let (whole, scale) = match operator {
                Operator::Add | Operator::Subtract => (left.max(right) + 1, left_scale.max(right_scale)),
                Operator::Multiply => (left + right + 1, left_scale + right_scale),
                Operator::Modulo => (left.min(right), left_scale.max(right_scale)),
                _ => return Err(SqlError::refused("division of decimals")),
            };
            let scale = scale.min(38 - whole.min(38));
            Type::Numeric((whole + scale).min(38), scale)
        } else {
            common
        };
        // Decimals keep their own scales: the product of two has the sum of them.
        let keep =
            |binder: &Self, typed: Typed| if common.is_decimal() && typed.ty.is_decimal() { typed } else { binder.implicit(typed, common) };
        let (left, right) = (keep(self, left), keep(self, right));
        if common.is_decimal() {
            let node = Node::Call(Function::Decimal(operator, ty), vec![left, right]);
            return Ok(Typed { node, ty, nullable });
        }
        Ok(Typed { node: Node::Arithmetic(operator, boxed(left.node), boxed(right.node), ty), ty, nullable })
    }

    fn case(&mut self, operand: Option<&Expr>, arms: &[(Expr, Expr)], otherwise: Option<&Expr>) -> Bound<Typed> {
        let mut bound = Vec::new();
        for (when, then) in arms {
            let when = match operand {
                Some(operand) => self.comparison(Operator::Equal, operand, when)?,
                None => self.predicate(when)?,
            };
            bound.push((when, self.scalar(then)?));
        }
        let otherwise = otherwise.map(|otherwise| self.scalar(otherwise)).transpose()?;
        let results = bound.iter().map(|(_, then)| then).chain(&otherwise);
        let ty = common_of(results).ok_or_else(|| {
            SqlError::new(
                8133,
                1,
                "At least one of the result expressions in a CASE specification must be an expression other than the NULL constant.",
            )
        })?;
        let nullable = otherwise.as_ref().is_none_or(|otherwise| otherwise.nullable) || bound.iter().any(|(_, then)| then.nullable);
        let arms = bound.into_iter().map(|(when, then)| (when, self.implicit(then, ty).node)).collect();
        let otherwise = otherwise.map(|otherwise| boxed(self.implicit(otherwise, ty).node));
        Ok(Typed { node: Node::Case(arms, otherwise), ty, nullable })
    }

    fn cast(&mut self, of: &Expr, to: &super::super::super::sql::TypeName, style: Option<&Expr>, attempt: bool) -> Bound<Typed> {
        let of = self.scalar(of)?;
        let mut to = resolve_type(self.world, self.session.database, to, true)?;
        // The characters keep the collation of what they come from.
        if let (Some(collation), true) = (of.ty.collation(), to.is_characters()) {
            let same_page = matches!(of.ty, Type::Char(..) | Type::VarChar(..) | Type::Text(_))
                || matches!(to, Type::NChar(..) | Type::NVarChar(..) | Type::NText(_));
            if same_page {
                to = to.collated(collation);
            }
        }
        let style = match style {
            None => 0,
            Some(style) => match self.scalar(style)?.node {
                Node::Value(value) => value.integer().and_then(|style| i64::try_from(style).ok()).unwrap_or(0),
                _ => return Err(SqlError::refused("a style of CONVERT that is not a constant")),
            },
        };
        Ok(Typed { node: Node::Cast { of: boxed(of.node), from: of.ty, to, style, attempt }, ty: to, nullable: of.nullable || attempt })
    }

    /// The value as another type, if it is not of it already.
    pub fn implicit(&self, of: Typed, to: Type) -> Typed {
        if of.ty == to {
            return of;
        }
        if let Node::Value(Value::Null) = of.node {
            return Typed { ty: to, ..of };
        }
        Typed { node: Node::Cast { of: boxed(of.node), from: of.ty, to, style: 0, attempt: false }, ty: to, nullable: of.nullable }
    }

    fn aggregate(&mut self, name: &str, arguments: &[Expr], star: bool, distinct: bool) -> Bound<Typed> {
        let Some(mut grouping) = self.grouping.take() else {
            return Err(SqlError::new(147, 1, "An aggregate may not appear in the WHERE clause.").class(15));
        };
        let bound = arguments.iter().map(|argument| self.scalar(argument)).collect::<Bound<Vec<_>>>();
        let place = grouping.keys.len() + grouping.aggregates.len();
        let aggregate = bound.and_then(|bound| shaped(name, bound, star, distinct));
        let (ty, nullable) = match aggregate {
            Ok(aggregate) => {
                let counts = matches!(aggregate.kind, Aggregation::Count | Aggregation::CountAll | Aggregation::CountDistinct);
                let shape = (aggregate.ty, !counts);
                grouping.aggregates.push(aggregate);
                shape
            }
            Err(error) => {
                self.grouping = Some(grouping);
                return Err(error);
            }
        };
        self.grouping = Some(grouping);
        Ok(Typed { node: Node::Column { depth: 0, place }, ty, nullable })
    }

    fn call(&mut self, name: &str, arguments: &[Expr], star: bool, distinct: bool) -> Bound<Typed> {
        if is_aggregate(name) {
            return self.aggregate(name, arguments, star, distinct);
        }
        let lower = name.to_ascii_lowercase();
        match (lower.as_str(), arguments) {
            ("coalesce", _) if !arguments.is_empty() => {
                let last = arguments.len() - 1;
                let arms =
                    arguments[..last].iter().map(|argument| (Expr::IsNull { of: Box::new(argument.clone()), not: true }, argument.clone()));
                return self.case(None, &arms.collect::<Vec<_>>(), Some(&arguments[last]));
            }
            ("iif", [condition, then, otherwise]) => return self.case(None, &[(condition.clone(), then.clone())], Some(otherwise)),
            ("nullif", [left, right]) => {
                let equal = Expr::Binary(Operator::Equal, Box::new(left.clone()), Box::new(right.clone()));
                return self.case(None, &[(equal, Expr::Literal(Literal::Null))], Some(left));
            }
            ("isnull", [of, otherwise]) => {
                // The type is the first argument's, which sets it apart from COALESCE.
                let (of, otherwise) = (self.scalar(of)?, self.scalar(otherwise)?);
                let (ty, nullable) = (of.ty, otherwise.nullable);
                let otherwise = self.implicit(otherwise, ty);
                let present = Node::Not(boxed(Node::IsNull(boxed(of.node.clone()), false)));
                return Ok(Typed { node: Node::Case(vec![(present, of.node)], Some(boxed(otherwise.node))), ty, nullable });
            }
            _ => {}
        }
        let arguments = arguments.iter().map(|argument| self.scalar(argument)).collect::<Bound<Vec<_>>>()?;
        functions::bind(&lower, arguments, self.world, self.session)
    }

    fn method(&mut self, of: &Expr, name: &str, arguments: &[Expr]) -> Bound<Typed> {
        let of = self.scalar(of)?;
        Err(SqlError::refused(format!("the method {name} with {} arguments of a {}", arguments.len(), of.ty)))
    }

    /// Something that is true, false or unknown.
    pub fn predicate(&mut self, expr: &Expr) -> Bound<Node> {
        match expr {
            Expr::Not(of) => Ok(Node::Not(boxed(self.predicate(of)?))),
            Expr::Binary(Operator::And, left, right) => Ok(Node::And(boxed(self.predicate(left)?), boxed(self.predicate(right)?))),
            Expr::Binary(Operator::Or, left, right) => Ok(Node::Or(boxed(self.predicate(left)?), boxed(self.predicate(right)?))),
            Expr::Binary(operator, left, right) => self.comparison(*operator, left, right),
            Expr::IsNull { of, not } => Ok(Node::IsNull(boxed(self.scalar(of)?.node), *not)),
            Expr::In { of, list, not } => {
                let of = self.scalar(of)?;
                let list = list.iter().map(|item| self.scalar(item)).collect::<Bound<Vec<_>>>()?;
                let ty = common_of(std::iter::once(&of).chain(&list)).unwrap_or(of.ty);
                let list = list.into_iter().map(|item| self.implicit(item, ty).node).collect();
                let node = Node::In(boxed(self.implicit(of, ty).node), list, ty);
                Ok(if *not { Node::Not(boxed(node)) } else { node })
            }
            Expr::InQuery { of, query, not } => {
                let of = self.scalar(of)?;
                let plan = self.query(query)?;
                let [column] = &plan.columns[..] else {
                    return Err(SqlError::new(
                        116,
                        1,
                        "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.",
                    ));
                };
                let ty = compare::common(of.ty, column.ty);
                if ty.name() != column.ty.name() {
                    return Err(SqlError::refused(format!("IN of a {} in a query of {}: cast it", of.ty, column.ty)));
                }
                let node = Node::InQuery(boxed(self.implicit(of, ty).node), Box::new(plan), ty);
                Ok(if *not { Node::Not(boxed(node)) } else { node })
            }
            Expr::Like { of, pattern, escape, not } => {
                let (of, pattern) = (self.scalar(of)?, self.scalar(pattern)?);
                let escape = match escape.as_deref() {
                    None => None,
                    Some(Expr::Literal(Literal::Chars(text) | Literal::Wide(text))) => text.chars().next(),
                    Some(_) => return Err(SqlError::refused("an ESCAPE that is not a literal")),
                };
                let node =
                    Node::Like { of_type: of.ty, pattern_type: pattern.ty, of: boxed(of.node), pattern: boxed(pattern.node), escape };
                Ok(if *not { Node::Not(boxed(node)) } else { node })
            }
            Expr::Exists(query) => Ok(Node::Exists(Box::new(self.query(query)?))),
            _ => {
                Err(SqlError::new(4145, 1, "An expression of non-boolean type specified in a context where a condition is expected.")
                    .class(15))
            }
        }
    }

    fn comparison(&mut self, operator: Operator, left: &Expr, right: &Expr) -> Bound<Node> {
        use Operator::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        if !matches!(operator, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual) {
            return Err(
                SqlError::new(4145, 1, "An expression of non-boolean type specified in a context where a condition is expected.").class(15)
            );
        }
        let (left, right) = (self.scalar(left)?, self.scalar(right)?);
        let ty = compare::common(left.ty, right.ty);
        if matches!(ty, Type::Xml | Type::Text(_) | Type::NText(_) | Type::Image) || ty.is_user_defined() {
            return Err(SqlError::new(
                402,
                1,
                format!("The data types {} and {} are incompatible in the comparison.", left.ty.name(), right.ty.name()),
            ));
        }
        if ty == Type::Variant {
            return Err(SqlError::refused("comparison of sql_variant"));
        }
        Ok(Node::Compare(operator, boxed(self.implicit(left, ty).node), boxed(self.implicit(right, ty).node), ty))
    }
}

/// The common type of several; a bare `NULL` has none.
fn common_of<'a>(typed: impl Iterator<Item = &'a Typed>) -> Option<Type> {
    typed.filter(|typed| typed.node != Node::Value(Value::Null)).map(|typed| typed.ty).reduce(compare::common)
}

fn shaped(name: &str, mut arguments: Vec<Typed>, star: bool, distinct: bool) -> Bound<Aggregate> {
    let lower = name.to_ascii_lowercase();
    let separator = if lower == "string_agg" { arguments.pop().map(|typed| typed.node) } else { None };
    if star && lower.starts_with("count") {
        let ty = if lower == "count" { Type::Int } else { Type::BigInt };
        return Ok(Aggregate {
            kind: Aggregation::CountAll,
            of: Node::Value(Value::Null),
            of_type: Type::Int,
            ty,
            separator: None,
            order: Vec::new(),
        });
    }
    let wrong = || SqlError::new(174, 1, format!("The {name} function requires 1 argument(s).")).class(15);
    let of = arguments.pop().filter(|_| arguments.is_empty()).ok_or_else(wrong)?;
    let kind = match (lower.as_str(), distinct) {
        ("count" | "count_big", false) => Aggregation::Count,
        ("count" | "count_big", true) => Aggregation::CountDistinct,
        ("max", _) => Aggregation::Max,
        ("min", _) => Aggregation::Min,
        ("sum", false) => Aggregation::Sum,
        ("avg", false) => Aggregation::Average,
        ("string_agg", false) => Aggregation::Join,
        _ => return Err(SqlError::refused(format!("{name}(DISTINCT …)"))),
    };
    let ty = match kind {
        Aggregation::Count | Aggregation::CountDistinct | Aggregation::CountAll => {
            if lower == "count" {
                Type::Int
            } else {
                Type::BigInt
            }
        }
        Aggregation::Max | Aggregation::Min => of.ty,
        Aggregation::Join => match of.ty {
            Type::VarChar(_, collation) | Type::Char(_, collation) => Type::VarChar(Length::Limited(8000), collation),
            Type::NVarChar(_, collation) | Type::NChar(_, collation) => Type::NVarChar(Length::Limited(4000), collation),
            other => return Err(SqlError::refused(format!("STRING_AGG of {other}"))),
        },
        Aggregation::Sum | Aggregation::Average => match of.ty {
            Type::TinyInt | Type::SmallInt | Type::Int => Type::Int,
            Type::BigInt => Type::BigInt,
            Type::Decimal(_, scale) | Type::Numeric(_, scale) => Type::Decimal(38, scale),
            Type::Money | Type::SmallMoney => Type::Money,
            Type::Float => Type::Float,
            other => return Err(SqlError::new(8117, 1, format!("Operand data type {} is invalid for {lower} operator.", other.name()))),
        },
    };
    Ok(Aggregate { kind, of: of.node, of_type: of.ty, ty, separator, order: Vec::new() })
}
