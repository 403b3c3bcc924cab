//! The count of one page's delivery reports.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::error::RDKafkaErrorCode;
use tokio::sync::Notify;

/// A page on its way. Every record in flight holds a reference, and its report is counted here.
#[derive(Debug)]
pub(super) struct Page {
    /// Reports to come, and one more while records are being handed over, so that it cannot look settled before.
    open: AtomicU64,
    acked: AtomicU64,
    refused: AtomicU64,
    first: Mutex<Option<Failed>>,
    settled: Notify,
}

/// The first record of a page that was not delivered.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    pub(super) code: RDKafkaErrorCode,
    pub(super) topic: String,
    pub(super) key: String,
}

/// What became of a page.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) acked: u64,
    pub(super) refused: u64,
    pub(super) failed: Option<Failed>,
    /// Records whose reports are still to come. Only a purge that did not work leaves any.
    pub(super) in_flight: u64,
}

impl Page {
    /// A page of which `records` records will be handed over.
    pub(super) fn expecting(records: usize) -> Arc<Self> {
        Arc::new(Self {
            open: AtomicU64::new(records as u64 + 1),
            acked: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            first: Mutex::default(),
            settled: Notify::new(),
        })
    }

    /// No more records are handed over; `unsent` of the expected ones never were.
    pub(super) fn closed(&self, unsent: usize) {
        self.close(unsent as u64 + 1);
    }

    /// A record was acknowledged.
    pub(super) fn acked(&self) {
        self.acked.fetch_add(1, Ordering::Relaxed);
        self.close(1);
    }

    /// A record was not delivered.
    pub(super) fn failed(&self, failed: impl FnOnce() -> Failed) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(failed);
        self.close(1);
    }

    fn close(&self, reports: u64) {
        // The last one sees what all others wrote before they came here.
        if self.open.fetch_sub(reports, Ordering::AcqRel) == reports {
            self.settled.notify_one();
        }
    }

    /// Waits until nothing of the page is in flight. For one waiter.
    pub(super) async fn settled(&self) {
        while self.in_flight() > 0 {
            self.settled.notified().await;
        }
    }

    /// Reports to come.
    fn in_flight(&self) -> u64 {
        self.open.load(Ordering::Acquire)
    }

    /// The counts so far.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            acked: self.acked.load(Ordering::Acquire),
            refused: self.refused.load(Ordering::Acquire),
            in_flight: self.in_flight(),
            failed: self.first.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
