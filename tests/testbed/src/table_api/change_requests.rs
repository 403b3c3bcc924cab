//! Three rows of a real instance, served in all three display modes.
//!
//! The recording has display values and raw values but no links, and its three rows carry one identity: whoever
//! recorded it made them anonymous. A table cannot hold that, so the second and third row get their own last digit; and
//! the references, which a recording without links does not mark, are named here from the stock dictionary.

use serde_json::Value;

use super::data::ColumnSpec;
use super::database::Database;
use super::row::{Cell, Fields, Kind};

/// The recording, as it is in the repository.
pub(super) const RECORDED: &str = include_str!("../../data/change_request.display_all.json");

const TABLE: &str = "change_request";

const REFERENCES: [(&str, &str); 19] = [
    ("parent", "task"),
    ("cab_delegate", "sys_user"),
    ("cmdb_ci", "cmdb_ci"),
    ("delivery_plan", "sc_cat_item_delivery_plan"),
    ("contract", "ast_contract"),
    ("requested_by", "sys_user"),
    ("universal_request", "task"),
    ("delivery_task", "sc_cat_item_delivery_task"),
    ("std_change_producer_version", "std_change_producer_version"),
    ("service_offering", "service_offering"),
    ("closed_by", "sys_user"),
    ("assigned_to", "sys_user"),
    ("opened_by", "sys_user"),
    ("on_hold_task", "task"),
    ("sys_domain", "sys_user_group"),
    ("business_service", "cmdb_ci_service"),
    ("assignment_group", "sys_user_group"),
    ("company", "core_company"),
    ("location", "cmn_location"),
];

const DATE_TIMES: [&str; 16] = [
    "requested_by_date",
    "review_date",
    "end_date",
    "work_start",
    "follow_up",
    "start_date",
    "sla_due",
    "closed_at",
    "expected_start",
    "opened_at",
    "work_end",
    "cab_date",
    "activity_due",
    "due_date",
    "conflict_last_run",
    "approval_set",
];

/// Loads the recorded rows as the table `change_request`.
pub(super) fn load(db: &mut Database) -> Result<u64, String> {
    let document: Value = serde_json::from_str(RECORDED).map_err(|why| why.to_string())?;
    let rows = document["result"].as_array().ok_or("the recording has no `result`")?;
    let references = REFERENCES.iter().map(|(name, table)| ColumnSpec::reference(*name, *table));
    let dates = DATE_TIMES.iter().map(|name| ColumnSpec::new(*name, Kind::DateTime));
    let own = ColumnSpec::reference("u_configuration_item", "cmdb_ci");
    let columns: Vec<ColumnSpec> = references.chain(dates).chain([own]).collect();
    let table = db.table_mut(TABLE);
    table.add_columns(&columns);
    let mut fields = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let members = row.as_object().ok_or("a recorded row is no object")?;
        let mut row = Fields::new();
        for (name, value) in members {
            row.set(name.clone(), Cell::from_json(value)?);
        }
        if number > 0 {
            let id = row.get("sys_id").map(|cell| cell.value.clone()).unwrap_or_default();
            let kept = id.len().saturating_sub(1);
            row.set("sys_id", format!("{}{}", &id[..kept], (number + 2) % 10));
        }
        fields.push(row);
    }
    table.insert_many(fields).map(|rows| rows as u64)
}
