//! Made-up rows in any number, for benchmarks and for tests of volume.
//!
//! The content is drawn from one pool of random words, so that it compresses about as well as the text of real
//! tickets does and costs a copy to make. Identities are random: their order has nothing to do with that of the rows.

use serde::{Deserialize, Serialize};

use super::clock::{format_stamp, parse_stamp};
use super::data::ColumnSpec;
use super::database::Database;
use super::random::Random;
use super::row::{Cell, Kind};

/// What identities look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ids {
    /// Lower-case hexadecimal digits.
    #[default]
    Hex,
    /// Hexadecimal digits of both cases: their order depends on the collation.
    MixedCase,
}

/// Rows to make up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Generate {
    /// The table; it is created when there is none.
    pub table: String,
    /// How many.
    pub rows: u64,
    /// Rows that share one second.
    pub per_second: u64,
    /// The first second (UTC); the clock's now when absent.
    pub start: Option<String>,
    /// Text fields beside `number`, `active` and `priority`.
    pub fields: usize,
    /// Bytes of a row's JSON, about.
    pub bytes_per_row: usize,
    /// What identities look like.
    pub ids: Ids,
    /// The seed.
    pub seed: u64,
}

impl Default for Generate {
    fn default() -> Self {
        Self { table: "incident".to_owned(), rows: 0, per_second: 100, start: None, fields: 4, bytes_per_row: 500, ids: Ids::Hex, seed: 1 }
    }
}

impl Generate {
    /// This many rows for this table.
    pub fn rows(table: &str, rows: u64) -> Self {
        Self { table: table.to_owned(), rows, ..Self::default() }
    }
}

const WORDS: [&str; 24] = [
    "network", "printer", "request", "denied", "access", "server", "reboot", "queue", "disk", "outage", "user", "reset", "password",
    "laptop", "replaced", "pending", "vendor", "mail", "sync", "error", "since", "monday", "floor", "building",
];

fn pool(random: &mut Random) -> String {
    let mut text = String::with_capacity(1 << 16);
    while text.len() < 1 << 16 {
        text.push_str(WORDS[random.below(WORDS.len())]);
        if random.below(7) == 0 {
            text.push_str(&random.id()[..8]);
        }
        text.push(' ');
    }
    text
}

/// Makes the rows and inserts them.
pub(super) fn generate(db: &mut Database, spec: &Generate, now: i64) -> Result<u64, String> {
    let start = match &spec.start {
        Some(text) => parse_stamp(text).ok_or_else(|| format!("`{text}` is not yyyy-MM-dd HH:mm:ss"))?,
        None => now,
    };
    let table = db.table_mut(&spec.table);
    let named = |number: usize| format!("u_text_{number:02}");
    let mut columns =
        vec![ColumnSpec::new("number", Kind::Text), ColumnSpec::new("active", Kind::Text), ColumnSpec::new("priority", Kind::Number)];
    columns.extend((0..spec.fields).map(|number| ColumnSpec::new(named(number), Kind::Text)));
    table.add_columns(&columns);
    let first = table.len() as u64;
    let mut random = Random::new(spec.seed.wrapping_add(first.wrapping_mul(0x9e37_79b9)));
    let pool = pool(&mut random);
    let fixed = 230 + spec.fields * "\"u_text_00\":\"\",".len();
    let share = spec.bytes_per_row.saturating_sub(fixed) / spec.fields.max(1);
    let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let mut stamp = (i64::MIN, String::new());
    let rows = (0..spec.rows).map(|row| {
        let second = start.saturating_add((row / spec.per_second.max(1)) as i64);
        if stamp.0 != second {
            stamp = (second, format_stamp(second));
        }
        let cell = |name: &String| match name.as_str() {
            "sys_id" if spec.ids == Ids::MixedCase => Cell::new(random.mixed_case_id()),
            "sys_id" => Cell::new(random.id()),
            "sys_updated_on" | "sys_created_on" => Cell::new(stamp.1.clone()),
            "sys_mod_count" => Cell::new("0"),
            "number" => Cell::new(format!("GEN{:07}", first + row)),
            "active" => Cell::new(if row % 3 == 0 { "false" } else { "true" }),
            "priority" => Cell::new((row % 5 + 1).to_string()),
            other if other.starts_with("u_text_") => Cell::new(excerpt(&pool, share, &mut random)),
            _ => Cell::default(),
        };
        names.iter().map(cell).collect()
    });
    insert_in_parts(rows, table)
}

/// A million rows of cells at once would take more memory than the table itself.
fn insert_in_parts(rows: impl Iterator<Item = Vec<Cell>>, table: &mut super::data::Table) -> Result<u64, String> {
    let mut rows = rows.peekable();
    let mut inserted = 0;
    while rows.peek().is_some() {
        let part: Vec<Vec<Cell>> = rows.by_ref().take(50_000).collect();
        inserted += table.insert_cells(part)? as u64;
    }
    Ok(inserted)
}

/// Text of this length from the pool.
fn excerpt(pool: &str, length: usize, random: &mut Random) -> String {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let from = random.below(pool.len());
        let wanted = (length - text.len()).min(pool.len() - from);
        text.push_str(&pool[from..from + wanted]);
    }
    text
}
