use super::KINDS;
use crate::config::reference;

#[test]
fn the_reference_page_is_what_the_definitions_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page == reference(&KINDS), "docs/configuration.md is stale; run `tablesweep reference > docs/configuration.md`");
}

#[test]
fn every_key_of_every_source_is_on_the_page_with_a_sentence() {
    let page = reference(&KINDS);
    for key in KINDS.iter().flat_map(|kind| kind.keys) {
        assert!(page.contains(&format!("| `{}` |", key.name)), "{}", key.name);
        assert!(key.doc.ends_with('.') && key.doc.len() > 5, "{} lacks a sentence", key.name);
    }
}

#[test]
fn a_default_is_a_value_that_its_key_accepts() {
    use crate::config::Fallback;
    for kind in KINDS {
        for key in kind.keys {
            match key.default {
                Fallback::Text(text) => {
                    assert_eq!(key.kind.check(key.kind.tidy(text)), Ok(()), "{}", key.name)
                }
                Fallback::Inherits(other) => assert!(kind.keys.iter().any(|key| key.name == other), "{}", key.name),
                Fallback::Required | Fallback::None => {}
            }
        }
    }
}

#[test]
fn no_key_is_defined_twice_and_names_are_told_apart_by_their_prefix() {
    let mut seen = std::collections::BTreeSet::new();
    for kind in KINDS {
        for key in kind.keys {
            assert!(seen.insert((kind.name, format!("{:?}", key.scope), key.name)), "{} twice", key.name);
        }
    }
}
