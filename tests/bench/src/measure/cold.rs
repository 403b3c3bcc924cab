//! What a cold start costs until a function's first request: sweep asks the instance for a page, fan-out invokes sweep. Each
//! is its own program under a Lambda of the testbed; the table is caught up before, as most tables are at most ticks.
//!
//! The first request is held at a proxy, and while the function waits for its answer its threads are asked what they
//! have used: not a moment before and none after. Everything before that request is in it: loading the program, the
//! documents, the clients of DynamoDB and Kafka, the lease and the check of the topic.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tablesweep_testbed::lambda::{Function, Invocation, InvokeError, Runtime};
use tablesweep_testbed::proxy::{Action, Proxy, Trigger};
use tablesweep_testbed::table_api::Generate;

use super::{Bed, say};
use crate::documents::{self, Swept};
use crate::failed::Failed;
use crate::figure::{Bar, Figure, median};
use crate::job::StoreJob;

/// The topic.
pub const TOPIC: &str = "cold";

const TABLE: &str = "bench_cold";

const ROWS: u64 = 1_000;

/// Cold starts that are measured; medians count.
const STARTS: u32 = 5;

/// The producer's timeouts must fit three times into it.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The longest from the invocation to the first request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Milliseconds.
const START: Bar = Bar::AtMost(100.0);

/// The names of the figures.
const SWEEP: [&str; 3] = ["cold start of sweep to first request", "peak memory of a cold start of sweep", "size of sweep"];
const FAN_OUT: [&str; 3] = ["cold start of fan-out to first request", "peak memory of a cold start of fan-out", "size of fan-out"];

/// `ESRCH`: what reading the file of a thread says that has ended since the file was opened.
const NO_SUCH_PROCESS: i32 = 3;

/// What one cold start has cost.
struct Cost {
    cpu_ms: f64,
    peak_mib: f64,
}

/// Starts the function anew a few times.
pub async fn measure(bed: &Bed<'_>) -> Result<Vec<Figure>, Failed> {
    let sweep = program(&bed.options.bootstrap)?;
    let fan_out = program(&bed.options.bootstrap.with_file_name("../fan-out/bootstrap"))?;
    say("starting the functions anew");
    let start = Some("2026-02-01 00:00:00".to_owned());
    bed.instance.generate(Generate { per_second: 5, start, ..Generate::rows(TABLE, ROWS) }).await?;
    let lambda = Lambda::deploy(bed, &sweep).await?;
    lambda.start().await?;
    bed.check_count(TOPIC, ROWS).await?;
    let mut figures = lambda.figures(SWEEP, &sweep).await?;
    figures.extend(lambda.fan_out(&fan_out).await?.figures(FAN_OUT, &fan_out).await?);
    Ok(figures)
}

/// A program that was built before. It is started in a folder of its own.
fn program(path: &Path) -> Result<PathBuf, Failed> {
    path.canonicalize().map_err(|error| Failed::at(format!("{}: `make bootstraps` builds it", path.display()), error))
}

struct Lambda {
    runtime: Arc<Runtime>,
    function: Function,
    name: &'static str,
    event: Value,
    /// What the answer of a good end looks like.
    is_good: fn(&Value) -> bool,
    /// In front of whom the function asks first.
    proxy: Proxy,
    needle: &'static str,
    /// The folder with the documents.
    config: String,
    store: (String, String),
}

impl Lambda {
    async fn deploy(bed: &Bed<'_>, bootstrap: &Path) -> Result<Self, Failed> {
        let proxy = Proxy::http(bed.instance.address()?).await?;
        let bootstrap_servers = bed.broker.bootstrap();
        let url = proxy.url();
        let swept = Swept { url: &url, table: TABLE, bootstrap: &bootstrap_servers, topic: TOPIC, page: bed.options.page, keys: &[] };
        let config = documents::write(bed.scratch.path().join("cold"), &swept)?;
        let StoreJob::Dynamodb { endpoint, table } = bed.dynamo()?.store("cold").await? else {
            return Err(Failed::at("deploying the function", "a function keeps its cursors in DynamoDB"));
        };
        let memory = u32::try_from(bed.options.memory).map_err(|error| Failed::at("the function's memory", error))?;
        let function = Function::new("sweep", bootstrap)
            .env("TABLESWEEP_CONFIG", config.display().to_string())
            .env("TABLESWEEP_CURSORS", format!("dynamodb:{table}"))
            .env("AWS_ENDPOINT_URL", &endpoint)
            .timeout(TIMEOUT)
            .memory_mb(memory);
        let event = json!({"connector": "bench", "task": 0, "tasks": 1, "tables": [TABLE], "tick": "bench", "mode": "stream"});
        Ok(Self {
            runtime: Arc::new(Runtime::start().await?),
            function,
            name: "sweep",
            event,
            is_good: |answer| answer["tables"][0]["outcome"] == "caught_up",
            proxy,
            needle: "/api/now/table/",
            config: config.display().to_string(),
            store: (endpoint, table),
        })
    }

