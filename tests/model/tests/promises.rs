//! The short run: every scenario is searched to its end, and no promise is broken on the way.

use tablesweep_model::{check, scenario};

/// A search that reaches fewer worlds than this was cut short by something and proves little.
const FEWEST_STATES: usize = 5_000;

#[test]
fn every_promise_holds_in_every_order_of_events() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for scenario in scenario::short() {
        let found = check(&scenario, threads);
        println!("{found}, {}", scenario.limits);
        assert!(found.broken.is_empty(), "{}: {:#?}", scenario.name, found.broken);
        assert!(found.exhausted, "{}: too large to be searched to its end", found);
        assert!(found.states > FEWEST_STATES, "{found}");
    }
}
