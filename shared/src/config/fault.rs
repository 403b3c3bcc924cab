//! What is wrong with the documents, and how it is told.
//!
//! A document with seven mistakes must not take seven runs to mend. Every check therefore adds to one [`Faults`] and
//! goes on; only the loader decides, at the end, whether there is anything to refuse. A [`Fault`] carries its parts
//! separately (file, connector, key, value, message, allowed values), so that the same finding reads well on a
//! terminal and stays useful as JSON.
//!
//! The value of a secret never gets here: whoever makes a fault asks [`Values::shown`](super::Values::shown) or
//! leaves `value` empty.

use std::collections::BTreeSet;
use std::fmt;

use serde::ser::{Serialize, Serializer};

/// One finding about one place of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Fault {
    /// The document, as a path relative to the configuration directory.
    pub file: String,
    /// The connector's name, once it is known.
    pub connector: Option<String>,
    /// The key, with its alias prefix as it stands in the document.
    pub key: Option<String>,
    /// The value as given; never that of a secret key.
    pub value: Option<String>,
    /// What is wrong and how to mend it.
    pub message: String,
    /// The values that would be accepted, in words.
    pub allowed: Option<String>,
}

impl Fault {
    /// A fault of a whole document.
    pub fn of_file(file: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { file: file.into(), message: message.into(), ..Fault::default() }
    }

    /// Names the key that is at fault.
    #[must_use]
    pub fn at(mut self, key: impl Into<String>) -> Fault {
        self.key = Some(key.into());
        self
    }

    /// Adds the value as given; the caller has made sure that it is no secret.
    #[must_use]
    pub fn given(mut self, value: Option<String>) -> Fault {
        self.value = value;
        self
    }

    /// Adds the values that would be accepted.
    #[must_use]
    pub fn allowing(mut self, allowed: impl Into<String>) -> Fault {
        self.allowed = Some(allowed.into());
        self
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.key, &self.value) {
            (Some(key), Some(value)) => writeln!(f, "  {key} = {value:?}")?,
            (Some(key), None) => writeln!(f, "  {key}")?,
            (None, _) => {}
        }
        let indent = if self.key.is_some() { "      " } else { "  " };
        writeln!(f, "{indent}{}", self.message)?;
        if let Some(allowed) = &self.allowed {
            writeln!(f, "{indent}allowed: {allowed}")?;
        }
        Ok(())
    }
}

/// All faults and warnings that one pass over the documents found.
///
/// As an error it prints every fault, grouped by document; as JSON it is the array of its faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// What must be mended before anything can run.
    pub faults: Vec<Fault>,
    /// What can run, and deserves a look.
    pub warnings: Warnings,
}

/// Findings that refuse nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Warnings(pub Vec<Fault>);

impl Faults {
    /// The stable code of this error.
    pub const CODE: &'static str = "Config.Invalid";

    /// Adds a fault.
    pub fn push(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: Fault) {
        self.warnings.0.push(warning);
    }

    /// Whether nothing is at fault (there may be warnings).
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// The stable code of this error, for logs and metrics.
    pub fn code(&self) -> &'static str {
        Self::CODE
    }

    /// `value` when nothing is at fault, else all the faults.
    pub fn into_result<T>(self, value: T) -> Result<T, Faults> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl Serialize for Faults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.faults.serialize(serializer)
    }
}

impl std::error::Error for Faults {}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_grouped(f, &self.faults, "fault")?;
        if !self.warnings.0.is_empty() {
            write!(f, "\n{}", self.warnings)?;
        }
        Ok(())
    }
}

impl Warnings {
    /// Whether there is nothing to look at.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_grouped(f, &self.0, "warning")
    }
}

/// Prints findings under one heading per document, documents in the order in which they were first mentioned.
fn write_grouped(f: &mut fmt::Formatter<'_>, findings: &[Fault], noun: &str) -> fmt::Result {
    let place = |fault: &Fault| (fault.file.clone(), fault.connector.clone());
    let files: BTreeSet<&str> = findings.iter().map(|fault| fault.file.as_str()).collect();
    let (many, several) = (findings.len(), files.len());
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    writeln!(f, "{many} {noun}{} in {several} document{}", plural(many), plural(several))?;
    let mut seen = Vec::new();
    for heading in findings.iter().map(place) {
        if seen.contains(&heading) {
            continue;
        }
        match &heading.1 {
            Some(connector) => writeln!(f, "\n{} (connector {connector:?})", heading.0)?,
            None => writeln!(f, "\n{}", heading.0)?,
        }
        for fault in findings.iter().filter(|fault| place(fault) == heading) {
            fault.write(f)?;
        }
        seen.push(heading);
    }
    Ok(())
}
