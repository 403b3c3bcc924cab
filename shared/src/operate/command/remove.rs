//! Taking a cursor away that no table goes on from: of a table that left the documents, of a former query, of a place that an
//! alias was moved away from, or something that cannot be read.
//!
//! Such a cursor costs nothing and `status` lists it, so that a query that is put back goes on where it stood. Who removes it says
//! that this will not be.

use super::announce::anew;
use super::{CommandError, Operator, Outcome};
use crate::cursor::{Item, Key, Listing, Unreadable};
use crate::operate::place::{Finding, Found, Place, whose, whose_unreadable};
use crate::operate::shown;

/// A removal that may be carried out.
#[derive(Debug, Clone)]
pub struct Removal {
    key: Key,
    alias: String,
    item: Option<Item>,
    /// What will be lost, in words.
    pub announcement: String,
}

impl Operator<'_> {
    /// Reads what lies at `place` of `connector`, and says what is lost with it.
    ///
    /// # Errors
    /// `Cursor.Missing` if nothing lies there, `Cursor.InUse` if a table goes on from it, `Cursor.Leased`, or the store.
    pub async fn prepare_removal(&self, connector: &str, place: &str) -> Result<Removal, CommandError> {
        let listing = self.store.survey(connector).await?;
        if let Some(item) = listing.items.iter().find(|item| item.identity.key().place == place) {
            return self.removal_of(item.clone(), &listing);
        }
        match listing.unreadable.into_iter().find(|lies| lies.key.place == place) {
            Some(lies) => self.removal_of_unreadable(lies),
            None => Err(CommandError::NoOrphan {
                connector: connector.to_owned(),
                place: place.to_owned(),
                store: self.store.name().to_owned(),
            }),
        }
    }

    fn removal_of(&self, item: Item, listing: &Listing) -> Result<Removal, CommandError> {
        let (key, alias) = (item.identity.key(), item.identity.alias.clone());
        let named = format!("{}/{alias}", key.connector);
        let whose = whose(self.places, &item.identity);
        // Of several that fit a place which a secret hides in part, sweeps use one.
        let is_used = |owner: &Place| Found::of(owner, self.places, listing).own().is_some_and(|own| own.identity.key() == key);
        if let Some((owner, _)) = whose.as_ref().filter(|(owner, _)| is_used(owner)) {
            return Err(CommandError::InUse { place: key.place, table: owner.name() });
        }
        self.refuse_leased(&named, &item)?;
        let then = match whose {
            Some((owner, Finding::Moved(_))) => format!("the next sweep of {} starts anew", owner.name()),
            _ => "a document that asks for this place again starts anew".to_owned(),
        };
        let announcement = format!(
            "removes the cursor of {named} at {} ({}, {} rows delivered): {then}, where it says{}",
            shown(item.progress.cursor.as_ref()),
            key.place,
            item.progress.counters.rows,
            anew(&item.identity.source)
        );
        Ok(Removal { key, alias, item: Some(item), announcement })
    }

    fn removal_of_unreadable(&self, lies: Unreadable) -> Result<Removal, CommandError> {
        let Unreadable { key, identity, detail } = &lies;
        if let Some(owner) = whose_unreadable(self.places, &lies)
            && owner.identity().is_none_or(|identity| identity.key() == *key)
        {
            return Err(CommandError::InUse { place: key.place.clone(), table: owner.name() });
        }
        let alias = identity.as_ref().map_or_else(|| "?".to_owned(), |identity| identity.alias.clone());
        let announcement = format!(
            "removes what lies at {} of {} and cannot be read ({detail}): where it stood is lost, and a document that asks for this place \
             starts anew",
            key.place, key.connector
        );
        Ok(Removal { key: key.clone(), alias, item: None, announcement })
    }

    /// Does what was prepared, and keeps an audit entry.
    ///
    /// # Errors
    /// It was not done.
    pub async fn remove(&self, removal: Removal) -> Result<Outcome, CommandError> {
        let Removal { key, alias, item, .. } = removal;
        let table = format!("{}/{alias}", key.connector);
        match &item {
            Some(_) => self.take_away(&table, &key).await?,
            None => self.discard(&table, &key).await?,
        }
        let before = item.and_then(|item| item.progress.cursor);
        let outcome = Outcome { connector: key.connector.clone(), table: alias, command: "remove", changed: true, before, after: None };
        self.keep_audit(&outcome, Some(key)).await;
        Ok(outcome)
    }
}
