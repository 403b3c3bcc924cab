//! What lies beside cursors and must not be lost when they are carried elsewhere: schemas of topics, which number what is in the
//! topic already, and the baselines that cursors name.
//!
//! A baseline is known by its digest, so its line says no more than its text: a cursor whose line was edited still finds it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::cursor::{BASELINE_NOTE, Blob, CursorStore, Item, StoreError, baseline_digest};
use crate::record::joined_schemas;
use crate::source::{BASELINE, FOUND_SCHEMA};
use crate::sweep::is_topic_schema;

/// The format that this program writes; a higher one is refused.
const FORMAT: u32 = 1;

/// What lies beside cursors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Beside {
    /// The schema of the records of a topic.
    Schema {
        /// Of this line.
        format: u32,
        /// The connector's name.
        connector: String,
        /// Where it lies.
        place: String,
        /// The schema as it is stored.
        text: String,
    },
    /// The schema that a table must have, which cursors of the connector name by its digest.
    Baseline {
        /// Of this line.
        format: u32,
        /// The connector's name.
        connector: String,
        /// The baseline as it is stored.
        text: String,
    },
}

/// All that goes with `items`, which are cursors of `connector` in `store`.
///
/// # Errors
/// The store does not answer, or what lies there cannot be read.
pub async fn beside(store: &dyn CursorStore, connector: &str, items: &[&Item]) -> Result<Vec<Beside>, StoreError> {
    let mut found = BTreeSet::new();
    for (place, blob) in store.list_blobs(connector).await? {
        let is_baseline = items.iter().any(|item| is_named(item, &place, &blob));
        if !is_baseline && !is_topic_schema(&place) {
            continue;
        }
        let text = String::from_utf8(blob.bytes).map_err(|error| StoreError::Format {
            partition: connector.to_owned(),
            place: place.clone(),
            detail: format!("it is no text ({error})"),
        })?;
        let connector = connector.to_owned();
        found.insert(match is_baseline {
            true => Beside::Baseline { format: FORMAT, connector, text },
            false => Beside::Schema { format: FORMAT, connector, place, text },
        });
    }
    Ok(found.into_iter().collect())
}

/// Whether `blob` is the baseline that `item` names. One that was accepted since the last sweep is still where it was found.
fn is_named(item: &Item, place: &str, blob: &Blob) -> bool {
    let key = item.identity.key();
    [BASELINE, FOUND_SCHEMA].iter().any(|name| key.sibling(name) == place)
        && item.progress.notes.get(BASELINE_NOTE).is_some_and(|named| *named == baseline_digest(&blob.bytes))
}

impl Beside {
    /// Its line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are representable in JSON")
    }

    /// The connector's name.
    pub fn connector(&self) -> &str {
        match self {
            Self::Schema { connector, .. } | Self::Baseline { connector, .. } => connector,
        }
    }

    /// The text, if it is the baseline that `item` names.
    pub fn baseline_of(&self, item: &Item) -> Option<&str> {
        match self {
            Self::Baseline { connector, text, .. } if *connector == item.identity.connector => {
                let named = item.progress.notes.get(BASELINE_NOTE)?;
                (*named == baseline_digest(text.as_bytes())).then_some(text)
            }
            _ => None,
        }
    }
}

/// Whether a line is one of these and no cursor.
pub(super) fn is_one(line: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        #[expect(dead_code, reason = "that it is there is all that is asked")]
        kind: String,
    }
    serde_json::from_str::<Kind>(line).is_ok()
}

/// Reads a line that [`Beside::line`] wrote.
pub(super) fn read(line: &str) -> Result<Beside, String> {
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let wrong = |error: &serde_json::Error| format!("it is no exported schema: {}", super::without_place(error));
    let Versioned { format } = serde_json::from_str(line).map_err(|error| wrong(&error))?;
    if format > FORMAT {
        return Err(format!("it has format {format} and this program reads formats up to {FORMAT}: update tablesweep"));
    }
    let beside: Beside = serde_json::from_str(line).map_err(|error| wrong(&error))?;
    if let Beside::Schema { place, text, .. } = &beside {
        if !is_topic_schema(place) {
            return Err(format!("{place} is no place of a topic's schema"));
        }
        joined_schemas(text.as_bytes(), text.as_bytes()).map_err(|what| format!("the schema {what}"))?;
    }
    Ok(beside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Expect;
    use crate::cursor::memory::MemoryStore;
    use crate::operate::place::place;

    const SCHEMA: &str = r#"{"format":2,"name":"n.Value","version":3,"fields":["a","b"]}"#;

    #[tokio::test]
    async fn schemas_of_topics_and_the_baselines_that_cursors_name_go_with_them_and_nothing_else_does() {
        let store = MemoryStore::new();
        let item = |baseline: &str| {
            let mut item = Item::new(place().identity().expect("all is known"));
            item.progress.notes.insert(BASELINE_NOTE.to_owned(), baseline_digest(baseline.as_bytes()));
            item
        };
        let key = item("").identity.key();
        for (place, text) in [
            (key.sibling(BASELINE), "as it was"),
            (key.sibling(FOUND_SCHEMA), "as it is"),
            (key.sibling("probe"), "found"),
            ("servicenow/other#baseline".to_owned(), "as it was"),
            ("topic/t/strings#schema".to_owned(), SCHEMA),
        ] {
            store.put_blob("c", &place, text.as_bytes(), Expect::Any, None).await.expect("kept");
        }
        // One that was accepted lies where it was found until the next sweep.
        for named in ["as it was", "as it is"] {
            let item = item(named);
            let lines: Vec<String> = beside(&store, "c", &[&item]).await.expect("listed").iter().map(Beside::line).collect();
            let back: Vec<Beside> = lines.iter().map(|line| read(line).expect("a line")).collect();
            assert!(lines.iter().all(|line| is_one(line)) && back.len() == 2, "{lines:?}");
            assert!(matches!(&back[0], Beside::Schema { place, text, .. } if place == "topic/t/strings#schema" && text == SCHEMA));
            assert_eq!(back[1].baseline_of(&item), Some(named));
        }
        assert_eq!(beside(&store, "c", &[]).await.expect("listed").len(), 1, "a baseline goes with its cursor");
    }

    #[test]
    fn a_line_that_nobody_could_use_is_refused_in_words() {
        let good = Beside::Schema { format: 1, connector: "c".into(), place: "topic/t/strings#schema".into(), text: SCHEMA.into() };
        assert_eq!(read(&good.line()), Ok(good.clone()));
        for (from, to, word) in [
            ("\"format\":1", "\"format\":9", "update"),
            ("topic/t", "t", "no place"),
            ("\\\"version\\\":3", "\\\"version\\\":null", "damaged"),
            ("\"kind\":\"schema\"", "\"kind\":\"scheme\"", "no exported schema"),
            ("\"connector\"", "\"more\":1,\"connector\"", "no exported schema"),
        ] {
            let line = good.line().replacen(from, to, 1);
            assert_ne!(line, good.line(), "{from}");
            let error = read(&line).expect_err(to);
            assert!(error.contains(word), "{error}");
        }
    }
}
