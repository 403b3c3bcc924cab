//! Questions whose answers are known.

use super::{Error, Fields, Finding, Probe, Subject, Trouble, escape, query_fields, time};

/// How often a row that changes while it is asked about is asked about anew.
const TRIES: u32 = 3;

/// A condition that the subject does not meet, and the right that is missing if it comes all the same.
struct Unmet {
    field: String,
    condition: String,
    /// What else narrows the question down to the subject.
    beside: String,
    acl: &'static str,
    /// Whether a row that came meets it after all: the subject changed, or a view has more rows of the id.
    meets: Meets,
}

type Meets = Box<dyn Fn(&Fields) -> bool + Send + Sync>;

/// No row has this identity.
const NO_ID: &str = "0";

impl Probe<'_> {
    /// Asks for the row by its exact time. `None` if it kept changing meanwhile, or went.
    pub(super) async fn times_are_utc(&mut self, mut subject: Subject) -> Result<Option<Subject>, Trouble> {
        for _ in 0..TRIES {
            let rows = self.by_id(&subject, &format!("^{}={}", self.fields.timestamp, subject.time())).await?;
            if rows.iter().any(|row| row.text(&self.fields.id).as_ref() != Some(&subject.id)) {
                let condition = format!("{}={}", self.fields.id, escape(&subject.id));
                return Err(Finding::Ignored { condition, field: self.fields.id.clone(), acl: "query_match" }.into());
            }
            match &rows[..] {
                [] => {}
                [_, second] if self.second(second) == Some(subject.second) => {
                    let key = self.key("sys.id.field");
                    return Err(Finding::NotUnique { field: self.fields.id.clone(), key, time: subject.time(), id: subject.id }.into());
                }
                _ => return Ok(Some(subject)),
            }
            let again = self.by_id(&subject, "").await?;
            let Some(row) = again.into_iter().next() else { return Ok(None) };
            match self.second(&row) {
                Some(second) if second == subject.second => {
                    let zone = self.zone.get().cloned().unwrap_or(super::Zone::Unknown);
                    return Err(
                        Finding::Shifted { field: self.fields.timestamp.clone(), time: subject.time(), id: subject.id, zone }.into()
                    );
                }
                Some(second) => subject = Subject { second, row, ..subject },
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Asks for the row by conditions that it does not meet: all in one request, and one by one if that brings it.
    pub(super) async fn conditions_are_kept(&mut self, subject: &Subject) -> Result<(), Trouble> {
        let unmet = self.unmet(subject);
        let question = |asked: &Unmet| format!("{}^{}", asked.beside, asked.condition);
        let fields = self.projection();
        let all: Vec<String> = unmet.iter().map(question).collect();
        let rows = self.asking.rows(&all.join("^NQ"), 2, Some(&fields)).await?;
        if rows.iter().all(|row| unmet.iter().any(|asked| (asked.meets)(row))) {
            return Ok(());
        }
        for asked in unmet {
            let rows = self.asking.rows(&question(&asked), 2, Some(&fields)).await?;
            if rows.iter().any(|row| !(asked.meets)(row)) {
                return Err(Finding::Ignored { condition: asked.condition, field: asked.field, acl: asked.acl }.into());
            }
        }
        Ok(())
    }

    fn unmet(&self, subject: &Subject) -> Vec<Unmet> {
        let (time, id, second) = (self.fields.timestamp.clone(), self.fields.id.clone(), subject.second);
        let (of_id, at_time) = (format!("{id}={}", escape(&subject.id)), format!("{time}={}", subject.time()));
        let time_is = |wanted: fn(i64, i64) -> bool| -> Meets {
            let field = time.clone();
            Box::new(move |row| row.text(&field).as_deref().and_then(time::parse).is_some_and(|found| wanted(found, second)))
        };
        let id_is = |wanted: fn(&str, &str) -> bool, id_of: &str| -> Meets {
            let (field, id_of) = (id.clone(), id_of.to_owned());
            Box::new(move |row| row.text(&field).is_some_and(|found| wanted(&found, &id_of)))
        };
        let unmet = |field: &str, operator: &str, value: &str, beside: &String, acl, meets| {
            let condition = format!("{field}{operator}{value}");
            Unmet { field: field.to_owned(), condition, beside: beside.clone(), acl, meets }
        };
        let next = time::format(second.saturating_add(1));
        let mut all = vec![
            unmet(&time, ">", &subject.time(), &of_id, "query_range", time_is(|found, second| found > second)),
            unmet(&id, ">", &escape(&subject.id), &of_id, "query_range", id_is(|found, id| found != id, &subject.id)),
            unmet(&time, "=", &next, &of_id, "query_match", time_is(|found, second| found == second + 1)),
            unmet(&id, "=", NO_ID, &at_time, "query_match", id_is(|found, id| found == id, NO_ID)),
        ];
        // What an instance holds for empty is not the same for every type, but a word is empty nowhere.
        let is_word = |text: &String| !["", "0", "false"].contains(&text.trim());
        for field in query_fields(&self.asking.table.query).into_iter().filter(|field| *field != id && *field != time) {
            if subject.row.text(field).is_some_and(|text| is_word(&text)) {
                let name = field.to_owned();
                let meets: Meets = Box::new(move |row| row.text(&name).is_none_or(|text| !is_word(&text)));
                all.push(unmet(field, "ISEMPTY", "", &of_id, "query_match", meets));
            }
        }
        all
    }

    /// Fields of the base query that the row does not show: whether the instance ignores conditions on them. Of a field and its
    /// negation exactly one holds for a row.
    pub(super) async fn unknown_query_fields(&mut self, subject: &Subject) -> Result<(), Trouble> {
        let query = self.asking.table.query.clone();
        for field in query_fields(&query).into_iter().filter(|field| !subject.row.has(field)) {
            let empty = self.by_id(subject, &format!("^{field}ISEMPTY")).await?.len();
            let filled = self.by_id(subject, &format!("^{field}ISNOTEMPTY")).await?.len();
            let all = self.by_id(subject, "").await?.len();
            let finding = match (empty, filled, all) {
                (1, 1, 1) => Finding::QueryIgnored { field: field.to_owned() },
                (0, 0, 1) => Finding::QueryEmpties { field: field.to_owned() },
                _ => continue,
            };
            if field.contains('.') {
                // It leads to another table, whose rows the user may not see at all.
                self.remarks.push(finding.to_string());
            } else {
                return Err(finding.into());
            }
        }
        Ok(())
    }

    /// The rows of the subject's id that meet more terms as well, up to two.
    async fn by_id(&mut self, subject: &Subject, terms: &str) -> Result<Vec<Fields>, Error> {
        let fields = self.projection();
        self.asking.rows(&format!("{}={}{terms}", self.fields.id, escape(&subject.id)), 2, Some(&fields)).await
    }

    fn second(&self, row: &Fields) -> Option<i64> {
        row.text(&self.fields.timestamp).as_deref().and_then(time::parse)
    }
}
