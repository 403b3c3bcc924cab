//! Tables that are known not to be followed by the time of their last update.
//!
//! Their rows are written once, or lie in tables that the instance rotates, so that the time of the update is missing or
//! never moves. Sweeping them by it would deliver nothing, or the same rows for ever, without any error.

use super::finding::Finding;

/// The default cursor field, and the one that takes its place.
const UPDATED: &str = "sys_updated_on";
const CREATED: &str = "sys_created_on";

const WRITTEN_ONCE: &str = "its rows are written once and never updated";
const ROTATED: &str = "its rows are written once, into tables that the instance rotates";
const ON_DEMAND: &str = "its rows are made anew whenever somebody looks at a record's history, and are dropped again";

const FOLLOWED_BY_CREATION: [(&str, &str); 7] = [
    ("sys_audit", WRITTEN_ONCE),
    ("sys_audit_delete", WRITTEN_ONCE),
    ("sys_audit_relation", WRITTEN_ONCE),
    ("sys_journal_field", WRITTEN_ONCE),
    ("sysevent", ROTATED),
    ("syslog", ROTATED),
    ("syslog_transaction", ROTATED),
];

const NEVER_FOLLOWED: [&str; 2] = ["sys_history_line", "sys_history_set"];

/// What is known against sweeping `table` by `field`. `key` is the key that chooses the field.
pub(super) fn against(table: &str, field: &str, key: &str) -> Option<Finding> {
    if NEVER_FOLLOWED.contains(&table) {
        let instead = "Take the alias out; sys_audit, swept by sys_created_on, holds the changes themselves".to_owned();
        return Some(Finding::Unfollowable { field: field.to_owned(), why: ON_DEMAND, instead });
    }
    let (_, why) = FOLLOWED_BY_CREATION.into_iter().find(|(known, _)| *known == table && field == UPDATED)?;
    Some(Finding::Unfollowable { field: field.to_owned(), why, instead: format!("Set {key} to {CREATED}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_a_usable_cursor_names_the_field_to_use_instead() {
        let found = against("sys_journal_field", "sys_updated_on", "snow.table.j.timestamp.field").expect("known").to_string();
        assert!(found.contains("snow.table.j.timestamp.field") && found.contains("sys_created_on"), "{found}");
        assert_eq!(against("sys_journal_field", "sys_created_on", "k"), None);
        assert_eq!(against("incident", "sys_updated_on", "k"), None);
        assert!(against("sys_history_line", "sys_created_on", "k").is_some(), "no field serves");
    }
}
