//! A sink that does not take every record: what was read and not acknowledged is read again, and counts once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tablesweep::delivery::ToOne;
use tablesweep::failure::{Failure, Retry};
use tablesweep::record::Record;
use tablesweep::sink::ndjson::NdjsonSink;
use tablesweep::sink::{Acks, Sink};
use tablesweep::sweep::Outcome;

use super::bed::{Bed, code};

/// Takes the records in front of the one with this key; that one, and so its page, fails.
#[derive(Debug)]
struct Refusing {
    key: &'static str,
    file: NdjsonSink,
}

#[async_trait]
impl Sink for Refusing {
    async fn check(&self, topics: &[&str]) -> Result<(), Failure> {
        self.file.check(topics).await
    }

    async fn send(&self, mut records: Vec<Record>) -> Result<Acks, Failure> {
        let refused = records.iter().position(|record| record.key.as_ref() == self.key.as_bytes());
        records.truncate(refused.unwrap_or(records.len()));
        let taken = self.file.send(records).await?;
        Ok(Box::pin(async move {
            let delivered = taken.await?;
            match refused {
                Some(_) => Err(Failure::new("Sink.Unavailable", Retry::NextTick, "the broker did not answer".to_owned())),
                None => Ok(delivered),
            }
        }))
    }

    fn message_timeout(&self) -> Duration {
        self.file.message_timeout()
    }
}

#[tokio::test]
async fn a_batch_of_which_one_record_was_not_taken_is_delivered_again_from_its_first_row() {
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY)").with("mssql.audit.interval.ms", 1_000);
    bed.run("INSERT INTO dbo.orders (id) VALUES (1), (2), (3), (4), (5)");
    for again in 0..2 {
        let file = NdjsonSink::open(bed.path("out.ndjson")).expect("a file");
        let sink = ToOne(Arc::new(Refusing { key: "3", file }));
        let report = bed.sweep_into(&bed.assembly(), &sink).await.remove(0);
        assert_eq!((report.outcome, code(&report), report.rows), (Outcome::Failed, Some("Sink.Unavailable"), 0), "{again}: {report:?}");
        assert_eq!(bed.cursor().await, None, "{again}: it is where the table began");
    }
    assert_eq!(bed.keys(), ["1", "2", "1", "2"], "in front of the third");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{report:?}");
    assert_eq!(bed.keys()[4..], bed.expected());
    assert_eq!(bed.item().await.progress.counters.rows, 5, "what was acknowledged");
    // A range that had been counted with the batches that failed would have room for rows that come late.
    bed.run("INSERT INTO dbo.orders (id) VALUES (-1)");
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    let report = bed.sweep().await;
    assert_eq!((report.rows, report.rows_late), (0, 1), "five rows were delivered, and six are there: {report:?}");
}
