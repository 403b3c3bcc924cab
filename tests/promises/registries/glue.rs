//! The schema registry of AWS Glue: moto's, by way of the command line, whose environment says where AWS is.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::Child;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};
use tablesweep_testbed::moto::{self, Server};
use tablesweep_testbed::proxy::{Action, Fault, Proxy};
use tablesweep_testbed::table_api::Fields;

use crate::cli::bed::{Bed, Ended, PATIENCE, ended, lines};

const ROWS: u64 = 40;

/// A command line whose values are Avro, with a registry of Glue of which every request is seen.
struct Stand {
    bed: Bed,
    moto: &'static Server,
    proxy: Proxy,
    /// The topic, and the name of the schema.
    topic: String,
}

/// The registry that all of these tests share, since moto has no room for one each.
const REGISTRY: &str = "promises";

impl Stand {
    /// A topic of the test's own.
    async fn new(name: &str) -> Self {
        let topic = format!("glue.{name}");
        let moto = moto::shared().await.expect("moto starts");
        let proxy = Proxy::http(moto.address()).await.expect("a proxy");
        let mut bed = Bed::new(ROWS);
        bed.set("snow.source.schema.mode", "strings");
        bed.set("snow.source.batch.size", 10);
        bed.set("value.converter", "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter");
        bed.set("value.converter.region", "us-east-1");
        bed.set("value.converter.registry.name", REGISTRY);
        bed.set("snow.table.inc.topic", &topic);
        bed.set("value.converter.schemaAutoRegistrationEnabled", true);
        // It is there, or it is made now.
        let (status, answer) = moto.call("AWSGlue.CreateRegistry", &json!({"RegistryName": REGISTRY})).await.expect("an answer");
        assert!(status == 200 || answer["__type"] == "AlreadyExistsException", "{answer}");
        Self { bed, moto, proxy, topic }
    }

    fn with(mut self, setting: &str, value: impl ToString) -> Self {
        self.bed.set(&format!("value.converter.{setting}"), value);
        self
    }

    async fn ask(&self, operation: &str, request: &Value) -> Value {
        let (status, answer) = self.moto.call(&format!("AWSGlue.{operation}"), request).await.expect("an answer");
        assert_eq!(status, 200, "{operation}: {answer}");
        answer
    }

    fn sweep(&self) -> Ended {
        self.at(&self.proxy.url(), &[])
    }

    fn at(&self, endpoint: &str, more: &[(&str, &str)]) -> Ended {
        ended(self.start(endpoint, more))
    }

    fn start(&self, endpoint: &str, more: &[(&str, &str)]) -> Child {
        let mut command = self.bed.command(&["sweep", "--sink", "ndjson:rows.ndjson", "--output", "json"]);
        command.env("AWS_ENDPOINT_URL_GLUE", endpoint).env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        command.env_remove("AWS_ENDPOINT_URL").envs(more.iter().copied());
        command.spawn().expect("started")
    }

    /// The values so far, as (compression byte, version id, data).
    fn values(&self) -> Vec<(u8, String, Vec<u8>)> {
        let read = |line: &Value| {
            let bytes = STANDARD.decode(line["value_base64"].as_str().expect("bytes")).expect("base64");
            assert_eq!(bytes[0], 3, "the version of the header");
            let digits: String = bytes[2..18].iter().map(|byte| format!("{byte:02x}")).collect();
            let id = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-");
            (bytes[1], id, bytes[18..].to_vec())
        };
        lines(&self.bed.path("rows.ndjson")).iter().map(read).collect()
    }

    /// The operations so far.
    fn asked(&self) -> Vec<String> {
        let operation = |request: &[u8]| {
            let text = String::from_utf8_lossy(request).to_ascii_lowercase();
            let (_, rest) = text.split_once("x-amz-target: awsglue.").expect("a call of Glue");
            rest.lines().next().unwrap_or_default().to_owned()
        };
        self.proxy.carried().iter().map(|carried| operation(&carried.request)).collect()
    }

    /// A version of the schema that is named after the topic.
    async fn version(&self, number: u64) -> Value {
        let schema = json!({"RegistryName": REGISTRY, "SchemaName": self.topic});
        self.ask("GetSchemaVersion", &json!({"SchemaId": schema, "SchemaVersionNumber": {"VersionNumber": number}})).await
    }

