//! The specification's example document, as its users have it, from end to end.

use serde_json::{Value, json};
use tablesweep_testbed::connect::{self, JsonSettings};
use tablesweep_testbed::table_api::{Credentials, Fields};

use super::Stand;

/// The document word for word, but for the instance's address and the file of the secrets, which are this machine's.
fn document(stand: &Stand) -> Value {
    let secret = |key: &str| format!("${{file:{}:{key}}}", stand.path("snow.properties").display());
    json!({
        "name": "servicenow-source",
        "config": {
            "connector.class": "sh.oso.servicenow.source.ServiceNowSourceConnector",
            "tasks.max": "2",
            "snow.url": stand.api.url(),
            "snow.auth.type": "oauth2",
            "snow.oauth.grant.type": "client_credentials",
            "snow.oauth.client.id": secret("client.id"),
            "snow.oauth.client.secret": secret("client.secret"),
            "snow.tables": "inc,chg",
            "snow.table.inc.name": "incident",
            "snow.table.inc.topic": "snow.incident",
            "snow.table.inc.start.timestamp": "2026-01-01 00:00:00",
            "snow.table.inc.query": "active=true",
            "snow.table.inc.fields": "sys_id,sys_updated_on,number,short_description,priority,state,assignment_group",
            "snow.table.chg.name": "change_request",
            "snow.table.chg.topic": "snow.change_request",
            "snow.table.chg.display.value": "all",
            "snow.source.schema.mode": "strings",
            "snow.source.batch.size": "5000",
            "snow.source.poll.interval.ms": "5000",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "true"
        }
    })
}

fn incident(number: u32, active: bool, second: u32) -> Fields {
    let text = |value: &str| value.to_owned();
    [
        ("number", format!("INC{number:07}")),
        ("short_description", format!("Printer {number} is out of \u{1f4c4}")),
        ("priority", text("2")),
        ("state", text("1")),
        ("assignment_group", text("")),
        ("active", active.to_string()),
        ("description", text("not asked for")),
        ("sys_updated_on", format!("2026-01-01 00:00:{second:02}")),
    ]
    .into_iter()
    .collect()
}

#[tokio::test]
async fn the_specifications_example_sweeps_end_to_end_into_kafka() {
    let stand = Stand::new().await;
    let oauth = Some(("client".to_owned(), "s3cret-s3cret".to_owned()));
    stand.api.set_credentials(Credentials { oauth, ..Credentials::default() });
    std::fs::write(stand.path("snow.properties"), "client.id=client\nclient.secret=s3cret-s3cret\n").expect("written");
    stand.document(&document(&stand));
    for topic in ["snow.incident", "snow.change_request"] {
        stand.broker.create_topic(topic, 3).await.expect("a topic");
    }
    let rows: Vec<Fields> = (0..40).map(|number| incident(number, number % 4 != 0, number)).collect();
    let ids = stand.api.load("incident", rows).expect("rows");
    stand.api.load_change_requests().expect("the recorded rows");
    let recorded: Value = serde_json::from_str(include_str!("../../testbed/data/change_request.display_all.json")).expect("JSON");

    let tables = stand.sweep("example", 0);
    let swept: Vec<_> = tables.iter().map(|table| (table["table"].as_str(), table["outcome"].as_str(), table["rows"].as_u64())).collect();
    assert_eq!(swept, [(Some("chg"), Some("caught_up"), Some(3)), (Some("inc"), Some("caught_up"), Some(30))]);

    let records = stand.broker.read_all("snow.incident").await.expect("the topic can be read");
    let values: Vec<Vec<u8>> = records.iter().map(|record| record.value.clone().expect("a value")).collect();
    let found = connect::read(JsonSettings::default(), &values).expect("Connect reads them");
    for (record, found) in records.iter().zip(&found) {
        let key = record.key_text().expect("a key");
        let at = ids.iter().position(|id| id == key).expect("a row that is there");
        assert_ne!(at % 4, 0, "an inactive row");
        let expected = json!({
            "sys_id": key,
            "sys_updated_on": format!("2026-01-01 00:00:{at:02}"),
            "number": format!("INC{at:07}"),
            "short_description": format!("Printer {at} is out of \u{1f4c4}"),
            "priority": "2", "state": "1", "assignment_group": "", "sys_mod_count": "0",
        });
        assert_eq!(found.value, expected);
        assert_eq!(found.schema["name"], "sh.oso.servicenow.incident.Value");
        assert_eq!(record.timestamp, Some(1_767_225_600_000 + 1000 * i64::try_from(at).expect("small")));
        for (name, value) in [("snow.table", "incident"), ("snow.source.operation", "UPSERT"), ("snow.schema.mode", "strings")] {
            assert_eq!(record.header(name), Some(value));
        }
    }

    let changes = connect::read(JsonSettings::default(), &stand.values("snow.change_request").await).expect("Connect reads them");
    assert_eq!(changes.len(), 3);
    for found in &changes {
        // Both values of a field are one string here: the JSON that the instance sent.
        let number = pair(&found.value["number"]);
        let row = recorded["result"].as_array().expect("rows").iter().find(|row| row["number"] == number && same_second(row, found));
        let row = row.unwrap_or_else(|| panic!("{} was not recorded", found.value));
        for (name, field) in row.as_object().expect("a row").iter().filter(|(name, _)| *name != "sys_id") {
            let own = pair(&found.value[name]);
            assert_eq!((&own["value"], &own["display_value"]), (&field["value"], &field["display_value"]), "{name}");
        }
    }
}

fn pair(text: &Value) -> Value {
    serde_json::from_str(text.as_str().expect("a text")).expect("JSON")
}

fn same_second(row: &Value, found: &connect::Found) -> bool {
    row["sys_updated_on"]["value"] == pair(&found.value["sys_updated_on"])["value"]
}
