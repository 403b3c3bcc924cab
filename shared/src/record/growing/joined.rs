//! A schema that was carried from one store into another, which may have grown its own meanwhile.
//!
//! Records of both are in the topic. So no field of either may go, and no version that either has given may be given to another
//! list of fields.

use super::{FORMAT, Stored, decode};

/// What is to be stored where `here` is stored and `brought` is brought along; `None` if that is what is stored already.
///
/// # Errors
/// What is wrong with either, after "the schema".
pub fn joined(here: &[u8], brought: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let (here, brought) = (decode(here)?, decode(brought)?);
    let (ahead, behind) = if brought.version > here.version { (&brought, &here) } else { (&here, &brought) };
    let mut fields = ahead.fields.clone();
    for name in &behind.fields {
        if !fields.contains(name) {
            fields.push(name.clone());
        }
    }
    let has_all = fields.len() == ahead.fields.len();
    let next = if has_all && (ahead.version > behind.version || ahead == behind) {
        ahead.clone()
    } else {
        Stored { format: FORMAT, version: ahead.version.saturating_add(1), fields, ..ahead.clone() }
    };
    let bytes = || serde_json::to_vec(&next).expect("names and numbers are representable in JSON");
    Ok((next != here).then(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(version: i32, fields: &[&str]) -> Vec<u8> {
        let fields = fields.iter().map(|name| (*name).to_owned()).collect();
        let stored = Stored { format: FORMAT, name: "n.Value".to_owned(), version, given: None, fields };
        serde_json::to_vec(&stored).expect("JSON")
    }

    #[test]
    fn no_field_goes_and_no_version_is_given_twice() {
        let joined = |here: &[u8], brought: &[u8]| joined(here, brought).expect("both are read");
        let (two, three) = (stored(2, &["a", "b"]), stored(3, &["a", "b", "c"]));
        assert_eq!(joined(&two, &two), None);
        assert_eq!(joined(&three, &two), None, "an older copy brings nothing");
        assert_eq!(joined(&two, &three), Some(three.clone()), "a later one is taken as it is");
        // They grew apart.
        assert_eq!(joined(&two, &stored(2, &["a", "x"])), Some(stored(3, &["a", "b", "x"])));
        assert_eq!(joined(&stored(1, &["x"]), &three), Some(stored(4, &["a", "b", "c", "x"])));
        assert_eq!(joined(&three, &stored(1, &["x"])), Some(stored(4, &["a", "b", "c", "x"])));
        let reordered = stored(2, &["b", "a"]);
        assert_eq!(joined(&two, &reordered), Some(stored(3, &["a", "b"])), "one number, two orders");
    }

    #[test]
    fn what_cannot_be_read_is_joined_with_nothing() {
        let good = stored(1, &["a"]);
        for bad in [&b"[]"[..], br#"{"format":99,"name":"n","version":1,"fields":[]}"#, b"?"] {
            assert!(joined(&good, bad).is_err() && joined(bad, &good).is_err());
        }
    }
}
