//! What stands after `FROM`.

use std::sync::Arc;

use super::super::super::sql::{Expr, JoinKind, ObjectName, Source};
use super::super::super::types::{Length, Type};
use super::super::access::Access;
use super::super::catalog;
use super::super::database::{Kind, Object};
use super::super::error::SqlError;
use super::super::plan::Input;
use super::{Binder, Bound, Field, Scope};

/// A plain column of a derived source.
fn derived(source: &str, name: &str, ty: Type, nullable: bool) -> Field {
    Field {
        source: source.to_owned(),
        schema: None,
        name: name.to_owned(),
        ty,
        nullable,
        identity: false,
        computed: false,
        hidden: false,
        under_set: false,
        masked: false,
        denied: false,
        catalog: false,
        table: Vec::new(),
    }
}

impl Binder<'_> {
    pub(super) fn source(&mut self, source: &Source) -> Bound<(Input, Scope)> {
        match source {
            Source::Table { name, alias, hints } => self.table(name, alias.as_deref(), hints),
            Source::Query { query, alias, columns } => {
                let plan = self.query(query)?;
                let scope = renamed(&plan.columns, alias, columns)?;
                Ok((Input::Query(Box::new(plan)), scope))
            }
            Source::Values { rows, alias, columns } => self.values(rows, alias, columns),
            Source::Function { name, arguments, alias } => self.function(name, arguments, alias.as_deref()),
            Source::Join { kind, left, right, on } => {
                let (left, mut scope) = self.source(left)?;
                let apply = matches!(kind, JoinKind::CrossApply | JoinKind::OuterApply);
                if apply {
                    self.scopes.push(scope.clone());
                }
                let bound = self.source(right);
                if apply {
                    self.scopes.pop();
                }
                let (right, mut other) = bound?;
                let width = other.fields.len();
                if matches!(kind, JoinKind::Left | JoinKind::OuterApply) {
                    other.fields.iter_mut().for_each(|field| field.nullable = true);
                }
                scope.fields.append(&mut other.fields);
                let on = match on {
                    Some(on) => {
                        self.scopes.push(scope.clone());
                        let bound = self.predicate(on);
                        self.scopes.pop();
                        Some(bound?)
                    }
                    None => None,
                };
                Ok((Input::Join { kind: *kind, left: Box::new(left), right: Box::new(right), on, width }, scope))
            }
        }
    }

    fn values(&mut self, rows: &[Vec<Expr>], alias: &str, columns: &[String]) -> Bound<(Input, Scope)> {
        let mut bound = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        for row in rows {
            let typed = row.iter().map(|expr| self.scalar(expr)).collect::<Bound<Vec<_>>>()?;
            if typed.len() != columns.len() {
                return Err(SqlError::new(8158, 1, format!("'{alias}' has more or fewer columns than were specified in the column list.")));
            }
            for (at, (one, name)) in typed.iter().zip(columns).enumerate() {
                match fields.get_mut(at) {
                    None => fields.push(derived(alias, name, one.ty, one.nullable)),
                    Some(field) => {
                        field.ty = super::super::compare::common(field.ty, one.ty);
                        field.nullable |= one.nullable;
                    }
                }
            }
            bound.push(typed);
        }
        let cast =
            |row: Vec<super::Typed>| row.into_iter().zip(&fields).map(|(typed, field)| self.implicit(typed, field.ty).node).collect();
        let rows = bound.into_iter().map(cast).collect();
        Ok((Input::Rows(rows), Scope { fields }))
    }

    fn function(&mut self, name: &str, arguments: &[Expr], alias: Option<&str>) -> Bound<(Input, Scope)> {
        if !name.eq_ignore_ascii_case("generate_series") {
            return Err(SqlError::refused(format!("the function {name} after FROM")));
        }
        let [from, to] = arguments else {
            return Err(SqlError::refused("GENERATE_SERIES with anything but two arguments"));
        };
        let (from, to) = (self.scalar(from)?, self.scalar(to)?);
        let ty = super::super::compare::common(from.ty, to.ty);
        let scope = Scope { fields: vec![derived(alias.unwrap_or("generate_series"), "value", ty, false)] };
        Ok((Input::Series(Box::new(from.node), Box::new(to.node)), scope))
    }

    fn table(&mut self, name: &ObjectName, alias: Option<&str>, hints: &[String]) -> Bound<(Input, Scope)> {
        if name.schema().is_none()
            && let Some((_, columns, query)) = self.named.iter().rev().find(|(known, _, _)| self.same(known, name.name())).cloned()
        {
            let plan = self.nested(|binder| binder.query(&query))?;
            let scope = renamed(&plan.columns, alias.unwrap_or(name.name()), &columns)?;
            return Ok((Input::Query(Box::new(plan)), scope));
        }
        let number = match name.database() {
            Some(other) => self.world.database(other).ok_or_else(|| SqlError::invalid_object(&name.to_string()))?,
            None => self.session.database,
        };
        let database = &self.world.databases[number];
        if name.schema().is_some_and(|schema| schema.eq_ignore_ascii_case("sys") || schema.eq_ignore_ascii_case("INFORMATION_SCHEMA")) {
            return self.relation(number, name, alias);
        }
        let found = database.find(name.schema(), name.name()).ok_or_else(|| SqlError::invalid_object(&name.to_string()))?;
        let object = &database.objects[found];
        if database.denied(object.id, &self.session.login, "select", None) {
            return Err(denied_object(object, &database.name, database.schema_name(object.schema)));
        }
        match &object.kind {
            Kind::Table(table) => {
                let access = Access::chosen(hints, &self.session.isolation, database, table, self.world.babelfish)
                    .map_err(|hint| SqlError::new(321, 1, format!("\"{hint}\" is not a recognized table hints option.")).class(15))?;
                if table.indexes.iter().any(|index| index.disabled && matches!(index.kind, 1 | 5)) {
                    let index = table.indexes.iter().find(|index| index.disabled).map_or("", |index| &index.name);
                    return Err(SqlError::new(
                        8655,
                        1,
                        format!(
                            "The query processor is unable to produce a plan because the index '{index}' on table or view '{}' is disabled.",
                            object.name
                        ),
                    ));
                }
                let scope = self.scope_of(number, object.id, alias)?;
                Ok((Input::Table { database: number, object: object.id, access }, scope))
            }
            Kind::View { query, .. } => {
                let query = query.clone();
                let plan = self.nested(|binder| binder.query(&query))?;
                let scope = renamed(&plan.columns, alias.unwrap_or(name.name()), &[])?;
                Ok((Input::Query(Box::new(plan)), scope))
            }
            Kind::Synonym(target) => {
                let parts = target.split('.').map(|part| part.trim_matches(['[', ']']).to_owned()).collect();
                let alias = alias.unwrap_or(name.name()).to_owned();
                self.nested(|binder| binder.table(&ObjectName(parts), Some(&alias), hints))
            }
            Kind::Procedure => {
                Err(SqlError::new(2809, 1, format!("The request for procedure '{}' failed because it is a procedure object.", object.name)))
            }
        }
    }

    /// Views and synonyms may name each other in a circle.
    fn nested<T>(&mut self, bind: impl FnOnce(&mut Self) -> Bound<T>) -> Bound<T> {
        if self.depth >= 32 {
            return Err(SqlError::new(217, 1, "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32)."));
        }
        self.depth += 1;
        let scopes = std::mem::take(&mut self.scopes);
        let bound = bind(self);
        self.scopes = scopes;
        self.depth -= 1;
        bound
    }

    /// The columns of a table as a query sees them.
    pub fn scope_of(&self, number: usize, object: i32, alias: Option<&str>) -> Bound<Scope> {
        let database = &self.world.databases[number];
        let object = database.object(object).ok_or_else(|| SqlError::invalid_object("?"))?;
        let table = object.table().ok_or_else(|| SqlError::invalid_object(&object.name))?;
        let schema = database.schema_name(object.schema);
        let has_set = table.columns.iter().any(|column| column.column_set);
        let fields = table.columns.iter().map(|column| Field {
            source: alias.unwrap_or(&object.name).to_owned(),
            schema: Some(schema.to_owned()),
            name: column.name.clone(),
            // Without the key a client is given the ciphertext.
            ty: if column.encryption.is_some() { Type::VarBinary(Length::Limited(8000)) } else { column.ty },
            nullable: column.nullable,
            identity: column.identity.is_some(),
            computed: column.computed.is_some() || column.ty == Type::RowVersion,
            hidden: column.hidden,
            under_set: has_set && column.sparse,
            masked: column.mask.is_some() && !self.session.login.administrator,
            denied: database.denied(object.id, &self.session.login, "select", Some(&column.name)),
            catalog: false,
            table: vec![database.name.clone(), schema.to_owned(), object.name.clone()],
        });
        Ok(Scope { fields: fields.collect() })
    }

    /// A relation of the catalog. One that is not known is this server's gap.
    fn relation(&self, number: usize, name: &ObjectName, alias: Option<&str>) -> Bound<(Input, Scope)> {
        let schema = name.schema().unwrap_or("sys");
        let relation = catalog::relation(self.world, number, self.session, schema, name.name());
        let relation = relation.ok_or_else(|| {
            let mut error = SqlError::invalid_object(&name.to_string());
            error.refusal = true;
            error
        })?;
        let fields = relation.columns.iter().map(|column| Field {
            schema: Some(schema.to_owned()),
            catalog: true,
            ..derived(alias.unwrap_or(name.name()), column.0, column.1, column.2)
        });
        let scope = Scope { fields: fields.collect() };
        Ok((Input::Lines(relation.rows.into_iter().map(Arc::from).collect()), scope))
    }
}

fn denied_object(object: &Object, database: &str, schema: &str) -> SqlError {
    SqlError::new(
        229,
        5,
        format!("The SELECT permission was denied on the object '{}', database '{database}', schema '{schema}'.", object.name),
    )
    .class(14)
}

/// A derived table's columns under its own names.
fn renamed(columns: &[super::OutputColumn], alias: &str, names: &[String]) -> Bound<Scope> {
    if !names.is_empty() && names.len() != columns.len() {
        return Err(SqlError::new(8158, 1, format!("'{alias}' has more or fewer columns than were specified in the column list.")));
    }
    let fields = columns.iter().enumerate().map(|(at, column)| {
        let name = names.get(at).unwrap_or(&column.name);
        derived(alias, name, column.ty, column.nullable)
    });
    Ok(Scope { fields: fields.collect() })
}
