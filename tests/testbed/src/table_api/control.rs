//! Commands: everything a test or an operator of the demo does to the simulated instance.
//!
//! One type serves the control endpoint, the hooks that change data between two pages, and the handle, so that whatever
//! can be done from a Rust test can be done from a shell, and after the n-th answer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::acl::Rules;
use super::change_requests;
use super::clock::parse_stamp;
use super::data::{ColumnSpec, Table};
use super::database::{complete, only_known_reserved, touch};
use super::faults::Fault;
use super::generate::{Generate, generate};
use super::row::Fields;
use super::settings::Credentials;
use super::view::{View, ViewSpec};
use super::world::World;

/// One thing to do; in JSON an object with `op` and the fields below.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Creates a table, or replaces it by an empty one.
    Create {
        /// Its name.
        table: String,
        /// Columns beside the reserved ones.
        #[serde(default)]
        columns: Vec<ColumnSpec>,
        /// Reserved columns that it does not have.
        #[serde(default)]
        without: Vec<String>,
    },
    /// Removes a table or view.
    Drop {
        /// Its name.
        table: String,
    },
    /// Inserts rows; what the instance writes itself is filled in unless given. A timestamp in the past is a late row.
    Load {
        /// The table; it is created when there is none.
        table: String,
        /// The rows.
        rows: Vec<Fields>,
    },
    /// Inserts one row in the same way.
    Insert {
        /// The table.
        table: String,
        /// Its fields.
        fields: Fields,
    },
    /// Makes rows up.
    Generate(Generate),
    /// Loads the recorded rows as `change_request`.
    ChangeRequests,
    /// Changes a row; `sys_updated_on` becomes now and `sys_mod_count` one more, unless given.
    Update {
        /// The table.
        table: String,
        /// The row.
        sys_id: String,
        /// What changes; may be nothing.
        #[serde(default)]
        fields: Fields,
    },
    /// Deletes a row.
    Delete {
        /// The table.
        table: String,
        /// The row.
        sys_id: String,
    },
    /// Hides rows by a row ACL.
    Hide {
        /// The table or view.
        table: String,
        /// The rows.
        sys_ids: Vec<String>,
    },
    /// Shows rows again.
    Unhide {
        /// The table or view.
        table: String,
        /// The rows.
        sys_ids: Vec<String>,
    },
    /// Hides every row with this value, now and later.
    HideWhere {
        /// The table or view.
        table: String,
        /// The field.
        field: String,
        /// Its value.
        equals: String,
    },
    /// Hides nothing any more.
    UnhideAll {
        /// The table or view.
        table: String,
    },
    /// Sets the other access rules of a table.
    Access {
        /// The table or view.
        table: String,
        /// All of them.
        rules: Rules,
    },
    /// Defines a view.
    View {
        /// Its name.
        name: String,
        /// What it is made of.
        view: ViewSpec,
    },
    /// Sets the clock.
    SetClock {
        /// `yyyy-MM-dd HH:mm:ss`, UTC.
        at: String,
    },
    /// Moves the clock.
    StepClock {
        /// Seconds; negative is back.
        seconds: i64,
    },
    /// Stops or starts the clock.
    RunClock {
        /// Does it run?
        running: bool,
    },
    /// Adds a fault.
    Fault(Box<Fault>),
    /// Removes every fault.
    ClearFaults,
    /// Changes settings; those not named stay.
    Settings {
        /// The changes.
        settings: Map<String, Value>,
    },
    /// Replaces the accepted credentials.
    Credentials(Credentials),
    /// Ends the current access token.
    RevokeTokens,
    /// Forgets the log and its sums.
    ClearLog,
}

