//! Fields as a test gives them, and rows as the simulator keeps them.
//!
//! A benchmark pulls a million rows through the simulator and reads the process's CPU time, so a row must cost next to
//! nothing to serve. It is therefore kept as the JSON text of its raw projection, with the place of every value in that
//! text: the usual answer is a copy, a projection is a few slices, and a predicate compares slices of the same text.
//! What only some rows have (display values, links, odd JSON tokens) lies beside it and costs the others nothing.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// One field of a row: the raw value, and what the other display modes say about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// The raw value: what queries compare and `sysparm_display_value=false` answers.
    pub value: String,
    /// The display value: none means "the same as the raw value", `Some(None)` is a JSON null.
    pub display_value: Option<Option<String>>,
    /// The link of a reference, when it is not to be derived from the column's target table.
    pub link: Option<String>,
    /// The extra member of a currency field in the mode `all`, for example `USD;509.95`.
    pub currency_display_value: Option<String>,
    /// A JSON token sent verbatim in place of the value's string: numbers, nulls, lone surrogate escapes.
    pub raw: Option<String>,
}

impl Cell {
    /// A field with a raw value only.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }

    /// The same field with a display value.
    #[must_use]
    pub fn display(mut self, text: impl Into<String>) -> Self {
        self.display_value = Some(Some(text.into()));
        self
    }

    /// The same field, answered as this JSON token instead of as a string.
    #[must_use]
    pub fn raw(mut self, token: impl Into<String>) -> Self {
        self.raw = Some(token.into());
        self
    }

    fn is_plain(&self) -> bool {
        self.display_value.is_none() && self.link.is_none() && self.currency_display_value.is_none() && self.raw.is_none()
    }

    /// Reads a cell from JSON: text, number, boolean, null, or an object with `value` and its companions.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let Value::Object(members) = value else {
            return Ok(Self::new(text_of(value)?));
        };
        let mut cell = Self::default();
        for (name, member) in members {
            match name.as_str() {
                "value" => cell.value = text_of(member)?,
                "display_value" if member.is_null() => cell.display_value = Some(None),
                "display_value" => cell.display_value = Some(Some(text_of(member)?)),
                "link" => cell.link = Some(text_of(member)?),
                "currency_display_value" => cell.currency_display_value = Some(text_of(member)?),
                "raw" => cell.raw = Some(text_of(member)?),
                other => return Err(format!("a field has no member `{other}`")),
            }
        }
        Ok(cell)
    }
}

/// The raw value that a scalar JSON value stands for; the instance keeps everything as text, and null as nothing.
fn text_of(value: &Value) -> Result<String, String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(_) | Value::Object(_) => Err("a field is a scalar or an object with `value`".to_owned()),
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

/// The fields of one row, in the order in which their columns are to appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Cell)>);

impl Fields {
    /// No field.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same fields with this one set.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, cell: impl Into<Cell>) -> Self {
        self.set(name, cell);
        self
    }

    /// Sets a field, in its old place when it is there already.
    pub fn set(&mut self, name: impl Into<String>, cell: impl Into<Cell>) {
        let (name, cell) = (name.into(), cell.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = cell,
            None => self.0.push((name, cell)),
        }
    }

    /// The field of this name.
    pub fn get(&self, name: &str) -> Option<&Cell> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, cell)| cell)
    }

    /// Every field, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Cell)> {
        self.0.iter().map(|(name, cell)| (name.as_str(), cell))
    }
}

impl<K: Into<String>, C: Into<Cell>, const N: usize> From<[(K, C); N]> for Fields {
    fn from(pairs: [(K, C); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K: Into<String>, C: Into<Cell>> FromIterator<(K, C)> for Fields {
    fn from_iter<I: IntoIterator<Item = (K, C)>>(pairs: I) -> Self {
        let mut fields = Self::new();
        for (name, cell) in pairs {
            fields.set(name, cell);
        }
        fields
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = serde_json::Map::deserialize(deserializer)?;
        let mut fields = Self::new();
        for (name, value) in &members {
            let cell = Cell::from_json(value).map_err(|why| serde::de::Error::custom(format!("field `{name}`: {why}")))?;
            fields.set(name.clone(), cell);
        }
        Ok(fields)
    }
}

impl Serialize for Fields {
    /// Raw values only: what a reader of the control interface wants to see of a row.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, cell)| (name, &cell.value)))
    }
}

/// What a column holds: it decides how values are compared and how literals are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Text, compared by the table's collation; two whole numbers are compared as numbers.
    #[default]
    Text,
    /// A number.
    Number,
    /// `yyyy-MM-dd HH:mm:ss` in UTC.
    DateTime,
    /// An identity: always compared by the collation, never as a number.
    Id,
}

/// One column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name, as in the answers.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// The table that a reference points to.
    pub reference: Option<String>,
    /// `"name":"`, ready to be copied in front of a value.
    pub(super) fragment: String,
}

