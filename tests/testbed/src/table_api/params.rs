//! The parameters of a request.
//!
//! What is not known is refused, and so is a known parameter with a value that has no meaning, or one that is given
//! twice: a simulator that shrugs would let a client's typing error pass as a feature.

use std::fmt;

use super::grammar::{self, Operator, Query, Term};

/// `sysparm_display_value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Display {
    #[default]
    Raw,
    Shown,
    All,
}

/// The parameters of a read, understood.
#[derive(Debug, Clone, Default)]
pub(super) struct Params {
    pub query: Query,
    pub query_text: String,
    pub limit: Option<usize>,
    pub offset: usize,
    pub fields: Option<Vec<String>>,
    pub display: Display,
    pub exclude_reference_link: bool,
    pub no_count: bool,
    pub suppress_pagination_header: bool,
    pub no_domain: bool,
    pub category: Option<String>,
    pub view: Option<String>,
}

/// Something that the simulator does not understand, and therefore does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The decoded pairs of a query string, in order.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

impl Params {
    /// Reads the parameters of a list request, or of one for a single record.
    pub fn read(pairs: &[(String, String)], single: bool) -> Result<Self, Refusal> {
        let mut params = Self::default();
        let mut plain: Vec<Term> = Vec::new();
        let mut query = None;
        for (place, (name, value)) in pairs.iter().enumerate() {
            if pairs[..place].iter().any(|(known, _)| known == name) {
                return Err(Refusal(format!("`{name}` is given twice")));
            }
            if single && LIST_ONLY.contains(&name.as_str()) {
                return Err(Refusal(format!("`{name}` has no meaning for a single record")));
            }
            match name.as_str() {
                "sysparm_query" => query = Some(value),
                "sysparm_limit" => params.limit = Some(number(name, value)?),
                "sysparm_offset" => params.offset = number(name, value)?,
                "sysparm_fields" => params.fields = fields(value),
                "sysparm_display_value" => params.display = display(value)?,
                "sysparm_exclude_reference_link" => params.exclude_reference_link = flag(name, value)?,
                "sysparm_no_count" => params.no_count = flag(name, value)?,
                "sysparm_suppress_pagination_header" => params.suppress_pagination_header = flag(name, value)?,
                "sysparm_query_no_domain" => params.no_domain = flag(name, value)?,
                "sysparm_query_category" => params.category = Some(value.clone()),
                "sysparm_view" => params.view = Some(value.clone()),
                other if other.starts_with("sysparm_") || single => {
                    return Err(Refusal(format!("the parameter `{other}` is not known")));
                }
                _ => plain.push(Term { field: name.clone(), operator: Operator::Equal, value: value.clone() }),
            }
        }
        if params.limit == Some(0) {
            return Err(Refusal("`sysparm_limit` is 0".to_owned()));
        }
        match query {
            Some(_) if !plain.is_empty() => {
                let names: Vec<_> = plain.iter().map(|term| term.field.as_str()).collect();
                return Err(Refusal(format!("`{}` stands beside sysparm_query", names.join("`, `"))));
            }
            Some(text) => {
                params.query = grammar::parse(text).map_err(Refusal)?;
                params.query_text.clone_from(text);
            }
            None => params.query.groups.push(plain.into_iter().map(|term| vec![term]).collect()),
        }
        Ok(params)
    }
}

const LIST_ONLY: [&str; 6] = [
    "sysparm_query",
    "sysparm_limit",
    "sysparm_offset",
    "sysparm_no_count",
    "sysparm_suppress_pagination_header",
    "sysparm_query_category",
];

fn number(name: &str, value: &str) -> Result<usize, Refusal> {
    value.parse().map_err(|_| Refusal(format!("`{name}={value}` is not a number from 0")))
}

fn flag(name: &str, value: &str) -> Result<bool, Refusal> {
    value.parse().map_err(|_| Refusal(format!("`{name}={value}` is neither true nor false")))
}

fn display(value: &str) -> Result<Display, Refusal> {
    match value {
        "false" => Ok(Display::Raw),
        "true" => Ok(Display::Shown),
        "all" => Ok(Display::All),
        other => Err(Refusal(format!("`sysparm_display_value={other}` is not false, true or all"))),
    }
}

/// An empty list is no projection.
fn fields(value: &str) -> Option<Vec<String>> {
    let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()).collect();
    (!names.is_empty()).then_some(names)
}
