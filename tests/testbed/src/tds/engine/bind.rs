//! Names to places: a tree becomes a plan.

mod expressions;
mod sources;

use super::super::collation::Collation;
use super::super::sql::{Expr, Literal, OrderItem, Query, Select, SelectItem};
use super::super::types::Type;
use super::database::World;
use super::error::SqlError;
use super::plan::{Aggregate, Input, Node, Plan, SelectPlan, Typed};
use super::run::Session;
use super::select::OutputColumn;

pub type Bound<T> = Result<T, SqlError>;

/// A column that a query may name.
#[derive(Debug, Clone)]
pub struct Field {
    /// The alias of its source, or the table's name.
    pub source: String,
    /// The table's schema, when it is one.
    pub schema: Option<String>,
    pub name: String,
    pub ty: Type,
    pub nullable: bool,
    pub identity: bool,
    pub computed: bool,
    pub hidden: bool,
    /// A sparse column that a column set stands for in `SELECT *`.
    pub under_set: bool,
    pub masked: bool,
    /// Reading it is denied.
    pub denied: bool,
    /// Is it one of a relation of the catalog?
    pub catalog: bool,
    pub table: Vec<String>,
}

/// The columns of one query.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub fields: Vec<Field>,
}

#[derive(Debug, Default)]
struct Grouping {
    keys: Vec<Typed>,
    aggregates: Vec<Aggregate>,
}

/// Binds one statement.
pub struct Binder<'a> {
    pub world: &'a World,
    pub session: &'a Session,
    scopes: Vec<Scope>,
    grouping: Option<Grouping>,
    /// In a select list: where masks apply.
    masking: bool,
    /// Queries that `WITH` named.
    named: Vec<(String, Vec<String>, Query)>,
    /// How deep views and named queries are nested.
    depth: usize,
}

impl<'a> Binder<'a> {
    pub fn new(world: &'a World, session: &'a Session) -> Self {
        Self { world, session, scopes: Vec::new(), grouping: None, masking: false, named: Vec::new(), depth: 0 }
    }

