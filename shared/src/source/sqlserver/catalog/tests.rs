use super::*;

type Row = Vec<ColumnData<'static>>;

fn text(text: &'static str) -> ColumnData<'static> {
    ColumnData::String(Some(text.into()))
}

const NULL_TEXT: ColumnData<'static> = ColumnData::String(None);

fn bit(bit: bool) -> ColumnData<'static> {
    ColumnData::Bit(Some(bit))
}

fn object(kind: &'static str, external: bool, temporal: u8, files: bool) -> Row {
    let base = if kind == "SN" { text("[other].[dbo].[orders]") } else { NULL_TEXT };
    vec![text("dbo"), text("orders"), text(kind), base, bit(external), ColumnData::U8(Some(temporal)), bit(files), bit(false), NULL_TEXT]
}

/// A row of the second result: a column of a declared type, and the type behind an alias.
fn column_row(
    ordinal: i32,
    name: &'static str,
    declared: Option<&'static str>,
    alias: bool,
    clr: bool,
    behind: Option<&'static str>,
) -> Row {
    let optional = |name: Option<&'static str>| ColumnData::String(name.map(Into::into));
    vec![
        ColumnData::I32(Some(ordinal)),
        text(name),
        ColumnData::I32((ordinal == 1).then_some(1)),
        optional(declared),
        bit(alias),
        bit(clr),
        optional(behind),
        ColumnData::I16(Some(-1)),
        ColumnData::U8(Some(38)),
        ColumnData::U8(Some(0)),
        NULL_TEXT,
        bit(true),
        bit(false),
        bit(false),
        ColumnData::Bit(None),
        bit(false),
        bit(false),
        ColumnData::I32(None),
        bit(false),
        bit(false),
        ColumnData::F64(None),
    ]
}

fn index_row(id: i32, name: &'static str, column: i32, constraint: bool) -> Row {
    let flags = [bit(true), bit(false), bit(constraint), bit(false), bit(false), bit(false)];
    [vec![ColumnData::I32(Some(id)), text(name), ColumnData::U8(Some(2))], flags.to_vec(), vec![ColumnData::I32(Some(column))]].concat()
}

