//! The simulated instance, as the conductor orders it about.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Deserialize;
use serde_json::Value;
use tablesweep_testbed::table_api::{Command, Generate};
use url::Url;

use crate::args::Role;
use crate::child::{self, Serving};
use crate::documents::user;
use crate::failed::Failed;

/// The instance's time at first. It stands still unless it is stepped, so that every sweep asks the same questions.
pub const NOW: &str = "2026-03-01 12:00:00";

/// A running instance.
#[derive(Debug)]
pub struct Instance {
    serving: Serving,
    http: reqwest::Client,
}

/// What the instance saw of one request.
#[derive(Debug, Deserialize)]
pub struct Seen {
    path: String,
    params: Vec<(String, String)>,
    /// The status of the answer.
    pub status: u16,
}

impl Seen {
    /// Whether whole rows were asked for.
    pub fn asks_for_rows(&self) -> bool {
        self.status == 200 && !self.params.iter().any(|(name, _)| name == "sysparm_fields")
    }
}

/// Sums over requests.
#[derive(Debug, Deserialize)]
pub struct Counters {
    /// Requests.
    pub requests: u64,
    /// Requests by the status of their answers.
    pub statuses: BTreeMap<u16, u64>,
    /// Rows sent.
    pub rows: u64,
    /// Bytes of bodies before compression.
    pub bytes: u64,
}

impl Instance {
    /// Starts an instance whose clock stands still.
    pub async fn start() -> Result<Self, Failed> {
        let serving = child::serve(Role::Simulator, "").await?;
        let http = reqwest::Client::builder().no_proxy().build().map_err(|error| Failed::at("making an HTTP client", error))?;
        let instance = Self { serving, http };
        instance.apply(&[Command::SetClock { at: NOW.to_owned() }, Command::RunClock { running: false }]).await?;
        Ok(instance)
    }

    /// The instance's URL.
    pub fn url(&self) -> &str {
        &self.serving.address
    }

    /// Where it listens, for a proxy in front of it.
    pub fn address(&self) -> Result<SocketAddr, Failed> {
        let address = self.url().trim_start_matches("http://");
        address.parse().map_err(|error| Failed::at(format!("the instance's address {address}"), error))
    }

    /// Makes rows up.
    pub async fn generate(&self, rows: Generate) -> Result<(), Failed> {
        self.apply(&[Command::Generate(rows)]).await
    }

    /// Time passes.
    pub async fn step(&self, seconds: i64) -> Result<(), Failed> {
        self.apply(&[Command::StepClock { seconds }]).await
    }

    /// Forgets what was seen so far.
    pub async fn forget(&self) -> Result<(), Failed> {
        self.apply(&[Command::ClearLog]).await
    }

    async fn apply(&self, commands: &[Command]) -> Result<(), Failed> {
        let body = serde_json::to_vec(commands).map_err(|error| Failed::at("ordering the simulator", error))?;
        let url = format!("{}/control/apply", self.url());
        self.text(self.http.post(&url).body(body), &url).await.map(drop)
    }

    /// Sums over the requests since they were last forgotten; all of them must have been answered well.
    pub async fn counters(&self) -> Result<Counters, Failed> {
        let counters: Counters = self.show("counters").await?;
        let refusals: Vec<String> = self.show("refusals").await?;
        if !refusals.is_empty() {
            return Err(Failed::at("the simulator does not understand", refusals.join("; ")));
        }
        match counters.statuses.keys().find(|status| **status != 200) {
            Some(status) => Err(Failed::at("a request was not answered well", format!("{status}; all: {:?}", counters.statuses))),
            None => Ok(counters),
        }
    }

    /// The requests since they were last forgotten.
    pub async fn seen(&self) -> Result<Vec<Seen>, Failed> {
        self.show("log").await
    }

    async fn show<T: serde::de::DeserializeOwned>(&self, what: &str) -> Result<T, Failed> {
        let url = format!("{}/control/{what}", self.url());
        let failed = |why: &dyn std::fmt::Display| Failed::at(url.clone(), why);
        let text = self.text(self.http.get(&url), &url).await?;
        let mut answer: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        serde_json::from_value(answer[what].take()).map_err(|error| failed(&error))
    }

    /// The address that a request went to.
    pub fn address_of(&self, seen: &Seen) -> Result<String, Failed> {
        let mut url = Url::parse(self.url()).map_err(|error| Failed::at(self.url(), error))?;
        url.set_path(&seen.path);
        url.query_pairs_mut().extend_pairs(&seen.params);
        Ok(url.into())
    }

    /// The body at this address, as the user sees it, not compressed.
    pub async fn body(&self, url: &str) -> Result<String, Failed> {
        let (user, password) = user();
        self.text(self.http.get(url).basic_auth(user, Some(password)), url).await
    }

    async fn text(&self, request: reqwest::RequestBuilder, url: &str) -> Result<String, Failed> {
        let failed = |why: &dyn std::fmt::Display| Failed::at(url, why);
        let answer = request.send().await.map_err(|error| failed(&error))?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| failed(&error))?;
        if status.is_success() { Ok(text) } else { Err(failed(&format!("{status}: {text}"))) }
    }
}
