//! `CREATE`, `ALTER`, `DROP`, and permissions.

use super::super::collation::Collation;
use super::super::sql::{
    Alteration, ColumnDefinition, IndexDefinition, KeyDefinition, ObjectName, Permission, Statement, TableDefinition, TypeName,
};
use super::super::types::{Length, Type};
use super::super::value::Value;
use super::bind::{Binder, Field, Scope};
use super::convert;
use super::database::{AliasType, Column, Database, Denial, Index, Kind, Object, Table, World};
use super::error::SqlError;
use super::run::Session;

type Done = Result<(), SqlError>;

/// A type by its name. In a conversion a length that is left out is 30, in a definition 1.
pub fn resolve_type(world: &World, database: usize, name: &TypeName, in_cast: bool) -> Result<Type, SqlError> {
    let database = &world.databases[database];
    let collation = match &name.collation {
        None => database.collation,
        Some(collation) if collation.eq_ignore_ascii_case("database_default") => database.collation,
        Some(collation) => Collation::named(collation).ok_or_else(|| SqlError::new(448, 1, format!("Invalid collation '{collation}'.")))?,
    };
    let missing = || SqlError::new(243, 1, format!("Type {} is not a defined system type.", name.name));
    let argument = |place: usize| name.arguments.get(place).copied();
    let scale = |default: u8| -> Result<u8, SqlError> {
        let scale = argument(0).map_or(Ok(default), |scale| u8::try_from(scale).map_err(|_| missing()))?;
        if scale <= 7 { Ok(scale) } else { Err(SqlError::new(1002, 1, format!("Specified scale {scale} is invalid."))) }
    };
    let length = |most: i64| -> Result<Length, SqlError> {
        match argument(0) {
            None => Ok(Length::Limited(if in_cast { 30 } else { 1 })),
            Some(-1) => Ok(Length::Max),
            Some(length) if (1..=most).contains(&length) => Ok(Length::Limited(u16::try_from(length).unwrap_or(1))),
            Some(length) => {
                Err(SqlError::new(131, 3, format!("The size ({length}) given to the type exceeds the maximum allowed ({most}).")))
            }
        }
    };
    let fixed = |most: i64| match length(most)? {
        Length::Limited(length) => Ok(length),
        Length::Max => Err(missing()),
    };
    let lower = name.name.name().to_ascii_lowercase();
    if name.name.schema().is_none_or(|schema| schema.eq_ignore_ascii_case("sys")) {
        let ty = match lower.as_str() {
            "bit" => Type::Bit,
            "tinyint" => Type::TinyInt,
            "smallint" => Type::SmallInt,
            "int" | "integer" => Type::Int,
            "bigint" => Type::BigInt,
            "decimal" | "dec" | "numeric" => {
                let precision = u8::try_from(argument(0).unwrap_or(18)).map_err(|_| missing())?;
                let scale = u8::try_from(argument(1).unwrap_or(0)).map_err(|_| missing())?;
                if !(1..=38).contains(&precision) || scale > precision {
                    return Err(SqlError::new(1007, 1, format!("Precision {precision} and scale {scale} are invalid.")));
                }
                if lower == "numeric" { Type::Numeric(precision, scale) } else { Type::Decimal(precision, scale) }
            }
            "money" => Type::Money,
            "smallmoney" => Type::SmallMoney,
            "real" => Type::Real,
            "float" => {
                if argument(0).is_some_and(|bits| bits <= 24) {
                    Type::Real
                } else {
                    Type::Float
                }
            }
            "date" => Type::Date,
            "time" => Type::Time(scale(7)?),
            "datetime" => Type::DateTime,
            "smalldatetime" => Type::SmallDateTime,
            "datetime2" => Type::DateTime2(scale(7)?),
            "datetimeoffset" => Type::DateTimeOffset(scale(7)?),
            "char" | "character" => Type::Char(fixed(8000)?, collation),
            "varchar" => Type::VarChar(length(8000)?, collation),
            "text" => Type::Text(collation),
            "nchar" => Type::NChar(fixed(4000)?, collation),
            "nvarchar" => Type::NVarChar(length(4000)?, collation),
            "ntext" => Type::NText(collation),
            "binary" => Type::Binary(fixed(8000)?),
            "varbinary" => Type::VarBinary(length(8000)?),
            "image" => Type::Image,
            "rowversion" | "timestamp" => Type::RowVersion,
            "uniqueidentifier" => Type::UniqueIdentifier,
            "xml" => Type::Xml,
            "sql_variant" => Type::Variant,
            "hierarchyid" => Type::HierarchyId,
            "geometry" => Type::Geometry,
            "geography" => Type::Geography,
            "sysname" => Type::sysname(collation),
            _ => return alias_type(database, &name.name).map(|alias| alias.base).ok_or_else(missing),
        };
        return Ok(ty);
    }
    alias_type(database, &name.name).map(|alias| alias.base).ok_or_else(missing)
}

