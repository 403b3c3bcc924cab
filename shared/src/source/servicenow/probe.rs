//! The start-up probe: whether a table can be swept as its document says, found out by asking before any row is delivered.
//!
//! An instance is silent about most of what would go wrong. It drops the parts of a query that the user may not use and runs the
//! rest; it leaves out fields that an ACL hides; it may read times in the user's zone, or answer a query with one wrong name with no
//! rows at all. So the probe reads one row, as a sweep would, and then asks for that very row in ways whose answers are known:
//!
//! ```text
//! id=S ^ time=T                                            the row comes   or times are read in another zone
//! id=S ^ time>T   or   id=S ^ id>S   or   id=S ^ time=T+1
//!      or   time=T ^ id=0   or   id=S ^ f is empty, for
//!      each filled field f of the base query               no row comes    or the condition is ignored
//! ```
//!
//! That is three requests for a table in order. What goes wrong is asked about further, until the field and the right that is missing
//! can be named ([`Finding`]). A probe that sees no row proves nothing and fails nothing. What was proven is remembered ([`Memory`]).

mod denied;
mod experiment;
mod finding;
mod known;
mod memory;
mod pending;
mod zone;

pub(super) use finding::Finding;
pub(super) use memory::{NOTE, asked};
pub(super) use pending::{Pending, Prober};
pub(super) use zone::Zone;

use tokio::sync::OnceCell;

use super::answer::Fields;
use super::error::{Error, Remedy};
use super::http::{Call, Instance, Wanted};
use super::keys::{self, BadRow, query_fields};
use super::planner::At;
use super::range::{CursorFields, Range, encoded, escape};
use super::time;
use crate::source::Spent;
use crate::sweep::{Admission, Allowance};

/// Instances show at most this many rows of a database view by default, or one more.
const VIEW_CAP: [u64; 2] = [10_000, 10_001];

/// What a probe that found nothing wrong has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The table can be swept.
    Proven,
    /// There was no row to prove it by.
    NoRow,
    /// The row changed meanwhile, or an answer took too long: to be tried again.
    Unsettled,
}

/// Why a probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The table cannot be swept.
    Found(Box<Finding>),
    /// A request failed, as it may do in any sweep.
    Failed(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Finding> for Trouble {
    fn from(finding: Finding) -> Self {
        Self::Found(Box::new(finding))
    }
}

/// The requests of a probe.
struct Asking<'a> {
    instance: &'a Instance,
    table: &'a keys::Table,
    allowance: &'a Allowance,
    admission: &'a Admission,
    spent: &'a mut Spent,
    /// A wait that the end of the invocation cut, whoever asked and whatever was made of it.
    cut: Option<Error>,
}

impl Asking<'_> {
    /// Rows of the alias's table, with these fields or all.
    async fn rows(&mut self, query: &str, limit: u32, fields: Option<&str>) -> Result<Vec<Fields>, Error> {
        Ok(self.counted(query, limit, fields, false).await?.0)
    }

    async fn counted(&mut self, query: &str, limit: u32, fields: Option<&str>, count: bool) -> Result<(Vec<Fields>, Option<u64>), Error> {
        let mut parameters = parameters(query, limit, fields, count);
        if !self.table.query_domain {
            parameters.push(("sysparm_query_no_domain", "true".to_owned()));
        }
        if let Some(category) = &self.table.query_category {
            parameters.push(("sysparm_query_category", category.clone()));
        }
        let name = self.table.name.clone();
        self.get(&name, &parameters, limit).await
    }

    /// Rows of another table.
    async fn of(&mut self, table: &str, query: &str, limit: u32, fields: &str) -> Result<Vec<Fields>, Error> {
        Ok(self.get(table, &parameters(query, limit, Some(fields), false), limit).await?.0)
    }

    async fn get(&mut self, table: &str, parameters: &[(&str, String)], limit: u32) -> Result<(Vec<Fields>, Option<u64>), Error> {
        let mut call =
            Call { allowance: self.allowance, admission: self.admission, limit, expected: 0, wanted: Wanted::Fields, spent: self.spent };
        let fetched = self.instance.get(table, parameters, &mut call).await.inspect_err(|error| {
            if let Error::Cut { .. } = error {
                self.cut = Some(error.clone());
            }
        })?;
        Ok((fetched.fields, fetched.total))
    }
}

