//! Names and values that a reader did not expect.

use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Cell, Effect, Fault, Fields};

use crate::laptop::Laptop;

/// Report 39: field names with `$` were refused; dots and foreign letters are names too.
#[tokio::test]
async fn field_names_of_any_kind_pass_through() {
    let laptop = Laptop::new();
    let names = ["u_a$b", "x_acme_größe", "u_日本", "u_with space", "U_Upper"];
    let row = names.iter().fold(Fields::from([("number", "N1"), ("sys_updated_on", "2026-02-01 00:00:00")]), |row, name| {
        row.with(*name, format!("value of {name}"))
    });
    laptop.api.load("incident", vec![row]).expect("a row");
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
    for name in names {
        assert_eq!(laptop.lines()[0].value[name], format!("value of {name}"));
    }
}

/// Report 46: umlauts came out broken; lone surrogates and nulls are sent by real instances as well.
#[tokio::test]
async fn rows_of_any_characters_arrive_as_the_server_wrote_them() {
    let laptop = Laptop::new();
    laptop.generate(2, 1);
    let token = r#""Zürich ☃ 𝄞 \ud800 \u0000 \"x\"""#;
    laptop.api.fault(Fault::new(Effect::FieldToken { field: "u_text_00".to_owned(), token: token.to_owned() }));
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.outcome), (2, Outcome::CaughtUp), "{report:?}");
    let text = std::fs::read_to_string(laptop.path("out.ndjson")).expect("the file");
    assert!(text.contains(token), "{text}");
}

/// Report 32: dates with AM and PM, values of odd shapes, and very long ones, broke readers that looked at display values.
#[tokio::test]
async fn display_values_of_any_form_never_reach_the_cursor() {
    for display in ["true", "all"] {
        let laptop = Laptop::new().with("snow.source.batch.size", 2).with("snow.table.inc.display.value", display);
        let shown = |n: usize| ["06/24/2026 03:04:05 PM", "24.06.2026", "", "UNKNOWN", "yesterday"][n % 5];
        let row = |n: usize| {
            Fields::new()
                .with("sys_updated_on", Cell::new(format!("2026-02-01 00:00:{n:02}")).display(shown(n)))
                .with("sys_mod_count", Cell::new("1234").display("1,234"))
                .with("amount", Cell::new("509.95").display("$509.95"))
                .with("work_notes", "x".repeat(if n == 3 { 1 << 20 } else { 10 }))
        };
        laptop.api.load("incident", (0..9).map(row).collect()).expect("rows");
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 9), "{display}: {report:?}");
        let times: Vec<i64> = laptop.lines().iter().map(|line| line.timestamp).collect();
        assert_eq!(times, (0..9).map(|n| 1_769_904_000_000 + n * 1000).collect::<Vec<_>>(), "{display}");
        let long = &laptop.lines()[3].value["work_notes"];
        let text = if display == "all" { &long["display_value"] } else { long };
        assert_eq!(text.as_str().map(str::len), Some(1 << 20), "{display}");
        laptop.api.step_clock(5);
        assert_eq!(laptop.sweep().await.rows, 0, "{display}");
    }
}
