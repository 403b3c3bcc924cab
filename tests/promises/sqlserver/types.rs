//! Every type, from the server's pages over the wire to the record, byte for byte.

use tablesweep::sweep::Outcome;

use super::bed::Bed;

/// A column of a type, and values of it as SQL writes them, each with the JSON that it becomes.
struct Case {
    declared: &'static str,
    values: &'static [(&'static str, &'static str)],
}

const fn case(declared: &'static str, values: &'static [(&'static str, &'static str)]) -> Case {
    Case { declared, values }
}

const NINES: &str = "99999999999999999999999999999999999999";

/// The smallest, the largest and an odd value of each type.
static CASES: &[Case] = &[
    case("tinyint", &[("0", "0"), ("255", "255")]),
    case("smallint", &[("-32768", "-32768"), ("32767", "32767")]),
    case("int", &[("-2147483648", "-2147483648"), ("2147483647", "2147483647")]),
    case("bigint", &[("-9223372036854775808", "-9223372036854775808"), ("9223372036854775807", "9223372036854775807")]),
    case("bit", &[("0", "false"), ("1", "true")]),
    case("decimal(38, 0)", &[("-99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"), (NINES, NINES)]),
    case("numeric(9, 3)", &[("108", "108.000"), ("-999999.999", "-999999.999"), ("0.05", "0.050")]),
    case(
        "decimal(38, 38)",
        &[
            ("-0.99999999999999999999999999999999999999", "-0.99999999999999999999999999999999999999"),
            ("0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001"),
        ],
    ),
    case(
        "money",
        &[
            ("-922337203685477.5808", "-922337203685477.5808"),
            ("922337203685477.5807", "922337203685477.5807"),
            ("900719925474.0993", "900719925474.0993"),
        ],
    ),
    case("smallmoney", &[("-214748.3648", "-214748.3648"), ("214748.3647", "214748.3647")]),
    case("real", &[("-3.40E+38", "-3.4e+38"), ("3.4028235E+38", "3.4028235e+38"), ("1.18E-38", "1.18e-38"), ("0.1", "0.1")]),
    case(
        "float",
        &[
            ("-1.7976931348623157E+308", "-1.7976931348623157e+308"),
            ("1.7976931348623157E+308", "1.7976931348623157e+308"),
            ("2.23E-308", "2.23e-308"),
            ("-0.0E0", "-0.0"),
            ("0.1", "0.1"),
            ("16777217", "16777217.0"),
        ],
    ),
    case("date", &[("'0001-01-01'", "-62135596800000"), ("'9999-12-31'", "253402214400000"), ("'2026-08-05'", "1785888000000")]),
    case("time(7)", &[("'00:00:00'", "0"), ("'23:59:59.9999999'", "86399999"), ("'10:15:30.1234567'", "36930123")]),
    case("time(0)", &[("'10:15:30'", "36930000")]),
    case(
        "datetime",
        &[
            ("'1753-01-01T00:00:00.000'", "-6847804800000"),
            ("'9999-12-31T23:59:59.997'", "253402300799997"),
            ("'2026-08-05T10:15:30.007'", "1785924930007"),
        ],
    ),
    case("smalldatetime", &[("'1900-01-01T00:00:00'", "-2208988800000"), ("'2079-06-06T23:59:00'", "3453321540000")]),
    case(
        "datetime2(7)",
        &[
            ("'0001-01-01T00:00:00'", "-62135596800000"),
            ("'9999-12-31T23:59:59.9999999'", "253402300799999"),
            ("'1969-12-31T23:59:59.9999'", "-1"),
        ],
    ),
    case("datetime2(3)", &[("'2026-08-05T10:15:30.123'", "1785924930123")]),
    case(
        "datetimeoffset(7)",
        &[
            ("'2026-06-23 00:01:05.0900948 -07:00'", "1782198065090"),
            ("'0001-01-01 00:00:00 +00:00'", "-62135596800000"),
            ("'0001-01-01 14:00:00 +14:00'", "-62135596800000"),
            ("'9999-12-31 23:59:59.9999999 +00:00'", "253402300799999"),
            ("'9999-12-31 23:59:59 +14:00'", "253402250399000"),
            ("'2026-06-23 00:00:00 -14:00'", "1782223200000"),
        ],
    ),
    case("uniqueidentifier", &[("'6f9619ff-8b86-d011-b42d-00c04fc964ff'", "\"6F9619FF-8B86-D011-B42D-00C04FC964FF\"")]),
    case("char(5)", &[("'ab'", "\"ab   \"")]),
    case("varchar(10)", &[("''", "\"\""), ("N'Müller'", "\"Müller\"")]),
    case("varchar(max)", &[("N'h\"é\\'", "\"h\\\"é\\\\\"")]),
    case("varchar(20) COLLATE SQL_Latin1_General_CP850_CI_AS", &[("N'Müller'", "\"Müller\"")]),
    case("varchar(20) COLLATE Thai_CI_AS", &[("NCHAR(3585)", "\"ก\"")]),
    case("varchar(40) COLLATE Latin1_General_100_CI_AS_SC_UTF8", &[("N'héllo €'", "\"héllo €\"")]),
    case("nchar(3)", &[("N'ä'", "\"ä  \"")]),
    case("nvarchar(100)", &[("N'a' + NCHAR(0) + NCHAR(55357) + NCHAR(56832)", "\"a\\u0000😀\"")]),
    case("nvarchar(max)", &[("N''", "\"\"")]),
    case("text", &[("N'é'", "\"é\"")]),
    case("ntext", &[("N'ก'", "\"ก\"")]),
    case("xml", &[("N'<a b=\"1\">é</a>'", "\"<a b=\\\"1\\\">é</a>\"")]),
    case("binary(4)", &[("0x010203", "\"AQIDAA==\"")]),
    case("varbinary(10)", &[("0x", "\"\""), ("0xFF", "\"/w==\"")]),
    case("varbinary(max)", &[("0x010203", "\"AQID\"")]),
    case("image", &[("0x00", "\"AA==\"")]),
    case("hierarchyid", &[("CAST(0x5AC0 AS hierarchyid)", "\"WsA=\"")]),
    case("geography", &[("CAST(0xE6100000010C000000000000F03F0000000000000040 AS geography)", "\"5hAAAAEMAAAAAAAA8D8AAAAAAAAAQA==\"")]),
    case("geometry", &[("CAST(0x00000000010C000000000000F03F0000000000000040 AS geometry)", "\"AAAAAAEMAAAAAAAA8D8AAAAAAAAAQA==\"")]),
    case(
        "sql_variant",
        &[
            ("CAST(42 AS int)", "42"),
            ("CAST(1 AS bit)", "true"),
            ("CAST(1.50 AS decimal(38, 10))", "1.5000000000"),
            ("CAST(922337203685477.5807 AS money)", "922337203685477.5807"),
            ("N'x'", "\"x\""),
            ("CAST('y' AS varchar(5))", "\"y\""),
            ("CAST('1969-12-31T23:59:59.9999' AS datetime2(7))", "-1"),
            ("CAST('2026-08-05' AS date)", "1785888000000"),
            ("CAST('10:15:30.1234567' AS time(7))", "36930123"),
            ("CAST('2026-08-05T10:15:30.007' AS datetime)", "1785924930007"),
            ("CAST('2079-06-06T23:59:00' AS smalldatetime)", "3453321540000"),
            ("CAST('2026-06-23 00:00:00 -14:00' AS datetimeoffset(7))", "1782223200000"),
            ("CAST(9223372036854775807 AS bigint)", "9223372036854775807"),
            ("CAST(255 AS tinyint)", "255"),
            ("CAST(-32768 AS smallint)", "-32768"),
            ("CAST(0.1 AS float)", "0.1"),
            ("CAST(0.1 AS real)", "0.1"),
            ("CAST(214748.3647 AS smallmoney)", "214748.3647"),
            ("CAST('ab' AS char(5))", "\"ab   \""),
            ("CAST(0x0102 AS varbinary(5))", "\"AQI=\""),
            ("CAST('6f9619ff-8b86-d011-b42d-00c04fc964ff' AS uniqueidentifier)", "\"6F9619FF-8B86-D011-B42D-00C04FC964FF\""),
        ],
    ),
];

