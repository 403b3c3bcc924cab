use super::*;

/// `dbo.orders(id bigint NOT NULL PRIMARY KEY, region int NOT NULL, note nvarchar(100) NULL)`.
fn table() -> TableInfo {
    let column = |ordinal, name: &str, base: &str, is_nullable| ColumnInfo {
        ordinal,
        name: name.into(),
        is_asked_for: ordinal == 1,
        declared_type: Some(base.into()),
        base_type: Some(base.into()),
        max_length: 200,
        precision: 19,
        is_nullable,
        ..ColumnInfo::default()
    };
    let columns = vec![column(1, "id", "bigint", false), column(3, "region", "int", false), column(4, "note", "nvarchar", true)];
    TableInfo {
        schema: "dbo".into(),
        name: "orders".into(),
        kind: ObjectKind::Table,
        unlocked: None,
        columns,
        indexes: vec![primary_key()],
    }
}

fn primary_key() -> IndexInfo {
    IndexInfo { id: 1, name: "pk".into(), kind: 1, is_unique: true, is_constraint: true, key: vec![1], ..IndexInfo::default() }
}

fn orders() -> TableName {
    TableName { schema: "dbo".into(), table: "orders".into() }
}

fn checked(change: impl FnOnce(&mut TableInfo)) -> Result<Pollable, Refusal> {
    let mut table = table();
    change(&mut table);
    check(Lookup::Found(Box::new(table)), &orders(), "id")
}

/// The code and the words of the refusal.
fn refused(change: impl FnOnce(&mut TableInfo)) -> (&'static str, String) {
    let refusal = checked(change).expect_err("refused");
    (refusal.code(), refusal.to_string())
}

fn sequence_refused(change: impl FnOnce(&mut TableInfo), words: &str) {
    let (code, text) = refused(change);
    assert_eq!(code, "Source.Sequence", "{text}");
    assert!(text.contains(words) && text.contains("id"), "{text}");
}

#[test]
fn a_table_with_a_key_of_one_whole_number_can_be_polled() {
    let table = checked(|_| ()).expect("pollable");
    assert_eq!((table.sequence, table.sequence_type), (0, SequenceType::BigInt));
    assert_eq!(table.quoted_name(), "[dbo].[orders]");
    assert_eq!(table.quoted_sequence(), "[id]");
    assert_eq!(table.select_list(), "[id], [region], [note]");
}

#[test]
fn each_whole_number_type_is_a_sequence_and_nothing_else_is() {
    let with = |base: &str, precision, scale| {
        checked(|table| {
            let column = &mut table.columns[0];
            (column.base_type, column.precision, column.scale) = (Some(base.into()), precision, scale);
        })
    };
    let accepted = [
        ("tinyint", SequenceType::TinyInt),
        ("smallint", SequenceType::SmallInt),
        ("int", SequenceType::Int),
        ("bigint", SequenceType::BigInt),
        ("decimal", SequenceType::Decimal(38)),
        ("numeric", SequenceType::Decimal(38)),
    ];
    for (base, expected) in accepted {
        assert_eq!(with(base, 38, 0).map(|table| table.sequence_type), Ok(expected), "{base}");
    }
    for base in ["timestamp", "uniqueidentifier", "varchar", "float", "money", "datetime2", "bit", "sql_variant"] {
        let text = with(base, 0, 0).expect_err("refused").to_string();
        assert!(text.contains(base) && text.contains("tinyint, smallint, int, bigint"), "{text}");
    }
    let text = with("decimal", 18, 2).expect_err("refused").to_string();
    assert!(text.contains("scale 2"), "{text}");
}

#[test]
fn an_alias_type_is_judged_by_the_type_behind_it() {
    checked(|table| table.columns[0].declared_type = Some("OrderId".into())).expect("pollable");
    checked(|table| table.columns[0].declared_type = None).expect("pollable even if the alias is hidden");
}

#[test]
fn what_is_no_table_is_refused_with_what_it_is() {
    let kinds = [
        (ObjectKind::View, "a view"),
        (ObjectKind::Synonym("[sales].[dbo].[orders]".into()), "a synonym of [sales].[dbo].[orders]"),
        (ObjectKind::External, "an external table"),
        (ObjectKind::History, "the history of a temporal table"),
        (ObjectKind::FileTable, "a FileTable"),
        (ObjectKind::Other("IF".into()), "a function"),
        (ObjectKind::Other("P".into()), "a procedure"),
        (ObjectKind::Other("??".into()), "no table"),
    ];
    for (kind, words) in kinds {
        let (code, text) = refused(|table| table.kind = kind);
        assert_eq!(code, "Source.NotATable");
        assert!(text.contains(words), "{text}");
    }
    let inner = "graph_id_DC2D8DDDDD1346E79ED15B50CB2F2F1B";
    let (code, text) = refused(|table| (table.columns[2].name, table.columns[2].is_hidden) = (inner.into(), true));
    assert!(code == "Source.NotATable" && text.contains("graph"), "{text}");
    checked(|table| table.columns[2].name = inner.into()).expect("somebody's own column of that name");
}