fn found(results: &[Vec<Row>]) -> TableInfo {
    match read(results).expect("readable") {
        Lookup::Found(table) => *table,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_is_compared_by_the_server_and_is_never_a_pattern() {
    assert!(!STATEMENT.to_uppercase().contains("LIKE"));
    assert_eq!(STATEMENT.matches("SELECT").count(), RESULTS);
    for parameter in ["s.name = @P1", "o.name = @P2", "q.name = @P3"] {
        assert!(STATEMENT.contains(parameter), "{parameter}");
    }
}

#[test]
fn a_missing_schema_and_a_missing_object_are_told_apart() {
    assert_eq!(read::<Row>(&[vec![], vec![], vec![]]), Ok(Lookup::NoSchema));
    let mut without = object("U ", false, 0, false);
    without[1..].fill(NULL_TEXT);
    assert_eq!(read(&[vec![without], vec![], vec![]]), Ok(Lookup::NoObject));
}

#[test]
fn kinds_of_objects_are_told_apart() {
    let kind = |row: Row| found(&[vec![row], vec![], vec![]]).kind;
    assert_eq!(kind(object("U ", false, 0, false)), ObjectKind::Table);
    assert_eq!(kind(object("U ", false, 2, false)), ObjectKind::Table, "the current part of a temporal table");
    assert_eq!(kind(object("U", true, 0, false)), ObjectKind::External);
    assert_eq!(kind(object("U ", false, 1, false)), ObjectKind::History);
    assert_eq!(kind(object("U ", false, 0, true)), ObjectKind::FileTable);
    assert_eq!(kind(object("V ", false, 0, false)), ObjectKind::View);
    assert_eq!(kind(object("SN", false, 0, false)), ObjectKind::Synonym("[other].[dbo].[orders]".into()));
    assert_eq!(kind(object("P ", false, 0, false)), ObjectKind::Other("P".into()));
}

#[test]
fn tables_whose_readers_wait_for_nobody_are_known_by_their_kind_and_their_server() {
    for (memory_optimized, babelfish, expected) in [
        (false, NULL_TEXT, None),
        (true, NULL_TEXT, Some(Unlocked::MemoryOptimized)),
        (false, text("1"), Some(Unlocked::Babelfish)),
        (true, text("1"), Some(Unlocked::Babelfish)),
    ] {
        let mut row = object("U ", false, 0, false);
        row[7] = bit(memory_optimized);
        row[8] = babelfish;
        assert_eq!(found(&[vec![row], vec![], vec![]]).unlocked, expected);
    }
}

#[test]
fn an_alias_is_the_type_behind_it_and_a_clr_type_is_itself() {
    let base = |declared, alias, clr, behind| {
        let columns = vec![column_row(1, "c", declared, alias, clr, behind)];
        found(&[vec![object("U ", false, 0, false)], columns, vec![]]).columns[0].base_type.clone()
    };
    let is = |name: &str| Some(name.to_owned());
    assert_eq!(base(Some("int"), false, false, Some("int")), is("int"));
    assert_eq!(base(Some("OrderId"), true, false, Some("bigint")), is("bigint"));
    assert_eq!(base(Some("sysname"), false, false, Some("nvarchar")), is("nvarchar"));
    assert_eq!(base(Some("geography"), false, true, None), is("geography"));
    assert_eq!(base(Some("Point"), true, true, None), is("Point"));
    // A newer type may share its number with an older one; its name decides.
    assert_eq!(base(Some("vector"), false, false, Some("varbinary")), is("vector"));
    // An alias that the login may not see still has its base type; a CLR type has none.
    assert_eq!(base(None, false, false, Some("decimal")), is("decimal"));
    assert_eq!(base(None, false, false, None), None);
}

/// Babelfish answers flags and small numbers as integers of other sizes.
#[test]
fn numbers_of_any_size_are_read() {
    let mut column = column_row(1, "c", Some("numeric"), false, false, None);
    column[0] = ColumnData::I16(Some(1));
    column[8] = ColumnData::I32(Some(38));
    column[11] = ColumnData::I32(Some(1));
    column[12] = ColumnData::I32(Some(0));
    let read = found(&[vec![object("U ", false, 0, false)], vec![column], vec![]]);
    assert_eq!((read.columns[0].precision, read.columns[0].is_nullable, read.columns[0].is_identity), (38, true, false));
    assert!(read.columns[0].is_asked_for);
}

#[test]
fn the_key_columns_of_an_index_stay_together_and_in_order() {
    let rows = vec![index_row(1, "pk", 3, true), index_row(1, "pk", 1, true), index_row(4, "uq", 1, false)];
    let read = found(&[vec![object("U ", false, 0, false)], vec![], rows]);
    let keys: Vec<_> = read.indexes.iter().map(|index| (index.name.as_str(), index.key.as_slice(), index.is_constraint)).collect();
    assert_eq!(keys, [("pk", [3, 1].as_slice(), true), ("uq", [1].as_slice(), false)]);
}

#[test]
fn an_answer_of_another_shape_is_an_error_and_never_an_empty_table() {
    let table = || vec![object("U ", false, 0, false)];
    let column = || column_row(1, "c", Some("int"), false, false, None);
    assert!(read::<Row>(&[]).is_err());
    assert!(read(&[table(), vec![column()]]).is_err(), "a result is missing");
    for at in [0, 1, 7] {
        let mut odd = column();
        odd[at] = ColumnData::F64(Some(1.0));
        assert!(read(&[table(), vec![odd], vec![]]).is_err(), "value {at}");
        assert!(read(&[table(), vec![column()[..at].to_vec()], vec![]]).is_err(), "{at} values");
    }
    let mut wide = column();
    wide[8] = ColumnData::I32(Some(300));
    assert!(read(&[table(), vec![wide], vec![]]).is_err(), "300 digits");
}
