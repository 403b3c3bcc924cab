//! `INSERT`, `UPDATE`, `DELETE`.

use super::super::sql::{Expr, InsertSource, ObjectName};
use super::super::types::{Length, Type};
use super::super::value::Value;
use super::access::{Access, Found};
use super::bind::{Binder, Scope};
use super::database::{Kind, Table, World};
use super::error::{SqlError, Stop};
use super::eval::Context;
use super::plan::{Line, Node};
use super::run::Session;
use super::select::written;
use super::{compare, convert};

/// Where a written row goes.
#[derive(Debug, Clone, Copy)]
struct Target {
    database: usize,
    object: usize,
}

fn target(world: &World, session: &Session, name: &ObjectName) -> Result<Target, SqlError> {
    let database = match name.database() {
        Some(other) => world.database(other).ok_or_else(|| SqlError::invalid_object(&name.to_string()))?,
        None => session.database,
    };
    let found = &world.databases[database];
    if found.read_only {
        return Err(SqlError::new(3906, 1, format!("Failed to update database \"{}\" because the database is read-only.", found.name)));
    }
    let object = found.find(name.schema(), name.name()).ok_or_else(|| SqlError::invalid_object(&name.to_string()))?;
    if !matches!(found.objects[object].kind, Kind::Table(_)) {
        return Err(SqlError::refused(format!("writing to {name}, which is no table")));
    }
    if !session.login.administrator {
        return Err(SqlError::new(229, 5, format!("The INSERT permission was denied on the object '{}'.", name.name())).class(14));
    }
    Ok(Target { database, object })
}

impl Target {
    fn table<'a>(&self, world: &'a World) -> Result<&'a Table, SqlError> {
        world.databases[self.database].objects[self.object].table().ok_or_else(|| SqlError::invalid_object("?"))
    }

    fn table_mut<'a>(&self, world: &'a mut World) -> Result<&'a mut Table, SqlError> {
        world.databases[self.database].objects[self.object].table_mut().ok_or_else(|| SqlError::invalid_object("?"))
    }

    fn id(&self, world: &World) -> i32 {
        world.databases[self.database].objects[self.object].id
    }
}

fn context<'a>(world: &'a World, session: &'a Session, transaction: u64) -> Context<'a> {
    Context { world, session, transaction: Some(transaction), outer: Vec::new() }
}

/// Inserts, and gives the number of rows.
pub fn insert(
    world: &mut World,
    session: &Session,
    transaction: u64,
    name: &ObjectName,
    columns: &[String],
    source: &InsertSource,
) -> Result<usize, Stop> {
    let target = target(world, session, name)?;
    let identity_insert = session.identity_insert.as_ref().is_some_and(|table| same_table(table, name));
    let places = insert_places(world, target, columns, identity_insert)?;
    let mut rows: Vec<Vec<Option<(Value, Type)>>> = Vec::new();
    match source {
        InsertSource::Defaults => rows.push(Vec::new()),
        InsertSource::Values(lists) => {
            for list in lists {
                if list.len() != places.len() {
                    return Err(SqlError::new(
                        110,
                        1,
                        "There are fewer columns in the INSERT statement than values specified in the VALUES clause.",
                    )
                    .class(15)
                    .into());
                }
                let mut row = Vec::new();
                for expr in list {
                    row.push(match expr {
                        None => None,
                        Some(expr) => {
                            let typed = Binder::new(world, session).scalar(expr)?;
                            Some((context(world, session, transaction).eval(&typed.node, &[])?, typed.ty))
                        }
                    });
                }
                rows.push(row);
            }
        }
        InsertSource::Query(query) => {
            let plan = Binder::new(world, session).query(query)?;
            if plan.columns.len() != places.len() {
                return Err(SqlError::new(121, 1, "The select list for the INSERT statement contains more items than the insert list.")
                    .class(15)
                    .into());
            }
            let lines = plan.lines(&mut context(world, session, transaction))?;
            let typed = |line: &Line| line.iter().zip(&plan.columns).map(|(value, column)| Some((value.clone(), column.ty))).collect();
            rows.extend(lines.iter().map(typed));
        }
    }
    let places = if matches!(source, InsertSource::Defaults) { Vec::new() } else { places };
    let count = rows.len();
    for row in rows {
        let given = places.iter().copied().zip(row).collect();
        let values = completed(world, session, target, transaction, given)?;
        put(world, target, transaction, values)?;
    }
    Ok(count)
}

