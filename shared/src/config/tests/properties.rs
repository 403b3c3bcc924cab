use proptest::prelude::*;

use crate::config::document::{decode, properties};

fn parsed(text: &str) -> Vec<(String, String)> {
    properties(text).unwrap()
}

#[test]
fn properties_are_read_as_java_reads_them() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("a=b", &[("a", "b")]),
        ("a:b", &[("a", "b")]),
        ("a b", &[("a", "b")]),
        ("a\tb", &[("a", "b")]),
        ("a = b ", &[("a", "b ")]),
        ("  a   :   b", &[("a", "b")]),
        ("a==b", &[("a", "=b")]),
        ("a = : b", &[("a", ": b")]),
        ("a", &[("a", "")]),
        ("a=", &[("a", "")]),
        ("=b", &[("", "b")]),
        ("a b=c:d", &[("a", "b=c:d")]),
        ("# note\n  ! note\n\na=b", &[("a", "b")]),
        ("a=b # not a note", &[("a", "b # not a note")]),
        ("a=b\\\n   c", &[("a", "bc")]),
        ("a=b\\\n\\\n  c", &[("a", "bc")]),
        ("a=b\\\\\nc=d", &[("a", "b\\"), ("c", "d")]),
        ("a=b\\\\\\\n c", &[("a", "b\\c")]),
        ("a=b\\", &[("a", "b")]),
        ("a=b\\\n# c", &[("a", "b# c")]),
        ("# note \\\na=b", &[("a", "b")]),
        ("a=b\r\nc=d\re=f", &[("a", "b"), ("c", "d"), ("e", "f")]),
        ("a\\=b\\:c\\ d=e", &[("a=b:c d", "e")]),
        ("a=\\t\\n\\r\\f\\\\\\q", &[("a", "\t\n\r\u{c}\\q")]),
        ("a=Z\\u00fcrich \\u2603", &[("a", "Zürich ☃")]),
        ("a=\\ud834\\udd1e", &[("a", "𝄞")]),
        ("\\u0061=b", &[("a", "b")]),
        ("a=1\na=2", &[("a", "1"), ("a", "2")]),
        ("", &[]),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(parsed(text), expected, "{text:?}");
    }
}

#[test]
fn a_broken_escape_is_named_by_its_line() {
    for (text, expected) in [
        ("a=b\nc=\\u12", "has a malformed \\uXXXX escape in line 2"),
        ("a=\\uzzzz", "has a malformed \\uXXXX escape in line 1"),
        ("a=\\ud834", "has an unpaired surrogate escape in line 1"),
        ("a=\\ud834\\u0061", "has an unpaired surrogate escape in line 1"),
        ("a=\\udd1e", "has an unpaired surrogate escape in line 1"),
    ] {
        assert_eq!(properties(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_file_is_utf_8_or_else_latin_1() {
    assert_eq!(decode("a=Zürich ☃".as_bytes()), "a=Zürich ☃");
    assert_eq!(decode(b"a=Z\xfcrich"), "a=Zürich");
    assert_eq!(decode("\u{feff}a".as_bytes()), "a");
}

/// Writes a text so that every character of it means itself.
fn escaped(text: &str) -> String {
    let mut units = [0; 2];
    text.chars().flat_map(|c| c.encode_utf16(&mut units).to_vec()).map(|unit| format!("\\u{unit:04x}")).collect()
}

proptest! {
    #[test]
    fn any_pair_that_is_escaped_comes_back(key in ".*", value in ".*") {
        let text = format!("{}={}", escaped(&key), escaped(&value));
        prop_assert_eq!(properties(&text), Ok(vec![(key, value)]));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\\\u=: #!a-f0-9\n\r\t\u{c}é]*") {
        let _ = properties(&text);
    }
}
