//! Faults on demand.
//!
//! A fault waits for the requests that it is meant for (by table, by a piece of the query, by the size of the page, by
//! the presence of a cookie), lets the first `skip` of them pass, and strikes the next `times`. Its effect is one of
//! what users report of real instances and of the networks before them. Several faults may strike one request: what they
//! do to the evaluation, the body and the transport adds up, and the first that replaces the answer wins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::control::Command;

/// Which pages stand where JSON should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HtmlPage {
    /// A login form.
    Login,
    /// The page of an instance that sleeps.
    Hibernating,
    /// The page of an instance under maintenance.
    Maintenance,
}

impl HtmlPage {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Login => {
                "<!DOCTYPE html><html><head><title>Log in</title></head><body><form action=\"login.do\" method=\"post\"><input name=\"user_name\"><input name=\"user_password\" type=\"password\"></form></body></html>"
            }
            Self::Hibernating => {
                "<!DOCTYPE html><html><head><title>Instance Hibernating</title></head><body><h1>Your instance is hibernating</h1><p>Sign in to wake it.</p></body></html>"
            }
            Self::Maintenance => {
                "<!DOCTYPE html><html><head><title>Maintenance</title></head><body><h1>The instance is under maintenance</h1></body></html>"
            }
        }
    }
}

/// What a fault does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// Another answer: status, body, type and headers.
    Status {
        /// The status code.
        status: u16,
        /// The body; a JSON error that names the status when absent.
        #[serde(default)]
        body: Option<String>,
        /// The content type; JSON when absent.
        #[serde(default)]
        content_type: Option<String>,
        /// More headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// 200, the first `keep` rows, and the error of a transaction that was cancelled.
    Cancelled {
        /// Rows that were ready.
        keep: usize,
    },
    /// 200 with JSON that breaks off inside a row and ends in stray quotes.
    MalformedJson,
    /// The connection ends after this many bytes of a body whose length was announced.
    CutBody {
        /// Bytes of the body that are sent.
        after: usize,
    },
    /// 200 without a body.
    EmptyBody,
    /// 202: queued, or dropped.
    Accepted {
        /// The body: `{}` or nothing.
        body: String,
    },
    /// 200 with a page for people.
    Html {
        /// Which.
        page: HtmlPage,
    },
    /// Nothing is sent for this long.
    DelayHeaders {
        /// Milliseconds.
        millis: u64,
    },
    /// The body stops once for this long.
    DelayBody {
        /// Bytes before the stop.
        after: usize,
        /// Milliseconds.
        millis: u64,
    },
    /// The body comes in small pieces.
    SlowBody {
        /// Bytes of a piece.
        chunk: usize,
        /// Milliseconds between two pieces.
        millis: u64,
    },
    /// The connection is reset instead of an answer.
    Reset,
    /// The request is sent elsewhere.
    Redirect {
        /// Where to.
        location: String,
        /// 302 when absent.
        #[serde(default)]
        status: Option<u16>,
    },
    /// The true body under another content type.
    ContentType {
        /// The type.
        value: String,
    },
    /// The true answer, blown up with blanks to at least this size, without compression.
    BigBody {
        /// Bytes.
        bytes: usize,
    },
    /// The true answer, blown up in the same way, and compressed whether or not the client accepts that.
    GzipBomb {
        /// Bytes after inflation.
        bytes: usize,
    },
    /// The conditions of the query are ignored.
    PredicateIgnored,
    /// The order of the query is ignored.
    OrderIgnored,
    /// The first rows of the page are sent again at its end.
    RowsRepeated {
        /// How many.
        rows: usize,
    },
    /// Every n-th row is `{}`.
    EmptyRows {
        /// n, from 1.
        every: usize,
    },
    /// A field has this JSON token for a value in every row.
    FieldToken {
        /// The field.
        field: String,
        /// The token, verbatim: `null`, `17`, `"\ud800"`.
        token: String,
    },
    /// A field is missing from every row.
    FieldMissing {
        /// The field.
        field: String,
    },
    /// Another number in `X-Total-Count`.
    TotalCount {
        /// The number.
        total: u64,
    },
    /// Another `Date` header.
    DateHeader {
        /// Its text.
        value: String,
    },
    /// The true answer; once it is made, the data changes.
    Then {
        /// What is done.
        commands: Vec<Command>,
    },
}

impl Effect {
    /// The name that the request log shows.
    pub(super) fn name(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.get("kind").and_then(|kind| kind.as_str()).unwrap_or("fault").to_owned()
    }
}

/// Which requests a fault is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Reads of tables.
    #[default]
    Table,
    /// Requests for a token.
    Token,
}

