//! The faults of a tick.

use std::collections::BTreeSet;

use tablesweep_testbed::table_api::{Command, Effect, Entry, Fault, HtmlPage, Random, TableApi};

use super::data::{CROWD, Data, TABLES};

/// The kinds of effects that the simulator knows and that are chosen from here.
pub const KINDS: usize = 23;

/// What passes.
const PASSING: [u16; 9] = [408, 425, 429, 429, 499, 500, 502, 503, 503];

/// What only a person mends.
const LASTING: [u16; 6] = [400, 401, 403, 404, 406, 414];

/// Adds up to two faults; answers whether the instance cannot be reached at all in this tick.
pub fn of_a_tick(api: &TableApi, data: &Data, random: &mut Random) -> bool {
    for _ in 0..random.below(3) {
        let place = random.below(TABLES.len());
        let effect = effect(place, data, random);
        // A table that parks again and again waits for longer than this hour has room for.
        let times = if is_lasting(&effect) { 1 } else { 1 + random.below(4) as u64 };
        api.fault(Fault::new(effect).table(TABLES[place].name).skip(random.below(3) as u64).times(times));
    }
    random.below(40) == 0
}

fn is_lasting(effect: &Effect) -> bool {
    match effect {
        Effect::Status { status, .. } => LASTING.contains(status),
        Effect::Redirect { .. }
        | Effect::PredicateIgnored
        | Effect::OrderIgnored
        | Effect::RowsRepeated { .. }
        | Effect::FieldMissing { .. }
        | Effect::FieldToken { .. } => true,
        _ => false,
    }
}

fn effect(place: usize, data: &Data, random: &mut Random) -> Effect {
    let table = &TABLES[place];
    let field = |name: &str| format!("{}{name}", table.prefix);
    match random.below(25) {
        24 => Effect::Then { commands: between_pages(place, data, random) },
        0..4 => status(random),
        4 => Effect::Cancelled { keep: random.below(4) },
        5 => Effect::MalformedJson,
        6 => Effect::CutBody { after: random.below(300) },
        7 => Effect::EmptyBody,
        8 => Effect::Accepted { body: if random.below(2) == 0 { String::new() } else { "{}".to_owned() } },
        9 => Effect::Html { page: [HtmlPage::Login, HtmlPage::Hibernating, HtmlPage::Maintenance][random.below(3)] },
        10 => Effect::DelayHeaders { millis: 200 },
        11 => Effect::DelayBody { after: 20, millis: 200 },
        12 => Effect::SlowBody { chunk: 256, millis: 1 },
        13 => Effect::Reset,
        14 => Effect::Redirect { location: "https://elsewhere.example/login".to_owned(), status: None },
        15 => Effect::ContentType { value: "text/html".to_owned() },
        16 => Effect::BigBody { bytes: 1_200_000 },
        17 => Effect::GzipBomb { bytes: 1_200_000 },
        18 if table.query.is_empty() => Effect::PredicateIgnored,
        19 if table.alias == CROWD => Effect::OrderIgnored,
        20 => Effect::RowsRepeated { rows: 1 + random.below(3) },
        21 => match random.below(3) {
            0 => Effect::FieldMissing { field: field("sys_updated_on") },
            1 => Effect::FieldToken { field: field("sys_id"), token: "null".to_owned() },
            _ => Effect::FieldToken { field: field("number"), token: "\"\\u0000 \u{2603} \u{1d11e}\"".to_owned() },
        },
        22 if table.is_open => Effect::TotalCount { total: [0, 1, 40][random.below(3)] },
        23 => Effect::DateHeader {
            value: ["yesterday", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"][random.below(3)].to_owned(),
        },
        _ => Effect::Then { commands: between_pages(place, data, random) },
    }
}

fn status(random: &mut Random) -> Effect {
    let status = if random.below(3) == 0 { LASTING[random.below(LASTING.len())] } else { PASSING[random.below(PASSING.len())] };
    let body = match status {
        400 if random.below(2) == 0 => "{\"error\":{\"message\":\"Invalid table x\",\"detail\":null},\"status\":\"failure\"}",
        _ => "{\"error\":{\"message\":\"odd\",\"detail\":null},\"status\":\"failure\"}",
    };
    let waits = matches!(status, 429 | 503) && random.below(2) == 0;
    let headers = if waits { [("Retry-After".to_owned(), ["0", "20"][random.below(2)].to_owned())].into() } else { Default::default() };
    Effect::Status { status, body: Some(body.to_owned()), content_type: None, headers }
}

/// Rows that change while the table is read.
fn between_pages(place: usize, data: &Data, random: &mut Random) -> Vec<Command> {
    let table = TABLES[place].base;
    let number = format!("B{}", random.below(1 << 30));
    let update = |sys_id| Command::Update { table: table.to_owned(), sys_id, fields: [("number", number.clone())].into() };
    data.some(place, 3, random).into_iter().map(update).collect()
}

/// The kinds that struck.
pub fn struck(log: &[Entry]) -> BTreeSet<String> {
    log.iter().flat_map(|entry| entry.faults.iter().cloned()).collect()
}