pub fn same_table(left: &str, right: &ObjectName) -> bool {
    let plain = |text: &str| text.rsplit('.').next().unwrap_or(text).trim_matches(['[', ']']).to_lowercase();
    plain(left) == right.name().to_lowercase()
}

/// The columns that an `INSERT` fills: those that are named, else all that may be.
fn insert_places(world: &World, target: Target, columns: &[String], identity_insert: bool) -> Result<Vec<usize>, SqlError> {
    let table = target.table(world)?;
    let database = &world.databases[target.database];
    let writable = |place: &usize| {
        let column = &table.columns[*place];
        column.computed.is_none()
            && column.ty != Type::RowVersion
            && column.generated == 0
            && (column.identity.is_none() || identity_insert)
    };
    if columns.is_empty() {
        return Ok((0..table.columns.len()).filter(|place| writable(place) && !table.columns[*place].hidden).collect());
    }
    let mut places = Vec::new();
    for name in columns {
        let place = table.column(name, database)?;
        if !writable(&place) {
            let column = &table.columns[place];
            return Err(match () {
                () if column.identity.is_some() => SqlError::new(
                    544,
                    1,
                    format!(
                        "Cannot insert explicit value for identity column in table '{}' when IDENTITY_INSERT is set to OFF.",
                        database.objects[target.object].name
                    ),
                ),
                () if column.generated > 0 => SqlError::new(13536, 1, "Cannot insert an explicit value into a GENERATED ALWAYS column."),
                () if column.ty == Type::RowVersion => SqlError::new(273, 1, "Cannot insert an explicit value into a timestamp column."),
                () => SqlError::new(
                    271,
                    1,
                    format!(
                        "The column \"{name}\" cannot be modified because it is either a computed column or is the result of a UNION operator."
                    ),
                ),
            });
        }
        places.push(place);
    }
    Ok(places)
}

/// A whole row out of what was given: identities, defaults, versions and computed columns added.
fn completed(
    world: &mut World,
    session: &Session,
    target: Target,
    transaction: u64,
    given: Vec<(usize, Option<(Value, Type)>)>,
) -> Result<Vec<Value>, Stop> {
    let columns = target.table(world)?.columns.clone();
    let mut values = vec![Value::Null; columns.len()];
    let mut set = vec![false; columns.len()];
    for (place, value) in given {
        if let Some((value, ty)) = value {
            values[place] = assigned(&value, &ty, &columns[place].ty, &columns[place].name)?;
            set[place] = true;
        }
    }
    for (place, column) in columns.iter().enumerate() {
        if let Some((seed, step, last)) = column.identity {
            let next = match values[place].integer().and_then(|number| i64::try_from(number).ok()) {
                // A number that was given moves the next one, when it lies beyond.
                Some(number) => last.map_or(number, |last| if step > 0 { last.max(number) } else { last.min(number) }),
                None => last.map_or(seed, |last| last + step),
            };
            if !set[place] {
                values[place] = convert(&Value::Integer(next), &Type::BigInt, &column.ty, 0)?;
            }
            target.table_mut(world)?.columns[place].identity = Some((seed, step, Some(next)));
        } else if column.ty == Type::RowVersion {
            world.row_version += 1;
            values[place] = Value::binary(&world.row_version.to_be_bytes());
        } else if column.generated > 0 {
            let (day, ticks) = if column.generated == 1 { (world.now)() } else { (super::temporal::LAST_DAY, super::temporal::DAY - 1) };
            values[place] = convert(&Value::DateTime2(day, ticks), &Type::DateTime2(7), &column.ty, 0)?;
        } else if let (false, Some(default)) = (set[place], &column.default) {
            let typed = Binder::new(world, session).scalar(default)?;
            let value = context(world, session, transaction).eval(&typed.node, &[])?;
            values[place] = assigned(&value, &typed.ty, &column.ty, &column.name)?;
        }
    }
    compute(world, session, target, transaction, &mut values)?;
    let name = &world.databases[target.database].objects[target.object].name;
    for (place, column) in columns.iter().enumerate() {
        if values[place].is_null() && !column.nullable {
            return Err(SqlError::new(
                515,
                2,
                format!(
                    "Cannot insert the value NULL into column '{}', table '{name}'; column does not allow nulls. INSERT fails.",
                    column.name
                ),
            )
            .into());
        }
    }
    Ok(values)
}

