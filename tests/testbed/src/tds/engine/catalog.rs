//! `sys.*` and `INFORMATION_SCHEMA.*`, computed from the definitions.
//!
//! Columns stand here when something asks for them: a column that a real server has and this one has not is an error
//! and a refusal, never an empty one.

use super::super::types::{CATALOG, Length, Type};
use super::super::value::Value;
use super::database::{Database, Index, Kind, Object, Table, World};
use super::run::Session;

/// A column: name, type, may it be `NULL`.
pub type CatalogColumn = (&'static str, Type, bool);

/// A relation and its rows.
pub struct Relation {
    pub columns: Vec<CatalogColumn>,
    pub rows: Vec<Vec<Value>>,
}

struct Catalog<'a> {
    world: &'a World,
    database: &'a Database,
    number: usize,
    session: &'a Session,
    name: Type,
}

fn int(number: impl Into<i64>) -> Value {
    Value::Integer(number.into())
}

fn bit(bit: bool) -> Value {
    Value::Bit(bit)
}

fn some(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::wide)
}

/// The relation of a name, if there is one.
pub fn relation(world: &World, number: usize, session: &Session, schema: &str, name: &str) -> Option<Relation> {
    let database = &world.databases[number];
    let catalog = Catalog { world, database, number, session, name: Type::sysname(database.collation) };
    let name = name.to_ascii_lowercase();
    if schema.eq_ignore_ascii_case("INFORMATION_SCHEMA") {
        return match name.as_str() {
            "tables" => Some(catalog.information_tables()),
            "columns" => Some(catalog.information_columns()),
            _ => None,
        };
    }
    Some(match name.as_str() {
        "databases" => catalog.databases(),
        "schemas" => catalog.schemas(),
        "objects" | "all_objects" => catalog.objects(|_| true),
        "tables" => catalog.tables(),
        "views" | "all_views" => catalog.objects(|object| matches!(object.kind, Kind::View { .. })),
        "procedures" => catalog.objects(|object| matches!(object.kind, Kind::Procedure)),
        "synonyms" => catalog.synonyms(),
        "columns" | "all_columns" => catalog.columns(),
        "computed_columns" => catalog.computed(),
        "masked_columns" => catalog.masked(),
        "identity_columns" => catalog.identities(),
        "types" => catalog.types(),
        "indexes" => catalog.indexes(),
        "index_columns" => catalog.index_columns(),
        "key_constraints" => catalog.key_constraints(),
        "sql_modules" => catalog.modules(),
        "partitions" => catalog.partitions(),
        _ => return None,
    })
}

