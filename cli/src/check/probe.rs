//! `check --probe`: the cursor store beside what the library asks, and the findings as text.

use std::sync::Arc;

use tablesweep::config::Documents;
use tablesweep::failure::{Failure, Retry};
use tablesweep::host::Host;
use tablesweep::probe::{self, Finding, Part, Verdict};
use tablesweep::secrets;

use crate::args::CursorsArg;
use crate::exit::Stop;
use crate::stores::StoreSpec;
use crate::text::wrapped;

/// Asks everything.
pub async fn run(documents: &Documents, cursors: &CursorsArg) -> Vec<Finding> {
    let host = Host::system();
    let resolver = Arc::new(secrets::resolver(documents, &host));
    let spec = cursors.cursors.clone().unwrap_or_default();
    let (mut findings, stored) = tokio::join!(probe::documents(documents, &resolver, &host), store(&spec));
    findings.push(stored);
    findings
}

async fn store(spec: &StoreSpec) -> Finding {
    let name = spec.name();
    match spec.existing().await {
        Ok(Some(store)) => probe::cursors(&*store).await,
        Ok(None) => absent(spec, name),
        Err(Stop::Wrong(message) | Stop::Failed(message)) => {
            let (code, message) = split(&message);
            Finding { code, ..Finding::bad(Part::Cursors, name, &Failure::new("", Retry::Never, message)) }
        }
    }
}

/// A database file is made by the first sweep, if it has a folder to lie in.
fn absent(spec: &StoreSpec, name: String) -> Finding {
    let folder = match spec {
        StoreSpec::Sqlite(path) => path.parent().filter(|folder| !folder.as_os_str().is_empty()),
        _ => None,
    };
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => {
            let message = format!("there is no folder {} for it; make it, or name another file", folder.display());
            Finding::bad(Part::Cursors, name, &Failure::new("Cursor.Denied", Retry::Never, message))
        }
        None => Finding::note(Part::Cursors, name, "it does not exist yet; the first sweep makes it"),
    }
}

/// The code that a message begins with.
fn split(message: &str) -> (Option<String>, &str) {
    match message.split_once(": ") {
        Some((code, rest)) if code.contains('.') && !code.contains(' ') => (Some(code.to_owned()), rest),
        _ => (None, message),
    }
}

/// The findings for people: one line each, what was found below it.
pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let verdict = match finding.verdict {
            Verdict::Good => "ok  ",
            Verdict::Note => "note",
            Verdict::Bad => "BAD ",
        };
        let part = match finding.part {
            Part::Secret => "secret ",
            Part::Source => "source ",
            Part::Topic => "topic  ",
            Part::Schemas => "schemas",
            Part::Cursors => "cursors",
        };
        text.push_str(&format!("{verdict}  {part}  {}\n", finding.name));
        let code = match (&finding.code, finding.verdict) {
            (Some(code), Verdict::Bad) => format!(" ({code}: see this heading of docs/operations.md)"),
            _ => String::new(),
        };
        wrapped(&mut text, &format!("{}{code}", finding.found));
    }
    text
}