fn alias_type<'a>(database: &'a Database, name: &ObjectName) -> Option<&'a AliasType> {
    let schema = database.schema(name.schema().unwrap_or("dbo"))?;
    database.alias_types.iter().find(|alias| alias.schema == schema && database.same(&alias.name, name.name()))
}

/// Runs a definition.
pub fn define(world: &mut World, session: &Session, statement: &Statement) -> Done {
    if !session.login.administrator {
        return Err(SqlError::new(262, 1, "The permission to define anything was denied in this database.").class(14));
    }
    let number = session.database;
    match statement {
        Statement::CreateDatabase(name, collation) => {
            let collation = match collation {
                None => world.collation,
                Some(name) => Collation::named(name).ok_or_else(|| SqlError::new(448, 1, format!("Invalid collation '{name}'.")))?,
            };
            if world.database(name).is_some() {
                return Err(SqlError::new(1801, 3, format!("Database '{name}' already exists. Choose a different database name.")));
            }
            world.databases.push(Database::new(name, collation));
            Ok(())
        }
        Statement::AlterDatabase { name, option, value } => alter_database(world, number, name, option, value),
        Statement::CreateSchema(name) => {
            let database = &mut world.databases[number];
            let next = 4 + i32::try_from(database.schemas.len()).unwrap_or(0);
            database.schemas.push((next, name.clone()));
            Ok(())
        }
        Statement::CreateTable(name, definition) => create_table(world, session, name, definition),
        Statement::CreateView(name, query, text) => {
            add_object(world, number, name, Kind::View { query: Box::new(query.clone()), text: text.clone() }).map(drop)
        }
        Statement::CreateSynonym(name, target) => {
            let target = target.0.iter().map(|part| format!("[{}]", part.replace(']', "]]"))).collect::<Vec<_>>().join(".");
            add_object(world, number, name, Kind::Synonym(target)).map(drop)
        }
        Statement::CreateProcedure(name, _) => add_object(world, number, name, Kind::Procedure).map(drop),
        Statement::CreateType(name, base, nullable) => {
            let base = resolve_type(world, number, base, false)?;
            let database = &mut world.databases[number];
            let schema = schema_of(database, name)?;
            let id = 257 + i32::try_from(database.alias_types.len()).unwrap_or(0);
            database.alias_types.push(AliasType { id, schema, name: name.name().to_owned(), base, nullable: *nullable });
            Ok(())
        }
        Statement::CreateIndex(name, definition) => {
            let table = table_mut(world, number, name)?;
            let index = index(table.0, table.1, definition)?;
            table.0.add_index(index);
            Ok(())
        }
        Statement::AlterIndex { name, table, disable } => {
            let (table, _) = table_mut(world, number, table)?;
            let index = table.indexes.iter_mut().find(|index| index.name.eq_ignore_ascii_case(name));
            index.ok_or_else(|| SqlError::new(2727, 11, format!("Cannot find index '{name}'.")))?.disabled = *disable;
            table.reorder();
            Ok(())
        }
        Statement::AlterTable(name, alteration) => alter_table(world, session, name, alteration),
        Statement::DropObject { kind, name, table, if_exists } => drop_object(world, number, kind, name, table.as_ref(), *if_exists),
        Statement::Rename { object, to, column } => rename(world, number, object, to, *column),
        Statement::Reseed { table, to } => {
            let name = ObjectName(super::super::sql::Parser::name_of(table).ok_or_else(|| SqlError::invalid_object(table))?);
            let (table, _) = table_mut(world, number, &name)?;
            let identity = table.columns.iter_mut().find_map(|column| column.identity.as_mut());
            identity.ok_or_else(|| SqlError::new(7997, 1, format!("'{name}' does not contain an identity column.")))?.2 = Some(*to);
            Ok(())
        }
        Statement::Permission(permission) => permit(world, number, permission),
        other => Err(SqlError::refused(format!("{other:?}"))),
    }
}