impl Catalog<'_> {
    /// The type of `type` columns: `char(2)`, which is padded.
    fn letters(&self) -> Type {
        Type::Char(2, self.database.collation)
    }

    fn text(&self, length: u16) -> Type {
        Type::NVarChar(Length::Limited(length), self.database.collation)
    }

    /// Babelfish keeps names in lower case.
    fn spelled(&self, name: &str) -> Value {
        if self.world.babelfish { Value::wide(&name.to_lowercase()) } else { Value::wide(name) }
    }

    fn visible(&self) -> impl Iterator<Item = &Object> {
        self.database.objects.iter().filter(|object| self.database.shows(object.id, &self.session.login))
    }

    fn visible_tables(&self) -> impl Iterator<Item = (&Object, &Table)> {
        self.visible().filter_map(|object| Some((object, object.table()?)))
    }

    fn databases(&self) -> Relation {
        let columns = vec![
            ("name", self.name, false),
            ("database_id", Type::Int, false),
            ("collation_name", self.name, true),
            ("is_read_only", Type::Bit, true),
            ("state", Type::TinyInt, true),
            ("state_desc", self.text(60), true),
            ("snapshot_isolation_state", Type::TinyInt, true),
            ("snapshot_isolation_state_desc", self.text(60), true),
            ("is_read_committed_snapshot_on", Type::Bit, true),
            ("compatibility_level", Type::TinyInt, false),
        ];
        let rows = self.world.databases.iter().enumerate().map(|(at, database)| {
            vec![
                self.spelled(&database.name),
                int(i64::try_from(at + 1).unwrap_or(0)),
                Value::wide(database.collation.name()),
                bit(database.read_only),
                int(0),
                Value::wide("ONLINE"),
                int(i64::from(database.snapshot)),
                Value::wide(if database.snapshot { "ON" } else { "OFF" }),
                bit(database.versioned),
                int(160),
            ]
        });
        Relation { columns, rows: rows.collect() }
    }

    fn schemas(&self) -> Relation {
        let columns = vec![("name", self.name, false), ("schema_id", Type::Int, false), ("principal_id", Type::Int, true)];
        let rows = self.database.schemas.iter().map(|(id, name)| vec![self.spelled(name), int(*id), int(1)]);
        Relation { columns, rows: rows.collect() }
    }

    fn object_columns(&self) -> Vec<CatalogColumn> {
        vec![
            ("name", self.name, false),
            ("object_id", Type::Int, false),
            ("principal_id", Type::Int, true),
            ("schema_id", Type::Int, false),
            ("parent_object_id", Type::Int, false),
            ("type", self.letters(), true),
            ("type_desc", self.text(60), true),
            ("is_ms_shipped", Type::Bit, false),
        ]
    }

    fn object_row(&self, object: &Object) -> Vec<Value> {
        let (code, description) = object.type_code();
        vec![
            self.spelled(&object.name),
            int(object.id),
            Value::Null,
            int(object.schema),
            int(0),
            Value::chars(code.as_bytes()),
            Value::wide(description),
            bit(false),
        ]
    }

    fn objects(&self, of: impl Fn(&Object) -> bool) -> Relation {
        let rows = self.visible().filter(|object| of(object)).map(|object| self.object_row(object));
        Relation { columns: self.object_columns(), rows: rows.collect() }
    }

    fn tables(&self) -> Relation {
        let mut columns = self.object_columns();
        columns.extend([
            ("is_filetable", Type::Bit, true),
            ("is_memory_optimized", Type::Bit, true),
            ("temporal_type", Type::TinyInt, true),
            ("temporal_type_desc", self.text(60), true),
            ("history_table_id", Type::Int, true),
            ("is_external", Type::Bit, false),
            ("is_node", Type::Bit, true),
            ("is_edge", Type::Bit, true),
            ("ledger_type", Type::TinyInt, true),
        ]);
        let rows = self.visible_tables().map(|(object, table)| {
            let mut row = self.object_row(object);
            let temporal = ["NON_TEMPORAL_TABLE", "HISTORY_TABLE", "SYSTEM_VERSIONED_TEMPORAL_TABLE"][usize::from(table.temporal)];
            row.extend([
                bit(table.file_table),
                bit(table.memory_optimized),
                int(table.temporal),
                Value::wide(temporal),
                table.history.map_or(Value::Null, int),
                bit(table.external),
                bit(table.node),
                bit(table.edge),
                int(if table.ledger { 2 } else { 0 }),
            ]);
            row
        });
        Relation { columns, rows: rows.collect() }
    }

    fn modules(&self) -> Relation {
        let definition = Type::NVarChar(Length::Max, self.database.collation);
        let columns = vec![("object_id", Type::Int, false), ("definition", definition, true)];
        let rows = self.visible().filter_map(|object| match &object.kind {
            Kind::View { text, .. } => Some(vec![int(object.id), Value::wide(text)]),
            _ => None,
        });
        Relation { columns, rows: rows.collect() }
    }

    fn synonyms(&self) -> Relation {
        let mut columns = self.object_columns();
        columns.push(("base_object_name", self.text(1035), true));
        let rows = self.visible().filter_map(|object| {
            let Kind::Synonym(target) = &object.kind else { return None };
            let mut row = self.object_row(object);
            row.push(Value::wide(target));
            Some(row)
        });
        Relation { columns, rows: rows.collect() }
    }

    /// System type and user type as this kind of server numbers them.
    fn numbers(&self, system: u8, user: i32) -> (Value, Value) {
        if !self.world.babelfish {
            return (int(system), int(user));
        }
        // Other numbers, but still such that a base type's user type is its system type.
        let other = system.wrapping_add(13);
        (int(other), int(if i32::from(system) == user { i32::from(other) } else { user + 13 }))
    }

    fn columns(&self) -> Relation {
        let columns = vec![
            ("object_id", Type::Int, false),
            ("name", self.name, true),
            ("column_id", Type::Int, false),
            ("system_type_id", Type::TinyInt, false),
            ("user_type_id", Type::Int, false),
            ("max_length", Type::SmallInt, false),
            ("precision", Type::TinyInt, false),
            ("scale", Type::TinyInt, false),
            ("collation_name", self.name, true),
            ("is_nullable", Type::Bit, true),
            ("is_ansi_padded", Type::Bit, false),
            ("is_rowguidcol", Type::Bit, false),
            ("is_identity", Type::Bit, false),
            ("is_computed", Type::Bit, false),
            ("is_filestream", Type::Bit, false),
            ("is_sparse", Type::Bit, true),
            ("is_column_set", Type::Bit, true),
            ("generated_always_type", Type::TinyInt, true),
            ("generated_always_type_desc", self.text(60), true),
            ("encryption_type", Type::Int, true),
            ("encryption_type_desc", self.text(64), true),
            ("is_hidden", Type::Bit, false),
            ("is_masked", Type::Bit, false),
        ];
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            for column in &table.columns {
                let (system, user) = column.ty.ids();
                let (system, user) = self.numbers(system, column.alias.unwrap_or(user));
                let (precision, scale) = column.ty.precision_scale();
                let generated = ["NOT_APPLICABLE", "AS_ROW_START", "AS_ROW_END"][usize::from(column.generated.min(2))];
                let encryption = column.encryption.map(|kind| if kind == 1 { "DETERMINISTIC" } else { "RANDOMIZED" });
                rows.push(vec![
                    int(object.id),
                    self.spelled(&column.name),
                    int(column.id),
                    system,
                    user,
                    int(column.ty.max_length()),
                    int(precision),
                    int(scale),
                    some(column.ty.collation().map(super::super::collation::Collation::name)),
                    bit(column.nullable),
                    bit(true),
                    bit(false),
                    bit(column.identity.is_some()),
                    bit(column.computed.is_some()),
                    bit(false),
                    bit(column.sparse),
                    bit(column.column_set),
                    int(column.generated),
                    Value::wide(generated),
                    column.encryption.map_or(Value::Null, int),
                    some(encryption),
                    bit(column.hidden),
                    bit(column.mask.is_some()),
                ]);
            }
        }
        Relation { columns, rows }
    }

    fn column_head(&self) -> Vec<CatalogColumn> {
        vec![("object_id", Type::Int, false), ("name", self.name, true), ("column_id", Type::Int, false)]
    }

    fn computed(&self) -> Relation {
        let mut columns = self.column_head();
        columns.extend([("definition", Type::NVarChar(Length::Max, self.database.collation), true), ("is_persisted", Type::Bit, false)]);
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            for column in &table.columns {
                if let Some((_, text, persisted)) = &column.computed {
                    rows.push(vec![
                        int(object.id),
                        self.spelled(&column.name),
                        int(column.id),
                        Value::wide(&format!("({text})")),
                        bit(*persisted),
                    ]);
                }
            }
        }
        Relation { columns, rows }
    }

    fn masked(&self) -> Relation {
        let mut columns = self.column_head();
        columns.extend([("is_masked", Type::Bit, false), ("masking_function", self.text(4000), true)]);
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            for column in table.columns.iter().filter(|column| column.mask.is_some()) {
                rows.push(vec![int(object.id), self.spelled(&column.name), int(column.id), bit(true), some(column.mask.as_deref())]);
            }
        }
        Relation { columns, rows }
    }

    fn identities(&self) -> Relation {
        let mut columns = self.column_head();
        columns.extend([
            ("seed_value", Type::Variant, true),
            ("increment_value", Type::Variant, true),
            ("last_value", Type::Variant, true),
        ]);
        let variant = |number: i64| Value::Variant(Box::new((Type::BigInt, Value::Integer(number))));
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            for column in &table.columns {
                if let Some((seed, step, last)) = column.identity {
                    let last = last.map_or(Value::Null, variant);
                    rows.push(vec![int(object.id), self.spelled(&column.name), int(column.id), variant(seed), variant(step), last]);
                }
            }
        }
        Relation { columns, rows }
    }

    fn types(&self) -> Relation {
        let columns = vec![
            ("name", self.name, false),
            ("system_type_id", Type::TinyInt, false),
            ("user_type_id", Type::Int, false),
            ("schema_id", Type::Int, false),
            ("max_length", Type::SmallInt, false),
            ("precision", Type::TinyInt, false),
            ("scale", Type::TinyInt, false),
            ("is_nullable", Type::Bit, true),
            ("is_user_defined", Type::Bit, false),
            ("is_assembly_type", Type::Bit, false),
            ("is_table_type", Type::Bit, false),
        ];
        let mut rows = Vec::new();
        for (name, system, user, length, precision, scale) in CATALOG {
            let assembly = *system == 240;
            // Babelfish has no types of the CLR.
            if assembly && self.world.babelfish {
                continue;
            }
            let (system, user) = self.numbers(*system, *user);
            let row = [Value::wide(name), system, user, int(4), int(*length), int(*precision), int(*scale)];
            rows.push(row.into_iter().chain([bit(true), bit(false), bit(assembly), bit(false)]).collect());
        }
        for alias in &self.database.alias_types {
            let (system, _) = self.numbers(alias.base.ids().0, alias.id);
            let (precision, scale) = alias.base.precision_scale();
            let user = self.numbers(0, alias.id).1;
            let row =
                [self.spelled(&alias.name), system, user, int(alias.schema), int(alias.base.max_length()), int(precision), int(scale)];
            rows.push(row.into_iter().chain([bit(alias.nullable), bit(true), bit(false), bit(false)]).collect());
        }
        Relation { columns, rows }
    }

    fn indexes(&self) -> Relation {
        let columns = vec![
            ("object_id", Type::Int, false),
            ("name", self.name, true),
            ("index_id", Type::Int, false),
            ("type", Type::TinyInt, false),
            ("type_desc", self.text(60), true),
            ("is_unique", Type::Bit, true),
            ("ignore_dup_key", Type::Bit, true),
            ("is_primary_key", Type::Bit, true),
            ("is_unique_constraint", Type::Bit, true),
            ("is_disabled", Type::Bit, true),
            ("is_hypothetical", Type::Bit, true),
            ("has_filter", Type::Bit, true),
            ("filter_definition", Type::NVarChar(Length::Max, self.database.collation), true),
        ];
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            // A table without a clustered index is a heap, and that has a row too.
            if !table.indexes.iter().any(|index| matches!(index.kind, 1 | 5)) {
                let heap = Index {
                    id: 0,
                    name: String::new(),
                    kind: 0,
                    unique: false,
                    primary: false,
                    constraint: false,
                    disabled: false,
                    filter: None,
                    ignore_duplicates: false,
                    key: Vec::new(),
                    included: Vec::new(),
                };
                rows.push(self.index_row(object, &heap));
            }
            rows.extend(table.indexes.iter().map(|index| self.index_row(object, index)));
        }
        Relation { columns, rows }
    }

    fn index_row(&self, object: &Object, index: &Index) -> Vec<Value> {
        let description = match index.kind {
            0 => "HEAP",
            1 => "CLUSTERED",
            2 => "NONCLUSTERED",
            5 => "CLUSTERED COLUMNSTORE",
            6 => "NONCLUSTERED COLUMNSTORE",
            _ => "NONCLUSTERED HASH",
        };
        vec![
            int(object.id),
            if index.kind == 0 { Value::Null } else { self.spelled(&index.name) },
            int(index.id),
            int(index.kind),
            Value::wide(description),
            bit(index.unique),
            bit(index.ignore_duplicates),
            bit(index.primary),
            bit(index.constraint),
            bit(index.disabled),
            bit(false),
            bit(index.filter.is_some()),
            index.filter.as_ref().map_or(Value::Null, |filter| Value::wide(&format!("({filter})"))),
        ]
    }

    fn index_columns(&self) -> Relation {
        let columns = vec![
            ("object_id", Type::Int, false),
            ("index_id", Type::Int, false),
            ("index_column_id", Type::Int, false),
            ("column_id", Type::Int, false),
            ("key_ordinal", Type::TinyInt, false),
            ("partition_ordinal", Type::TinyInt, false),
            ("is_descending_key", Type::Bit, true),
            ("is_included_column", Type::Bit, true),
        ];
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            for index in &table.indexes {
                let keys = index.key.iter().enumerate().map(|(at, (column, descending))| (*column, at + 1, *descending, false));
                let all = keys.chain(index.included.iter().map(|column| (*column, 0, false, true)));
                for (at, (column, ordinal, descending, included)) in all.enumerate() {
                    let number = |number: usize| int(i64::try_from(number).unwrap_or(0));
                    rows.push(vec![
                        int(object.id),
                        int(index.id),
                        number(at + 1),
                        int(column),
                        number(ordinal),
                        int(0),
                        bit(descending),
                        bit(included),
                    ]);
                }
            }
        }
        Relation { columns, rows }
    }

    fn key_constraints(&self) -> Relation {
        let mut columns = self.object_columns();
        columns.extend([("unique_index_id", Type::Int, true), ("is_system_named", Type::Bit, false)]);
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            for index in table.indexes.iter().filter(|index| index.primary || index.constraint) {
                let (code, description) = if index.primary { ("PK", "PRIMARY_KEY_CONSTRAINT") } else { ("UQ", "UNIQUE_CONSTRAINT") };
                rows.push(vec![
                    self.spelled(&index.name),
                    int(object.id + index.id),
                    Value::Null,
                    int(object.schema),
                    int(object.id),
                    Value::chars(code.as_bytes()),
                    Value::wide(description),
                    bit(false),
                    int(index.id),
                    bit(false),
                ]);
            }
        }
        Relation { columns, rows }
    }

    fn partitions(&self) -> Relation {
        let columns = vec![
            ("object_id", Type::Int, false),
            ("index_id", Type::Int, false),
            ("partition_number", Type::Int, false),
            ("rows", Type::BigInt, true),
        ];
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            let clustered = table.indexes.iter().any(|index| matches!(index.kind, 1 | 5));
            let heap = if clustered { None } else { Some(0) };
            for index in heap.into_iter().chain(table.indexes.iter().map(|index| index.id)) {
                rows.push(vec![int(object.id), int(index), int(1), int(i64::try_from(table.committed().count()).unwrap_or(0))]);
            }
        }
        Relation { columns, rows }
    }

    fn information_tables(&self) -> Relation {
        let columns = vec![
            ("TABLE_CATALOG", self.name, true),
            ("TABLE_SCHEMA", self.name, true),
            ("TABLE_NAME", self.name, false),
            ("TABLE_TYPE", Type::VarChar(Length::Limited(10), self.database.collation), true),
        ];
        let mut rows = Vec::new();
        for object in self.visible() {
            let kind: &[u8] = match object.kind {
                Kind::Table(_) => b"BASE TABLE",
                Kind::View { .. } => b"VIEW",
                _ => continue,
            };
            let schema = self.database.schema_name(object.schema);
            rows.push(vec![
                self.spelled(&self.world.databases[self.number].name),
                self.spelled(schema),
                self.spelled(&object.name),
                Value::chars(kind),
            ]);
        }
        Relation { columns, rows }
    }

    fn information_columns(&self) -> Relation {
        let columns = vec![
            ("TABLE_SCHEMA", self.name, true),
            ("TABLE_NAME", self.name, false),
            ("COLUMN_NAME", self.name, true),
            ("ORDINAL_POSITION", Type::Int, true),
            ("IS_NULLABLE", Type::VarChar(Length::Limited(3), self.database.collation), true),
            ("DATA_TYPE", self.name, true),
        ];
        let mut rows = Vec::new();
        for (object, table) in self.visible_tables() {
            for (at, column) in table.columns.iter().enumerate() {
                rows.push(vec![
                    self.spelled(self.database.schema_name(object.schema)),
                    self.spelled(&object.name),
                    self.spelled(&column.name),
                    int(i64::try_from(at + 1).unwrap_or(0)),
                    Value::chars(if column.nullable { b"YES" } else { b"NO" }),
                    Value::wide(column.ty.name()),
                ]);
            }
        }
        Relation { columns, rows }
    }
}