impl Column {
    pub(super) fn new(name: &str, kind: Kind, reference: Option<String>) -> Self {
        let mut fragment = String::with_capacity(name.len() + 4);
        push_json_string(&mut fragment, name);
        fragment.push_str(":\"");
        Self { name: name.to_owned(), kind, reference, fragment }
    }
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

/// What a cell has beyond its raw value.
#[derive(Debug, Clone, Default)]
pub(super) struct Extra {
    pub display_value: Option<Option<String>>,
    pub link: Option<String>,
    pub currency_display_value: Option<String>,
    pub raw: Option<String>,
}

/// Boxed, because most rows have none and a map would cost each of them its three words.
type Extras = Box<[(usize, Extra)]>;

/// One row, as JSON text plus the places of its values.
#[derive(Debug)]
pub(super) struct Row {
    json: Box<str>,
    spans: Box<[Span]>,
    extras: Option<Extras>,
    escaped: bool,
    raw: bool,
}

impl Row {
    /// Builds a row from one cell per column.
    pub fn build(columns: &[Column], cells: &[Cell]) -> Self {
        let size: usize = columns.iter().zip(cells).map(|(c, v)| c.fragment.len() + v.value.len() + 4).sum();
        let mut json = String::with_capacity(size + 2);
        let mut spans = Vec::with_capacity(columns.len());
        let mut extras = Vec::new();
        let (mut escaped, mut raw) = (false, false);
        json.push('{');
        for (position, (column, cell)) in columns.iter().zip(cells).enumerate() {
            if position > 0 {
                json.push(',');
            }
            json.push_str(&column.fragment);
            let start = json.len();
            escaped |= push_escaped(&mut json, &cell.value);
            spans.push(Span { start: start as u32, end: json.len() as u32 });
            json.push('"');
            if !cell.is_plain() {
                raw |= cell.raw.is_some();
                extras.push((
                    position,
                    Extra {
                        display_value: cell.display_value.clone(),
                        link: cell.link.clone(),
                        currency_display_value: cell.currency_display_value.clone(),
                        raw: cell.raw.clone(),
                    },
                ));
            }
        }
        json.push('}');
        let extras = (!extras.is_empty()).then(|| extras.into_boxed_slice());
        Self { json: json.into(), spans: spans.into(), extras, escaped, raw }
    }

    /// The value as it stands between its quotes in JSON; a column younger than the row is empty.
    pub fn escaped_value(&self, column: usize) -> &str {
        self.spans.get(column).map_or("", |span| &self.json[span.start as usize..span.end as usize])
    }

    /// The raw value.
    pub fn value(&self, column: usize) -> Cow<'_, str> {
        let text = self.escaped_value(column);
        if !self.escaped || !text.contains('\\') {
            return Cow::Borrowed(text);
        }
        let span = self.spans[column];
        let quoted = &self.json[span.start as usize - 1..=span.end as usize];
        Cow::Owned(serde_json::from_str(quoted).expect("the row's text was written by `push_escaped`"))
    }

    /// What the cell has beyond its raw value.
    pub fn extra(&self, column: usize) -> Option<&Extra> {
        let extras = self.extras.as_ref()?;
        let place = extras.binary_search_by_key(&column, |(position, _)| *position).ok()?;
        Some(&extras[place].1)
    }

    /// The whole row in its raw projection, when that text may be sent as it stands.
    pub fn whole(&self, columns: usize) -> Option<&str> {
        (self.spans.len() == columns && !self.raw).then_some(&*self.json)
    }

    /// One cell per column, to change the row and build it again.
    pub fn cells(&self, columns: usize) -> Vec<Cell> {
        (0..columns)
            .map(|position| {
                let extra = self.extra(position).cloned().unwrap_or_default();
                Cell {
                    value: self.value(position).into_owned(),
                    display_value: extra.display_value,
                    link: extra.link,
                    currency_display_value: extra.currency_display_value,
                    raw: extra.raw,
                }
            })
            .collect()
    }
}

/// Appends a JSON string with its quotes.
pub(super) fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Appends the inside of a JSON string and says whether anything had to be escaped.
fn push_escaped(out: &mut String, text: &str) -> bool {
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    if !text.as_bytes().iter().any(special) {
        out.push_str(text);
        return false;
    }
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if (control as u32) < 0x20 => {
                write!(out, "\\u{:04x}", control as u32).expect("a String takes all that is written");
            }
            other => out.push(other),
        }
    }
    true
}
