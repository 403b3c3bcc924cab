//! Placeholders: each that the documents have, and whether it has a value now.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::{Finding, Part};
use crate::config::{Documents, Resolver, Unresolved, Values};
use crate::failure::{Failure, Retry};

/// One finding per document and placeholder.
pub(super) async fn ask(documents: &Documents, resolver: &Resolver) -> Vec<Finding> {
    let all = [&documents.worker.values].into_iter().chain(documents.connectors.iter().map(|connector| &connector.values));
    join_all(all.map(|values| of_document(values, resolver))).await.concat()
}

async fn of_document(values: &Values, resolver: &Resolver) -> Vec<Finding> {
    let missing = match resolver.resolve(values).await {
        Ok(_) => Vec::new(),
        Err(unresolved) => unresolved.missing,
    };
    let mut told = BTreeSet::new();
    let mut findings = Vec::new();
    for (key, reference) in values.references() {
        if !told.insert(&reference.source) {
            continue;
        }
        let place = format!("{key} of {}", values.file());
        findings.push(match missing.iter().find(|missing| missing.placeholder == reference.source) {
            None => Finding::good(Part::Secret, &reference.source, format!("has a value, for {place}")),
            Some(missing) => {
                let found = format!("has no value, for {place}: {}", missing.reason);
                Finding::bad(Part::Secret, &reference.source, &Failure::new(Unresolved::CODE, Retry::Never, found))
            }
        });
    }
    findings
}