/// An effect, and the requests that it is meant for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What it does.
    pub effect: Effect,
    /// The kind of request.
    #[serde(default)]
    pub on: Target,
    /// Only this table.
    #[serde(default)]
    pub table: Option<String>,
    /// Only queries that contain this text.
    #[serde(default)]
    pub query: Option<String>,
    /// Only pages of more rows than this.
    #[serde(default)]
    pub limit_over: Option<usize>,
    /// Only requests for exactly these fields.
    #[serde(default)]
    pub fields: Option<String>,
    /// Only requests that bring a cookie.
    #[serde(default)]
    pub with_cookie: bool,
    /// Matching requests that pass first.
    #[serde(default)]
    pub skip: u64,
    /// Matching requests that are struck after that; 1 when absent, null for ever.
    #[serde(default = "once")]
    pub times: Option<u64>,
}

fn once() -> Option<u64> {
    Some(1)
}

impl Fault {
    /// Strikes the next read of any table.
    pub fn new(effect: Effect) -> Self {
        Self {
            effect,
            on: Target::Table,
            table: None,
            query: None,
            limit_over: None,
            fields: None,
            with_cookie: false,
            skip: 0,
            times: once(),
        }
    }

    /// A status with the body of an error.
    pub fn status(status: u16, message: &str) -> Self {
        Self::new(Effect::Status {
            status,
            body: Some(super::answer::error_body(message, None)),
            content_type: None,
            headers: BTreeMap::new(),
        })
    }

    /// A change of the data after an answer.
    pub fn then(commands: Vec<Command>) -> Self {
        Self::new(Effect::Then { commands })
    }

    /// With a header, when the effect is a status.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Effect::Status { headers, .. } = &mut self.effect {
            headers.insert(name.to_owned(), value.to_owned());
        }
        self
    }

    /// Only requests for a token.
    #[must_use]
    pub fn on_token(mut self) -> Self {
        self.on = Target::Token;
        self
    }

    /// Only this table.
    #[must_use]
    pub fn table(mut self, table: &str) -> Self {
        self.table = Some(table.to_owned());
        self
    }

    /// Only queries that contain this text.
    #[must_use]
    pub fn query(mut self, text: &str) -> Self {
        self.query = Some(text.to_owned());
        self
    }

    /// Only pages of more rows than this.
    #[must_use]
    pub fn limit_over(mut self, rows: usize) -> Self {
        self.limit_over = Some(rows);
        self
    }

    /// Only requests for exactly these fields.
    #[must_use]
    pub fn fields(mut self, fields: &str) -> Self {
        self.fields = Some(fields.to_owned());
        self
    }

    /// Only requests that bring a cookie.
    #[must_use]
    pub fn with_cookie(mut self) -> Self {
        self.with_cookie = true;
        self
    }

    /// Lets this many matching requests pass first.
    #[must_use]
    pub fn skip(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// Strikes this many requests.
    #[must_use]
    pub fn times(mut self, requests: u64) -> Self {
        self.times = Some(requests);
        self
    }

    /// Strikes until the faults are cleared.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }
}

/// What a fault can be told apart by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub on: Target,
    pub table: &'a str,
    pub query: &'a str,
    pub limit: usize,
    pub fields: Option<&'a str>,
    pub cookie: bool,
}

/// The faults that wait, with what they have seen.
#[derive(Debug, Default)]
pub(super) struct Faults {
    waiting: Vec<(Fault, u64)>,
}

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.waiting.push((fault, 0));
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Faults that may still strike.
    pub fn pending(&self) -> usize {
        let open = |(fault, seen): &&(Fault, u64)| fault.times.is_none_or(|times| *seen < fault.skip + times);
        self.waiting.iter().filter(open).count()
    }

    /// The effects that strike this request, in the order in which they were asked for.
    pub fn strike(&mut self, subject: Subject<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (fault, seen) in &mut self.waiting {
            if !meant(fault, subject) {
                continue;
            }
            *seen += 1;
            let struck = *seen > fault.skip && fault.times.is_none_or(|times| *seen <= fault.skip + times);
            if struck {
                effects.push(fault.effect.clone());
            }
        }
        effects
    }
}

fn meant(fault: &Fault, subject: Subject<'_>) -> bool {
    fault.on == subject.on
        && fault.table.as_deref().is_none_or(|table| table == subject.table)
        && fault.query.as_deref().is_none_or(|text| subject.query.contains(text))
        && fault.limit_over.is_none_or(|rows| subject.limit > rows)
        && fault.fields.as_deref().is_none_or(|fields| subject.fields == Some(fields))
        && (!fault.with_cookie || subject.cookie)
}
