//! The search, and what is asked of each world that it reaches.

use std::time::{Duration, Instant};

use stateright::{Checker, Model, Property};

use super::ghost::Promise;
use super::scenario::{Scenario, TICK_MS};
use super::world::{Action, World};

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(self, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.step(action, self);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no row behind the committed cursor is unacknowledged", |_, world: &World| nothing_is_skipped(world)),
            Property::always("the cursor moves back by hand only", |_, world: &World| world.keeps(Promise::CursorOnlyForward)),
            Property::always("a table has one writer", |_, world: &World| world.keeps(Promise::OneWriter)),
            Property::always("duplicates stay within the bound, and without a fault there are none", |_, world: &World| {
                world.ghost.duplicates <= world.ghost.allowed
            }),
            Property::always("no older version follows a newer one, but for what a frozen process had in hand", |_, world: &World| {
                world.keeps(Promise::VersionsInOrder)
            }),
            Property::always("a window is lost by a fault only", |_, world: &World| world.keeps(Promise::WindowKept)),
            Property::always("one request rewinds once", |_, world: &World| world.keeps(Promise::RewoundOnce)),
            Property::always("who says that it caught up has committed what it read", |_, world: &World| {
                world.keeps(Promise::CaughtUpIsTrue)
            }),
            Property::always("nothing is with the sink at the deadline", |_, world: &World| world.keeps(Promise::EndsInTime)),
            Property::always("every page brings a row or moves the cursor, and no sweep writes without end", |_, world: &World| {
                world.keeps(Promise::Progress)
            }),
            Property::always(
                "from every moment of rest the next sweeps deliver everything, within the bound",
                |scenario, world: &World| !world.is_quiet() || delivers_everything(world, scenario),
            ),
        ]
    }
}

impl World {
    fn keeps(&self, promise: Promise) -> bool {
        self.ghost.broken != Some(promise)
    }
}

/// Every row at or before the committed cursor is acknowledged in its present version, or appeared behind what was read.
fn nothing_is_skipped(world: &World) -> bool {
    let Some(cursor) = world.cursor() else {
        return true;
    };
    world.table.iter().take_while(|row| row.at() <= cursor).all(|row| world.ghost.has(row) || world.ghost.is_late(row))
}

/// Sweeps after which a table that nobody touches has to be delivered, late rows included.
const LAPS: usize = 24;

/// A pass over the overlap that was under way may have been beyond a late row; the pass after it finds the row.
const PASSES: usize = 2;

fn delivers_everything(world: &World, scenario: &Scenario) -> bool {
    let mut world = world.clone();
    if let Some(lease) = world.item.as_ref().and_then(|item| item.lease.as_ref()) {
        world.now = world.now.max((lease.until_ms + TICK_MS - 1) / TICK_MS);
    }
    let settled = (0..LAPS).filter(|_| world.sweep_undisturbed(scenario) == Some(true)).take(PASSES).count() == PASSES;
    let delivered = world.table.iter().all(|row| world.ghost.has(row));
    settled && delivered && world.ghost.broken.is_none() && world.ghost.duplicates <= world.ghost.allowed
}

/// A scenario that takes more steps than this has to be made smaller: the worlds to visit are kept in memory.
const MOST_STEPS: usize = 20_000_000;

/// What a search found.
#[derive(Debug)]
pub struct Found {
    /// The scenario's name.
    pub name: &'static str,
    /// The worlds that were reached.
    pub states: usize,
    /// The steps that were taken.
    pub steps: usize,
    /// The longest of the shortest ways to a world.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// Whether all of them were visited.
    pub exhausted: bool,
    /// The promises that do not hold, each with a way to break it.
    pub broken: Vec<(&'static str, Vec<String>)>,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, states, steps, depth, took, .. } = self;
        write!(f, "{name:<22} {states:>9} states {steps:>10} steps, {depth:>3} deep, {:>6.1} s", took.as_secs_f64())
    }
}

/// Searches a scenario to its end, or to the first broken promise.
#[expect(clippy::disallowed_methods, reason = "how long a search took is printed and decides nothing")]
pub fn check(scenario: &Scenario, threads: usize) -> Found {
    let begun = Instant::now();
    let finish = stateright::HasDiscoveries::AnyFailures;
    let checker = scenario.clone().checker().threads(threads).finish_when(finish).target_state_count(MOST_STEPS).spawn_bfs().join();
    let broken = checker
        .discoveries()
        .into_iter()
        .map(|(name, path)| (name, path.into_actions().iter().map(|action| format!("{action:?}")).collect()));
    Found {
        name: scenario.name,
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        exhausted: checker.state_count() < MOST_STEPS,
        depth: checker.max_depth(),
        broken: broken.collect(),
        took: begun.elapsed(),
    }
}
