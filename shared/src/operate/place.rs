//! Where the documents say that a table's cursor lies, as far as that can be told without reading a secret.
//!
//! A sweep knows the whole [`Identity`], because it has resolved every placeholder. A laptop may not be allowed to. So a
//! [`Place`] holds what is known, and what is not known matches anything: a host that stands in Secrets Manager is not
//! compared, rather than reported as moved.
//!
//! A stored cursor belongs to the table that would go on from it: the one whose place it lies in. The alias that it carries
//! is the one of its last sweep, and tells only whose a cursor is that no table goes on from ([`whose`]). So a table may be
//! renamed, and its old name given to another, and each keeps what is its own.

use crate::config::placeholder::{Provider, Template};
use crate::config::{Connector, Env};
use crate::cursor::{Identity, Item, Listing, Moved, Position, Unreadable};

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
    /// Where the table begins that has no cursor, if its document says so by a position.
    pub start: Option<Position>,
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
            start: (kind.cursors.start)(&connector.values, alias).map(|(_, start)| start),
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

    /// The name of the table, as a person gives it to a command.
    pub fn name(&self) -> String {
        format!("{}/{}", self.connector, self.alias)
    }

    /// Whether a sweep of this table finds the cursor of `stored` in its place. A hidden instance is taken for the stored one:
    /// a connector has one. Of other hidden parts the alias has to tell.
    pub(super) fn lies_at(&self, stored: &Identity) -> bool {
        let named = stored.alias == self.alias;
        let same = |known: &Option<String>, stored: &String| known.as_ref().map_or(named, |known| known == stored);
        self.connector == stored.connector
            && self.source == stored.source
            && self.instance.as_ref().is_none_or(|instance| *instance == stored.instance)
            && same(&self.table, &stored.table)
            && same(&self.field, &stored.field)
            && same(&self.fingerprint, &stored.fingerprint)
    }
}

/// Whose of `places` the cursor of `stored` is, and what it is to that table; `None` if no document has a use for it.
pub fn whose<'p>(places: &'p [Place], stored: &Identity) -> Option<(&'p Place, Finding)> {
    let owners = || places.iter().filter(|place| place.lies_at(stored));
    if let Some(owner) = owners().find(|place| place.alias == stored.alias).or_else(|| owners().next()) {
        // Of what the place does not say, only the id field is left to differ.
        return Some((owner, owner.identity_like(stored).moved(stored).map_or(Finding::Current, Finding::Moved)));
    }
    let named = places.iter().find(|place| place.connector == stored.connector && place.alias == stored.alias)?;
    Some((named, named.identity_like(stored).moved(stored).map_or(Finding::ChangedQuery, Finding::Moved)))
}

/// Whose of `places` something is that lies where a cursor should and cannot be read.
pub fn whose_unreadable<'p>(places: &'p [Place], lies: &Unreadable) -> Option<&'p Place> {
    let by_place = places.iter().find(|place| place.identity().is_some_and(|identity| identity.key() == lies.key));
    by_place.or_else(|| {
        let identity = lies.identity.as_ref().filter(|identity| identity.key() == lies.key)?;
        match whose(places, identity)? {
            (_, Finding::ChangedQuery) => None,
            (place, Finding::Current | Finding::Moved(_)) => Some(place),
        }
    })
}

