//! Where the documents say that a table's cursor lies, as far as that can be told without reading a secret.
//!
//! A sweep knows the whole [`Identity`], because it has resolved every placeholder. A laptop may not be allowed to. So a
//! [`Place`] holds what is known, and what is not known matches anything: a host that stands in Secrets Manager is not
//! compared, rather than reported as moved.

use crate::config::placeholder::{Provider, Template};
use crate::config::{Connector, Env};
use crate::cursor::{Identity, Item, Moved};

/// A table of a document, and what is known of its cursor's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The connector's name.
    pub connector: String,
    /// The alias.
    pub alias: String,
    /// The kind of source.
    pub source: String,
    /// The instance, when no unread placeholder hides it.
    pub instance: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// The field that orders the rows.
    pub field: Option<String>,
    /// The field that breaks ties.
    pub id_field: Option<String>,
    /// What chooses the rows.
    pub fingerprint: Option<String>,
}

/// How a stored cursor relates to the documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It is the table's cursor.
    Current,
    /// It is of the same table under another query; the new query has a cursor of its own.
    ChangedQuery,
    /// It is of another place under the same alias; no sweep goes on from it.
    Moved(Moved),
}

impl Place {
    /// The places of a connector's tables, in the order of their aliases.
    pub fn of(connector: &Connector, env: Env<'_>) -> Vec<Self> {
        connector.tables().iter().map(|alias| Self::of_table(connector, alias, env)).collect()
    }

    fn of_table(connector: &Connector, alias: &str, env: Env<'_>) -> Self {
        let kind = connector.kind;
        let known = (kind.cursors.identity)(&connector.values, alias, &|key| known(connector, key, env));
        Self {
            connector: connector.name.clone(),
            alias: alias.to_owned(),
            source: kind.name.to_owned(),
            instance: known.instance,
            table: known.table.or_else(|| connector.values.text(&format!("{}{alias}.name", kind.alias_prefix)).map(str::to_owned)),
            field: known.field,
            id_field: known.id_field,
            fingerprint: known.fingerprint,
        }
    }

    /// The whole identity, if all of it is known.
    pub fn identity(&self) -> Option<Identity> {
        Some(Identity {
            connector: self.connector.clone(),
            alias: self.alias.clone(),
            source: self.source.clone(),
            instance: self.instance.clone()?,
            table: self.table.clone()?,
            field: self.field.clone()?,
            id_field: self.id_field.clone()?,
            fingerprint: self.fingerprint.clone()?,
        })
    }

    /// The identity, with what is not known taken from `stored`.
    pub fn identity_like(&self, stored: &Identity) -> Identity {
        let or = |known: &Option<String>, stored: &String| known.clone().unwrap_or_else(|| stored.clone());
        Identity {
            connector: self.connector.clone(),
            alias: self.alias.clone(),
            source: self.source.clone(),
            instance: or(&self.instance, &stored.instance),
            table: or(&self.table, &stored.table),
            field: or(&self.field, &stored.field),
            id_field: or(&self.id_field, &stored.id_field),
            fingerprint: or(&self.fingerprint, &stored.fingerprint),
        }
    }

    /// How the cursor of `stored` relates to this table; `None` if it is of another alias.
    pub fn compare(&self, stored: &Identity) -> Option<Finding> {
        if stored.connector != self.connector || stored.alias != self.alias {
            return None;
        }
        let wanted = self.identity_like(stored);
        Some(match wanted.moved(stored) {
            Some(moved) => Finding::Moved(moved),
            None if wanted.fingerprint != stored.fingerprint => Finding::ChangedQuery,
            None => Finding::Current,
        })
    }
}

/// The items of `place` among those of its connector, with what each is to it; its current one first.
pub fn found<'i>(place: &Place, items: &'i [Item]) -> Vec<(&'i Item, Finding)> {
    let mut found: Vec<_> = items.iter().filter_map(|item| Some((item, place.compare(&item.identity)?))).collect();
    found.sort_by_key(|(_, finding)| *finding != Finding::Current);
    found
}

/// The value of a key, with placeholders of the environment filled in; those of other providers are not read here.
fn known(connector: &Connector, key: &str, env: Env<'_>) -> Option<String> {
    if let Some(text) = connector.values.text(key) {
        return Some(text.to_owned());
    }
    let source = connector.values.shown(key)?;
    let template = Template::parse(&source).ok().flatten()?;
    let mut text = source.clone();
    for reference in template.references() {
        if reference.provider != Provider::Env {
            return None;
        }
        text = text.replace(&reference.source, &env(&reference.path)?);
    }
    Some(text)
}

/// A place of which everything is known, for the tests of this folder.
#[cfg(test)]
pub(super) fn place() -> Place {
    Place {
        connector: "c".into(),
        alias: "inc".into(),
        source: "servicenow".into(),
        instance: Some("acme.service-now.com".into()),
        table: Some("incident".into()),
        field: Some("sys_updated_on".into()),
        id_field: Some("sys_id".into()),
        fingerprint: Some(Identity::fingerprint_of(&["incident", "", "true"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_another_instance_is_moved_and_one_of_another_query_is_not() {
        let own = place().identity().expect("all is known");
        assert_eq!(place().compare(&own), Some(Finding::Current));
        let elsewhere = Identity { instance: "dev.service-now.com".into(), ..own.clone() };
        assert!(matches!(place().compare(&elsewhere), Some(Finding::Moved(moved)) if moved.what == "instance"));
        let requeried = Identity { fingerprint: "f".into(), ..own.clone() };
        assert_eq!(place().compare(&requeried), Some(Finding::ChangedQuery));
        assert_eq!(place().compare(&Identity { alias: "chg".into(), ..own }), None);
    }

    #[test]
    fn what_a_secret_hides_is_not_reported_as_moved() {
        let own = place().identity().expect("all is known");
        let hidden = Place { instance: None, ..place() };
        assert_eq!(hidden.compare(&own), Some(Finding::Current));
        assert_eq!(hidden.identity(), None);
        assert_eq!(hidden.identity_like(&own), own);
    }
}
