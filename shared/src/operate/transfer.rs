//! Cursors as lines of JSON: to carry them into another store, to keep a copy, to answer "where did it stand?".

use serde::Deserialize;

use crate::cursor::{Identity, Item, StoreError, StoredWindow, decode, encode};

/// The line of an item. What belongs to the place it lies in stays behind: the lease and the dedup window.
pub fn export_line(item: &Item) -> String {
    let mut item = Item { lease: None, tries: 0, ..item.clone() };
    item.progress.window = StoredWindow::None;
    encode(&item)
}

/// Reads a line that [`export_line`] wrote.
///
/// # Errors
/// It is not one, or of a newer program.
pub fn read_line(line: &str) -> Result<Item, StoreError> {
    #[derive(Deserialize)]
    struct Named {
        identity: Identity,
    }
    let named: Named = serde_json::from_str(line).map_err(|error| StoreError::Format {
        partition: "of the import".to_owned(),
        place: "the line".to_owned(),
        detail: format!("it is no exported cursor ({error})"),
    })?;
    decode(&named.identity.key(), line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_cursor_comes_back_without_its_lease_and_its_window() {
        let identity = Identity {
            connector: "c".into(),
            alias: "inc".into(),
            source: "servicenow".into(),
            instance: "acme.service-now.com".into(),
            table: "incident".into(),
            field: "sys_updated_on".into(),
            id_field: "sys_id".into(),
            fingerprint: "f".into(),
        };
        let mut item = Item::new(identity);
        item.tries = 2;
        item.progress.window = StoredWindow::Beside(3);
        item.lease = Some(crate::cursor::Lease { owner: "o".into(), until_ms: 1 });
        let back = read_line(&export_line(&item)).expect("a line");
        assert_eq!((back.lease, back.tries, back.progress.window), (None, 0, StoredWindow::None));
        assert_eq!(back.identity, item.identity);
        assert!(read_line("{}").is_err());
    }
}
