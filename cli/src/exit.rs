//! How the program ends.

use std::process::ExitCode;

use tablesweep::config::Faults;
use tablesweep::cursor::StoreError;
use tablesweep::failure::Failure;
use tablesweep::operate::CommandError;

/// The end of a command that did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is as it should be.
    Good,
    /// The work is done and shows that something is not.
    Bad,
    /// The documents are wrong.
    Wrong,
    /// Somebody interrupted it.
    Interrupted,
}

/// The end of a command that could not do its work.
#[derive(Debug)]
pub enum Stop {
    /// Documents or arguments are wrong.
    Wrong(String),
    /// Something is out of reach, or refuses.
    Failed(String),
}

impl Stop {
    /// Documents or arguments are wrong.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }

    /// Something is out of reach, or refuses.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

impl From<Faults> for Stop {
    fn from(faults: Faults) -> Self {
        Self::Wrong(faults.to_string())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        if failure.code == "Config.Invalid" { Self::Wrong(failure.to_string()) } else { Self::Failed(failure.to_string()) }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Failure::from(error).into()
    }
}

impl From<CommandError> for Stop {
    fn from(error: CommandError) -> Self {
        let message = format!("{}: {error}", error.code());
        match error {
            // The command is the wrong one for this table, or for what it holds.
            CommandError::Forward { .. } | CommandError::Untold { .. } | CommandError::NoBaseline { .. } | CommandError::InUse { .. } => {
                Self::Wrong(message)
            }
            _ => Self::Failed(message),
        }
    }
}

/// The exit code, after saying why on standard error.
pub fn code(ended: Result<Exit, Stop>) -> ExitCode {
    let (number, message) = match ended {
        Ok(Exit::Good) => (0, None),
        Ok(Exit::Bad) => (1, None),
        Ok(Exit::Wrong) => (2, None),
        Ok(Exit::Interrupted) => (130, None),
        Err(Stop::Failed(message)) => (1, Some(message)),
        Err(Stop::Wrong(message)) => (2, Some(message)),
    };
    if let Some(message) = message {
        crate::output::note(&format!("tablesweep: {}", message.trim_end()));
    }
    ExitCode::from(number)
}