fn compute(world: &World, session: &Session, target: Target, transaction: u64, values: &mut [Value]) -> Result<(), Stop> {
    let table = target.table(world)?;
    for (place, column) in table.columns.iter().enumerate() {
        let Some((expr, _, _)) = &column.computed else { continue };
        let scope = Binder::new(world, session).scope_of(target.database, target.id(world), None)?;
        let typed = Binder::new(world, session).with_scope(scope).scalar(expr)?;
        let value = context(world, session, transaction).eval(&typed.node, values)?;
        values[place] = convert(&value, &typed.ty, &column.ty, 0)?;
    }
    Ok(())
}

/// A value as a column takes it. Unlike `CAST`, an assignment cuts nothing off but spaces.
fn assigned(value: &Value, from: &Type, to: &Type, column: &str) -> Result<Value, SqlError> {
    let limit = match to {
        Type::VarChar(Length::Limited(length), _)
        | Type::Char(length, _)
        | Type::VarBinary(Length::Limited(length))
        | Type::Binary(length) => Some(*length),
        Type::NVarChar(Length::Limited(length), _) | Type::NChar(length, _) => Some(*length),
        _ => None,
    };
    if let Some(limit) = limit {
        let whole = match to {
            Type::VarBinary(_) | Type::Binary(_) => Type::VarBinary(Length::Max),
            Type::VarChar(_, collation) | Type::Char(_, collation) => Type::VarChar(Length::Max, collation),
            other => Type::NVarChar(Length::Max, other.collation().unwrap_or_else(super::super::collation::Collation::default_of_server)),
        };
        let length = match convert(value, from, &whole, 0)? {
            Value::Chars(bytes) => bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1),
            Value::Wide(units) => units.iter().rposition(|unit| *unit != u16::from(b' ')).map_or(0, |at| at + 1),
            Value::Binary(bytes) if !from.is_integer() => bytes.len(),
            _ => 0,
        };
        if length > usize::from(limit) {
            return Err(SqlError::new(2628, 1, format!("String or binary data would be truncated in column '{column}'.")));
        }
    }
    convert(value, from, to, 0)
}

/// Puts a row into a table, if its keys are free.
fn put(world: &mut World, target: Target, transaction: u64, values: Vec<Value>) -> Result<(), Stop> {
    let name = world.databases[target.database].objects[target.object].name.clone();
    let table = target.table_mut(world)?;
    for at in 0..table.indexes.len() {
        let index = &table.indexes[at];
        if !index.unique || index.disabled || index.filter.is_some() {
            continue;
        }
        let places: Vec<usize> = index.key.iter().filter_map(|(column, _)| table.place(*column)).collect();
        let key: Vec<Value> = places.iter().map(|place| values[*place].clone()).collect();
        let taken = match (table.ordered_column(at), key.first().and_then(Value::integer)) {
            (Some(_), Some(number)) => {
                let order = table.orders.get(&at);
                order.and_then(|order| {
                    order.range((number, 0)..=(number, u64::MAX)).map(|(_, id)| *id).find(|id| lives(table, *id, transaction))
                })
            }
            _ => {
                let same = |values: &[Value]| {
                    places.iter().zip(&key).all(|(place, value)| compare::order(&values[*place], value, &table.columns[*place].ty).is_eq())
                };
                let mut rows = table.rows.iter();
                rows.find(|(id, row)| lives(table, **id, transaction) && same(&row.values)).map(|(id, _)| *id)
            }
        };
        if let Some(id) = taken {
            // Somebody else's row that may yet go away is waited for.
            let row = &table.rows[&id];
            if row.inserted_by.is_some_and(|other| other != transaction) || row.deleted_by.is_some_and(|other| other != transaction) {
                return Err(Stop::Blocked);
            }
            if index.ignore_duplicates {
                return Ok(());
            }
            let shown: Vec<String> = places.iter().zip(&key).map(|(place, value)| written(value, &table.columns[*place].ty)).collect();
            let shown = shown.join(", ");
            return Err(if index.primary || index.constraint {
                let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE KEY" };
                SqlError::new(2627, 1, format!("Violation of {kind} constraint '{}'. Cannot insert duplicate key in object '{name}'. The duplicate key value is ({shown}).", index.name)).class(14)
            } else {
                SqlError::new(2601, 1, format!("Cannot insert duplicate key row in object '{name}' with unique index '{}'. The duplicate key value is ({shown}).", index.name)).class(14)
            }
            .into());
        }
    }
    table.insert(values, transaction);
    Ok(())
}

