//! Placeholders: `${provider:path:key}` in a value, in the form of Kafka's configuration providers.
//!
//! Reading a document never looks anything up: `check` and `plan` work without the secrets and without a network, and a
//! laptop can validate what only the function may read. [`Resolver`] does the looking up, for one document at a time,
//! and keeps what it read for a few minutes, since a warm function sweeps every minute. When that is over the first sweep reads
//! again, and whoever was made of values that have changed is made anew.
//!
//! Two rules differ from Kafka's on purpose. What is missing is an error, always and all of it at once: a provider that
//! quietly yields an empty password locks accounts. And the parts of `secretsmanager` and `ssm` are not split at the first
//! colon, because an ARN is made of colons.

use std::fmt;

mod resolver;

pub(in crate::config) use resolver::TIMEOUT;
#[cfg(test)]
pub(in crate::config) use resolver::TTL;
pub use resolver::{FetchError, Lookup, Missing, ParameterFetch, Refreshed, Resolver, SecretFetch, Unresolved};

/// Where the value of a placeholder comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// `${env:NAME}`: a variable of the environment.
    Env,
    /// `${file:path:key}`: an entry of a `.properties` or `.json` file.
    File,
    /// `${secretsmanager:name-or-arn:key}`: an entry of a secret that is a JSON object, or the whole secret.
    SecretsManager,
    /// `${ssm:name-or-arn:key}`: an entry of a parameter that is a JSON object, or the whole parameter.
    Ssm,
}

impl Provider {
    const ALL: [(&'static str, Provider); 4] =
        [("env", Provider::Env), ("file", Provider::File), ("secretsmanager", Provider::SecretsManager), ("ssm", Provider::Ssm)];

    fn named(name: &str) -> Option<Provider> {
        Provider::ALL.iter().find(|(known, _)| *known == name).map(|(_, provider)| *provider)
    }
}

/// One placeholder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The provider.
    pub provider: Provider,
    /// The variable, file, secret or parameter.
    pub path: String,
    /// The entry within it; `None` for the whole.
    pub key: Option<String>,
    /// The placeholder as it is written.
    pub source: String,
}

/// A value with at least one placeholder.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Reference(Reference),
}

impl Template {
    /// Reads a value. `Ok(None)` when there is no placeholder in it; the error says what is wrong with one.
    pub fn parse(text: &str) -> Result<Option<Template>, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, after) = rest.split_at(start);
            literal.push_str(before);
            let body = &after[2..];
            let (reference, used) = match body.find('}') {
                Some(end) => (Reference::parse(&body[..end])?, 2 + end + 1),
                None => {
                    unclosed(body)?;
                    (None, 2)
                }
            };
            match reference {
                Some(reference) => {
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Reference(reference));
                }
                None => literal.push_str(&after[..used]),
            }
            rest = &after[used..];
        }
        literal.push_str(rest);
        if parts.is_empty() {
            return Ok(None);
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Some(Template { source: text.to_owned(), parts }))
    }

    /// The value as it is written in the document.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The placeholders, from left to right.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            Part::Reference(reference) => Some(reference),
            Part::Text(_) => None,
        })
    }

    /// The value with every placeholder replaced; `None` when `lookup` lacks one. What is put in is not read again.
    fn fill<'v>(&self, lookup: impl Fn(&Reference) -> Option<&'v str>) -> Option<String> {
        let mut filled = String::new();
        for part in &self.parts {
            filled.push_str(match part {
                Part::Text(text) => text,
                Part::Reference(reference) => lookup(reference)?,
            });
        }
        Some(filled)
    }
}

/// The text around a placeholder can be part of a password, so only the placeholders are shown.
impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.references().map(|reference| &reference.source)).finish()
    }
}

/// A `${` without its `}` is literal text, as for Kafka, unless it plainly was meant as a placeholder.
fn unclosed(body: &str) -> Result<(), String> {
    match body.split_once(':') {
        Some((name, _)) if Provider::named(name).is_some() => {
            Err(format!("has a placeholder of the provider {name} without its closing brace"))
        }
        _ => Ok(()),
    }
}

impl Reference {
    /// Reads what stands between the braces. `Ok(None)` for text that is no placeholder.
    fn parse(body: &str) -> Result<Option<Reference>, String> {
        let Some((name, rest)) = body.split_once(':') else {
            return Ok(None);
        };
        let Some(provider) = Provider::named(name) else {
            return Err(format!("has a placeholder of the unknown provider {name:?}; there are env, file, secretsmanager and ssm"));
        };
        let (path, key) = match provider {
            // Kafka leaves the path of `env` empty, so `${env::NAME}` is the same as `${env:NAME}`.
            Provider::Env => (rest.strip_prefix(':').unwrap_or(rest), None),
            Provider::File => match rest.split_once(':') {
                Some((path, key)) => (path, Some(key)),
                None => return Err("has a placeholder of the provider file without a key; write ${file:path:key}".into()),
            },
            Provider::SecretsManager => split(rest, SECRET_ARN),
            // The name of a parameter has no colon. What the service takes after one, a version or a label, cannot be asked for.
            Provider::Ssm => split(rest.strip_prefix(':').unwrap_or(rest), PARAMETER_ARN),
        };
        if path.is_empty() || key.is_some_and(str::is_empty) {
            return Err(format!("has a placeholder of the provider {name} with an empty part"));
        }
        Ok(Some(Reference { provider, path: path.to_owned(), key: key.map(str::to_owned), source: format!("${{{body}}}") }))
    }
}

/// How many colons the ARN of a secret has: `arn:aws:secretsmanager:region:account:secret:name`.
const SECRET_ARN: usize = 6;
/// How many the ARN of a parameter has: `arn:aws:ssm:region:account:parameter/name`.
const PARAMETER_ARN: usize = 5;

/// Splits a name, or an ARN with so many colons of its own, from the key.
fn split(rest: &str, colons: usize) -> (&str, Option<&str>) {
    if rest.starts_with("arn:") {
        return match rest.match_indices(':').nth(colons) {
            Some((end, _)) => (&rest[..end], Some(&rest[end + 1..])),
            None => (rest, None),
        };
    }
    match rest.rsplit_once(':') {
        Some((name, key)) => (name, Some(key)),
        None => (rest, None),
    }
}
