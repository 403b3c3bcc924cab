//! Generated histories hold every promise; those that once failed are kept.
//!
//! ```text
//! cargo test -p tablesweep-histories                    1,000 histories, the same each time
//! make histories                                        10,000 others each time
//! HISTORY=<seed> cargo test -p tablesweep-histories     one of them, twenty times
//! HISTORY='{"setup":…' cargo test -p tablesweep-histories
//! ```
//!
//! A failure prints both lines. The second, smallest history goes into `regressions.jsonl`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use tablesweep_histories::history::{History, histories};
use tablesweep_histories::{Bed, Tally};

/// Histories of a plain run.
const COUNT: u64 = 1_000;

/// A history waits for timers and sockets most of its time.
const AT_ONCE: usize = 4;

/// A history that depends on how sockets interleave is tried this often when it is named.
const TRIES: u32 = 20;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0_u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: 1,
        max_shrink_iters: u32::try_from(number("HISTORIES_SHRINK").unwrap_or(400)).unwrap_or(u32::MAX),
        max_shrink_time: 120_000,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Carries out the history of `seed`. One that fails is shrunk.
fn history_of(seed: u64, bed: &mut Bed, sum: &Mutex<Tally>) -> Result<(), String> {
    let bed = Mutex::new(bed);
    let outcome = runner(seed).run(&histories(), |history| {
        let verdict = bed.lock().expect("no history panics").hold(&history);
        let tally = verdict.map_err(proptest::test_runner::TestCaseError::fail)?;
        sum.lock().expect("no history panics").merge(&tally);
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, history)) => {
            let line = serde_json::to_string(&history).expect("plain values");
            Err(format!("{why}\n  HISTORY={seed}\n  HISTORY='{line}'"))
        }
        Err(TestError::Abort(why)) => Err(format!("HISTORY={seed}: {why}")),
    }
}

/// Carries out `count` histories from seed `first` on, and says what happened in all of them.
fn many(first: u64, count: u64) -> (Tally, Vec<String>) {
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let (sum, failures) = (Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let mut bed = Bed::new().expect("the simulator starts");
                loop {
                    let nth = next.fetch_add(1, Ordering::SeqCst);
                    if nth >= count || failed.load(Ordering::SeqCst) {
                        return;
                    }
                    if let Err(why) = history_of(first.wrapping_add(nth), &mut bed, &sum) {
                        failures.lock().expect("no history panics").push(why);
                        failed.store(number("HISTORIES_GO_ON").is_none(), Ordering::SeqCst);
                    }
                }
            });
        }
    });
    (sum.into_inner().expect("no history panics"), failures.into_inner().expect("no history panics"))
}

/// The histories that the environment names, if it names any.
fn named() -> Option<Vec<History>> {
    let text = std::env::var("HISTORY").ok()?;
    let history = match text.parse() {
        Ok(seed) => {
            use proptest::strategy::{Strategy as _, ValueTree as _};
            histories().new_tree(&mut runner(seed)).expect("a history").current()
        }
        Err(_) => serde_json::from_str(&text).unwrap_or_else(|error| panic!("HISTORY is neither a seed nor a history: {error}")),
    };
    Some(vec![history; TRIES as usize])
}

fn hold_each(histories: &[History]) {
    let mut bed = Bed::new().expect("the simulator starts");
    for history in histories {
        if let Err(why) = bed.hold(history) {
            panic!("{why}\n  HISTORY='{}'", serde_json::to_string(history).expect("plain values"));
        }
    }
}

#[test]
fn generated_histories_hold_every_promise() {
    if let Some(histories) = named() {
        return hold_each(&histories);
    }
    let count = number("HISTORIES").unwrap_or(COUNT);
    let first = number("HISTORIES_FROM").unwrap_or(0);
    let (tally, failures) = many(first, count);
    let table: Vec<String> = tally.0.iter().map(|(what, times)| format!("{times:>9}  {what}")).collect();
    println!("{count} histories from seed {first}:\n{}", table.join("\n"));
    assert!(failures.is_empty(), "{} histories broke a promise:\n{}", failures.len(), failures.join("\n"));
    // Histories in which nothing happens hold every promise.
    if count >= COUNT {
        for what in HAPPENED {
            assert!(tally.0.get(*what).is_some_and(|times| *times >= 5), "`{what}` hardly happened");
        }
    }
}

#[test]
fn histories_that_once_failed_hold_every_promise() {
    let kept = include_str!("../regressions.jsonl");
    let histories: Vec<History> = kept.lines().map(|line| serde_json::from_str(line).expect("a history")).collect();
    hold_each(&histories);
}

/// What must have happened for a thousand histories to mean anything.
const HAPPENED: &[&str] = &[
    "late rows",
    "hidden rows",
    "rows shown",
    "updates",
    "changes within a sweep",
    "duplicates",
    "rewinds",
    "windows lost",
    "histories without a fault that may cost",
    "answers cut by the instance",
    "answers of a node of its own",
    "unknown rows asked for by id",
    "unknown rows asked for by range",
    "pages asked for smaller",
    "struck: kill",
    "struck: count",
    "struck: store Denied",
    "struck: store Unreachable",
    "struck: store AnswerLost",
    "struck: store Outage",
    "struck: store KilledBefore",
    "struck: store KilledAfter",
    "struck: sink Refused",
    "struck: sink GivenUp",
    "struck: sink Delayed",
    "struck: sink KilledBefore",
    "struck: sink KilledAfter",
    "outcome More",
    "outcome Skipped Cursor.Leased",
    "outcome Skipped Sweep.NotDue",
];
