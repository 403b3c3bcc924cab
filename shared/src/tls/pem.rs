//! Keys and certificates in PEM, also as they come out of stores of secrets.
//!
//! A web form or an environment variable makes blanks, or the two characters `\n`, of a text's line breaks. That is
//! forgiven here: what lies between the two marks is decoded without them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What begins every section.
const BEGIN: &str = "-----BEGIN ";

/// One section.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// What it says that it is, such as `CERTIFICATE`.
    pub(crate) label: String,
    /// What it holds, in DER.
    pub(crate) der: Vec<u8>,
}

/// Whether a file holds PEM, whatever stands before it.
pub(crate) fn is_pem(bytes: &[u8]) -> bool {
    bytes.windows(BEGIN.len()).any(|window| window == BEGIN.as_bytes())
}

/// The sections of a text in their order; what stands between them is for people.
///
/// # Errors
/// A section does not end, is not base64, or is encrypted in the old way. The text itself is never quoted.
pub(crate) fn sections(text: &str) -> Result<Vec<Section>, String> {
    let text = text.replace("\\n", "\n");
    let mut sections = Vec::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(BEGIN) {
        let after = &rest[start + BEGIN.len()..];
        let (label, after) = after.split_once("-----").ok_or("has a section without a name")?;
        let (body, after) = after.split_once(&format!("-----END {label}-----")).ok_or("has a section that does not end")?;
        if body.contains("Proc-Type") {
            return Err("holds a key that is encrypted in the old form of PEM; `openssl pkcs8 -topk8` makes the new one of it".into());
        }
        let packed: String = body.chars().filter(|c| !c.is_whitespace()).collect();
        let der = STANDARD.decode(packed).map_err(|_| "has a section that is not base64")?;
        sections.push(Section { label: label.to_owned(), der });
        rest = after;
    }
    Ok(sections)
}

/// A section as a text.
pub(crate) fn written(label: &str, der: &[u8]) -> String {
    let mut text = format!("{BEGIN}{label}-----\n");
    let packed = STANDARD.encode(der);
    for at in (0..packed.len()).step_by(64) {
        text.push_str(&packed[at..packed.len().min(at + 64)]);
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_may_have_become_blanks_or_two_characters() {
        let text = format!("for people\n{}{}", written("CERTIFICATE", &[7; 100]), written("PRIVATE KEY", &[8; 3]));
        let expected =
            [Section { label: "CERTIFICATE".into(), der: vec![7; 100] }, Section { label: "PRIVATE KEY".into(), der: vec![8; 3] }];
        for form in [text.clone(), text.replace('\n', "\r\n"), text.replace('\n', " "), text.replace('\n', "\\n")] {
            assert!(sections(&form).expect("sections") == expected);
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_quotes_nothing() {
        for text in ["-----BEGIN X-----\nAAAA\n", "-----BEGIN X-----\nsecret!\n-----END X-----", "-----BEGIN X"] {
            let error = sections(text).err().expect("an error");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(sections("nothing").expect("no section").is_empty());
    }
}
