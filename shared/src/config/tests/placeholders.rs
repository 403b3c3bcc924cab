use proptest::prelude::*;

use super::Dir;
use crate::config::placeholder::{Provider, Template};

const PARAMETER: &str = "arn:aws:ssm:eu-west-1:123456789012:parameter/snow/login";
const ARN: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:snow/prod-AbCdEf";

/// The (path, key) of the only placeholder.
fn parts(text: &str) -> (Provider, String, Option<String>) {
    let template = Template::parse(text).unwrap().unwrap();
    let reference = template.references().next().unwrap().clone();
    (reference.provider, reference.path, reference.key)
}

#[test]
fn placeholders_are_read_in_kafkas_form_and_an_arn_keeps_its_colons() {
    let some = |text: &str| Some(text.to_owned());
    for (text, provider, path, key) in [
        ("${env:NAME}", Provider::Env, "NAME", None),
        ("${env::NAME}", Provider::Env, "NAME", None),
        ("${file:/a/b.properties:client.id}", Provider::File, "/a/b.properties", some("client.id")),
        ("${file:/a:b:c}", Provider::File, "/a", some("b:c")),
        ("${secretsmanager:snow/prod:password}", Provider::SecretsManager, "snow/prod", some("password")),
        ("${secretsmanager:snow/prod}", Provider::SecretsManager, "snow/prod", None),
        (&format!("${{secretsmanager:{ARN}:password}}"), Provider::SecretsManager, ARN, some("password")),
        (&format!("${{secretsmanager:{ARN}}}"), Provider::SecretsManager, ARN, None),
        ("${ssm:/snow/user}", Provider::Ssm, "/snow/user", None),
        ("${ssm::/snow/user}", Provider::Ssm, "/snow/user", None),
        ("${ssm:/snow/login:user}", Provider::Ssm, "/snow/login", some("user")),
        (&format!("${{ssm:{PARAMETER}}}"), Provider::Ssm, PARAMETER, None),
        (&format!("${{ssm:{PARAMETER}:user}}"), Provider::Ssm, PARAMETER, some("user")),
    ] {
        assert_eq!(parts(text), (provider, path.to_owned(), key), "{text}");
    }
}

#[test]
fn text_that_is_no_placeholder_stays_text() {
    for text in ["", "plain", "$", "${", "${}", "${NAME}", "a${b", "{env:A}", "$env:A", "}${"] {
        assert_eq!(Template::parse(text), Ok(None), "{text:?}");
    }
}

#[test]
fn a_broken_placeholder_is_a_fault_that_says_what_is_wrong() {
    for (text, part) in [
        ("${vault:a:b}", "unknown provider \"vault\""),
        ("${env:}", "empty part"),
        ("${file:/a}", "without a key"),
        ("${file::key}", "empty part"),
        ("${secretsmanager:name:}", "empty part"),
        ("${ssm:}", "empty part"),
        ("${ssm:/name:}", "empty part"),
        ("${env:NAME", "closing brace"),
    ] {
        assert!(Template::parse(text).unwrap_err().contains(part), "{text}");
        let (key, _, message) = Dir::new().servicenow("snow", &[("snow.auth.username", text)]).fault();
        assert_eq!((key.as_str(), message.contains(part)), ("snow.auth.username", true), "{message}");
    }
}

#[test]
fn the_text_around_a_placeholder_is_not_in_its_debug_form() {
    let template = Template::parse("hunter2${env:A}").unwrap();
    assert_eq!(format!("{template:?}"), r#"Some(["${env:A}"])"#);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_of_placeholders_panic_or_lose_anything(text in "[${}:a-cenvé ]{0,30}") {
        if let Ok(Some(template)) = Template::parse(&text) {
            prop_assert_eq!(template.source(), &text);
            prop_assert!(template.references().all(|reference| text.contains(&reference.source)));
        }
    }
}
