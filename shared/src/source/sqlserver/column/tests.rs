use tiberius::Collation;

use super::*;

fn info(name: &str, base: &str) -> ColumnInfo {
    ColumnInfo {
        name: name.into(),
        base_type: Some(base.into()),
        max_length: 20,
        collation: Some("Latin1_General_CI_AS".into()),
        ..ColumnInfo::default()
    }
}

fn selected(info: &ColumnInfo) -> String {
    select_list(&[Column::of(info).expect("known")])
}

fn collated(base: &str, collation: &str, max_length: i64) -> String {
    selected(&ColumnInfo { collation: Some(collation.into()), max_length, ..info("c", base) })
}

#[test]
fn identifiers_are_quoted_whatever_they_are() {
    for (name, quoted) in [("FOR", "[FOR]"), ("a]b", "[a]]b]"), ("a b", "[a b]"), ("]]", "[]]]]]"), ("'; DROP", "['; DROP]")] {
        assert_eq!(quote(name), quoted);
        assert_eq!(selected(&info(name, "int")), quoted);
    }
}

#[test]
fn what_arrives_whole_is_selected_as_it_is() {
    let plain = [
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "bit",
        "decimal",
        "numeric",
        "real",
        "float",
        "date",
        "time",
        "datetime",
        "smalldatetime",
        "datetime2",
        "datetimeoffset",
        "uniqueidentifier",
        "nchar",
        "nvarchar",
        "ntext",
        "char",
        "varchar",
        "text",
        "binary",
        "varbinary",
        "image",
        "timestamp",
    ];
    for base in plain {
        assert_eq!(selected(&info("c", base)), "[c]", "{base}");
    }
}

#[test]
fn what_the_driver_would_round_or_fail_at_is_cast_by_the_server() {
    assert_eq!(selected(&info("c", "money")), "CAST([c] AS decimal(19, 4))");
    assert_eq!(selected(&info("c", "smallmoney")), "CAST([c] AS decimal(10, 4))");
    for base in ["xml", "json", "vector"] {
        assert_eq!(selected(&info("c", base)), "CAST([c] AS nvarchar(max))", "{base}");
    }
    for base in ["hierarchyid", "geometry", "Point"] {
        assert_eq!(selected(&ColumnInfo { is_clr: true, ..info("c", base) }), "CAST([c] AS varbinary(max))", "{base}");
    }
    assert_eq!(selected(&ColumnInfo { is_encrypted: true, ..info("c", "money") }), "[c]", "ciphertext cannot be cast");
}

#[test]
fn text_is_cast_where_its_code_page_has_gaps_or_is_unknown() {
    for collation in
        ["SQL_Latin1_General_CP1_CI_AS", "Latin1_General_100_CI_AS_SC", "Cyrillic_General_CI_AS", "Polish_BIN2", "Turkish_100_CS_AS"]
    {
        assert_eq!(collated("varchar", collation, 10), "[c]", "{collation}");
    }
    let cast = [
        "SQL_Latin1_General_CP437_CI_AS",
        "SQL_Latin1_General_CP850_BIN2",
        "SQL_Latin1_General_CP1253_CI_AI",
        "Latin1_General_100_CI_AS_SC_UTF8",
        "Greek_CI_AS",
        "Hebrew_CI_AS",
        "Thai_CI_AS",
        "Japanese_CI_AS",
        "Chinese_PRC_CI_AS",
        "Vietnamese_CI_AS",
        "bbf_unicode_cp1_ci_as",
        "Frenchified_CI_AS",
        "",
    ];
    for collation in cast {
        assert_eq!(collated("varchar", collation, 10), "CAST([c] AS nvarchar(10))", "{collation}");
    }
    assert_eq!(collated("char", "Thai_CI_AS", 4000), "CAST([c] AS nvarchar(4000))");
    assert_eq!(collated("varchar", "Thai_CI_AS", 4001), "CAST([c] AS nvarchar(max))");
    assert_eq!(collated("varchar", "Thai_CI_AS", -1), "CAST([c] AS nvarchar(max))");
    assert_eq!(collated("text", "Thai_CI_AS", 16), "CAST([c] AS nvarchar(max))");
    assert_eq!(collated("nvarchar", "Thai_CI_AS", 16), "[c]");
}

/// The claim behind [`defines_every_byte`], asked of the driver: LCIDs of Windows collations (MS-LCID), and the sort
/// ids of the old ones as the server sends them (`sys.fn_helpcollations`, `COLLATIONPROPERTY`).
#[test]
fn the_driver_decodes_every_byte_of_the_text_that_is_not_cast() {
    let languages = [
        ("Latin1_General", 0x0409),
        ("French", 0x040c),
        ("Finnish_Swedish", 0x040b),
        ("Danish_Norwegian", 0x0406),
        ("Danish_Greenlandic", 0x0406),
        ("Norwegian", 0x0414),
        ("Icelandic", 0x040f),
        ("Modern_Spanish", 0x0c0a),
        ("Traditional_Spanish", 0x040a),
        ("German_PhoneBook", 0x0407),
        ("Polish", 0x0415),
        ("Czech", 0x0405),
        ("Slovak", 0x041b),
        ("Slovenian", 0x0424),
        ("Hungarian", 0x040e),
        ("Croatian", 0x041a),
        ("Romanian", 0x0418),
        ("Albanian", 0x041c),
        ("Cyrillic_General", 0x0419),
        ("Ukrainian", 0x0422),
        ("Turkish", 0x041f),
        ("Arabic", 0x0401),
    ];
    let old = [52, 51, 54, 80, 81, 104, 105, 106, 128, 129, 130, 144, 145, 146, 183, 184, 185, 186, 210, 217];
    let languages = languages.map(|(language, lcid)| {
        assert!(defines_every_byte(&format!("{language}_CI_AS")), "{language}");
        Collation::new(lcid, 0)
    });
    let every_byte: Vec<u8> = (0..=255).collect();
    for collation in languages.into_iter().chain(old.map(|sort_id| Collation::new(0x0409, sort_id))) {
        let encoding = collation.encoding().expect("known to the driver");
        let text = encoding.decode_without_bom_handling_and_without_replacement(&every_byte).expect("no gaps");
        assert_eq!(text.chars().count(), 256, "{collation}");
    }
}

#[test]
fn a_variant_is_asked_for_in_three_parts_of_which_one_has_the_value() {
    let column = Column::of(&info("v]", "sql_variant")).expect("known");
    assert_eq!(column.cells(), 3);
    let list = select_list(&[column, Column::of(&info("n", "int")).expect("known")]);
    let base = "CAST(SQL_VARIANT_PROPERTY([v]]], 'BaseType') AS nvarchar(128))";
    let (text, money) = ("N'char', N'varchar', N'nchar', N'nvarchar'", "N'money', N'smallmoney'");
    assert_eq!(
        list,
        format!(
            "CASE WHEN {base} IN ({text}) THEN CAST([v]]] AS nvarchar(max)) END, \
             CASE WHEN {base} IN ({money}) THEN CAST([v]]] AS decimal(19, 4)) END, \
             CASE WHEN {base} NOT IN ({text}, {money}) THEN [v]]] END, [n]"
        )
    );
}