    /// The code of a sweep that parked or failed before anything was produced.
    fn failed(&self) -> (String, String, String) {
        let table = self.sweep().expect(1).table();
        assert_eq!((self.values().len(), &table["cursor"]), (0, &Value::Null), "{table}");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let message = text(&table["reason"]["message"]);
        assert!(message.contains("snow/inc") && message.contains(&self.topic), "table and schema are named: {message}");
        (text(&table["outcome"]), text(&table["reason"]["code"]), message)
    }

    fn refuse(&self, operation: &str, code: &str, message: &str) {
        let body = json!({"__type": code, "message": message}).to_string();
        let headers = vec![("content-type".to_owned(), "application/x-amz-json-1.1".to_owned())];
        self.proxy.on(&format!("AWSGlue.{operation}"), 1.., Action::Answer { status: 400, headers, body });
    }

    /// Has the nth call of an operation from now on answered with a version of this status.
    fn status(&self, operation: &str, nth: u64, id: &Value, status: &str) {
        let body = json!({"SchemaVersionId": id, "VersionNumber": 1, "Status": status}).to_string();
        let headers = vec![("content-type".to_owned(), "application/x-amz-json-1.1".to_owned())];
        self.proxy.on(&format!("AWSGlue.{operation}"), nth..=nth, Action::Answer { status: 200, headers, body });
    }

    fn assert_complete(&self) {
        let keys = self.bed.keys();
        assert_eq!((keys.len() as u64, keys.iter().collect::<BTreeSet<_>>().len() as u64), (ROWS, ROWS));
    }
}

