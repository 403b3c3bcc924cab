//! Everything the simulator knows, behind one lock.
//!
//! One lock and no finer ones: an answer, its log entry and the change of data that a test hangs on it are one step, so
//! that "after the third page, update this row" means exactly that.

use super::allowance::Allowance;
use super::auth::{Lockout, Tokens};
use super::clock::Clock;
use super::data::Version;
use super::database::Database;
use super::faults::Faults;
use super::log::Log;
use super::random::Random;
use super::settings::{Credentials, Settings};

/// The state of the simulated instance.
#[derive(Debug)]
pub(super) struct World {
    pub db: Database,
    pub clock: Clock,
    pub settings: Settings,
    pub credentials: Credentials,
    pub tokens: Tokens,
    pub lockout: Lockout,
    pub allowance: Allowance,
    pub faults: Faults,
    pub log: Log,
    pub random: Random,
}

impl World {
    pub fn new(settings: Settings, credentials: Credentials, seed: u64) -> Self {
        let db = Database { collation: settings.collation, ..Database::default() };
        Self {
            db,
            clock: Clock::new(),
            settings,
            credentials,
            tokens: Tokens::default(),
            lockout: Lockout::default(),
            allowance: Allowance::default(),
            faults: Faults::default(),
            log: Log::default(),
            random: Random::new(seed),
        }
    }

    /// Takes new settings; another collation sorts every table anew.
    pub fn configure(&mut self, settings: Settings) -> Result<(), String> {
        if settings.collation != self.settings.collation {
            self.db.recollate(settings.collation)?;
        }
        self.settings = settings;
        Ok(())
    }

    /// Notes something that the simulator does not understand.
    pub fn refuse(&mut self, what: &str) {
        self.log.refusals.push(what.to_owned());
    }

    /// The rows of a table or view that a complete sweep must deliver.
    pub fn visible_versions(&mut self, table: &str) -> Result<Vec<Version>, String> {
        self.db.refresh(table)?;
        self.db.existing(table).map(|table| table.visible_versions())
    }
}
