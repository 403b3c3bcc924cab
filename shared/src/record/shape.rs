//! From rows that were read together, a page, to records: key, value, timestamp, headers.
//!
//! ```text
//! schemaless   the row's JSON as it is                          one copy of nothing
//! strings      a struct of optional texts that only grows       the row is read once, texts are copied as they are
//! typed        a struct of declared types, or of the source's   the row is read once
//! ```
//!
//! What comes out goes through the converters. A page is converted as a whole before any of it is sent: a row that
//! does not fit, a schema that cannot be stored and a registry that refuses leave nothing in the topic. Each row is read even if
//! one before it cannot be written, so that what does not fit its type is told of the whole page, and before what follows from it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::converter::json::{DecimalFormat, JsonConverter};
use super::converter::string::StringConverter;
use super::converter::{Converter, EncodeError, Encoder};
use super::envelope::Envelope;
use super::growing::{Growing, Version};
use super::row::{self, Fields};
use super::schema::{Schema, Type};
use super::store::{SchemaPlace, SchemaStore};
use super::typed::{Differences, Evolution, Mapping, Row as TypedRow};
use super::value::Value;
use super::{Content, Record, Row, Rows};
use crate::failure::{Failure, Retry};

/// After so many rows the other tasks of this thread get a turn.
const TURN: usize = 1_000;

/// Whose rows these are, in names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The connector's name.
    pub connector: String,
    /// The table's alias in its document.
    pub alias: String,
    /// The table, as the source calls it.
    pub table: String,
    /// What the names of the source's schemas begin with.
    pub namespace: String,
}

impl Names {
    /// How messages name the table.
    fn shown(&self) -> String {
        format!("{}/{}", self.connector, self.alias)
    }

    /// The name of a schema of this table's rows.
    pub fn row_schema(&self) -> String {
        format!("{}.{}.Value", self.namespace, self.table)
    }
}

/// What the records of one table look like.
#[derive(Debug)]
pub struct Shape {
    names: Names,
    topic: Arc<str>,
    headers: Vec<(String, String)>,
    extracted_at: &'static str,
    schema_mode: &'static str,
    mode: Mode,
    envelope: Option<Envelope>,
    keys: Arc<dyn Converter>,
    key_schema: Arc<Schema>,
    values: Arc<dyn Converter>,
}

/// Where the schema of the rows comes from.
#[derive(Debug)]
enum Mode {
    Schemaless,
    Strings(Growing),
    Mapped { mapping: Mapping, fixed: Arc<Version>, growing: Option<Growing>, told: Mutex<BTreeSet<String>> },
    OfSource,
}

impl Mode {
    fn name(&self) -> &'static str {
        match self {
            Mode::Schemaless => "schemaless",
            Mode::Strings(_) => "strings",
            Mode::Mapped { .. } | Mode::OfSource => "typed",
        }
    }
}