fn alter_database(world: &mut World, current: usize, name: &str, option: &str, value: &str) -> Done {
    let number = if name.eq_ignore_ascii_case("current") { Some(current) } else { world.database(name) };
    let number = number.ok_or_else(|| SqlError::new(5011, 5, format!("User does not have permission to alter database '{name}', the database does not exist, or the database is not in a state that allows access checks.")).class(14))?;
    let database = &mut world.databases[number];
    match option {
        "read_committed_snapshot" => database.versioned = value == "on",
        "allow_snapshot_isolation" => database.snapshot = value == "on",
        "read_only" | "read_write" => database.read_only = option == "read_only",
        "collate" => {
            database.collation = Collation::named(value).ok_or_else(|| SqlError::new(448, 1, format!("Invalid collation '{value}'.")))?
        }
        other => return Err(SqlError::refused(format!("ALTER DATABASE … SET {other}"))),
    }
    Ok(())
}

fn schema_of(database: &Database, name: &ObjectName) -> Result<i32, SqlError> {
    let schema = name.schema().unwrap_or("dbo");
    database.schema(schema).ok_or_else(|| {
        SqlError::new(
            2760,
            1,
            format!("The specified schema name \"{schema}\" either does not exist or you do not have permission to use it."),
        )
    })
}

fn add_object(world: &mut World, number: usize, name: &ObjectName, kind: Kind) -> Result<i32, SqlError> {
    let babelfish = world.babelfish;
    let database = &mut world.databases[number];
    let schema = schema_of(database, name)?;
    if database.find(name.schema(), name.name()).is_some() {
        return Err(SqlError::new(2714, 6, format!("There is already an object named '{}' in the database.", name.name())));
    }
    let id = database.new_id();
    let name = if babelfish { name.name().to_lowercase() } else { name.name().to_owned() };
    database.objects.push(Object { id, schema, name, kind });
    Ok(id)
}

/// A table to change, with its name.
fn table_mut<'a>(world: &'a mut World, number: usize, name: &ObjectName) -> Result<(&'a mut Table, &'a str), SqlError> {
    let number = match name.database() {
        Some(other) => world.database(other).ok_or_else(|| SqlError::invalid_object(&name.to_string()))?,
        None => number,
    };
    let database = &mut world.databases[number];
    let missing =
        || SqlError::new(4902, 1, format!("Cannot find the object \"{name}\" because it does not exist or you do not have permissions."));
    let at = database.find(name.schema(), name.name()).ok_or_else(missing)?;
    let object = &mut database.objects[at];
    match &mut object.kind {
        Kind::Table(table) => Ok((table, &object.name)),
        _ => Err(missing()),
    }
}

fn create_table(world: &mut World, session: &Session, name: &ObjectName, definition: &TableDefinition) -> Done {
    let number = match name.database() {
        Some(other) => world.database(other).ok_or_else(|| SqlError::invalid_object(&name.to_string()))?,
        None => session.database,
    };
    let mut table = Table {
        external: definition.external,
        file_table: definition.file_table,
        node: definition.node,
        edge: definition.edge,
        memory_optimized: definition.memory_optimized,
        ledger: definition.ledger,
        ..Table::default()
    };
    let mut keys = definition.keys.clone();
    for column in &definition.columns {
        let column = make_column(world, session, number, &mut table, column, &mut keys)?;
        table.columns.push(column);
    }
    for key in &keys {
        add_key(&mut table, name.name(), key)?;
    }
    for index_definition in &definition.indexes {
        let index = index(&table, name.name(), index_definition)?;
        table.add_index(index);
    }
    if let Some(history) = &definition.history {
        table.temporal = 2;
        let history_name =
            history.clone().unwrap_or_else(|| ObjectName(vec!["dbo".to_owned(), format!("MSSQL_TemporalHistoryFor_{}", name.name())]));
        let columns = table.columns.iter().map(|column| Column { identity: None, generated: 0, hidden: false, ..column.clone() }).collect();
        let past = Table { columns, temporal: 1, ..Table::default() };
        table.history = Some(add_object(world, number, &history_name, Kind::Table(Box::new(past)))?);
    }
    add_object(world, number, name, Kind::Table(Box::new(table))).map(drop)
}