    /// The fan-out function beside it, which invokes it.
    async fn fan_out(&self, bootstrap: &Path) -> Result<Self, Failed> {
        let proxy = Proxy::http(self.runtime.address()).await?;
        let (endpoint, table) = self.store.clone();
        let function = Function::new("fan-out", bootstrap)
            .env("TABLESWEEP_CONFIG", &self.config)
            .env("TABLESWEEP_CURSORS", format!("dynamodb:{table}"))
            .env("AWS_ENDPOINT_URL", &endpoint)
            .env("AWS_ENDPOINT_URL_LAMBDA", proxy.url())
            .env("SWEEP_FUNCTION", self.name)
            .timeout(TIMEOUT);
        Ok(Self {
            runtime: Arc::clone(&self.runtime),
            function,
            name: "fan-out",
            event: json!({}),
            is_good: |answer| answer["invoked"] == 1,
            proxy,
            needle: "/invocations",
            config: self.config.clone(),
            store: (endpoint, table),
        })
    }

    /// A few cold starts; the median of their processor time counts.
    async fn figures(&self, [start, peak_memory, size_of]: [&'static str; 3], bootstrap: &Path) -> Result<Vec<Figure>, Failed> {
        let size = std::fs::metadata(bootstrap).map_err(|error| Failed::at(bootstrap.display().to_string(), error))?.len();
        let mut costs = Vec::new();
        for _ in 0..STARTS {
            costs.push(self.start().await?);
        }
        let peak = costs.iter().map(|cost| cost.peak_mib).fold(0.0, f64::max);
        Ok(vec![
            Figure::of(start, median(costs.iter().map(|cost| cost.cpu_ms)), "ms CPU").bar(START),
            Figure::of(peak_memory, peak, "MiB"),
            Figure::of(size_of, size as f64 / f64::from(1 << 20), "MiB"),
        ])
    }

    /// Starts the function in a new environment, and lets it sweep to its end.
    async fn start(&self) -> Result<Cost, Failed> {
        // A function that is registered again has no environment to be used again.
        self.runtime.register(self.function.clone())?;
        let first = self.proxy.on(self.needle, 1..=1, Action::HoldRequest);
        let invoked = self.runtime.invoke(self.name, &self.event);
        tokio::pin!(invoked);
        let asked = tokio::select! {
            ended = &mut invoked => {
                self.finished(&ended.map_err(refused)?)?;
                return Err(Failed::at(self.name, "it has ended without a request"));
            }
            asked = self.used_at(&first) => asked,
        };
        // Held any longer, it would never end.
        first.release();
        let cpu_ms = asked?;
        let peak_kib = self.finished(&invoked.await.map_err(refused)?)?;
        self.proxy.clear();
        Ok(Cost { cpu_ms, peak_mib: peak_kib as f64 / 1024.0 })
    }

    /// What the function has used when its first request is held.
    async fn used_at(&self, first: &Trigger) -> Result<f64, Failed> {
        let environment = self.runtime.environment(self.name, 1, PATIENCE).await?;
        first.wait_fired(1, PATIENCE).await?;
        let process = environment.process();
        // Threads that have ended are in the process's own count only, which the kernel rounds down to hundredths of a second.
        let rounded = process.usage().ok_or_else(|| Failed::at("the function", "it ended while its first request was held"))?.cpu_ms;
        Ok(cpu_ms(process.pid())?.max(rounded as f64))
    }

    /// The peak of an invocation that was a cold start and ended well.
    fn finished(&self, invocation: &Invocation) -> Result<u64, Failed> {
        let answer = invocation.response().unwrap_or_default();
        if !invocation.cold || !(self.is_good)(&answer) {
            return Err(Failed::at(self.name, format!("it did not end well in a cold start: {:?}", invocation.outcome)));
        }
        invocation.peak_rss_kib.ok_or_else(|| Failed::at(self.name, "it has ended by itself"))
    }
}

fn refused(error: InvokeError) -> Failed {
    Failed::at("invoking the function", format!("{error:?}"))
}

/// What the threads of a process that run now have used, in milliseconds.
fn cpu_ms(pid: u32) -> Result<f64, Failed> {
    let folder = format!("/proc/{pid}/task");
    let failed = |error: &dyn std::fmt::Display| Failed::at(format!("reading {folder}"), error);
    let mut nanoseconds = 0.0;
    for thread in std::fs::read_dir(&folder).map_err(|error| failed(&error))? {
        let path = thread.map_err(|error| failed(&error))?.path().join("schedstat");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // It has ended since it was listed; the process's own count has its time.
            Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS) => continue,
            Err(error) => return Err(failed(&error)),
        };
        let used = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
        nanoseconds += used.ok_or_else(|| failed(&format!("schedstat is {text:?}")))?;
    }
    Ok(nanoseconds / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_all_threads_is_counted_in_milliseconds() {
        let before = cpu_ms(std::process::id()).expect("the time");
        let (worked, done) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let sum = (0..20_000_000_u64).fold(0_u64, |sum, n| std::hint::black_box(sum ^ n.wrapping_mul(31)));
            worked.send(sum).expect("somebody waits");
            // Alive, so that its time can still be read.
            ended.recv().ok();
        });
        done.recv().expect("the thread works");
        let spent = cpu_ms(std::process::id()).expect("the time") - before;
        drop(end);
        thread.join().expect("the thread ends");
        assert!(spent > 1.0 && spent < 60_000.0, "{spent}");
    }
}
