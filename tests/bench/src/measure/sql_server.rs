//! A SQL Server table against a bare loop of the driver.
//!
//! The floor is another one than ServiceNow's: the driver reads the same rows by the same statement and drops them. It
//! neither writes JSON nor produces, both of which a sweep must do, so the bar is lower. The server is a process of its own.

use serde_json::{Value, json};
use tablesweep_testbed::tds;

use super::{Bed, say};
use crate::args::Role;
use crate::child::{self, Serving};
use crate::documents::{self, Polled};
use crate::failed::Failed;
use crate::figure::{Bar, Figure, median};
use crate::job::{DriverDone, DriverJob, SweepDone};

/// The table; its own alias.
pub const TABLE: &str = "bench_orders";

/// Of the rows per processor second of the bare driver.
const RATIO: Bar = Bar::AtLeast(0.35);

/// The size of packets that the product asks for when it is not told otherwise, in bytes.
const PACKET: u32 = 8_000;

/// The sizes that it is compared with, the largest among them, each with the name of its figure.
const OTHER_PACKETS: [(u32, &str); 2] = [
    (4_096, "bare driver, packets of 4,096 to 8,000 bytes, processor time"),
    (16_383, "bare driver, packets of 16,383 to 8,000 bytes, processor time"),
];

/// MiB.
const PEAK: Bar = Bar::AtMost(128.0);

fn topic(round: u32) -> String {
    format!("sql-{round}")
}

/// The topics, each written once.
pub fn topics(rounds: u32) -> impl Iterator<Item = String> {
    (0..rounds).map(topic)
}

/// Runs sweep and driver in turn.
pub async fn measure(bed: &Bed<'_>, runs: &mut Value) -> Result<Vec<Figure>, Failed> {
    let options = bed.options;
    say(&format!("making {} rows in a SQL Server table", options.rows));
    let server: Serving = child::serve(Role::TdsServer, &options.rows.to_string()).await?;
    let port = server.address.rsplit(':').next().and_then(|port| port.parse().ok());
    let port: u16 = port.ok_or_else(|| Failed::at("the SQL Server", format!("{} has no port", server.address)))?;
    let (mut sweeps, mut drivers): (Vec<SweepDone>, Vec<DriverDone>) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        say(&format!("round {} of {}: SQL Server sweep", round + 1, options.rounds));
        sweeps.push(sweep(bed, port, round).await?);
        say(&format!("round {} of {}: bare driver", round + 1, options.rounds));
        drivers.push(drive(bed, port, PACKET).await?);
    }
    let mut packets = Vec::new();
    for (size, name) in OTHER_PACKETS {
        say(&format!("bare driver, packets of {size} bytes"));
        packets.push((name, drive(bed, port, size).await?.usage.cpu_seconds));
    }
    let used = |usage: crate::usage::Usage| json!({"cpu_seconds": usage.cpu_seconds, "peak_mib": usage.peak_mib()});
    *runs = json!(
        sweeps
            .iter()
            .zip(&drivers)
            .map(|(sweep, driver)| json!({"sweep": used(sweep.usage), "driver": used(driver.usage)}))
            .collect::<Vec<_>>()
    );
    let rows = options.rows as f64;
    let swept = median(sweeps.iter().map(|done| done.usage.cpu_seconds));
    let bare = median(drivers.iter().map(|done| done.usage.cpu_seconds));
    let peak = sweeps.iter().map(|done| done.usage.peak_mib()).fold(0.0, f64::max);
    let mut figures = vec![
        Figure::of("SQL Server rows per processor second, sweep", rows / swept, ""),
        Figure::of("SQL Server rows per processor second, bare driver", rows / bare, ""),
        Figure::of("SQL Server sweep to bare driver", bare / swept, "").bar(RATIO),
        Figure::of("peak memory of the SQL Server backfill", peak, "MiB").bar(PEAK),
    ];
    figures.extend(packets.into_iter().map(|(name, spent)| Figure::of(name, spent / bare, "")));
    figures.extend(sweeps.first().map(|done| Figure::of("SQL Server bytes over the wire per row", done.report.bytes_in as f64 / rows, "")));
    Ok(figures)
}

/// The whole table by the driver alone.
async fn drive(bed: &Bed<'_>, port: u16, packet: u32) -> Result<DriverDone, Failed> {
    let (rows, batch) = (bed.options.rows, bed.options.page);
    let job = DriverJob { port, database: tds::DATABASE.to_owned(), table: TABLE.to_owned(), rows: batch, packet };
    let done: DriverDone = child::work(Role::Driver, &job).await?;
    if done.rows == rows { Ok(done) } else { Err(Failed::at("the bare driver", format!("it read {} rows, not {rows}", done.rows))) }
}

/// One sweep from the first row into a topic of its own.
async fn sweep(bed: &Bed<'_>, port: u16, round: u32) -> Result<SweepDone, Failed> {
    let (topic, bootstrap) = (topic(round), bed.broker.bootstrap());
    let polled = Polled { port, table: TABLE, bootstrap: &bootstrap, topic: &topic, rows: bed.options.page };
    let config = documents::write_polled(bed.scratch.path().join("config-sql"), &polled)?;
    let done = bed.work(config, &bed.store(&format!("sql-{round}")).await?).await?;
    if done.report.rows != bed.options.rows {
        return Err(Failed::at(
            "the SQL Server sweep",
            format!("it says it delivered {} rows, not {}", done.report.rows, bed.options.rows),
        ));
    }
    bed.check_count(&topic, bed.options.rows).await?;
    Ok(done)
}