/// What of a store has to do with one table.
#[derive(Debug, Default)]
pub struct Found<'i> {
    /// What lies in the table's place, and how it differs in what no place says.
    own: Option<(&'i Item, Option<Moved>)>,
    /// What seems to lie there too, because a secret hides a part of the place: a sweep goes on from one of them.
    others: Vec<&'i Item>,
    /// Cursors of other places that carry the alias, and that no table goes on from.
    former: Vec<(&'i Item, Moved)>,
    /// Whether another query of the table has a cursor.
    pub changed_query: bool,
    /// What lies in its place, or carries its alias, and cannot be read.
    pub unreadable: Vec<&'i Unreadable>,
}

impl<'i> Found<'i> {
    /// What `listing` has of `place`, which is one of `places`.
    pub fn of(place: &Place, places: &[Place], listing: &'i Listing) -> Self {
        let is_this = |owner: &Place| owner.connector == place.connector && owner.alias == place.alias;
        let mut found = Self::default();
        for item in &listing.items {
            match whose(places, &item.identity) {
                Some((owner, finding)) if is_this(owner) => found.take(place, item, finding),
                _ => {}
            }
        }
        let unreadable = listing.unreadable.iter();
        found.unreadable = unreadable.filter(|lies| whose_unreadable(places, lies).is_some_and(is_this)).collect();
        found
    }

    fn take(&mut self, place: &Place, item: &'i Item, finding: Finding) {
        let moved = match finding {
            Finding::ChangedQuery => {
                self.changed_query = true;
                return;
            }
            Finding::Moved(moved) if !place.lies_at(&item.identity) => {
                self.former.push((item, moved));
                return;
            }
            Finding::Moved(moved) => Some(moved),
            Finding::Current => None,
        };
        // Where a secret hides the instance, two can seem to lie there: sweeps use the one that was started last.
        let rank = |item: &Item| (item.started_ms, item.identity.alias == place.alias);
        match &self.own {
            Some((own, _)) if rank(own) >= rank(item) => self.others.push(item),
            _ => self.others.extend(self.own.replace((item, moved)).map(|(before, _)| before)),
        }
    }

    /// What lies in the table's place, whether a sweep goes on from it or not.
    pub fn own(&self) -> Option<&'i Item> {
        self.own.as_ref().map(|(item, _)| *item)
    }

    /// What seems to lie in the table's place too, because a secret hides a part of it.
    pub fn others(&self) -> impl Iterator<Item = &'i Item> {
        self.others.iter().copied()
    }

    /// The cursor that the table's next sweep goes on from.
    pub fn current(&self) -> Option<&'i Item> {
        self.own.as_ref().filter(|(_, moved)| moved.is_none()).map(|(item, _)| *item)
    }

    /// The cursor that keeps the table from being swept, since it is of another place, and how.
    pub fn moved(&self) -> Option<(&'i Item, &Moved)> {
        match &self.own {
            Some((item, moved)) => moved.as_ref().map(|moved| (*item, moved)),
            None => self.former.first().map(|(item, moved)| (*item, moved)),
        }
    }

    /// Cursors of other places that carry the alias and that no table goes on from, where they keep this one from being swept.
    pub fn former(&self) -> impl Iterator<Item = &'i Item> {
        let former = if self.own.is_none() { self.former.as_slice() } else { &[] };
        former.iter().map(|(item, _)| *item)
    }
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
        start: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_another_instance_is_moved_and_one_of_another_query_is_not() {
        let own = place().identity().expect("all is known");
        let finding = |stored: &Identity| whose(&[place()], stored).map(|(_, finding)| finding);
        assert_eq!(finding(&own), Some(Finding::Current));
        let elsewhere = Identity { instance: "dev.service-now.com".into(), ..own.clone() };
        assert!(matches!(finding(&elsewhere), Some(Finding::Moved(moved)) if moved.what == "instance"));
        let requeried = Identity { fingerprint: "f".into(), ..own.clone() };
        assert_eq!(finding(&requeried), Some(Finding::ChangedQuery));
        let other_id = Identity { id_field: "u_id".into(), ..own.clone() };
        assert!(matches!(finding(&other_id), Some(Finding::Moved(moved)) if moved.what == "id field"));
        assert_eq!(finding(&Identity { alias: "chg".into(), ..elsewhere.clone() }), None);
        // Another alias, and another place in any way: it is nobody's.
        for other in [
            Identity { field: "sys_created_on".into(), ..own.clone() },
            Identity { table: "problem".into(), ..own.clone() },
            Identity { fingerprint: "f".into(), ..own.clone() },
        ] {
            assert_eq!(finding(&Identity { alias: "chg".into(), ..other }), None);
        }
        assert_eq!(finding(&Identity { connector: "d".into(), ..own }), None);
    }

    #[test]
    fn a_cursor_is_of_the_table_whose_place_it_lies_in_and_not_of_the_one_that_has_its_alias_now() {
        let (inc, problem) = (place(), Place { alias: "prb".into(), table: Some("problem".into()), ..place() });
        let stored = Identity { alias: "prb".into(), ..inc.identity().expect("all is known") };
        let places = [problem.clone(), inc.clone()];
        assert_eq!(whose(&places, &stored), Some((&inc, Finding::Current)));
        let listing = Listing { items: vec![Item::new(stored)], ..Listing::default() };
        let [of_problem, of_inc] = [&problem, &inc].map(|place| Found::of(place, &places, &listing));
        assert_eq!((of_inc.current(), of_inc.moved()), (listing.items.first(), None));
        assert_eq!((of_problem.own(), of_problem.moved()), (None, None));
        // Under a renamed alias a changed id field is as much a move as under the same.
        let other_id = Place { id_field: Some("u_id".into()), ..inc };
        assert!(matches!(whose(&[other_id], &listing.items[0].identity), Some((_, Finding::Moved(_)))));
    }

    #[test]
    fn what_a_secret_hides_is_not_reported_as_moved() {
        let own = place().identity().expect("all is known");
        let hidden = Place { instance: None, ..place() };
        assert_eq!(whose(std::slice::from_ref(&hidden), &own), Some((&hidden, Finding::Current)));
        let renamed = Place { alias: "incidents".into(), ..hidden.clone() };
        assert_eq!(whose(std::slice::from_ref(&renamed), &own), Some((&renamed, Finding::Current)));
        assert_eq!(whose(&[renamed, hidden.clone()], &own), Some((&hidden, Finding::Current)), "its alias tells two apart");
        let nameless = Place { table: None, alias: "other".into(), ..place() };
        assert_eq!(whose(&[nameless], &own), None, "a hidden table is not taken for any table");
        assert_eq!(hidden.identity(), None);
        assert_eq!(hidden.identity_like(&own), own);
    }
}
