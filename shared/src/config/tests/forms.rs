use super::Dir;
use crate::config::Documents;

const PAIRS: &str = r#""connector.class": "servicenow", "tasks.max": 3, "snow.url": "https://x.service-now.com",
    "snow.auth.username": "${env:U}", "snow.auth.password": "${env:P}", "snow.tables": "inc",
    "snow.table.inc.name": "incident", "snow.table.inc.topic": "t", "snow.table.inc.exclude.reference.link": false"#;

fn summary(documents: &Documents) -> (String, u32, Option<bool>) {
    let connector = &documents.connectors[0];
    (connector.name.clone(), connector.tasks_max, connector.values.boolean("snow.table.inc.exclude.reference.link"))
}

#[test]
fn both_json_forms_and_properties_say_the_same_and_numbers_and_booleans_count_as_texts() {
    let nested = format!(r#"{{"name": "snow", "config": {{{PAIRS}}}}}"#);
    let printed = format!(r#"{{"name": "snow", "config": {{"name": "snow", {PAIRS}}}, "tasks": [], "type": "source"}}"#);
    let flat = format!(r#"{{"name": "snow", {PAIRS}}}"#);
    let properties = "name=snow\nconnector.class = servicenow\ntasks.max:3\nsnow.url https://x.service-now.com\n\
        snow.auth.username=${env:U}\nsnow.auth.password=${env:P}\nsnow.tables=inc\nsnow.table.inc.name=incident\n\
        snow.table.inc.topic=t\nsnow.table.inc.exclude.reference.link = FALSE\n";
    for (file, text) in [("a.json", nested.as_str()), ("a.json", &printed), ("a.json", &flat), ("a.properties", properties)] {
        let documents = Dir::new().with(&format!("connectors/{file}"), text).load().unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(summary(&documents), ("snow".into(), 3, Some(false)), "{text}");
    }
}

#[test]
fn a_byte_order_mark_does_not_matter() {
    let text = format!("\u{feff}{{\"name\": \"snow\", {PAIRS}}}");
    assert!(Dir::new().with("connectors/a.json", text).load().is_ok());
}

#[test]
fn a_key_that_stands_twice_is_a_fault_in_every_form() {
    let twice = r#""snow.http.user.agent": "a", "snow.http.user.agent": "b""#;
    for text in [format!(r#"{{"name": "s", {PAIRS}, {twice}}}"#), format!(r#"{{"name": "s", "config": {{{PAIRS}, {twice}}}}}"#)] {
        let (key, _, message) = Dir::new().with("connectors/a.json", text).fault();
        assert_eq!(key, "snow.http.user.agent");
        assert!(message.contains("more than once"), "{message}");
    }
    let text = format!(r#"{{"name": "s", "name": "t", {PAIRS}}}"#);
    assert_eq!(Dir::new().with("connectors/a.json", text).fault().0, "name");
    let text = format!(r#"{{"name": "s", "config": {{{PAIRS}}}, "config": {{}}}}"#);
    assert_eq!(Dir::new().with("connectors/a.json", text).fault().0, "config");
}

#[test]
fn a_value_that_is_no_single_text_is_a_fault() {
    for value in ["null", "[1]", "{}"] {
        let text = format!(r#"{{"name": "s", {PAIRS}, "snow.http.user.agent": {value}}}"#);
        let (key, _, message) = Dir::new().with("connectors/a.json", text).fault();
        assert_eq!(key, "snow.http.user.agent");
        assert!(message.contains("JSON string"), "{message}");
    }
}

#[test]
fn two_names_of_one_document_must_agree_and_nothing_else_stands_beside_config() {
    let text = format!(r#"{{"name": "s", "config": {{"name": "t", {PAIRS}}}}}"#);
    let (key, value, message) = Dir::new().with("connectors/a.json", text).fault();
    assert_eq!((key.as_str(), value.as_deref()), ("name", Some("t")));
    assert!(message.contains("\"s\""), "{message}");

    let text = format!(r#"{{"name": "s", "config": {{{PAIRS}}}, "snow.retry.max.attempts": "3"}}"#);
    assert_eq!(Dir::new().with("connectors/a.json", text).fault().0, "snow.retry.max.attempts");
    let text = format!(r#"{{"name": "s", "initial_state": "RUNNING", "config": {{{PAIRS}}}}}"#);
    assert!(Dir::new().with("connectors/a.json", text).load().is_ok());
    let text = format!(r#"{{"name": "s", "initial_state": "PAUSED", "config": {{{PAIRS}}}}}"#);
    assert!(Dir::new().with("connectors/a.json", text).fault().2.contains("cursor pause"));
}

#[test]
fn a_text_that_is_no_json_object_is_told_by_line_and_never_quoted() {
    for text in ["{\n\"snow.auth.password\": \"hunter2\",,}", "[\"hunter2\"]", "{} hunter2", "\"hunter2\""] {
        let faults = Dir::new().with("connectors/a.json", text).load().unwrap_err();
        let report = faults.to_string();
        assert!(report.contains("is no JSON object (line"), "{report}");
        assert!(!report.contains("hunter2"), "{report}");
    }
    let faults = Dir::new().with("connectors/a.json", b"{\"a\": \"\xff\"}").load().unwrap_err();
    assert!(faults.to_string().contains("UTF-8"));
    assert!(Dir::new().with("connectors/a.json", " \n").fault().2.contains("is empty"));
}

#[test]
fn only_documents_are_read_and_a_file_that_may_be_meant_as_one_is_warned_about() {
    let dir = Dir::new()
        .servicenow("a", &[])
        .with("connectors/old.json.example", "nonsense")
        .with("connectors/.hidden.json", "nonsense")
        .with("connectors/README.md", "nonsense")
        .with("connectors/b.yaml", "nonsense");
    let warnings = dir.load().unwrap().warnings.0;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].file, "connectors/b.yaml");

    let dir =
        Dir::new().servicenow("a", &[]).with("Worker.json", "nonsense").with("worker.yml", "nonsense").with("secrets.properties", "a=b");
    let warnings = dir.with("worker.json.example", "nonsense").load().unwrap().warnings.0;
    assert_eq!(warnings.iter().map(|warning| warning.file.as_str()).collect::<Vec<_>>(), ["Worker.json", "worker.yml"]);
}

#[test]
fn no_document_and_no_folder_are_faults() {
    assert!(Dir::new().load().unwrap_err().to_string().contains("holds no connector document"));
    let empty = tempfile::tempdir().unwrap();
    let faults = crate::config::load(empty.path(), &super::KINDS, &|_| None).unwrap_err();
    assert!(faults.to_string().contains("cannot be read as the folder"), "{faults}");
}

#[test]
fn the_worker_may_be_properties_but_not_both() {
    let dir = Dir::new().servicenow("a", &[]).with("worker.properties", "producer.linger.ms = 7\n");
    let documents = dir.load().unwrap();
    assert_eq!(documents.connectors[0].producer(&documents.worker).unwrap().get("linger.ms"), Some("7"));
    assert!(dir.with("worker.json", "{}").fault().2.contains("worker.json"));
}