/// A column of a definition; keys that stand with it are added to the others.
fn make_column(
    world: &World,
    session: &Session,
    number: usize,
    table: &mut Table,
    definition: &ColumnDefinition,
    keys: &mut Vec<KeyDefinition>,
) -> Result<Column, SqlError> {
    let database = &world.databases[number];
    if table.columns.iter().any(|column| database.same(&column.name, &definition.name)) {
        return Err(SqlError::new(
            2705,
            3,
            format!("Column names in each table must be unique. Column name '{}' is specified more than once.", definition.name),
        ));
    }
    let (ty, nullable) = match (&definition.ty, &definition.computed) {
        (Some(name), _) => (resolve_type(world, number, name, false)?, true),
        (None, Some(computed)) => {
            let fields = table.columns.iter().map(field).collect();
            let typed = Binder::new(world, session).with_scope(Scope { fields }).scalar(&computed.expr)?;
            (typed.ty, typed.nullable)
        }
        (None, None) => {
            return Err(
                SqlError::new(173, 1, format!("The definition for column '{}' must include a data type.", definition.name)).class(15)
            );
        }
    };
    let alias = definition.ty.as_ref().and_then(|name| alias_type(database, &name.name));
    let sysname = definition.ty.as_ref().is_some_and(|name| name.name.name().eq_ignore_ascii_case("sysname"));
    if let Some(key) = &definition.key {
        keys.push(KeyDefinition { columns: vec![(definition.name.clone(), false)], ..key.clone() });
    }
    let in_key = keys.iter().any(|key| key.primary && key.columns.iter().any(|(column, _)| database.same(column, &definition.name)));
    let never_null = in_key || definition.identity.is_some() || ty == Type::RowVersion || definition.generated > 0 || sysname;
    let nullable = definition.nullable.unwrap_or(nullable && !never_null && alias.is_none_or(|alias| alias.nullable)) && !in_key;
    Ok(Column {
        id: table.new_column_id(),
        name: if world.babelfish { definition.name.to_lowercase() } else { definition.name.clone() },
        ty,
        alias: if sysname { Some(256) } else { alias.map(|alias| alias.id) },
        nullable,
        identity: definition.identity.map(|(seed, step)| (seed, step, None)),
        default: definition.default.clone(),
        computed: definition.computed.as_ref().map(|computed| (computed.expr.clone(), computed.text.clone(), computed.persisted)),
        mask: definition.mask.clone(),
        encryption: definition.encryption,
        sparse: definition.sparse,
        column_set: definition.column_set,
        hidden: definition.hidden,
        generated: definition.generated,
    })
}

fn field(column: &Column) -> Field {
    Field {
        source: String::new(),
        schema: None,
        name: column.name.clone(),
        ty: column.ty,
        nullable: column.nullable,
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

fn column_ids(table: &Table, columns: &[(String, bool)]) -> Result<Vec<(i32, bool)>, SqlError> {
    let find = |name: &String| {
        // Within a definition names are spelled as they are, or nearly.
        let found = table
            .columns
            .iter()
            .find(|column| column.name == *name)
            .or_else(|| table.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)));
        found
            .map(|column| column.id)
            .ok_or_else(|| SqlError::new(1911, 1, format!("Column name '{name}' does not exist in the target table or view.")))
    };
    columns.iter().map(|(name, descending)| Ok((find(name)?, *descending))).collect()
}

fn add_key(table: &mut Table, table_name: &str, key: &KeyDefinition) -> Done {
    let clustered = key.clustered.unwrap_or(key.primary && !key.hash && !table.indexes.iter().any(|index| matches!(index.kind, 1 | 5)));
    let prefix = if key.primary { "PK" } else { "UQ" };
    let number = table.indexes.len();
    let columns = column_ids(table, &key.columns)?;
    if key.primary {
        for (id, _) in &columns {
            if let Some(place) = table.place(*id) {
                table.columns[place].nullable = false;
            }
        }
    }
    table.add_index(Index {
        id: 0,
        name: key.name.clone().unwrap_or_else(|| format!("{prefix}__{table_name}__{number:08X}")),
        kind: if key.hash {
            7
        } else if clustered {
            1
        } else {
            2
        },
        unique: true,
        primary: key.primary,
        constraint: !key.primary,
        disabled: false,
        filter: None,
        ignore_duplicates: false,
        key: columns,
        included: Vec::new(),
    });
    Ok(())
}