    /// With the columns of a table at hand, for a computed column or the filter of an `UPDATE`.
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scopes.push(scope);
        self
    }

    fn collation(&self) -> &'static Collation {
        self.world.databases[self.session.database].collation
    }

    fn same(&self, left: &str, right: &str) -> bool {
        self.collation().compare(left, right).is_eq()
    }

    pub fn query(&mut self, query: &Query) -> Bound<Plan> {
        let known = self.named.len();
        self.named.extend(query.with.iter().cloned());
        let plan = self.query_body(query);
        self.named.truncate(known);
        plan
    }

    fn query_body(&mut self, query: &Query) -> Bound<Plan> {
        let single = query.parts.len() == 1;
        let mut parts = Vec::new();
        let mut columns: Vec<OutputColumn> = Vec::new();
        for select in &query.parts {
            let (part, own) = self.select(select, if single { &query.order } else { &[] })?;
            if columns.is_empty() {
                columns = own;
            } else {
                self.unite(&mut columns, &own)?;
            }
            parts.push((part, columns.len()));
        }
        let mut united = Vec::new();
        for (part, width) in parts {
            if width != columns.len() || part.project.len() != columns.len() {
                return Err(SqlError::new(
                    205,
                    1,
                    "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.",
                ));
            }
            united.push(part);
        }
        let mut order = Vec::new();
        if !single {
            for item in &query.order {
                let place = self.output_place(&item.expr, &columns);
                let place = place.ok_or_else(|| {
                    SqlError::new(
                        104,
                        1,
                        "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.",
                    )
                })?;
                order.push((place, item.descending));
            }
        }
        let offset = query.offset.as_ref().map(|expr| self.scalar(expr)).transpose()?.map(|typed| typed.node);
        let fetch = query.fetch.as_ref().map(|expr| self.scalar(expr)).transpose()?.map(|typed| typed.node);
        Ok(Plan { parts: united, columns, order, offset, fetch })
    }

    /// The columns of a union have the types in which its parts meet; a part of another type is not converted here.
    fn unite(&self, columns: &mut [OutputColumn], own: &[OutputColumn]) -> Bound<()> {
        for (column, other) in columns.iter_mut().zip(own) {
            column.nullable |= other.nullable;
            let common = super::compare::common(column.ty, other.ty);
            if column.ty.name() != other.ty.name() {
                return Err(SqlError::refused(format!("UNION ALL of {} and {}: cast one of them", column.ty, other.ty)));
            }
            column.ty = common;
        }
        Ok(())
    }

    fn output_place(&self, expr: &Expr, columns: &[OutputColumn]) -> Option<usize> {
        match expr {
            Expr::Literal(Literal::Integer(ordinal)) => {
                ordinal.parse::<usize>().ok()?.checked_sub(1).filter(|place| *place < columns.len())
            }
            Expr::Column(parts) => {
                let [name] = &parts[..] else { return None };
                columns.iter().position(|column| self.same(&column.name, name))
            }
            _ => None,
        }
    }

    fn select(&mut self, select: &Select, order: &[OrderItem]) -> Bound<(SelectPlan, Vec<OutputColumn>)> {
        let (input, scope) = match &select.from {
            Some(source) => self.source(source)?,
            None => (Input::Nothing, Scope::default()),
        };
        self.scopes.push(scope);
        let outer_grouping = self.grouping.take();
        let outer_masking = std::mem::replace(&mut self.masking, false);
        let bound = self.select_parts(select, order, input);
        self.grouping = outer_grouping;
        self.masking = outer_masking;
        self.scopes.pop();
        bound
    }

    fn select_parts(&mut self, select: &Select, order: &[OrderItem], input: Input) -> Bound<(SelectPlan, Vec<OutputColumn>)> {
        let filter = select.filter.as_ref().map(|filter| self.predicate(filter)).transpose()?;
        let top = select.top.as_ref().map(|top| self.scalar(top)).transpose()?.map(|typed| typed.node);
        let items = self.expanded(&select.items)?;
        let aggregates = items.iter().any(|(expr, _)| has_aggregate(expr)) || select.having.as_ref().is_some_and(has_aggregate);
        if aggregates || !select.group.is_empty() {
            let keys = select.group.iter().map(|key| self.scalar(key)).collect::<Bound<Vec<_>>>()?;
            self.grouping = Some(Grouping { keys, aggregates: Vec::new() });
        }
        let mut project = Vec::new();
        let mut columns = Vec::new();
        self.masking = true;
        for (expr, alias) in &items {
            let typed = self.scalar(expr)?;
            columns.push(self.output(expr, alias.as_deref(), &typed));
            project.push(typed);
        }
        self.masking = false;
        let mut ordered = Vec::new();
        for item in order {
            let typed = match self.output_place(&item.expr, &columns) {
                // A name means the output's column first, if that is not just the source's column itself.
                Some(place) => project[place].clone(),
                None => self.scalar(&item.expr)?,
            };
            ordered.push((typed.node, typed.ty, item.descending));
        }
        let having = select.having.as_ref().map(|having| self.predicate(having)).transpose()?;
        let group = self.grouping.take().map(|grouping| (grouping.keys, grouping.aggregates));
        let project = project.into_iter().map(|typed| typed.node).collect();
        Ok((SelectPlan { input, filter, group, having, project, distinct: select.distinct, order: ordered, top }, columns))
    }

    /// The items with every star replaced by what it stands for.
    fn expanded(&self, items: &[SelectItem]) -> Bound<Vec<(Expr, Option<String>)>> {
        let mut expanded = Vec::new();
        for item in items {
            match item {
                SelectItem::Expr { expr, alias } => expanded.push((expr.clone(), alias.clone())),
                SelectItem::Star(of) => {
                    let fields = self.scopes.last().map_or(&[][..], |scope| &scope.fields);
                    let before = expanded.len();
                    for field in fields.iter().filter(|field| of.as_ref().is_none_or(|of| self.same(&field.source, of))) {
                        if !field.hidden && !field.under_set {
                            expanded.push((Expr::Column(vec![field.source.clone(), field.name.clone()]), None));
                        }
                    }
                    if expanded.len() == before {
                        return Err(SqlError::new(
                            107,
                            1,
                            "The column prefix does not match with a table name or alias name used in the query.",
                        )
                        .class(15));
                    }
                }
            }
        }
        Ok(expanded)
    }

    fn output(&self, expr: &Expr, alias: Option<&str>, typed: &Typed) -> OutputColumn {
        let field = match (expr, &typed.node) {
            (Expr::Column(parts), _) => {
                self.scopes.last().and_then(|scope| self.find_in(scope, parts).ok().flatten().map(|place| &scope.fields[place]))
            }
            _ => None,
        };
        let name = alias.map(str::to_owned).or_else(|| match expr {
            Expr::Column(parts) => field.map(|field| field.name.clone()).or_else(|| parts.last().cloned()),
            _ => None,
        });
        OutputColumn {
            name: name.unwrap_or_default(),
            ty: typed.ty,
            nullable: typed.nullable,
            identity: field.is_some_and(|field| field.identity),
            computed: field.is_none_or(|field| field.computed),
            hidden: field.is_some_and(|field| field.hidden),
            table: field.map(|field| field.table.clone()).unwrap_or_default(),
        }
    }

    /// The place of a column in a scope.
    fn find_in(&self, scope: &Scope, parts: &[String]) -> Bound<Option<usize>> {
        let Some((name, qualifier)) = parts.split_last() else { return Ok(None) };
        let fits = |field: &Field| {
            self.same(&field.name, name)
                && match qualifier {
                    [] => true,
                    [source] => self.same(&field.source, source),
                    [.., schema, source] => {
                        self.same(&field.source, source) && field.schema.as_ref().is_some_and(|known| self.same(known, schema))
                    }
                }
        };
        let mut found = scope.fields.iter().enumerate().filter(|(_, field)| fits(field)).map(|(place, _)| place);
        let first = found.next();
        if found.next().is_some() {
            return Err(SqlError::new(209, 1, format!("Ambiguous column name '{name}'.")));
        }
        Ok(first)
    }
}

/// Is there an aggregate in it, outside of queries of its own?
fn has_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Call { name, arguments, .. } => is_aggregate(name) || arguments.iter().any(has_aggregate),
        Expr::Negate(of) | Expr::Not(of) | Expr::IsNull { of, .. } | Expr::Cast { of, .. } | Expr::Collate(of, _) => has_aggregate(of),
        Expr::Binary(_, left, right) => has_aggregate(left) || has_aggregate(right),
        Expr::In { of, list, .. } => has_aggregate(of) || list.iter().any(has_aggregate),
        Expr::Like { of, pattern, .. } => has_aggregate(of) || has_aggregate(pattern),
        Expr::Case { operand, arms, otherwise } => {
            operand.as_ref().is_some_and(|operand| has_aggregate(operand))
                || arms.iter().any(|(when, then)| has_aggregate(when) || has_aggregate(then))
                || otherwise.as_ref().is_some_and(|otherwise| has_aggregate(otherwise))
        }
        _ => false,
    }
}

fn is_aggregate(name: &str) -> bool {
    ["count", "count_big", "max", "min", "sum", "avg", "string_agg"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A value that is known.
fn constant(value: super::super::value::Value, ty: Type) -> Typed {
    let nullable = value.is_null();
    Typed { node: Node::Value(value), ty, nullable }
}