impl Shape {
    /// Records of `topic` whose value is the row as it is, with these headers and, after them, when the row was
    /// read and the schema mode, under the names that the source gives. Keys are texts and values JSON.
    pub fn schemaless(names: Names, topic: &str, headers: &[(&str, &str)], extracted_at: &'static str, schema_mode: &'static str) -> Self {
        Self {
            names,
            topic: topic.into(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            extracted_at,
            schema_mode,
            mode: Mode::Schemaless,
            envelope: None,
            keys: Arc::new(StringConverter),
            key_schema: Arc::new(Schema::of(Type::String)),
            values: Arc::new(JsonConverter::new(false, DecimalFormat::default())),
        }
    }

    /// The same with every field an optional text of a struct that only grows.
    #[must_use]
    pub fn strings(self) -> Self {
        let growing = Growing::new(self.place("strings"), self.names.row_schema(), Vec::new());
        Self { mode: Mode::Strings(growing), ..self }
    }

    /// The same with fields of declared types.
    #[must_use]
    pub fn mapped(self, mapping: Mapping) -> Self {
        let fixed = Arc::new(Version::of(Schema::structure(self.names.row_schema(), mapping.schema_fields())));
        let growing = (mapping.evolution == Evolution::Backward)
            .then(|| Growing::new(self.place("typed"), self.names.row_schema(), mapping.fields.clone()));
        Self { mode: Mode::Mapped { mapping, fixed, growing, told: Mutex::default() }, ..self }
    }

    /// The same with rows that come as values of the schema that the source tells with its pages.
    #[must_use]
    pub fn of_source(self) -> Self {
        Self { mode: Mode::OfSource, ..self }
    }

    /// The same with each value wrapped in the change envelope, which names the table and `instance`.
    #[must_use]
    pub fn enveloped(self, instance: &str) -> Self {
        let envelope = Envelope::new(&self.names.namespace, &self.names.table, instance);
        Self { envelope: Some(envelope), ..self }
    }

    /// The same through these converters.
    #[must_use]
    pub fn through(self, keys: Arc<dyn Converter>, values: Arc<dyn Converter>) -> Self {
        Self { keys, values, ..self }
    }

    fn place(&self, mode: &'static str) -> SchemaPlace {
        SchemaPlace { connector: self.names.connector.clone(), topic: self.topic.to_string(), mode }
    }

    /// The headers of rows that were read at `extracted_at_ms`, in epoch milliseconds; shared by a page.
    fn headers(&self, extracted_at_ms: i64) -> Arc<[(String, String)]> {
        let own = [(self.extracted_at.to_owned(), extracted_at_ms.to_string()), (self.schema_mode.to_owned(), self.mode.name().to_owned())];
        self.headers.iter().cloned().chain(own).collect()
    }

    /// Whether records have bytes of their own. Otherwise their values are the page's, and take no memory beside it.
    pub fn copies_rows(&self) -> bool {
        self.envelope.is_some() || !matches!(self.mode, Mode::Schemaless)
    }

    /// The records of a page, all or none.
    ///
    /// `by`: the moment, a reading of the monotonic clock, by which a registry has to have answered; `None` leaves it the time
    /// that it has anyway.
    ///
    /// # Errors
    /// `Record.Unmapped`, `Record.Uncoercible`, `Record.Unencodable`; what the schemas' store and the converters fail with.
    pub async fn records(&self, page: Rows<'_>, store: &dyn SchemaStore, by: Option<Duration>) -> Result<Made, Failure> {
        if page.rows.is_empty() {
            return Ok(Made::default());
        }
        match &self.mode {
            Mode::Schemaless => self.schemaless_records(page, by).await.map(Made::whole),
            Mode::Strings(growing) => self.strings_records(page, growing, store, by).await.map(Made::whole),
            Mode::Mapped { mapping, fixed, growing, told } => {
                self.mapped_records(page, &Mapped { mapping, fixed, growing: growing.as_ref(), told }, store, by).await
            }
            Mode::OfSource => self.source_records(page, by).await.map(Made::whole),
        }
    }

    async fn schemaless_records(&self, page: Rows<'_>, by: Option<Duration>) -> Result<Vec<Record>, Failure> {
        let writer = self.writer(page, None, by).await?;
        let mut records = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            let Content::Json(json) = &row.content else {
                return Err(self.unencodable(row, &EncodeError::unlike("a row without a schema")));
            };
            let json = match &self.envelope {
                None => json.clone(),
                Some(envelope) => envelope.splice(json, row.timestamp_ms),
            };
            records.push(writer.record(row, &Value::Json(json))?);
        }
        Ok(records)
    }

    async fn strings_records(
        &self,
        page: Rows<'_>,
        growing: &Growing,
        store: &dyn SchemaStore,
        by: Option<Duration>,
    ) -> Result<Vec<Record>, Failure> {
        let accepts = |schema: &Arc<Schema>| self.accepts(schema);
        let mut version = growing.current(store, &accepts).await?;
        loop {
            let mut found = Vec::new();
            let writer = match &version {
                Some(version) => Some(self.writer(page, Some(&version.schema), by).await?),
                None => None,
            };
            let nothing = Version::of(Schema::structure("", Vec::new()));
            let known = version.as_deref().unwrap_or(&nothing);
            let records = self
                .each(page, writer.as_ref(), known, |columns, _, json, values| {
                    row::read(json, columns, &mut Texts { values, found: &mut found })
                })
                .await?;
            match (&version, found.is_empty()) {
                (Some(_), true) => return Ok(records),
                // A page of rows without any field, before any field is known.
                (None, true) => version = Some(growing.grow(store, &[], &accepts).await?),
                (_, false) => version = Some(growing.grow(store, &found, &accepts).await?),
            }
        }
    }