#[tokio::test]
async fn a_schema_is_made_and_its_version_stands_before_each_record() {
    let stand = Stand::new("made").await.with("description", "rows of incident").with("tags", "team=platform, stage=test");
    assert_eq!(stand.sweep().expect(0).table()["rows"], ROWS);
    stand.assert_complete();
    let version = stand.version(1).await;
    assert!(stand.values().iter().all(|(compression, id, _)| *compression == 0 && *id == version["SchemaVersionId"]));
    let schema: Value = serde_json::from_str(version["SchemaDefinition"].as_str().expect("a text")).expect("JSON");
    assert_eq!((&schema["type"], &version["DataFormat"]), (&"record".into(), &"AVRO".into()));
    // Four pages, and one question about their schema.
    assert_eq!(stand.asked(), ["getschemabydefinition", "registerschemaversion", "createschema"]);
    let made = stand.ask("GetSchema", &json!({"SchemaId": {"RegistryName": REGISTRY, "SchemaName": stand.topic}})).await;
    assert_eq!((&made["Compatibility"], &made["Description"]), (&"BACKWARD".into(), &"rows of incident".into()), "{made}");
    assert!(stand.proxy.carried()[2].contains(r#""Tags":{"stage":"test","team":"platform"}"#));
}

#[tokio::test]
async fn a_new_field_makes_the_next_version_and_a_known_one_is_found() {
    let stand = Stand::new("grows").await;
    stand.sweep().expect(0);
    stand.bed.api.insert("incident", Fields::from([("sys_updated_on", "2026-01-02 00:00:00"), ("u_new", "x")])).expect("a row");
    stand.proxy.forget_carried();
    assert_eq!(stand.sweep().expect(0).table()["rows"], 1);
    let asked = stand.asked();
    assert_eq!(asked.last().map(String::as_str), Some("registerschemaversion"), "{asked:?}");
    assert!(!asked.contains(&"createschema".to_owned()), "{asked:?}");
    let second = stand.version(2).await;
    assert_eq!(stand.values()[40].1, second["SchemaVersionId"]);
    stand.bed.insert("2026-01-03 00:00:00");
    stand.proxy.forget_carried();
    assert_eq!(stand.sweep().expect(0).table()["rows"], 1);
    assert_eq!((stand.asked(), &stand.values()[41].1), (vec!["getschemabydefinition".to_owned()], &stand.values()[40].1));
}

#[tokio::test]
async fn compressed_data_says_so_and_is_what_it_would_be_in_clear() {
    let clear = Stand::new("clear").await;
    clear.sweep().expect(0);
    let packed = Stand::new("packed").await.with("compression", "ZLIB");
    packed.sweep().expect(0);
    packed.assert_complete();
    let mut sizes = (0, 0);
    for (compression, _, data) in packed.values() {
        assert_eq!(compression, 5);
        let mut inflated = Vec::new();
        ZlibDecoder::new(&data[..]).read_to_end(&mut inflated).expect("zlib");
        sizes = (sizes.0 + data.len(), sizes.1 + inflated.len());
        // Every field is an optional text: the union's second branch, or its first.
        assert!(matches!(inflated[0], 0 | 2), "{inflated:?}");
    }
    assert_eq!(clear.values().iter().map(|(_, _, data)| data.len()).sum::<usize>(), sizes.1);
    assert_ne!(sizes.0, sizes.1);
}

#[tokio::test]
async fn the_document_names_endpoint_schema_and_region_before_the_environment_does() {
    let stand = Stand::new("named").await;
    let url = stand.proxy.url();
    let stand = stand.with("endpoint", url).with("schemaName", "glue.named.rows").with("region", "eu-west-1");
    stand.at("http://127.0.0.1:1", &[("AWS_REGION", "us-east-1")]).expect(1);
    let carried = stand.proxy.carried();
    assert!(carried[0].contains("/eu-west-1/glue/aws4_request") && carried[0].contains(r#""SchemaName":"glue.named.rows""#));
    // moto keeps regions apart, and the registry was made in the other one.
    let stand = stand.with("region", "us-east-1");
    stand.at("http://127.0.0.1:1", &[("AWS_REGION", "eu-west-1")]).expect(0);
    stand.assert_complete();
}

#[tokio::test]
async fn without_auto_registration_a_schema_must_be_there() {
    let maker = Stand::new("by-hand").await;
    maker.sweep().expect(0);
    let text = maker.version(1).await["SchemaDefinition"].clone();
    let stand = Stand::new("found").await.with("schemaAutoRegistrationEnabled", false);
    let (outcome, code, message) = stand.failed();
    assert_eq!((outcome.as_str(), code.as_str()), ("parked", "Registry.SchemaMissing"), "{message}");
    assert!(message.contains("schemaAutoRegistrationEnabled=true"), "{message}");
    assert_eq!(stand.asked(), ["getschemabydefinition"]);
    let create = json!({
        "RegistryId": {"RegistryName": REGISTRY},
        "SchemaName": stand.topic,
        "DataFormat": "AVRO",
        "Compatibility": "NONE",
        "SchemaDefinition": text,
    });
    stand.ask("CreateSchema", &create).await;
    stand.sweep().expect(0);
    stand.assert_complete();
}

#[tokio::test]
async fn each_refusal_of_glue_has_its_code_and_the_rows_come_afterwards() {
    for (name, operation, refusal, message, code, outcome) in [
        (
            "denied",
            "RegisterSchemaVersion",
            "AccessDeniedException",
            "User: arn:aws:sts::1:assumed-role/sweep/x is not authorized to perform: glue:RegisterSchemaVersion",
            "Registry.Forbidden",
            "parked",
        ),
        ("busy", "GetSchemaByDefinition", "ThrottlingException", "Rate exceeded", "Registry.Unavailable", "failed"),
        ("raced", "CreateSchema", "ConcurrentModificationException", "two at once", "Registry.Unavailable", "failed"),
        (
            "wrong",
            "CreateSchema",
            "InvalidInputException",
            "Schema definition of AVRO data format is invalid",
            "Registry.Refused",
            "parked",
        ),
        ("full", "CreateSchema", "ResourceNumberLimitExceededException", "too many", "Registry.Refused", "parked"),
        (
            "stale",
            "GetSchemaByDefinition",
            "ExpiredTokenException",
            "The security token included is expired",
            "Registry.Unauthorized",
            "parked",
        ),
    ] {
        let stand = Stand::new(name).await;
        stand.refuse(operation, refusal, message);
        let (ended, found, told) = stand.failed();
        assert_eq!((found.as_str(), ended.as_str()), (code, outcome), "{told}");
        assert!(told.contains(message), "{told}");
        stand.proxy.clear();
        stand.sweep().expect(0);
        stand.assert_complete();
    }
}

#[tokio::test]
async fn a_glue_that_is_gone_is_told_so_and_the_rows_come_when_it_is_back() {
    let stand = Stand::new("gone").await;
    stand.proxy.set(Fault::Refuse);
    let (outcome, code, message) = stand.failed();
    assert_eq!((outcome.as_str(), code.as_str()), ("failed", "Registry.Unavailable"), "{message}");
    stand.proxy.clear();
    stand.sweep().expect(0);
    stand.assert_complete();
}

#[tokio::test]
async fn a_registry_that_does_not_exist_is_named() {
    let stand = Stand::new("exists").await.with("registry.name", "no-such-registry");
    let (outcome, code, message) = stand.failed();
    assert_eq!((outcome.as_str(), code.as_str()), ("parked", "Registry.Refused"), "{message}");
    assert!(message.contains("is there a registry no-such-registry"), "{message}");
}

#[tokio::test]
async fn a_version_that_is_being_checked_is_waited_for_and_one_that_failed_is_not_used() {
    let maker = Stand::new("checked").await;
    maker.sweep().expect(0);
    let id = maker.version(1).await["SchemaVersionId"].clone();
    // What Glue answers to the registration, and to each question about it after that; where nothing is given, moto says
    // that there is no such version, as Glue may for a moment.
    for (name, registered, polled, code) in [
        ("refused", "FAILURE", &[][..], Some("Registry.Incompatible")),
        ("fails", "PENDING", &["PENDING", "FAILURE"], Some("Registry.Incompatible")),
        ("passes", "PENDING", &["", "PENDING", "AVAILABLE"], None),
    ] {
        let stand = Stand::new(&format!("checked-{name}")).await;
        stand.status("RegisterSchemaVersion", 1, &id, registered);
        for (nth, status) in (2..).zip(polled).filter(|(_, status)| !status.is_empty()) {
            stand.status("GetSchemaByDefinition", nth, &id, status);
        }
        let table = stand.sweep().expect(i32::from(code.is_some())).table();
        assert_eq!(table["reason"]["code"].as_str(), code, "{table}");
        let polls = polled.iter().map(|_| "getschemabydefinition");
        let expected: Vec<&str> = ["getschemabydefinition", "registerschemaversion"].into_iter().chain(polls).collect();
        assert_eq!(stand.asked(), expected);
        if code.is_some() {
            assert_eq!((&table["outcome"], stand.values().len()), (&"parked".into(), 0), "{table}");
        } else {
            stand.assert_complete();
            assert!(stand.values().iter().all(|(_, found, _)| *found == id));
        }
    }
}

/// A role that may use one registry and its schemas: AWS holds a call that names neither against `*` and refuses it. moto knows no
/// rights, so what each call names is looked at.
#[tokio::test]
async fn every_call_names_registry_and_schema_so_that_a_role_can_be_limited_to_them() {
    let stand = Stand::new("limited").await;
    stand.sweep().expect(0);
    let id = stand.version(1).await["SchemaVersionId"].clone();
    stand.bed.api.insert("incident", Fields::from([("sys_updated_on", "2026-01-02 00:00:00"), ("u_new", "x")])).expect("a row");
    stand.status("RegisterSchemaVersion", 1, &id, "PENDING");
    stand.status("GetSchemaByDefinition", 3, &id, "AVAILABLE");
    assert_eq!(stand.sweep().expect(0).table()["rows"], 1);
    let asked = stand.asked();
    assert_eq!(asked.last().map(String::as_str), Some("getschemabydefinition"), "the version was waited for: {asked:?}");
    for carried in stand.proxy.carried() {
        let named =
            carried.contains(&format!(r#""RegistryName":"{REGISTRY}""#)) && carried.contains(&format!(r#""SchemaName":"{}""#, stand.topic));
        assert!(named, "{}", String::from_utf8_lossy(&carried.request));
    }
}

#[tokio::test]
async fn a_schema_that_somebody_else_makes_in_between_is_used() {
    let stand = Stand::new("in-between").await;
    let held = stand.proxy.on("AWSGlue.CreateSchema", 1..=1, Action::HoldRequest);
    let sweep = stand.start(&stand.proxy.url(), &[]);
    held.wait_fired(1, PATIENCE).await.expect("the schema is about to be made");
    let request = stand.proxy.carried().pop().expect("the request that is held").request;
    let text = String::from_utf8_lossy(&request).into_owned();
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    stand.ask("CreateSchema", &serde_json::from_str(body).expect("JSON")).await;
    held.release();
    ended(sweep).expect(0);
    assert_eq!(stand.asked(), ["getschemabydefinition", "registerschemaversion", "createschema", "registerschemaversion"]);
    stand.assert_complete();
}