#[test]
fn a_missing_table_and_a_missing_schema_have_their_own_words() {
    let refusal = |lookup| check(lookup, &orders(), "id").expect_err("refused");
    let (schema, object) = (refusal(Lookup::NoSchema), refusal(Lookup::NoObject));
    assert_eq!((schema.code(), object.code()), ("Source.TableMissing", "Source.TableMissing"));
    assert!(schema.to_string().contains("no schema dbo"), "{schema}");
    assert!(object.to_string().contains("no object dbo.orders") && object.to_string().contains("grant SELECT"), "{object}");
    let failure = object.of("shop", "orders", &orders());
    assert!(failure.message.starts_with("shop/orders (table dbo.orders): "), "{failure}");
    assert_eq!(failure.retry, Retry::Never);
}

#[test]
fn a_missing_sequence_column_is_named_with_the_one_that_differs_in_case() {
    sequence_refused(|table| table.columns[0].is_asked_for = false, "there is no column id; there is id");
    let missing = checked(|table| (table.columns[0].is_asked_for, table.columns[0].name) = (false, "ID".into()));
    assert!(missing.expect_err("refused").to_string().contains("there is ID, and this database tells case apart"));
    let missing = checked(|table| (table.columns[0].is_asked_for, table.columns[0].name) = (false, "number".into()));
    assert_eq!(missing.expect_err("refused").to_string(), "there is no column id. Check the alias's sequence.column key");
}

/// In a database that does not tell case apart the server's word counts, not the spelling.
#[test]
fn the_column_that_the_server_means_is_the_sequence() {
    let table = checked(|table| table.columns[0].name = "ID".into()).expect("pollable");
    assert_eq!(table.quoted_sequence(), "[ID]");
}

#[test]
fn a_sequence_column_that_is_unfit_is_refused_with_the_reason() {
    sequence_refused(|table| table.columns[0].is_nullable = true, "takes NULL");
    sequence_refused(|table| table.columns[0].is_masked = true, "masked");
    sequence_refused(|table| table.columns[0].is_encrypted = true, "encrypted");
    sequence_refused(|table| table.columns[0].computed = Computed::OnRead, "computed");
    checked(|table| table.columns[0].computed = Computed::Persisted).expect("a stored value");
}

#[test]
fn uniqueness_is_proved_by_a_constraint_on_the_column_alone() {
    sequence_refused(|table| table.indexes.clear(), "is not unique");
    sequence_refused(|table| table.indexes[0].is_unique = false, "is not unique");
    sequence_refused(|table| table.indexes[0].key = vec![3], "is not unique");
    sequence_refused(|table| table.indexes[0].is_hypothetical = true, "is not unique");
    sequence_refused(|table| table.indexes[0].key = vec![3, 1], "unique only together with region (pk)");
    sequence_refused(|table| table.indexes[0].key = vec![1, 4, 3], "unique only together with note, region (pk)");
    sequence_refused(|table| table.indexes[0].is_constraint = false, "has a unique index (pk) and no constraint");
    sequence_refused(|table| (table.indexes[0].id, table.indexes[0].is_disabled) = (2, true), "is disabled");
    sequence_refused(
        |table| (table.indexes[0].is_constraint, table.indexes[0].is_filtered) = (false, true),
        "unique among some of the rows only",
    );
}

#[test]
fn of_several_indexes_one_good_one_is_enough() {
    let others = [
        IndexInfo { id: 2, is_disabled: true, ..primary_key() },
        IndexInfo { id: 3, is_constraint: false, ..primary_key() },
        IndexInfo { id: 4, key: vec![1, 3], ..primary_key() },
    ];
    checked(|table| table.indexes = [others.as_slice(), &[IndexInfo { id: 9, ..primary_key() }]].concat()).expect("the last one proves it");
    sequence_refused(|table| table.indexes = others.to_vec(), "is disabled");
}

#[test]
fn a_disabled_clustered_index_makes_the_table_unreadable() {
    let (code, text) = refused(|table| table.indexes[0].is_disabled = true);
    assert!(code == "Source.TableDisabled" && text.contains("pk"), "{text}");
}

#[test]
fn a_column_whose_type_is_not_known_is_named() {
    let (code, text) = refused(|table| table.columns[2].base_type = Some("tensor".into()));
    assert!(code == "Source.ColumnType" && text.contains("column note is of type tensor"), "{text}");
    let (code, text) = refused(|table| table.columns[2].base_type = None);
    assert!(code == "Source.ColumnType" && text.contains("note") && text.contains("VIEW DEFINITION"), "{text}");
}