/// A table with a column of every type, and a row per value; the columns of the other types are NULL.
pub(super) fn all_types(extra: &str) -> Bed {
    let columns: Vec<String> = CASES.iter().enumerate().map(|(at, case)| format!("c{at} {} NULL", case.declared)).collect();
    let bed =
        Bed::with_table(&format!("CREATE TABLE dbo.orders (id bigint CONSTRAINT orders_id PRIMARY KEY, {}{extra})", columns.join(", ")));
    let mut id = 0;
    for (at, case) in CASES.iter().enumerate() {
        for (value, _) in case.values {
            id += 1;
            bed.run(&format!("INSERT INTO dbo.orders (id, c{at}) VALUES ({id}, {value})"));
        }
    }
    bed
}

/// The rows of [`all_types`] as JSON.
fn all_json() -> Vec<String> {
    let mut rows = Vec::new();
    for (at, case) in CASES.iter().enumerate() {
        for (_, json) in case.values {
            let field = |(other, _): (usize, &Case)| format!("\"c{other}\":{}", if other == at { *json } else { "null" });
            let fields: Vec<String> = CASES.iter().enumerate().map(field).collect();
            rows.push(format!("{{\"id\":{},{}}}", rows.len() + 1, fields.join(",")));
        }
    }
    rows
}