    async fn mapped_records(
        &self,
        page: Rows<'_>,
        Mapped { mapping, fixed, growing, told }: &Mapped<'_>,
        store: &dyn SchemaStore,
        by: Option<Duration>,
    ) -> Result<Made, Failure> {
        let accepts = |schema: &Arc<Schema>| self.accepts(schema);
        let mut version = match growing {
            Some(growing) => match growing.current(store, &accepts).await? {
                Some(version) => version,
                None => growing.grow(store, &[], &accepts).await?,
            },
            None => Arc::clone(fixed),
        };
        loop {
            let mut differences = Differences::default();
            let writer = self.writer(page, Some(&version.schema), by).await?;
            let records = self
                .each(page, Some(&writer), &version, |columns, key, json, values| {
                    row::read(json, columns, &mut TypedRow { mapping, values, key, differences: &mut differences })
                })
                .await;
            // A value that does not fit stands as null by now. That it does not is what happened; that a null cannot be written is
            // what came of it.
            differences.judge(mapping, &self.names.shown())?;
            match growing {
                Some(growing) if !differences.unmapped_fields().is_empty() => {
                    records?;
                    version = growing.grow(store, differences.unmapped_fields(), &accepts).await?;
                }
                _ => {
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    differences.log(&self.names.shown(), |field| told.insert(field.to_owned()));
                    return Ok(Made { records: records?, values_nulled: differences.unfit_values() });
                }
            }
        }
    }

    async fn source_records(&self, page: Rows<'_>, by: Option<Duration>) -> Result<Vec<Record>, Failure> {
        let schema = page.schema.ok_or_else(|| self.unencodable(&page.rows[0], &EncodeError::unlike("a page with a schema")))?;
        let writer = self.writer(page, Some(schema), by).await?;
        let mut records = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            let Content::Fields(fields) = &row.content else { return Err(self.unencodable(row, &EncodeError::unlike("its schema"))) };
            records.push(writer.structure(row, fields.clone())?.0);
        }
        Ok(records)
    }

    /// Reads each row into the places of `version` and makes its record, if there is a writer for it. The first row that cannot be
    /// written is the failure, and those behind it are read all the same.
    async fn each<'p>(
        &'p self,
        page: Rows<'p>,
        writer: Option<&Writer<'p>>,
        version: &Version,
        mut read: impl FnMut(&row::Columns, &'p str, &'p Bytes, &mut Vec<Value<'p>>) -> Result<(), serde_json::Error>,
    ) -> Result<Vec<Record>, Failure> {
        let mut records = Ok(Vec::with_capacity(page.rows.len()));
        let mut values = Vec::with_capacity(version.columns.len());
        for (at, row) in page.rows.iter().enumerate() {
            let Content::Json(json) = &row.content else { return Err(self.unencodable(row, &EncodeError::unlike("a JSON row"))) };
            values.clear();
            values.resize(version.columns.len(), Value::Null);
            let key = std::str::from_utf8(&row.key).unwrap_or_default();
            read(&version.columns, key, json, &mut values)
                .map_err(|error| self.unencodable(row, &EncodeError { detail: format!("it is no JSON object: {error}") }))?;
            if let (Some(writer), Ok(made)) = (writer, &mut records) {
                match writer.structure(row, std::mem::take(&mut values)) {
                    Ok((record, emptied)) => {
                        made.push(record);
                        values = emptied;
                    }
                    Err(failure) => records = Err(failure),
                }
            }
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        records
    }

    async fn writer(&self, page: Rows<'_>, row_schema: Option<&Arc<Schema>>, by: Option<Duration>) -> Result<Writer<'_>, Failure> {
        let schema = row_schema.map(|schema| self.value_schema(schema));
        Ok(Writer {
            shape: self,
            headers: self.headers(page.extracted_at_ms),
            keys: self.keys.encoder(&self.topic, Some(&self.key_schema), by).await.map_err(|failure| self.named(failure))?,
            values: self.values.encoder(&self.topic, schema.as_ref(), by).await.map_err(|failure| self.named(failure))?,
        })
    }

    /// Whether values with rows of this schema can be written, which a schema has to be before it is kept for good.
    fn accepts(&self, row_schema: &Arc<Schema>) -> Result<(), Failure> {
        self.values.accepts(&self.topic, &self.value_schema(row_schema)).map_err(|failure| self.named(failure))
    }

    /// The schema of the values whose rows have this one.
    fn value_schema(&self, row_schema: &Arc<Schema>) -> Arc<Schema> {
        match &self.envelope {
            Some(envelope) => envelope.schema(row_schema),
            None => Arc::clone(row_schema),
        }
    }

    /// A failure with the table in front.
    fn named(&self, failure: Failure) -> Failure {
        Failure { message: format!("{}: {}", self.names.shown(), failure.message), ..failure }
    }

    fn unencodable(&self, row: &Row, error: &EncodeError) -> Failure {
        let key = String::from_utf8_lossy(&row.key);
        Failure::new("Record.Unencodable", Retry::Never, format!("{}: row {key} cannot be written: {error}", self.names.shown()))
    }
}

/// What came of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made {
    /// A record per row, in their order.
    pub records: Vec<Record>,
    /// Values that do not fit their types and are null in the records, as the evolution allows.
    pub values_nulled: u64,
}

