//! What a test can choose about a server.

use super::prelogin::Encryption;
use super::tls::Identity;

/// Where a login is sent to instead of being served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The host of the other server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Only logins with read-only intent.
    pub read_only: bool,
}

/// The settings of a server. They can be changed while it runs; connections that are open keep what they agreed on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the server says about encryption. Anything but `NotSupported` needs an identity.
    pub encryption: Encryption,
    /// Are connections accepted that begin with TLS (TDS 8)?
    pub strict: bool,
    /// The certificate and its key.
    pub identity: Option<Identity>,
    /// Aurora Babelfish: other numbers of types, names in lower case, no types of the CLR.
    pub babelfish: bool,
    /// Sends columns of UTF-8 as they are, as a server does to a client that asked for it, and as some do to all.
    pub utf8_as_it_is: bool,
    /// The largest packet that is agreed on.
    pub largest_packet: u32,
    /// Sends logins elsewhere.
    pub redirect: Option<Redirect>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            encryption: Encryption::NotSupported,
            strict: false,
            identity: None,
            babelfish: false,
            utf8_as_it_is: false,
            largest_packet: 32_767,
            redirect: None,
        }
    }
}