fn lives(table: &Table, id: u64, transaction: u64) -> bool {
    table.rows.get(&id).is_some_and(|row| row.deleted_by != Some(transaction))
}

/// The rows that a filter chooses for writing; one that another transaction holds is waited for.
fn chosen(world: &World, session: &Session, transaction: u64, target: Target, filter: Option<&Expr>) -> Result<Vec<(u64, Line)>, Stop> {
    let table = target.table(world)?;
    let scope: Scope = Binder::new(world, session).scope_of(target.database, target.id(world), None)?;
    let filter: Option<Node> = filter.map(|filter| Binder::new(world, session).with_scope(scope).predicate(filter)).transpose()?;
    let mut cx = context(world, session, transaction);
    let mut found = Vec::new();
    for (id, row) in &table.rows {
        let passes = match &filter {
            Some(filter) => cx.test(filter, &row.values)?,
            None => true,
        };
        if !passes {
            continue;
        }
        match Access::Locking.look(row, Some(transaction)) {
            Found::Row(line) => found.push((*id, line.clone())),
            Found::Nothing => {}
            Found::Locked => return Err(Stop::Blocked),
        }
    }
    Ok(found)
}

/// Deletes, and gives the number of rows.
pub fn delete(world: &mut World, session: &Session, transaction: u64, name: &ObjectName, filter: Option<&Expr>) -> Result<usize, Stop> {
    let target = target(world, session, name)?;
    let rows = chosen(world, session, transaction, target, filter)?;
    let table = target.table_mut(world)?;
    rows.iter().for_each(|(id, _)| table.delete(*id, transaction));
    Ok(rows.len())
}

/// Updates: the old row goes, a new one comes.
pub fn update(
    world: &mut World,
    session: &Session,
    transaction: u64,
    name: &ObjectName,
    set: &[(String, Expr)],
    filter: Option<&Expr>,
) -> Result<usize, Stop> {
    let target = target(world, session, name)?;
    let rows = chosen(world, session, transaction, target, filter)?;
    let count = rows.len();
    for (id, line) in rows {
        let mut values = line.to_vec();
        for (column, expr) in set {
            let scope = Binder::new(world, session).scope_of(target.database, target.id(world), None)?;
            let typed = Binder::new(world, session).with_scope(scope).scalar(expr)?;
            let value = context(world, session, transaction).eval(&typed.node, &line)?;
            let table = target.table(world)?;
            let place = table.column(column, &world.databases[target.database])?;
            values[place] = assigned(&value, &typed.ty, &table.columns[place].ty, column)?;
            if values[place].is_null() && !table.columns[place].nullable {
                return Err(SqlError::new(
                    515,
                    2,
                    format!(
                        "Cannot insert the value NULL into column '{column}', table '{name}'; column does not allow nulls. UPDATE fails."
                    ),
                )
                .into());
            }
        }
        let versions: Vec<usize> = target
            .table(world)?
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.ty == Type::RowVersion)
            .map(|(place, _)| place)
            .collect();
        for place in versions {
            world.row_version += 1;
            values[place] = Value::binary(&world.row_version.to_be_bytes());
        }
        compute(world, session, target, transaction, &mut values)?;
        target.table_mut(world)?.delete(id, transaction);
        put(world, target, transaction, values)?;
    }
    Ok(count)
}

/// `TRUNCATE TABLE`: no row is left, and an identity begins at its seed again.
pub fn truncate(world: &mut World, session: &Session, transaction: u64, name: &ObjectName) -> Result<(), Stop> {
    let target = target(world, session, name)?;
    chosen(world, session, transaction, target, None)?;
    let table = target.table_mut(world)?;
    let ids: Vec<u64> = table.rows.keys().copied().collect();
    ids.into_iter().for_each(|id| table.remove(id));
    for column in &mut table.columns {
        if let Some((_, _, last)) = &mut column.identity {
            *last = None;
        }
    }
    Ok(())
}
