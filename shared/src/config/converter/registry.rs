//! What must stand together in the settings of a registry, and what stands there in vain.

use super::super::fault::Faults;
use super::super::values::Values;
use super::{Format, Role, class, settings};

/// Says what is wrong with the settings of a converter `name` of Confluent's registry.
pub(super) fn check_confluent(role: Role, name: &str, values: &Values, faults: &mut Faults) {
    let key = |setting: &str| format!("{}.{setting}", role.class_key());
    let is_set = |setting: &str| values.is_set(&key(setting));
    let url = key("schema.registry.url");
    if !values.is_set(&url) {
        faults.push(values.fault(&url, format!("is required by the converter {name}")));
    }
    let addresses = values.text(&url).and_then(|text| settings::addresses(text).ok()).unwrap_or_default();
    let carried = addresses.iter().any(|url| !url.username().is_empty() || url.password().is_some());
    if carried {
        let advice =
            "carries credentials that are written in the document; a placeholder such as ${secretsmanager:name:key} keeps them out";
        faults.warn(values.fault(&url, advice));
    }
    let user_infos: Vec<String> =
        ["basic.auth.user.info", "schema.registry.basic.auth.user.info"].map(key).into_iter().filter(|key| values.is_set(key)).collect();
    let source = key("basic.auth.credentials.source");
    if values.choice(&source) == Some("USER_INFO") {
        if user_infos.is_empty() {
            faults.push(values.fault(&key("basic.auth.user.info"), "is required by basic.auth.credentials.source=USER_INFO"));
        }
        if carried {
            faults.push(
                values.fault(&url, "carries credentials, and basic.auth.credentials.source=USER_INFO says that they stand elsewhere"),
            );
        }
    } else if let (Some(given), false) = (user_infos.first(), values.is_pending(&source)) {
        // A trap of the original: without the source nobody signs in, and the registry answers 401.
        faults.warn(values.fault(given, format!("has no effect: {source} is not USER_INFO")));
    }
    let (token, bearer) = ("bearer.auth.token", "bearer.auth.credentials.source");
    let is_known = values.choice(&key(bearer)).is_some() || values.is_pending(&key(bearer));
    if is_set(bearer) != is_set(token) && (is_known || !is_set(bearer)) {
        let (there, missing) = if is_set(bearer) { (bearer, token) } else { (token, bearer) };
        faults.push(values.fault(&key(missing), format!("is required by {there}")));
    }
    if is_set(bearer) && (carried || values.choice(&source) == Some("USER_INFO")) {
        faults.push(values.fault(&key(bearer), "stands beside a user and a password; sign in one way"));
    }
    for (given, needed) in [
        ("schema.registry.ssl.truststore.password", "schema.registry.ssl.truststore.location"),
        ("schema.registry.ssl.truststore.type", "schema.registry.ssl.truststore.location"),
        ("schema.registry.ssl.keystore.password", "schema.registry.ssl.keystore.location"),
        ("schema.registry.ssl.keystore.type", "schema.registry.ssl.keystore.location"),
        ("schema.registry.ssl.keystore.key", "schema.registry.ssl.keystore.certificate.chain"),
        ("schema.registry.ssl.keystore.certificate.chain", "schema.registry.ssl.keystore.key"),
        ("proxy.host", "proxy.port"),
    ] {
        // A PEM text has a type as well, and Java wants it.
        let as_text = given.ends_with(".type") && (is_set(&text_of(given)) || values.choice(&key(given)) == Some("PEM"));
        if is_set(given) && !is_set(needed) && !as_text {
            faults.push(values.fault(&key(needed), format!("is required by {given}")));
        }
    }
    for (file, text) in [
        ("schema.registry.ssl.truststore.location", "schema.registry.ssl.truststore.certificates"),
        ("schema.registry.ssl.keystore.location", "schema.registry.ssl.keystore.key"),
    ] {
        if is_set(file) && is_set(text) {
            faults.push(values.fault(&key(text), format!("stands beside {file}; give the certificates once")));
        }
    }
    if addresses.iter().any(|url| url.scheme() == "http") {
        let signs_in = carried || values.choice(&source) == Some("USER_INFO") || is_set(token);
        if signs_in {
            faults.warn(values.fault(&url, "is http: credentials cross the network in clear; use https unless this is a test"));
        }
    }
}

/// The setting that holds as a text what the store of this `.type` holds in a file.
fn text_of(kind: &str) -> String {
    if kind.contains("truststore") { kind.replace(".type", ".certificates") } else { kind.replace(".type", ".certificate.chain") }
}

/// Says when keys and values would be versions of one schema of Glue.
pub(super) fn check_glue_names(values: &Values, faults: &mut Faults) {
    let of = |role: Role| {
        let glue = |format: Format| matches!(format, Format::GlueAvro | Format::GlueJsonSchema);
        let named = values.text(role.class_key()).and_then(class).and_then(|class| class.format.ok()).is_some_and(glue);
        named.then(|| values.text(&format!("{}.schemaName", role.class_key())).map(str::to_owned))
    };
    let compared = values.choice("value.converter.compatibility") != Some("NONE");
    if let (Some(keys), Some(made), true) = (of(Role::Key), of(Role::Value), compared)
        && keys == made
    {
        let message =
            "keys and values would be versions of one schema, the second of which Glue refuses; give each a schemaName of its own";
        faults.push(values.fault("key.converter.schemaName", message));
    }
}
