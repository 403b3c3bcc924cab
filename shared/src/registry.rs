//! Schema registries: what stands behind the trait [`Registry`](crate::record::converter::registration::Registry).
//!
//! ```text
//! confluent   the REST API of Confluent's Schema Registry, which Apicurio, Karapace and Redpanda speak too
//! glue        the schema registry of AWS Glue
//! answers     what registries said in this process
//! error       what can go wrong, with its code and what may be done
//! ```
//!
//! A registry is asked once per schema and process: an id never changes its meaning, so an answer holds until the process
//! ends. What it is asked for is safe to ask again, since a registry gives a schema that it has the number that it has;
//! two tables that meet a new schema at once both ask, and get the same answer.
//!
//! Everything ends within [`WITHIN`], since a sweep waits for it with a page in hand, and sooner where the invocation has less left
//! than that. When it fails nothing of the page has been produced, and the cursor stands before it.

mod answers;
pub mod confluent;
mod error;
pub mod glue;

use std::time::Duration;

use async_trait::async_trait;

pub use answers::Answers;
pub use confluent::Confluent;
pub use error::Error;
pub use glue::Glue;

use crate::failure::Failure;

/// All attempts at one question together end within this time.
pub const WITHIN: Duration = Duration::from_secs(20);

/// The monotonic moment by which a question that is asked at `now` has its answer; `by` is whoever waits for it.
fn end(now: Duration, by: Option<Duration>) -> Duration {
    let own = now + WITHIN;
    by.map_or(own, |by| by.min(own))
}

/// Looks up again what stands behind placeholders, in case a credential or a certificate that was refused was rotated.
#[async_trait]
pub trait Rotation: Send + Sync {
    /// The settings as they are now; `None` if nothing is other than it was at first.
    ///
    /// # Errors
    /// The place that keeps them cannot be read.
    async fn renew(&self) -> Result<Option<confluent::Settings>, Failure>;
}