fn parameters(query: &str, limit: u32, fields: Option<&str>, count: bool) -> Vec<(&'static str, String)> {
    let mut parameters = vec![
        ("sysparm_limit", limit.to_string()),
        ("sysparm_no_count", (!count).to_string()),
        ("sysparm_exclude_reference_link", "true".to_owned()),
        ("sysparm_display_value", "false".to_owned()),
    ];
    if !query.is_empty() {
        parameters.push(("sysparm_query", query.to_owned()));
    }
    if let Some(fields) = fields {
        parameters.push(("sysparm_fields", fields.to_owned()));
    }
    parameters
}

/// The probe of one table.
struct Probe<'a> {
    asking: Asking<'a>,
    fields: CursorFields,
    bad_row: BadRow,
    /// Where the sweep goes on; the start of the table while there is no cursor.
    cursor: At,
    /// The zone, once a table of the connector has asked for it.
    zone: &'a OnceCell<Zone>,
    /// What a person should know and nothing fails for.
    remarks: Vec<String>,
}

/// A row with a readable cursor, to make experiments with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subject {
    second: i64,
    id: String,
    row: Fields,
}

impl Subject {
    fn time(&self) -> String {
        time::format(self.second)
    }
}

impl Probe<'_> {
    /// Runs the probe.
    ///
    /// # Errors
    /// [`Trouble::Found`] if the table cannot be swept, [`Trouble::Failed`] if that could not be found out.
    async fn run(&mut self) -> Result<Verdict, Trouble> {
        if let Some(finding) = known::against(&self.asking.table.name, &self.fields.timestamp, &self.key("timestamp.field")) {
            return Err(finding.into());
        }
        self.look_up_zone().await;
        match self.settle().await {
            // What used the time up says more than that it is over.
            Err(Trouble::Failed(Error::BudgetSpent)) => Err(self.asking.cut.take().unwrap_or(Error::BudgetSpent).into()),
            // The sweep itself asks for less at a time, and says so if even that is too much.
            Err(Trouble::Failed(error)) if error.remedy() == Remedy::Smaller => {
                tracing::debug!(table = self.asking.table.name, %error, "the probe was put off");
                Ok(Verdict::Unsettled)
            }
            settled => settled,
        }
    }

    async fn settle(&mut self) -> Result<Verdict, Trouble> {
        let Some(row) = self.row().await? else { return Ok(Verdict::NoRow) };
        let Some(subject) = self.subject(row).await? else { return Ok(Verdict::Unsettled) };
        if !subject.row.has(&self.fields.mod_count) {
            self.remarks.push(format!(
                "the rows have no {}: of two updates of a row within one second the later may not be delivered",
                self.fields.mod_count
            ));
        }
        let Some(subject) = self.times_are_utc(subject).await? else { return Ok(Verdict::Unsettled) };
        self.conditions_are_kept(&subject).await?;
        self.unknown_query_fields(&subject).await?;
        Ok(Verdict::Proven)
    }

    /// Asked, and warned about, once per process: it is the user's, whatever the table.
    async fn look_up_zone(&mut self) {
        let (asking, remarks) = (&mut self.asking, &mut self.remarks);
        let look_up = || async move {
            let zone = Zone::look_up(asking).await;
            remarks.extend(zone.warning());
            zone
        };
        self.zone.get_or_init(look_up).await;
    }

    /// A row as the sweep's first request would bring it, or else any other one.
    async fn row(&mut self) -> Result<Option<Fields>, Trouble> {
        let fields = self.projection();
        let range = Range::from(self.cursor.second, None);
        let query = encoded(&self.asking.table.query, &range.terms(&self.fields), &self.fields);
        let is_view = self.fields.id.ends_with("_sys_id");
        let first = match self.asking.counted(&query, 1, Some(&fields), is_view).await {
            Err(Error::Forbidden { detail }) => return Err(self.denied(detail).await),
            other => other?,
        };
        if first.1.is_some_and(|total| VIEW_CAP.contains(&total)) {
            self.remarks.push(format!(
                "the view has exactly {} rows, which is as many as an instance shows of a view by default (glide.db.max_view_records): \
                 rows beyond may be missing",
                VIEW_CAP[0]
            ));
        }
        // A row without any field is one that an access rule hides, or one that has none of those that were asked for.
        let mut is_blank = false;
        let mut shown = |rows: Vec<Fields>| {
            is_blank |= !rows.is_empty();
            rows.into_iter().find(|row| row.names().next().is_some())
        };
        let mut found = shown(first.0);
        // A condition on time may be what goes wrong, and so may the base query: the next ones do without.
        let mut others = vec![format!("{}ISNOTEMPTY", self.fields.timestamp), String::new()];
        if !self.cursor.id.is_empty() {
            others.insert(0, format!("{}={}", self.fields.id, escape(&self.cursor.id)));
        }
        let is_timed =
            |row: &Fields| !row.has(&self.fields.timestamp) || row.text(&self.fields.timestamp).is_some_and(|time| !time.is_empty());
        for query in others {
            if found.as_ref().is_some_and(is_timed) {
                break;
            }
            found = shown(self.asking.rows(&query, 1, Some(&fields)).await?).or(found);
        }
        if found.is_none() && is_blank {
            found = self.asking.rows("", 1, None).await?.into_iter().find(|row| row.names().next().is_some());
        }
        Ok(found)
    }

    /// The cursor fields, the fields of the query, and what the alias asks for.
    fn projection(&self) -> String {
        let CursorFields { timestamp, id, mod_count } = &self.fields;
        let mut names: Vec<&str> = vec![id, timestamp, mod_count];
        let listed = self.asking.table.fields.iter().flatten().map(String::as_str);
        for name in query_fields(&self.asking.table.query).into_iter().chain(listed) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(",")
    }

    /// The row, if its cursor can be read.
    async fn subject(&mut self, row: Fields) -> Result<Option<Subject>, Trouble> {
        let CursorFields { timestamp, id, .. } = self.fields.clone();
        let missing: Vec<&str> = self.asking.table.fields.iter().flatten().map(String::as_str).filter(|name| !row.has(name)).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            self.remarks.push(format!("not in the rows, though the alias's fields name it: {missing}. No such field, or an ACL hides it"));
        }
        let filled = |field: &str| row.text(field).filter(|text| !text.is_empty());
        let (found_id, found_time) = (filled(&id), filled(&timestamp));
        for (field, setting, is_there) in [(&id, "sys.id.field", found_id.is_some()), (&timestamp, "timestamp.field", found_time.is_some())]
        {
            // Rows with a time were asked for, too; where none came, no row has one.
            if !is_there && self.bad_row == BadRow::Fail {
                let (field, key, like) = (field.clone(), self.key(setting), self.alike(field).await?);
                let is_shown = row.has(&field);
                let finding = if is_shown { Finding::FieldEmpty { field, key, like } } else { Finding::FieldMissing { field, key, like } };
                return Err(finding.into());
            }
        }
        let (Some(found_id), Some(found_time)) = (found_id, found_time) else {
            self.remarks.push("a row has no readable cursor, and is skipped as snow.source.bad.row.behavior says".to_owned());
            return Ok(None);
        };
        match (time::parse(&found_time), self.bad_row) {
            (Some(second), _) => Ok(Some(Subject { second, id: found_id, row })),
            (None, BadRow::Skip) => Ok(None),
            (None, BadRow::Fail) => {
                let key = self.key("timestamp.field");
                Err(Finding::NotATime { id: found_id, field: timestamp, key, value: found_time.chars().take(40).collect() }.into())
            }
        }
    }

    /// Filled fields of a row that could take the place of `field`: a view's have a prefix, and some tables only the creation.
    async fn alike(&mut self, field: &str) -> Result<Vec<String>, Error> {
        let endings: &[&str] = if field == self.fields.id { &["sys_id"] } else { &["sys_updated_on", "sys_created_on"] };
        let rows = self.asking.rows("", 1, None).await?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        let fits = |name: &&str| *name != field && endings.iter().any(|ending| name.ends_with(ending));
        let filled = |name: &&str| row.text(name).is_some_and(|text| !text.is_empty());
        Ok(row.names().filter(fits).filter(filled).map(str::to_owned).collect())
    }

    /// The key of the alias's setting.
    fn key(&self, setting: &str) -> String {
        keys::of(&self.asking.table.alias, setting)
    }
}
