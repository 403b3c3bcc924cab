//! Names that Avro takes: a letter or `_`, then letters, digits and `_`, of ASCII only.
//!
//! Names of a database may be anything, and fields of another table (`assignment_group.name`) have a point. `AvroData`
//! refuses such a name unless `scrub.invalid.names` is set, and then makes another: the name as a form would encode it, `x` before a
//! digit at its front, and `_` for whatever is still not allowed. So `u_a$b` becomes `u_a_24b` and `a.b` becomes `a_b`.

use std::borrow::Cow;

use url::form_urlencoded::byte_serialize;

use crate::record::converter::framed::SchemaError;

/// What happens to names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    pub(super) scrub: bool,
}

impl Names {
    /// The name of a field in Avro.
    pub(super) fn field<'n>(self, name: &'n str) -> Result<Cow<'n, str>, SchemaError> {
        self.name(name).ok_or_else(|| self.refused(&format!("the field {name:?}")))
    }

    /// The namespace and the name of a record in Avro.
    pub(super) fn record(self, full: &str) -> Result<(Option<String>, String), SchemaError> {
        let parts: Option<Vec<Cow<'_, str>>> = full.split('.').map(|part| self.name(part)).collect();
        let mut parts = parts.ok_or_else(|| self.refused(&format!("the schema's name {full:?}")))?;
        let name = parts.pop().unwrap_or_default().into_owned();
        Ok(((!parts.is_empty()).then(|| parts.join(".")), name))
    }

    fn name(self, name: &str) -> Option<Cow<'_, str>> {
        if is_valid(name) {
            return Some(Cow::Borrowed(name));
        }
        (self.scrub && !name.is_empty()).then(|| Cow::Owned(scrubbed(name)))
    }

    fn refused(self, what: &str) -> SchemaError {
        let remedy = if self.scrub {
            "give it a name, or leave it out with the table's `fields`"
        } else {
            "set `scrub.invalid.names=true` below the converter, which writes `_` for what Avro does not take, or leave it out with the \
             table's `fields`"
        };
        SchemaError::Name(format!("{what} is no name in Avro (a letter or _, then letters, digits and _); {remedy}"))
    }
}

fn is_valid(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_word) && !name.as_bytes()[0].is_ascii_digit()
}

fn scrubbed(name: &str) -> String {
    // Letters, digits, `*-._` stay, a space is `+`, and the rest is `%XX` for each byte of UTF-8: Java's URLEncoder.
    let encoded: String = byte_serialize(name.as_bytes()).collect();
    let front = if encoded.as_bytes()[0].is_ascii_digit() { "x" } else { "" };
    let word = encoded.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '_' });
    front.chars().chain(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_avro_does_not_take_is_refused_or_scrubbed_as_avro_data_does_it() {
        for (name, expected) in [
            ("u_priority", "u_priority"),
            ("_1", "_1"),
            ("u_a$b", "u_a_24b"),
            ("assignment_group.name", "assignment_group_name"),
            ("1st", "x1st"),
            ("Order Date", "Order_Date"),
            ("a-b*c", "a_b_c"),
            ("größe", "gr_C3_B6_C3_9Fe"),
            ("$", "_24"),
            ("a~b", "a_7Eb"),
        ] {
            assert_eq!(Names { scrub: true }.field(name).expect("scrubbed"), expected);
            let strict = Names { scrub: false }.field(name);
            assert_eq!(strict.is_ok(), name == expected, "{name}");
            if let Err(error) = strict {
                assert!(error.to_string().contains(&format!("{name:?}")) && error.to_string().contains("scrub.invalid.names"), "{error}");
            }
        }
        Names { scrub: true }.field("").expect_err("nothing is no name");
    }

    #[test]
    fn a_full_name_is_split_at_its_last_point_and_scrubbed_part_by_part() {
        let split = |full: &str| Names { scrub: true }.record(full).expect("a name");
        assert_eq!(split("sh.oso.servicenow.incident.Value"), (Some("sh.oso.servicenow.incident".into()), "Value".into()));
        assert_eq!(split("a.Order Lines.1"), (Some("a.Order_Lines".into()), "x1".into()));
        assert_eq!(split("alone"), (None, "alone".into()));
        Names { scrub: false }.record("a.Order Lines.Value").expect_err("a space");
    }
}
