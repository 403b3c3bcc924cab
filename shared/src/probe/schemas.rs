//! Schemas: what the registries of the connectors' converters have for their topics.

use std::sync::Arc;

use futures_util::future::join_all;

use super::topics::topics;
use super::{Finding, Part, within};
use crate::config::{Connector, Documents, ResolveError, Resolver, Worker};
use crate::conversion::{Converters, Registries};
use crate::failure::{Failure, Retry};
use crate::host::Host;
use crate::record::converter::Converter;
use crate::record::converter::registration::Kept;

/// One finding per topic, and key or value, whose schemas a registry keeps.
pub(super) async fn ask(documents: &Documents, resolver: &Arc<Resolver>, host: &Host) -> Vec<Finding> {
    let registries = Registries::new(Arc::clone(resolver), host.clone());
    let worker = documents.worker.resolve(resolver).await;
    let asked = documents.connectors.iter().filter(|connector| has_registry(connector)).map(|connector| {
        let (worker, registries) = (&worker, &registries);
        async move {
            match (worker, connector.resolve(resolver).await) {
                (Ok(worker), Ok(connector)) => of_connector(&connector, worker, registries).await,
                (Err(error), _) => vec![not_asked(connector, "worker.json", error)],
                (_, Err(error)) => vec![not_asked(connector, &connector.name, &error)],
            }
        }
    });
    join_all(asked).await.concat()
}

fn has_registry(connector: &Connector) -> bool {
    connector.key_converter.format.has_registry() || connector.value_converter.format.has_registry()
}

/// Placeholders without a value are told by themselves.
fn not_asked(connector: &Connector, document: &str, error: &ResolveError) -> Finding {
    match error {
        ResolveError::Unresolved(_) => {
            let found = format!("not asked: {document} has a placeholder without a value");
            Finding { code: Some(error.code().to_owned()), ..Finding::note(Part::Schemas, &connector.name, found) }
        }
        _ => Finding::bad(Part::Schemas, &connector.name, &Failure::new(error.code(), Retry::Never, error.to_string())),
    }
}

async fn of_connector(connector: &Connector, worker: &Worker, registries: &Registries) -> Vec<Finding> {
    let Converters { keys, values } = match Converters::of(connector, worker, registries) {
        Ok(converters) => converters,
        Err(failure) => return vec![Finding::bad(Part::Schemas, &connector.name, &failure)],
    };
    let mut findings = Vec::new();
    for topic in topics(connector) {
        for (role, converter) in [("key", &keys), ("value", &values)] {
            findings.extend(one(topic, role, &**converter).await);
        }
    }
    findings
}

async fn one(topic: &str, role: &str, converter: &dyn Converter) -> Option<Finding> {
    let name = format!("{topic} ({role})");
    let Some(asked) = within(converter.probe(topic)).await else { return Some(Finding::silent(Part::Schemas, name)) };
    Some(match asked? {
        Err(failure) => Finding::bad(Part::Schemas, name, &failure),
        Ok(kept) => told(name, &kept),
    })
}

fn told(name: String, kept: &Kept) -> Finding {
    let subject = &kept.name;
    match (kept.is_there, kept.registers) {
        (Some(true), _) => Finding::good(Part::Schemas, name, format!("the registry answers, and has versions of {subject}")),
        (Some(false), true) => Finding::good(
            Part::Schemas,
            name,
            format!("the registry answers, and has no version of {subject} yet: the first page registers one"),
        ),
        (Some(false), false) => {
            let message = format!("the registry answers, and has no version of {subject}; register one, or let the converter do it");
            Finding::bad(Part::Schemas, name, &Failure::new("Registry.SchemaMissing", Retry::Never, message))
        }
        (None, _) => Finding::good(Part::Schemas, name, format!("the registry answers, and lets us look up schemas such as {subject}")),
    }
}
