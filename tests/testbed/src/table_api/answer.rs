//! Rendering: rows into the three shapes of an answer, and the headers that describe a page.
//!
//! * raw (`false`): every value a string; a reference `{link,value}`, or a string when it is empty or links are excluded.
//! * shown (`true`): the display values; a reference `{display_value,link}`, likewise.
//! * `all`: `{display_value,value}` for every field, with the link of a reference and the code of a currency.

use std::borrow::Cow;

use super::clock::{format_stamp, parse_stamp};
use super::data::Table;
use super::database::Database;
use super::params::{Display, Params};
use super::row::{Extra, Kind, push_json_string};

/// One member of every row of an answer.
#[derive(Debug)]
struct Member {
    name: String,
    key: String,
    path: Vec<usize>,
    kind: Kind,
    reference: Option<String>,
}

/// How rows are to be rendered.
#[derive(Debug)]
pub(super) struct Renderer<'a> {
    db: &'a Database,
    table: &'a Table,
    members: Vec<Member>,
    display: Display,
    links: bool,
    whole: bool,
    base_url: &'a str,
    display_offset_seconds: i64,
    overrides: &'a [(String, Option<String>)],
}

impl<'a> Renderer<'a> {
    /// Resolves the projection; a name that is no field is ignored.
    pub fn new(db: &'a Database, table: &'a Table, params: &Params, base_url: &'a str, offset: i64) -> Self {
        let hidden = &table.access.rules.hidden_fields;
        let names: Vec<Cow<'_, str>> = match &params.fields {
            Some(names) => names.iter().map(|name| Cow::Borrowed(name.as_str())).collect(),
            None => table.columns.iter().map(|column| Cow::Borrowed(column.name.as_str())).collect(),
        };
        let mut members: Vec<Member> = Vec::with_capacity(names.len());
        for name in names {
            let taken = members.iter().any(|member| member.name == name);
            let Some(path) = db.resolve(table, &name) else {
                continue;
            };
            let Some(column) = db.column_at(table, &path) else {
                continue;
            };
            if taken || hidden.contains(&*name) {
                continue;
            }
            let mut key = String::new();
            push_json_string(&mut key, &name);
            key.push(':');
            members.push(Member { name: name.into_owned(), key, path, kind: column.kind, reference: column.reference.clone() });
        }
        let links = !params.exclude_reference_link;
        let linked = links && members.iter().any(|member| member.reference.is_some());
        let whole = params.fields.is_none() && params.display == Display::Raw && hidden.is_empty() && !linked;
        Self { db, table, members, display: params.display, links, whole, base_url, display_offset_seconds: offset, overrides: &[] }
    }

    /// Sends these tokens in place of the values of these fields; none leaves the field out.
    #[must_use]
    pub fn with_overrides(mut self, overrides: &'a [(String, Option<String>)]) -> Self {
        self.overrides = overrides;
        self.whole &= overrides.is_empty();
        self
    }

    /// Appends one row.
    pub fn row(&self, out: &mut String, slot: u32) {
        let Some(row) = self.table.row(slot) else {
            return out.push_str("{}");
        };
        if let Some(whole) = self.whole.then(|| row.whole(self.table.columns.len())).flatten() {
            return out.push_str(whole);
        }
        out.push('{');
        let start = out.len();
        for member in &self.members {
            let override_ = self.overrides.iter().find(|(name, _)| *name == member.name);
            if matches!(override_, Some((_, None))) {
                continue;
            }
            if out.len() > start {
                out.push(',');
            }
            out.push_str(&member.key);
            match override_ {
                Some((_, Some(token))) => out.push_str(token),
                _ => self.value(out, slot, member),
            }
        }
        out.push('}');
    }

    fn value(&self, out: &mut String, slot: u32, member: &Member) {
        let direct = if let [column] = member.path[..] { Some(column) } else { None };
        let row = self.table.row(slot);
        let extra = direct.and_then(|column| row?.extra(column));
        if let (Display::Raw, Some(column), Some(row), None, None) = (self.display, direct, row, &member.reference, extra) {
            out.push('"');
            out.push_str(row.escaped_value(column));
            return out.push('"');
        }
        let value = self.db.walk(self.table, slot, &member.path);
        let raw = |out: &mut String| match extra.and_then(|extra| extra.raw.as_deref()) {
            Some(token) => out.push_str(token),
            None => push_json_string(out, &value),
        };
        let link = self.link(member, extra, &value);
        match self.display {
            Display::Raw => match link {
                Some(link) => {
                    out.push_str("{\"link\":");
                    push_json_string(out, &link);
                    out.push_str(",\"value\":");
                    raw(out);
                    out.push('}');
                }
                None => raw(out),
            },
            Display::Shown => match link {
                Some(link) => {
                    out.push_str("{\"display_value\":");
                    self.shown(out, member, extra, &value);
                    out.push_str(",\"link\":");
                    push_json_string(out, &link);
                    out.push('}');
                }
                None => self.shown(out, member, extra, &value),
            },
            Display::All => {
                out.push_str("{\"display_value\":");
                self.shown(out, member, extra, &value);
                out.push_str(",\"value\":");
                raw(out);
                if let Some(currency) = extra.and_then(|extra| extra.currency_display_value.as_deref()) {
                    out.push_str(",\"currency_display_value\":");
                    push_json_string(out, currency);
                }
                if let Some(link) = link {
                    out.push_str(",\"link\":");
                    push_json_string(out, &link);
                }
                out.push('}');
            }
        }
    }

    /// The display value: the row's own, or a date in the user's zone, or the raw value.
    fn shown(&self, out: &mut String, member: &Member, extra: Option<&Extra>, value: &str) {
        match extra.and_then(|extra| extra.display_value.as_ref()) {
            Some(Some(text)) => push_json_string(out, text),
            Some(None) => out.push_str("null"),
            None => match parse_stamp(value).filter(|_| member.kind == Kind::DateTime) {
                Some(utc) => push_json_string(out, &format_stamp(utc + self.display_offset_seconds)),
                None => push_json_string(out, value),
            },
        }
    }

    fn link(&self, member: &Member, extra: Option<&Extra>, value: &str) -> Option<String> {
        if !self.links || value.is_empty() {
            return None;
        }
        let own = extra.and_then(|extra| extra.link.clone());
        let derived = || Some(format!("{}/api/now/table/{}/{value}", self.base_url, member.reference.as_deref()?));
        own.or_else(derived)
    }
}

/// The `Link` header of a page; none when everything fits on it.
pub(super) fn link_header(
    url: &str,
    pairs: &[(String, String)],
    (offset, limit): (usize, usize),
    more: bool,
    total: Option<usize>,
) -> Option<String> {
    if offset == 0 && !more {
        return None;
    }
    let at = |offset: usize, name: &str| {
        let kept = pairs.iter().filter(|(name, _)| name != "sysparm_limit" && name != "sysparm_offset");
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .append_pair("sysparm_limit", &limit.to_string())
            .append_pair("sysparm_offset", &offset.to_string())
            .finish();
        format!("<{url}?{query}>;rel=\"{name}\"")
    };
    let mut links = vec![at(0, "first")];
    if offset > 0 {
        links.push(at(offset.saturating_sub(limit), "prev"));
    }
    if more {
        links.push(at(offset + limit, "next"));
    }
    if let Some(total) = total {
        links.push(at(total.saturating_sub(1) / limit * limit, "last"));
    }
    Some(links.join(","))
}

/// The body of an error.
pub(super) fn error_body(message: &str, detail: Option<&str>) -> String {
    serde_json::json!({"error": {"message": message, "detail": detail}, "status": "failure"}).to_string()
}