#[tokio::test]
async fn every_type_arrives_at_its_extremes_byte_for_byte() {
    let bed = all_types("");
    let report = bed.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    let texts: Vec<String> = bed.lines().into_iter().map(|line| line.text).collect();
    for (text, expected) in texts.iter().zip(all_json()) {
        assert_eq!(*text, expected);
    }
    assert_eq!(texts.len(), all_json().len());
}

#[tokio::test]
async fn a_row_version_is_bytes() {
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, version rowversion)");
    bed.run("INSERT INTO dbo.orders (id) VALUES (1)");
    bed.sweep().await;
    let lines = bed.lines();
    let version = lines[0].value["version"].as_str().expect("text");
    assert!(version.len() == 12 && version.starts_with("AAAAAAAA") && version.ends_with('='), "{version}");
}

#[tokio::test]
async fn times_without_a_zone_are_read_in_the_documents_zone() {
    let bed = Bed::with_table(
        "CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, a datetime2(7), b date, c time, d datetimeoffset, e smalldatetime)",
    )
    .with("mssql.timezone", "Europe/Berlin");
    bed.run(
        "INSERT INTO dbo.orders VALUES \
         (1, '2026-08-05T10:15:30.1234567', '2026-08-05', '00:00:00', '2026-08-05 10:15:30 +09:00', '2026-08-05T10:15:00'), \
         (2, '2026-03-29T02:30:00', NULL, NULL, NULL, NULL), \
         (3, '2026-10-25T02:30:00', NULL, NULL, NULL, NULL)",
    );
    bed.sweep().await;
    let texts: Vec<String> = bed.lines().into_iter().map(|line| line.text).collect();
    assert_eq!(
        texts,
        [
            r#"{"id":1,"a":1785917730123,"b":1785880800000,"c":0,"d":1785892530000,"e":1785917700000}"#,
            r#"{"id":2,"a":1774747800000,"b":null,"c":null,"d":null,"e":null}"#,
            r#"{"id":3,"a":1792888200000,"b":null,"c":null,"d":null,"e":null}"#,
        ]
    );
}