impl Made {
    /// Records that say all that the rows did.
    fn whole(records: Vec<Record>) -> Self {
        Self { records, values_nulled: 0 }
    }
}

/// [`Mode::Mapped`], looked at.
struct Mapped<'s> {
    mapping: &'s Mapping,
    fixed: &'s Arc<Version>,
    growing: Option<&'s Growing>,
    told: &'s Mutex<BTreeSet<String>>,
}

/// Makes the records of a page.
struct Writer<'s> {
    shape: &'s Shape,
    headers: Arc<[(String, String)]>,
    keys: Arc<dyn Encoder>,
    values: Arc<dyn Encoder>,
}

impl<'s> Writer<'s> {
    /// The record of a row with these values, whose memory is given back.
    fn structure<'a>(&self, row: &Row, values: Vec<Value<'a>>) -> Result<(Record, Vec<Value<'a>>), Failure>
    where
        's: 'a,
    {
        let mut value = Value::Struct(values);
        if let Some(envelope) = &self.shape.envelope {
            value = envelope.wrap(value, row.timestamp_ms);
        }
        let record = self.record(row, &value)?;
        if self.shape.envelope.is_some() {
            value = Envelope::unwrap(value);
        }
        Ok((record, if let Value::Struct(values) = value { values } else { Vec::new() }))
    }

    fn record(&self, row: &Row, value: &Value<'_>) -> Result<Record, Failure> {
        let refuse = |error| self.shape.unencodable(row, &error);
        Ok(Record {
            topic: Arc::clone(&self.shape.topic),
            key: self.keys.encode_text(&row.key).map_err(refuse)?,
            value: Some(self.values.encode(value).map_err(refuse)?),
            timestamp_ms: row.timestamp_ms,
            headers: Arc::clone(&self.headers),
        })
    }
}

/// A row of texts, and the fields that have no place yet, each once.
struct Texts<'r, 'a> {
    values: &'r mut Vec<Value<'a>>,
    found: &'r mut Vec<String>,
}

impl<'a> Fields<'a> for Texts<'_, 'a> {
    fn known(&mut self, place: usize, json: &'a str) {
        self.values[place] = row::text_of(json);
    }

    fn unknown(&mut self, name: &str, _json: &'a str) {
        if !self.found.iter().any(|found| found == name) {
            self.found.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
