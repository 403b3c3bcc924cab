//! Secrets that have changed since they were read.
//!
//! A producer outlives its password and its certificate: an environment that is kept warm by its ticks can live for days, and
//! brokers ask for either only when a connection is made. So when a login or a certificate is refused, the settings are read
//! again, and if they have changed, a producer is made of the new ones.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::failure::Failure;

/// Reads the settings of a producer again.
#[async_trait]
pub trait Rotation: Send + Sync {
    /// What the settings were read from, setting by setting. Equal settings from different places do not stay equal, so
    /// producers are shared only where this is equal too.
    fn places(&self) -> BTreeMap<String, String>;

    /// The settings as they are now. It is this method's part not to ask too often: it is called for each refused login.
    ///
    /// # Errors
    /// They cannot be read.
    async fn renew(&self) -> Result<BTreeMap<String, String>, Failure>;
}
