use super::*;
use crate::source::sqlserver::catalog::{Computed, ObjectKind};

fn column(name: &str, base: &str) -> ColumnInfo {
    ColumnInfo {
        name: name.into(),
        declared_type: Some(base.into()),
        base_type: Some(base.into()),
        max_length: 10,
        precision: 18,
        scale: 2,
        ..ColumnInfo::default()
    }
}

fn table(columns: Vec<ColumnInfo>) -> TableInfo {
    TableInfo { schema: "dbo".into(), name: "t".into(), kind: ObjectKind::Table, unlocked: None, columns, indexes: Vec::new() }
}

fn columns() -> Vec<ColumnInfo> {
    vec![column("seq", "bigint"), column("amount", "decimal"), column("note", "varchar"), column("at", "datetime2")]
}

fn differences(change: impl FnOnce(&mut Vec<ColumnInfo>)) -> Vec<String> {
    let mut changed = columns();
    change(&mut changed);
    Baseline::of(&table(columns())).difference(&Baseline::of(&table(changed)))
}

#[test]
fn a_baseline_is_read_back_and_its_hash_is_that_of_its_text() {
    let mut columns = columns();
    (columns[2].is_masked, columns[2].is_nullable, columns[3].is_encrypted) = (true, true, true);
    let baseline = Baseline::of(&table(columns));
    assert_eq!(
        baseline.text(),
        r#"{"columns":[{"name":"seq","type":"bigint","nullable":false},{"name":"amount","type":"decimal","precision":18,"scale":2,"nullable":false},{"name":"note","type":"varchar","nullable":true,"withheld":"masked"},{"name":"at","type":"datetime2","nullable":false,"withheld":"encrypted"}]}"#
    );
    assert_eq!(Baseline::parse(&baseline.text()).expect("readable"), baseline);
    assert_eq!(baseline.hash().len(), 64);
    assert_eq!(baseline.hash(), Baseline::parse(&baseline.text()).expect("readable").hash());
    assert!(Baseline::parse("{}").is_err());
    assert!(Baseline::parse(r#"{"columns":[],"keys":[]}"#).is_err(), "what a newer program wrote is not half understood");
}

#[test]
fn what_counts_is_spelled_out() {
    let one = |change: fn(&mut Vec<ColumnInfo>)| differences(change).join(" | ");
    assert_eq!(one(|columns| columns.push(column("w", "int"))), "column w (int NOT NULL) is new, at place 5");
    assert_eq!(one(|columns| drop(columns.remove(2))), "column note (varchar NOT NULL) is gone");
    assert_eq!(
        one(|columns| columns[2].name = "remark".into()),
        "column note (varchar NOT NULL) is gone | column remark (varchar NOT NULL) is new, at place 3"
    );
    assert_eq!(one(|columns| columns.swap(1, 2)), "the order of columns is note, amount where it was amount, note");
    assert_eq!(
        one(|columns| columns[0].base_type = Some("decimal".into())),
        "column seq is decimal(18, 2) NOT NULL where it was bigint NOT NULL"
    );
    assert_eq!(one(|columns| columns[1].scale = 3), "column amount is decimal(18, 3) NOT NULL where it was decimal(18, 2) NOT NULL");
    assert_eq!(one(|columns| columns[2].is_nullable = true), "column note is varchar NULL where it was varchar NOT NULL");
    assert_eq!(one(|columns| columns[2].is_masked = true), "column note is varchar NOT NULL, masked where it was varchar NOT NULL");
    assert_eq!(one(|columns| columns[2].is_encrypted = true), "column note is varchar NOT NULL, encrypted where it was varchar NOT NULL");
}

#[test]
fn names_are_compared_exactly() {
    assert_eq!(differences(|columns| columns[2].name = "Note".into()).len(), 2);
}

#[test]
fn several_differences_are_all_told() {
    let found = differences(|columns| {
        columns.insert(0, column("first", "int"));
        columns[2].is_nullable = true;
        columns.swap(1, 3);
    });
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn what_does_not_change_a_value_does_not_count() {
    let harmless: &[fn(&mut ColumnInfo)] = &[
        |column| column.max_length = -1,
        |column| column.precision = 38,
        |column| column.collation = Some("Latin1_General_BIN2".into()),
        |column| column.declared_type = Some("Amount".into()),
        |column| column.is_identity = true,
        |column| column.is_sparse = true,
        |column| column.is_hidden = true,
        |column| column.computed = Computed::OnRead,
        |column| column.ordinal = 77,
    ];
    for change in harmless {
        assert_eq!(differences(|columns| columns.iter_mut().for_each(change)), [] as [String; 0]);
    }
    assert_eq!(differences(|columns| columns[3].scale = 7), [] as [String; 0], "fractions of datetime2");
    let nullable = |is_nullable| {
        let mut columns = columns();
        columns[2].is_nullable = is_nullable;
        Baseline::of(&table(columns))
    };
    assert_eq!(nullable(true).difference(&nullable(false)), [] as [String; 0], "NULL to NOT NULL");
}

#[test]
fn a_schema_that_is_back_differs_in_nothing() {
    let mut changed = columns();
    changed.push(column("w", "int"));
    changed.pop();
    assert_eq!(Baseline::of(&table(changed)), Baseline::of(&table(columns())));
}

#[test]
fn fields_of_a_record_schema_are_typed_and_optional_as_the_baseline_says() {
    let mut infos = columns();
    infos.extend(["money", "time", "real", "sql_variant", "rowversion", "tinyint"].map(|base| column(base, base)));
    infos[2].is_nullable = true;
    let columns: Vec<Column> = infos.iter().map(|info| Column::of(info).expect("known")).collect();
    let baseline = Baseline::of(&table(infos));
    let schemas = |decimal_as_string| -> Vec<Schema> {
        baseline.fields(&columns, decimal_as_string).iter().map(|field| Schema::clone(&field.schema)).collect()
    };
    let expected = [
        Schema::of(Type::Int64),
        Schema::decimal(18, 2),
        Schema::of(Type::String).optional(),
        Schema::logical(Logical::Timestamp),
        Schema::decimal(19, 4),
        Schema::logical(Logical::Time),
        Schema::of(Type::Float32),
        Schema::of(Type::String),
        Schema::of(Type::Bytes),
        Schema::of(Type::Int16),
    ];
    assert_eq!(schemas(false), expected);
    assert_eq!(schemas(true)[4], Schema::of(Type::String), "money as text");
}
