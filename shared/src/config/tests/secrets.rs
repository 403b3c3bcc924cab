use super::Dir;
use crate::config::Resolver;
use crate::source::servicenow::keys::ServiceNow;

/// What no output may hold.
const SECRET: &str = "hunter2";

fn resolver() -> Resolver {
    Resolver::new(|_| Some(SECRET.to_owned()), || std::time::SystemTime::UNIX_EPOCH)
}

#[test]
fn a_password_in_a_document_is_allowed_warned_about_and_never_shown() {
    let keys = [("snow.auth.password", SECRET), ("producer.override.sasl.password", SECRET)];
    let documents = Dir::new().servicenow("snow", &keys).load().unwrap();
    let warned: Vec<_> = documents.warnings.0.iter().filter_map(|warning| warning.key.as_deref()).collect();
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(warned.contains(&"snow.auth.password") && warned.contains(&"producer.override.sasl.password"), "{warned:?}");
    let outputs = [
        format!("{documents:?}"),
        documents.warnings.to_string(),
        serde_json::to_string(&documents.warnings).unwrap(),
        format!("{:?}", documents.connectors[0].producer(&documents.worker).unwrap()),
    ];
    for output in outputs {
        assert!(!output.contains(SECRET), "{output}");
    }
}

#[tokio::test]
async fn credentials_beside_a_placeholder_are_not_shown_before_or_after_it_is_looked_up() {
    let host = |_: &str| Some("acme.service-now.com".to_owned());
    let resolver = Resolver::new(host, || std::time::SystemTime::UNIX_EPOCH);
    for (key, value) in [
        ("snow.url", "https://me:hunter2@${env:HOST}"),
        ("snow.http.proxy.url", "http://me:hunter2@${env:HOST}:3128"),
        ("snow.http.proxy.url", "me:hunter2@${env:HOST}"),
        // An address where something else is asked for.
        ("producer.override.client.id", "https://me:hunter2@${env:HOST}"),
    ] {
        let documents = Dir::new().servicenow("snow", &[(key, value)]).load().unwrap();
        let connector = &documents.connectors[0];
        let mut outputs = vec![format!("{documents:?}"), format!("{:?}", connector.values.fault(key, "is at fault"))];
        match connector.resolve(&resolver).await {
            Ok(resolved) => outputs.push(format!("{resolved:?}")),
            Err(refused) => outputs.push(format!("{refused} {refused:?}")),
        }
        for output in outputs {
            assert!(!output.contains(SECRET), "{key}: {output}");
        }
        assert_eq!(connector.values.shown(key), None, "{key}");
    }
    // A placeholder alone says where the value comes from.
    let alone = Dir::new().servicenow("snow", &[("snow.url", "https://${env:HOST}")]).load().unwrap();
    assert_eq!(alone.connectors[0].values.shown("snow.url").as_deref(), Some("https://${env:HOST}"));
}

#[test]
fn a_fault_never_shows_a_secret_wherever_somebody_put_it() {
    for (key, value) in [
        // A password key that is at fault because of a broken placeholder around it.
        ("snow.auth.password", "hunter2${env:"),
        ("snow.auth.password", "hunter2${vault:a:b}"),
        ("snow.oauth.client.secret", "hunter2${file:x}"),
        // A misspelt password key.
        ("snow.auth.pasword", SECRET),
        ("snow.table.inc.password", SECRET),
        ("snow.table.other.password", SECRET),
        // Credentials in an address.
        ("snow.url", "https://me:hunter2@acme.service-now.com"),
        ("snow.url", "http://me:hunter2@acme:x"),
        ("snow.http.proxy.url", "http://me:hunter2@proxy"),
        ("snow.oauth.token.url", "http://me:hunter2@token"),
        ("producer.override.sasl.jaas.config", "x password=\"hunter2\";"),
        ("producer.override.sasl.pasword", SECRET),
        ("producer.override.ssl.key.pem", "hunter2${env:"),
        ("value.converter.basic.auth.user.info", SECRET),
        ("transforms.x.password", SECRET),
    ] {
        let Err(faults) = Dir::new().servicenow("snow", &[(key, value), ("tasks.max", "0")]).load() else {
            panic!("tasks.max is at fault");
        };
        let outputs = [format!("{faults:?}"), faults.to_string(), serde_json::to_string(&faults).unwrap()];
        for output in outputs {
            assert!(!output.contains(SECRET), "{key}: {output}");
        }
    }
}

#[test]
fn a_registrys_setting_at_fault_is_not_shown_since_it_may_be_a_secret() {
    let keys = [
        ("snow.source.schema.mode", "strings"),
        ("value.converter", "avro"),
        ("value.converter.schema.registry.url", "https://registry"),
        ("value.converter.basic.auth.user.info", "me:hunter2${env:"),
    ];
    let (key, value, message) = Dir::new().servicenow("snow", &keys).fault();
    assert_eq!((key.as_str(), value), ("value.converter.basic.auth.user.info", None));
    assert!(!message.contains(SECRET), "{message}");
}

#[tokio::test]
async fn what_a_placeholder_yields_is_not_shown_whatever_its_key() {
    let documents = Dir::new().servicenow("snow", &[("snow.table.inc.query", "${env:Q}")]).load().unwrap();
    let connector = documents.connectors[0].resolve(&resolver()).await.unwrap();
    assert!(!format!("{connector:?}").contains(SECRET));
    assert!(format!("{connector:?}").contains("${env:Q}"), "the placeholder is");

    let documents = Dir::new().servicenow("snow", &[("snow.source.batch.size", "${env:B}")]).load().unwrap();
    let error = documents.connectors[0].resolve(&resolver()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
    assert!(error.to_string().contains("${env:B}") && error.to_string().contains("not a whole number"), "{error}");
}

#[tokio::test]
async fn the_typed_settings_do_not_show_their_secrets() {
    let documents = Dir::new().servicenow("snow", &[("snow.auth.username", "me")]).load().unwrap();
    let connector = documents.connectors[0].resolve(&resolver()).await.unwrap();
    let settings = ServiceNow::read(&connector.values).unwrap();
    assert!(!format!("{settings:?}").contains(SECRET));
}
