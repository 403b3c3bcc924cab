//! Who may see what.
//!
//! The instance enforces access in four places, and a client meets each of them differently. The table as a whole is
//! refused with 403. A field is missing from every row, without a mark. A row is taken out after the limit was applied,
//! which is why pages are short or empty while more rows exist. And a field may not be used in a query: that part is
//! then dropped without a word, the order included, or the request is refused.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Why a whole table is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forbidden {
    /// `Insufficient rights to query records`.
    Rights,
    /// `Failed API level ACL Validation`.
    Api,
}

/// What happens to a part of a query that a query ACL denies, or that names an unknown field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denied {
    /// It is dropped, and the rest runs.
    #[default]
    Dropped,
    /// The request is refused: `Field(s) present in the query do not have permission to be read`.
    Refused,
}

/// The access rules of one table that can be written down; all are empty by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// The whole table is refused.
    pub forbidden: Option<Forbidden>,
    /// Fields that are missing from every row.
    pub hidden_fields: BTreeSet<String>,
    /// Fields that may not stand in a range condition or in the order.
    pub no_range: BTreeSet<String>,
    /// Fields that may not stand in a match condition.
    pub no_match: BTreeSet<String>,
    /// What becomes of a denied part of a query.
    pub denied: Denied,
    /// Identities in other domains: seen only with `sysparm_query_no_domain=true` by a user who may.
    pub other_domain: BTreeSet<String>,
}

type Getter<'a> = &'a dyn Fn(&str) -> Option<String>;
type Predicate = Arc<dyn Fn(Getter<'_>) -> bool + Send + Sync>;

/// Everything that limits access to one table.
#[derive(Clone, Default)]
pub(super) struct Access {
    pub rules: Rules,
    pub hidden_ids: BTreeSet<String>,
    pub id_field: Option<String>,
    hidden_where: Vec<(String, String)>,
    hidden_when: Vec<Predicate>,
}

impl Access {
    pub fn hide_where(&mut self, field: &str, equals: &str) {
        self.hidden_where.push((field.to_owned(), equals.to_owned()));
    }

    pub fn hide_when(&mut self, predicate: impl Fn(Getter<'_>) -> bool + Send + Sync + 'static) {
        self.hidden_when.push(Arc::new(predicate));
    }

    pub fn unhide_all(&mut self) {
        self.hidden_ids.clear();
        self.hidden_where.clear();
        self.hidden_when.clear();
    }

    /// Is a row with these fields hidden?
    pub fn hides(&self, field: Getter<'_>) -> bool {
        let named = || {
            let id = field(self.id_field.as_deref().unwrap_or("sys_id"));
            id.is_some_and(|id| self.hidden_ids.contains(&id))
        };
        (!self.hidden_ids.is_empty() && named())
            || self.hidden_where.iter().any(|(name, value)| field(name).as_ref() == Some(value))
            || self.hidden_when.iter().any(|predicate| predicate(field))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("rules", &self.rules)
            .field("hidden_ids", &self.hidden_ids)
            .field("hidden_where", &self.hidden_where)
            .field("hidden_when", &self.hidden_when.len())
            .finish()
    }
}