fn index(table: &Table, _name: &str, definition: &IndexDefinition) -> Result<Index, SqlError> {
    let included: Vec<(String, bool)> = definition.included.iter().map(|name| (name.clone(), false)).collect();
    let mut included: Vec<i32> = column_ids(table, &included)?.into_iter().map(|(id, _)| id).collect();
    let mut key = column_ids(table, &definition.columns)?;
    // The columns of a columnstore are all included ones.
    if definition.columnstore {
        included.extend(key.drain(..).map(|(id, _)| id));
    }
    Ok(Index {
        id: 0,
        name: definition.name.clone(),
        kind: match (definition.columnstore, definition.clustered) {
            (true, true) => 5,
            (true, false) => 6,
            (false, true) => 1,
            (false, false) => 2,
        },
        unique: definition.unique,
        primary: false,
        constraint: false,
        disabled: false,
        filter: definition.filter.clone(),
        ignore_duplicates: definition.ignore_duplicates,
        key,
        included,
    })
}

fn alter_table(world: &mut World, session: &Session, name: &ObjectName, alteration: &Alteration) -> Done {
    let number = session.database;
    match alteration {
        Alteration::Add(columns, keys) => {
            let mut keys = keys.clone();
            for definition in columns {
                add_column(world, session, name, definition, &mut keys)?;
            }
            let (table, table_name) = table_mut(world, number, name)?;
            for key in &keys {
                add_key(table, table_name, key)?;
            }
            Ok(())
        }
        Alteration::DropColumn(names) => {
            for column in names {
                let (table, _) = table_mut(world, number, name)?;
                let place = place(table, column)?;
                let id = table.columns[place].id;
                if table.indexes.iter().any(|index| index.key.iter().any(|(key, _)| *key == id) || index.included.contains(&id)) {
                    return Err(SqlError::new(5074, 1, format!("The index is dependent on column '{column}'.")));
                }
                table.columns.remove(place);
                change_rows(table, |values| {
                    values.remove(place);
                    Ok(())
                })?;
            }
            Ok(())
        }
        Alteration::DropConstraint(constraint) => {
            let (table, _) = table_mut(world, number, name)?;
            let before = table.indexes.len();
            table.indexes.retain(|index| !index.name.eq_ignore_ascii_case(constraint));
            table.reorder();
            if table.indexes.len() == before {
                return Err(SqlError::new(3728, 1, format!("'{constraint}' is not a constraint.")));
            }
            Ok(())
        }
        Alteration::AlterColumn(definition) => {
            let missing = || SqlError::new(173, 1, "ALTER COLUMN needs a type.");
            let to = resolve_type(world, number, definition.ty.as_ref().ok_or_else(missing)?, false)?;
            let (table, _) = table_mut(world, number, name)?;
            let place = place(table, &definition.name)?;
            let from = table.columns[place].ty;
            change_rows(table, |values| {
                values[place] = convert(&values[place], &from, &to, 0)?;
                Ok(())
            })?;
            let column = &mut table.columns[place];
            column.ty = to;
            column.nullable = definition.nullable.unwrap_or(true);
            table.reorder();
            Ok(())
        }
        Alteration::Mark(column, mark, on) => {
            let (table, _) = table_mut(world, number, name)?;
            let place = place(table, column)?;
            let column = &mut table.columns[place];
            match mark.as_str() {
                "masked" => column.mask = on.then(|| "default()".to_owned()),
                "hidden" => column.hidden = *on,
                "sparse" => column.sparse = *on,
                other => return Err(SqlError::refused(format!("ALTER COLUMN … ADD {other}"))),
            }
            table.reorder();
            Ok(())
        }
    }
}

fn place(table: &Table, name: &str) -> Result<usize, SqlError> {
    let found = table.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| SqlError::new(4924, 1, format!("ALTER TABLE failed because column '{name}' does not exist in table.")))
}

fn change_rows(table: &mut Table, mut change: impl FnMut(&mut Vec<Value>) -> Done) -> Done {
    for row in table.rows.values_mut() {
        let mut values = row.values.to_vec();
        change(&mut values)?;
        row.values = values.into();
    }
    table.reorder();
    Ok(())
}