#[tokio::test]
async fn decimals_become_texts_if_the_document_says_so() {
    let bed =
        Bed::with_table("CREATE TABLE dbo.orders (id decimal(38, 0) CONSTRAINT orders_id PRIMARY KEY, m money, v sql_variant, n int)")
            .with("mssql.decimal.as.string", "true");
    bed.run("INSERT INTO dbo.orders VALUES (7, 1.5, CAST(2.50 AS decimal(5, 2)), 3)");
    bed.sweep().await;
    assert_eq!(bed.lines()[0].text, r#"{"id":"7","m":"1.5000","v":"2.50","n":3}"#);
    assert_eq!(bed.keys(), ["7"]);
}

/// One bad value in the middle must not hide the rows behind it, now or at any later poll.
#[tokio::test]
async fn text_that_cannot_be_decoded_is_replaced_and_stops_nothing() {
    let texts = [
        ("nvarchar(20)", "N'A' + NCHAR(55357) + N'B'", Some("A\u{fffd}B")),
        ("nvarchar(max)", "N'A' + NCHAR(56320)", Some("A\u{fffd}")),
        ("ntext", "N'A' + NCHAR(55357)", Some("A\u{fffd}")),
        ("sql_variant", "N'A' + NCHAR(55357)", Some("A\u{fffd}")),
        // What the server makes of bytes that its code page does not define is its own business.
        ("varchar(20) COLLATE Japanese_CI_AS", "CAST(0x4181 AS varchar(20))", None),
        ("varchar(20) COLLATE Greek_CI_AS", "CAST(0x41D2 AS varchar(20))", None),
        ("varchar(20) COLLATE SQL_Latin1_General_CP1_CI_AS", "CAST(0x4181 AS varchar(20))", Some("A\u{81}")),
    ];
    for (declared, value, expected) in texts {
        let bed = Bed::with_table(&format!("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, t {declared})"));
        bed.run(&format!("INSERT INTO dbo.orders VALUES (1, N'before'), (2, {value}), (3, N'after')"));
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 3), "{declared}: {report:?}");
        let lines = bed.lines();
        assert_eq!((lines[0].value["t"].as_str(), lines[2].value["t"].as_str()), (Some("before"), Some("after")), "{declared}");
        let text = lines[1].value["t"].as_str().expect("text");
        match expected {
            Some(expected) => assert_eq!(text, expected, "{declared}"),
            None => assert!(text.starts_with('A'), "{declared}: {text}"),
        }
        assert_eq!(report.values_replaced, u64::from(text.contains('\u{fffd}')), "{declared}: {text}");
    }
}

/// Every byte of the code pages whose text is not cast, as the server would decode it.
#[tokio::test]
async fn all_bytes_of_a_code_page_without_gaps_arrive() {
    let bed =
        Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, t varchar(300) COLLATE Cyrillic_General_CI_AS)");
    let bytes: String = (1..=255).map(|byte| format!("{byte:02X}")).collect();
    bed.run(&format!("INSERT INTO dbo.orders VALUES (1, CAST(0x{bytes} AS varchar(300)))"));
    let report = bed.sweep().await;
    assert_eq!(report.rows, 1, "{report:?}");
    let lines = bed.lines();
    let text = lines[0].value["t"].as_str().expect("text");
    assert_eq!(text.chars().count(), 255);
}

#[tokio::test]
async fn names_of_any_form_are_quoted_and_kept() {
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, [FOR] int, [a]]b] int, [x \"y\"] int)");
    bed.run("INSERT INTO dbo.orders VALUES (1, 2, 3, 4)");
    bed.sweep().await;
    assert_eq!(bed.lines()[0].text, r#"{"id":1,"FOR":2,"a]b":3,"x \"y\"":4}"#);
}

#[tokio::test]
async fn hidden_sparse_and_computed_columns_are_part_of_the_row() {
    let bed = Bed::with_table(
        "CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, a int SPARSE NULL, twice AS id * 2, \
         since datetime2(3) HIDDEN NOT NULL)",
    );
    bed.run("INSERT INTO dbo.orders (id, a, since) VALUES (4, 5, '1970-01-01T00:00:01')");
    bed.sweep().await;
    assert_eq!(bed.lines()[0].text, r#"{"id":4,"a":5,"twice":8,"since":1000}"#);
}