impl World {
    /// Does one thing and answers what there is to say about it.
    pub fn apply(&mut self, command: Command) -> Result<Value, String> {
        match command {
            Command::Create { table, columns, without } => {
                let created = Table::new(&table, self.db.collation, &columns, &without);
                self.db.views.remove(&table);
                self.db.tables.insert(table, created);
            }
            Command::Drop { table } => {
                let view = self.db.views.remove(&table).is_some();
                if self.db.tables.remove(&table).is_none() && !view {
                    return Err(format!("there is no table `{table}`"));
                }
            }
            Command::Load { table, rows } => {
                return self.load(&table, rows).map(|ids| json!({"rows": ids.len()}));
            }
            Command::Insert { table, fields } => {
                return self.load(&table, vec![fields]).map(|ids| json!({"sys_id": ids.first()}));
            }
            Command::Generate(spec) => {
                let rows = generate(&mut self.db, &spec, self.clock.seconds())?;
                return Ok(json!({"rows": rows}));
            }
            Command::ChangeRequests => {
                return change_requests::load(&mut self.db).map(|rows| json!({"rows": rows}));
            }
            Command::Update { table, sys_id, mut fields } => {
                let now = self.clock.stamp();
                let table = self.db.existing(&table)?;
                touch(table, &sys_id, &mut fields, &now);
                table.update(&sys_id, &fields)?;
            }
            Command::Delete { table, sys_id } => self.db.existing(&table)?.delete(&sys_id)?,
            Command::View { name, view } => {
                self.db.tables.remove(&name);
                self.db.views.insert(name.clone(), View::new(view)?);
                self.db.refresh(&name)?;
            }
            Command::SetClock { at } => {
                let seconds = parse_stamp(&at).ok_or_else(|| format!("`{at}` is not yyyy-MM-dd HH:mm:ss"))?;
                self.clock.set(seconds);
            }
            Command::StepClock { seconds } => self.clock.step(seconds),
            Command::RunClock { running } => self.clock.run(running),
            Command::Fault(fault) => self.faults.add(*fault),
            Command::ClearFaults => self.faults.clear(),
            Command::Settings { settings } => self.change_settings(settings)?,
            Command::Credentials(credentials) => self.credentials = credentials,
            Command::RevokeTokens => self.tokens.revoke(),
            Command::ClearLog => self.log.clear(),
            other => self.limit_access(other)?,
        }
        Ok(json!({}))
    }

    fn limit_access(&mut self, command: Command) -> Result<(), String> {
        let name = match &command {
            Command::Hide { table, .. }
            | Command::Unhide { table, .. }
            | Command::HideWhere { table, .. }
            | Command::UnhideAll { table }
            | Command::Access { table, .. } => table.clone(),
            _ => return Err("this command limits no access".to_owned()),
        };
        let access = &mut self.db.existing(&name)?.access;
        match command {
            Command::Hide { sys_ids, .. } => access.hidden_ids.extend(sys_ids),
            Command::Unhide { sys_ids, .. } => access.hidden_ids.retain(|id| !sys_ids.contains(id)),
            Command::HideWhere { field, equals, .. } => access.hide_where(&field, &equals),
            Command::UnhideAll { .. } => access.unhide_all(),
            Command::Access { rules, .. } => access.rules = rules,
            _ => {}
        }
        Ok(())
    }

    /// Inserts rows and gives their identities.
    pub fn load(&mut self, table: &str, rows: Vec<Fields>) -> Result<Vec<String>, String> {
        if self.db.views.contains_key(table) {
            return Err(format!("`{table}` is a view: its rows are those of its tables"));
        }
        let now = self.clock.stamp();
        let random = &mut self.random;
        let table = self.db.table_mut(table);
        let mut ids = Vec::with_capacity(rows.len());
        let completed = rows.into_iter().map(|mut fields| {
            complete(&mut fields, &now, || random.id());
            ids.extend(fields.get("sys_id").map(|cell| cell.value.clone()));
            only_known_reserved(table, fields)
        });
        let completed: Vec<Fields> = completed.collect();
        table.insert_many(completed)?;
        Ok(ids)
    }

    fn change_settings(&mut self, changes: Map<String, Value>) -> Result<(), String> {
        let mut settings = serde_json::to_value(&self.settings).map_err(|why| why.to_string())?;
        for (name, value) in changes {
            settings[name] = value;
        }
        let settings = serde_json::from_value(settings).map_err(|why| why.to_string())?;
        self.configure(settings)
    }
}