fn add_column(
    world: &mut World,
    session: &Session,
    name: &ObjectName,
    definition: &ColumnDefinition,
    keys: &mut Vec<KeyDefinition>,
) -> Done {
    let number = session.database;
    // The table is taken out while its column is made, since making one looks at the whole database.
    let (table, _) = table_mut(world, number, name)?;
    let mut taken = std::mem::take(table);
    let column = make_column(world, session, number, &mut taken, definition, keys);
    let filled = column.as_ref().ok().and_then(|column| column.default.clone());
    let filled = filled.map(|default| Binder::new(world, session).scalar(&default));
    let (table, _) = table_mut(world, number, name)?;
    *table = taken;
    let column = column?;
    let value = match (&filled, column.nullable) {
        (Some(Ok(typed)), false) => match &typed.node {
            super::plan::Node::Value(value) => convert(value, &typed.ty, &column.ty, 0)?,
            _ => return Err(SqlError::refused("a computed default of an added column")),
        },
        _ => Value::Null,
    };
    if value.is_null() && !column.nullable && !table.rows.is_empty() && column.computed.is_none() {
        return Err(SqlError::new(
            4901,
            1,
            format!(
                "ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition specified. Column '{}' cannot be added.",
                column.name
            ),
        ));
    }
    if column.computed.is_some() && !table.rows.is_empty() {
        return Err(SqlError::refused("a computed column added to a table that has rows"));
    }
    table.columns.push(column);
    change_rows(table, |values| {
        values.push(value.clone());
        Ok(())
    })
}

fn drop_object(world: &mut World, number: usize, kind: &str, name: &ObjectName, table: Option<&ObjectName>, if_exists: bool) -> Done {
    let missing = |found: bool| {
        if found || if_exists {
            Ok(())
        } else {
            Err(SqlError::new(
                3701,
                5,
                format!("Cannot drop the {kind} '{name}', because it does not exist or you do not have permission."),
            )
            .class(11))
        }
    };
    if let Some(table) = table {
        let (table, _) = table_mut(world, number, table)?;
        let before = table.indexes.len();
        table.indexes.retain(|index| !index.name.eq_ignore_ascii_case(name.name()));
        table.reorder();
        return missing(table.indexes.len() < before);
    }
    if kind == "database" {
        let found = world.database(name.name());
        // Sessions know a database by its place, so the place stays and its name goes.
        if let Some(found) = found {
            world.databases[found].name = format!("{}\u{0}dropped", name.name());
            world.databases[found].offline = true;
        }
        return missing(found.is_some());
    }
    let database = &mut world.databases[number];
    if kind == "schema" {
        let before = database.schemas.len();
        let gone = database.schema(name.name());
        database.schemas.retain(|(id, _)| Some(*id) != gone);
        return missing(database.schemas.len() < before);
    }
    if kind == "type" {
        let gone = alias_type(database, name).map(|alias| alias.id);
        database.alias_types.retain(|alias| Some(alias.id) != gone);
        return missing(gone.is_some());
    }
    let found = database.find(name.schema(), name.name()).filter(|at| {
        matches!(
            (kind, &database.objects[*at].kind),
            ("table", Kind::Table(_)) | ("view", Kind::View { .. }) | ("synonym", Kind::Synonym(_)) | ("procedure", Kind::Procedure)
        )
    });
    if let Some(found) = found {
        database.objects.remove(found);
    }
    missing(found.is_some())
}

/// `sp_rename 'dbo.t', 'u'` and `sp_rename 'dbo.t.c', 'd', 'COLUMN'`.
fn rename(world: &mut World, number: usize, object: &str, to: &str, column: bool) -> Done {
    let missing =
        || SqlError::new(15225, 1, format!("No item by the name of '{object}' could be found in the current database.")).class(11);
    let mut parts = super::super::sql::Parser::name_of(object).ok_or_else(missing)?;
    if column {
        let name = parts.pop().ok_or_else(missing)?;
        let (table, _) = table_mut(world, number, &ObjectName(parts))?;
        let place = place(table, &name)?;
        to.clone_into(&mut table.columns[place].name);
        return Ok(());
    }
    let name = ObjectName(parts);
    let database = &mut world.databases[number];
    let at = database.find(name.schema(), name.name()).ok_or_else(missing)?;
    to.clone_into(&mut database.objects[at].name);
    Ok(())
}

fn permit(world: &mut World, number: usize, permission: &Permission) -> Done {
    let database = &mut world.databases[number];
    let name = &permission.object;
    let object = database.find(name.schema(), name.name()).ok_or_else(|| {
        SqlError::new(15151, 1, format!("Cannot find the object '{name}', because it does not exist or you do not have permission."))
    })?;
    let denial = Denial {
        login: permission.principal.clone(),
        object: database.objects[object].id,
        permission: permission.permission.clone(),
        columns: permission.columns.clone(),
    };
    // Everybody may read what is not denied, so a grant is the end of a denial.
    database.denials.retain(|known| known != &denial);
    if permission.verb == "deny" {
        database.denials.push(denial);
    }
    Ok(())
}
