//! What a cold start costs until the function asks the instance for its first page: its own program under a Lambda of
//! the testbed, caught up before, as most tables are at most ticks.
//!
//! The first request is held at a proxy, and while the function waits for its answer its threads are asked what they
//! have used: not a moment before and none after. Everything before that request is in it: loading the program, the
//! documents, the clients of DynamoDB and Kafka, the lease and the check of the topic.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
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

/// `ESRCH`: what reading the file of a thread says that has ended since the file was opened.
const NO_SUCH_PROCESS: i32 = 3;

/// What one cold start has cost.
struct Cost {
    cpu_ms: f64,
    peak_mib: f64,
}

/// Starts the function anew a few times.
pub async fn measure(bed: &Bed<'_>) -> Result<Vec<Figure>, Failed> {
    let given = bed.options.bootstrap.display();
    say(&format!("starting {given}"));
    let missing = |error: std::io::Error| Failed::at(format!("{given}: `make bootstraps` builds it"), error);
    // It is started in a folder of its own.
    let bootstrap = bed.options.bootstrap.canonicalize().map_err(missing)?;
    let size = std::fs::metadata(&bootstrap).map_err(missing)?.len();
    let start = Some("2026-02-01 00:00:00".to_owned());
    bed.instance.generate(Generate { per_second: 5, start, ..Generate::rows(TABLE, ROWS) }).await?;
    let lambda = Lambda::deploy(bed, &bootstrap).await?;
    lambda.start().await?;
    bed.check_count(TOPIC, ROWS).await?;
    let mut costs = Vec::new();
    for _ in 0..STARTS {
        costs.push(lambda.start().await?);
    }
    let peak = costs.iter().map(|cost| cost.peak_mib).fold(0.0, f64::max);
    Ok(vec![
        Figure::of("cold start to first request", median(costs.iter().map(|cost| cost.cpu_ms)), "ms CPU").bar(START),
        Figure::of("peak memory of a cold start", peak, "MiB"),
        Figure::of("size of the sweep function", size as f64 / f64::from(1 << 20), "MiB"),
    ])
}

struct Lambda {
    runtime: Runtime,
    function: Function,
    proxy: Proxy,
}

impl Lambda {
    async fn deploy(bed: &Bed<'_>, bootstrap: &Path) -> Result<Self, Failed> {
        let proxy = Proxy::http(bed.instance.address()?).await?;
        let bootstrap_servers = bed.broker.bootstrap();
        let url = proxy.url();
        let swept = Swept { url: &url, table: TABLE, bootstrap: &bootstrap_servers, topic: TOPIC, page: bed.options.page };
        let config = documents::write(bed.scratch.path().join("cold"), &swept)?;
        let StoreJob::Dynamodb { endpoint, table } = bed.dynamo()?.store("cold").await? else {
            return Err(Failed::at("deploying the function", "a function keeps its cursors in DynamoDB"));
        };
        let memory = u32::try_from(bed.options.memory).map_err(|error| Failed::at("the function's memory", error))?;
        let function = Function::new("sweep", bootstrap)
            .env("TABLESWEEP_CONFIG", config.display().to_string())
            .env("TABLESWEEP_CURSORS", format!("dynamodb:{table}"))
            .env("AWS_ENDPOINT_URL", endpoint)
            .timeout(TIMEOUT)
            .memory_mb(memory);
        Ok(Self { runtime: Runtime::start().await?, function, proxy })
    }

    /// Starts the function in a new environment, and lets it sweep to its end.
    async fn start(&self) -> Result<Cost, Failed> {
        // A function that is registered again has no environment to be used again.
        self.runtime.register(self.function.clone())?;
        let first = self.proxy.on("/api/now/table/", 1..=1, Action::HoldRequest);
        let event = json!({"connector": "bench", "task": 0, "tasks": 1, "tables": [TABLE], "tick": "bench", "mode": "stream"});
        let invoked = self.runtime.invoke("sweep", &event);
        tokio::pin!(invoked);
        let asked = tokio::select! {
            ended = &mut invoked => {
                finished(&ended.map_err(refused)?)?;
                return Err(Failed::at("the function", "it has caught up without a request to the instance"));
            }
            asked = self.used_at(&first) => asked,
        };
        // Held any longer, it would never end.
        first.release();
        let cpu_ms = asked?;
        let peak_kib = finished(&invoked.await.map_err(refused)?)?;
        self.proxy.clear();
        Ok(Cost { cpu_ms, peak_mib: peak_kib as f64 / 1024.0 })
    }

    /// What the function has used when its first request is held.
    async fn used_at(&self, first: &Trigger) -> Result<f64, Failed> {
        let environment = self.runtime.environment("sweep", 1, PATIENCE).await?;
        first.wait_fired(1, PATIENCE).await?;
        let process = environment.process();
        // Threads that have ended are in the process's own count only, which the kernel rounds down to hundredths of a second.
        let rounded = process.usage().ok_or_else(|| Failed::at("the function", "it ended while its first request was held"))?.cpu_ms;
        Ok(cpu_ms(process.pid())?.max(rounded as f64))
    }
}

fn refused(error: InvokeError) -> Failed {
    Failed::at("invoking the function", format!("{error:?}"))
}

/// The peak of an invocation that was a cold start and has caught up.
fn finished(invocation: &Invocation) -> Result<u64, Failed> {
    let answer = invocation.response().unwrap_or_default();
    if !invocation.cold || answer["tables"][0]["outcome"] != "caught_up" {
        return Err(Failed::at("the function", format!("it has not caught up in a cold start: {:?}", invocation.outcome)));
    }
    invocation.peak_rss_kib.ok_or_else(|| Failed::at("the function", "it has ended by itself"))
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
