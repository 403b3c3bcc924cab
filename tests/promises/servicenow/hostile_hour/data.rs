//! The five tables, and what happens to their rows.

use std::collections::BTreeMap;

use tablesweep_testbed::table_api::{Fields, Generate, Random, TableApi};

/// A table of the hour.
pub struct Table {
    pub alias: &'static str,
    /// The table or view that is swept.
    pub name: &'static str,
    /// The table whose rows change.
    pub base: &'static str,
    pub prefix: &'static str,
    pub query: &'static str,
    /// Whether nothing of it is hidden.
    pub is_open: bool,
}

const fn table(alias: &'static str, name: &'static str) -> Table {
    Table { alias, name, base: name, prefix: "", query: "", is_open: true }
}

/// Rows of this priority are visible to nobody, in the table of hidden rows.
const HIDDEN: &str = "5";

/// The alias whose rows change dozens at a time.
pub const CROWD: &str = "crowd";

pub static TABLES: [Table; 5] = [
    table("plain", "incident"),
    table(CROWD, "task"),
    Table { is_open: false, ..table("veiled", "cmdb_ci") },
    Table { base: "problem", prefix: "prb_", ..table("view", "u_problem_view") },
    Table { query: "active=true^NQpriority=1", ..table("branches", "change_request") },
];

/// The rows of one base table, by what never changes about them.
#[derive(Debug, Default)]
struct Rows {
    ids: Vec<String>,
    /// Rows that nobody is to get: hidden, or outside of the query.
    unseen: BTreeMap<String, ()>,
}

/// The rows of all tables.
pub struct Data {
    rows: [Rows; 5],
}

impl Data {
    pub fn new(api: &TableApi, random: &mut Random) -> Self {
        let mut data = Self { rows: Default::default() };
        for table in &TABLES {
            // Columns come with the first rows; these are made of what `insert` sets.
            let spec = Generate { start: Some("2026-02-28 00:00:00".to_owned()), ..Generate::rows(table.base, 1) };
            api.generate(spec).expect("a row");
            let first = api.visible_versions(table.base).expect("the table").remove(0).1;
            let fields = [("active", "true"), ("priority", "1"), ("number", "N0")].into();
            api.update(table.base, &first, fields).expect("an update");
        }
        api.hide_when("cmdb_ci", |field| field("priority").as_deref() == Some(HIDDEN)).expect("a rule");
        let view = serde_json::json!({ "parts": [{ "table": "problem", "prefix": "prb" }] });
        api.view("u_problem_view", serde_json::from_value(view).expect("a view")).expect("a view");
        for place in 0..TABLES.len() {
            for _ in 0..12 {
                data.insert(api, place, 10, random);
                api.step_clock(1);
            }
        }
        data
    }

    /// What happens between two ticks, and what will happen between two pages of the next.
    pub fn change(&mut self, api: &TableApi, random: &mut Random) {
        for (place, table) in TABLES.iter().enumerate() {
            match random.below(10) {
                0..3 => {
                    let count = 1 + random.below(4);
                    self.insert(api, place, count, random);
                }
                3..7 => {
                    let count = if table.alias == CROWD { 12 + random.below(24) } else { 1 + random.below(5) };
                    for id in self.some(place, count, random) {
                        api.update(table.base, &id, [("number", format!("N{}", random.below(1 << 30)))].into()).expect("an update");
                    }
                }
                7 if table.alias != CROWD => self.late(api, place, random),
                _ => {}
            }
        }
    }

    /// Some rows of a table, each once.
    pub fn some(&self, place: usize, count: usize, random: &mut Random) -> Vec<String> {
        let mut ids = self.rows[place].ids.clone();
        random.shuffle(&mut ids);
        ids.truncate(count);
        ids
    }

    fn insert(&mut self, api: &TableApi, place: usize, count: usize, random: &mut Random) {
        let rows = (0..count).map(|_| self.fields(place, random)).collect();
        api.load(TABLES[place].base, rows).expect("rows");
    }

    /// A row that was written a second ago and is seen only now.
    fn late(&mut self, api: &TableApi, place: usize, random: &mut Random) {
        let now = api.now();
        api.step_clock(-1);
        let before = api.now();
        api.step_clock(1);
        assert_eq!(api.now(), now, "the clock stands");
        let fields = self.fields(place, random).with("sys_updated_on", before);
        api.load(TABLES[place].base, vec![fields]).expect("a late row");
    }

    /// A new row. Whether it is seen is decided here and never changes.
    fn fields(&mut self, place: usize, random: &mut Random) -> Fields {
        let id = random.id();
        let (active, priority) = (random.below(3) > 0, 1 + random.below(5));
        let table = &TABLES[place];
        let hidden = !table.is_open && priority.to_string() == HIDDEN;
        let outside = !table.query.is_empty() && !active && priority != 1;
        let rows = &mut self.rows[place];
        rows.ids.push(id.clone());
        if hidden || outside {
            rows.unseen.insert(id.clone(), ());
        }
        let number = format!("N{}", random.below(1 << 30));
        Fields::from([("sys_id", id), ("number", number), ("active", active.to_string()), ("priority", priority.to_string())])
    }

    /// The last version of each row that is to arrive: alias and id, to time and modification count.
    pub fn expected(&self, api: &TableApi) -> BTreeMap<(&'static str, String), (String, u64)> {
        let mut expected = BTreeMap::new();
        for (table, rows) in TABLES.iter().zip(&self.rows) {
            let versions = api.visible_versions(table.name).expect("the table");
            let seen = versions.into_iter().filter(|(_, id, _)| !rows.unseen.contains_key(id));
            expected.extend(seen.map(|(at, id, mod_count)| ((table.alias, id), (at, mod_count))));
        }
        expected
    }
}
