//! One simulator and one runtime, used for one history after the other: starting them takes longer than a history.

use std::fmt::Display;

use tablesweep_testbed::table_api::TableApi;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::history::History;
use crate::run::{Life, Verdict};

/// Where histories are carried out.
pub struct Bed {
    api: TableApi,
    dir: TempDir,
    runtime: Runtime,
    lives: u64,
}

/// Any error in words: a history ends with a verdict, never with a panic.
pub(crate) fn words(error: impl Display) -> String {
    error.to_string()
}

impl Bed {
    /// Starts the simulator.
    ///
    /// # Errors
    /// There is no port, no folder or no runtime to be had.
    pub fn new() -> Result<Self, String> {
        let api = TableApi::start().map_err(words)?;
        api.freeze_clock();
        let dir = TempDir::new().map_err(words)?;
        // One thread: tasks interleave at their awaits only, as little by chance as sockets allow.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(words)?;
        Ok(Self { api, dir, runtime, lives: 0 })
    }

    /// Carries `history` out and says whether everything came of it that must.
    ///
    /// # Errors
    /// The promise that was broken, with what shows it.
    pub fn hold(&mut self, history: &History) -> Verdict {
        self.lives += 1;
        let folder = self.dir.path().join(self.lives.to_string());
        std::fs::create_dir_all(folder.join("config/connectors")).map_err(words)?;
        let verdict = self.runtime.block_on(async {
            let mut life = Life::new(&self.api, &folder, history).await?;
            life.live(&history.steps).await
        });
        std::fs::remove_dir_all(&folder).map_err(words)?;
        verdict
    }
}
