//! What can go wrong between here and a registry.
//!
//! Each says what was asked and what the registry answered. Texts come from the registry's own messages; addresses are
//! shown without credentials, and schemas, which can be long, are not shown at all.

use crate::failure::{Failure, Retry};
use crate::tls;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A store of certificates cannot be used.
    #[error(transparent)]
    Store(#[from] tls::Error),
    /// The connection is not trusted, by one side or the other.
    #[error("no trusted connection: {0}")]
    Tls(String),
    /// No answer came.
    #[error("no answer from {address}: {detail}. The next tick tries again")]
    NoAnswer {
        /// Who was asked.
        address: String,
        /// What happened.
        detail: String,
    },
    /// The registry says that it cannot for now.
    #[error("{address} cannot answer now ({detail}). The next tick tries again")]
    Unable {
        /// Who was asked.
        address: String,
        /// Its words.
        detail: String,
    },
    /// The login was refused.
    #[error("{address} refused the login ({detail}). {advice}")]
    Unauthorized {
        /// Who was asked.
        address: String,
        /// Its words.
        detail: String,
        /// What to do.
        advice: &'static str,
    },
    /// The login may not do this.
    #[error("access denied ({detail}). {advice}")]
    Forbidden {
        /// The registry's words.
        detail: String,
        /// What to do.
        advice: String,
    },
    /// The registry has no such schema, and it is not ours to register.
    #[error("the registry does not have the schema ({detail}). {advice}")]
    Missing {
        /// The registry's words.
        detail: String,
        /// What to do.
        advice: &'static str,
    },
    /// The schema does not agree with earlier versions.
    #[error(
        "the schema is not compatible with the versions that the registry has ({detail}). Make the rows' schema agree, or change the compatibility of \
         the subject"
    )]
    Incompatible {
        /// The registry's words.
        detail: String,
    },
    /// The registry refuses the request.
    #[error("the registry refused the schema ({detail})")]
    Refused {
        /// Its words.
        detail: String,
    },
    /// What answered is no schema registry.
    #[error("{address} did not answer as a schema registry does ({detail}). Check its address")]
    NotARegistry {
        /// Who was asked.
        address: String,
        /// What came.
        detail: String,
    },
    /// The subject is to be named after a record, and there is none.
    #[error("{strategy} names a subject after a record, and a {part} here is a plain text. Use TopicNameStrategy for it")]
    NoSubject {
        /// The strategy.
        strategy: &'static str,
        /// Key or value.
        part: &'static str,
    },
    /// The registry is not set up to be asked.
    #[error("{0}")]
    Settings(String),
    /// What was refused, a credential or a certificate, could not be looked up again.
    #[error("{0}")]
    Secrets(Failure),
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(_) => "Registry.CertificateStore",
            Self::Tls(_) => "Registry.Tls",
            Self::NoAnswer { .. } | Self::Unable { .. } => "Registry.Unavailable",
            Self::Unauthorized { .. } => "Registry.Unauthorized",
            Self::Forbidden { .. } => "Registry.Forbidden",
            Self::Missing { .. } => "Registry.SchemaMissing",
            Self::Incompatible { .. } => "Registry.Incompatible",
            Self::Refused { .. } => "Registry.Refused",
            Self::NotARegistry { .. } => "Registry.NotARegistry",
            Self::NoSubject { .. } => "Registry.NoSubject",
            Self::Settings(_) | Self::Secrets(_) => "Config.Invalid",
        }
    }

    /// Whether the same question may be answered without anybody's doing.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::NoAnswer { .. } | Self::Unable { .. })
    }

    /// The failure of whatever is kept under `name`: a subject, or the name of a schema.
    pub fn of(self, what: &'static str, name: &str) -> Failure {
        if let Self::Secrets(failure) = self {
            return failure;
        }
        let retry = if self.is_transient() { Retry::NextTick } else { Retry::Never };
        Failure::new(self.code(), retry, format!("{what} {name}: {self}"))
    }
}
