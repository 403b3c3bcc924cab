//! Searches scenarios up to the first broken promise and prints what it took: `tablesweep-model [short|long] [NAME]…`.

use std::process::ExitCode;

use tablesweep_model::{check, scenario};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (run, names) = arguments.split_first().map_or(("short", &[][..]), |(run, names)| (run.as_str(), names));
    let mut scenarios = match run {
        "short" => scenario::short(),
        "long" => scenario::long(),
        other => {
            eprintln!("there is no run {other:?}; there are short and long");
            return ExitCode::from(2);
        }
    };
    scenarios.retain(|scenario| names.is_empty() || names.iter().any(|name| name == scenario.name));
    if scenarios.is_empty() {
        eprintln!("the run {run} has no scenario of that name");
        return ExitCode::from(2);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut states = 0;
    for scenario in &scenarios {
        let found = check(scenario, threads);
        println!("{found}, {}", scenario.limits);
        for (promise, way) in &found.broken {
            println!("BROKEN: {promise}");
            way.iter().for_each(|step| println!("    {step}"));
        }
        if !found.broken.is_empty() {
            return ExitCode::FAILURE;
        }
        if !found.exhausted {
            println!("TOO LARGE: the search was given up");
            return ExitCode::FAILURE;
        }
        states += found.states;
    }
    println!("{} scenarios, {states} states, every promise holds", scenarios.len());
    ExitCode::SUCCESS
}
