//! A read of a table, from the request to the answer.
//!
//! The order of the steps is that of an instance: who is asking, how often, for what; then the table and its ACLs; then
//! the query, its limit, and only after the limit the row ACLs.

use super::acl::Forbidden;
use super::answer::{Renderer, error_body, link_header};
use super::auth::{Claim, admit};
use super::effects::{Twists, disturb, replacement, twists};
use super::faults::{Effect, Subject, Target};
use super::log::Entry;
use super::params::{Params, Refusal};
use super::plan::{FieldDenied, Habits, plan};
use super::select::{Page, Window, select};
use super::settings::TooLong;
use super::wire::Answer;
use super::world::World;

/// A request to the Table API, taken apart.
#[derive(Clone, Default)]
pub(super) struct Request {
    pub method: String,
    pub path: String,
    /// Scheme and host, as the client sees them.
    pub base_url: String,
    pub url_length: usize,
    pub table: String,
    pub sys_id: Option<String>,
    /// Version 1 of the API answers 404 when there is no row.
    pub first_version: bool,
    pub pairs: Vec<(String, String)>,
    pub claim: Claim,
    pub cookie: Option<String>,
    pub user_agent: Option<String>,
    pub accept: Option<String>,
    pub connection: u64,
}

const DEFAULT_LIMIT: usize = 10_000;

impl Request {
    fn param(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn entry(&self, at: String) -> Entry {
        Entry {
            connection: self.connection,
            at,
            method: self.method.clone(),
            path: self.path.clone(),
            table: self.table.clone(),
            sys_id: self.sys_id.clone(),
            params: self.pairs.clone(),
            query: self.param("sysparm_query").unwrap_or_default().to_owned(),
            limit: self.param("sysparm_limit").and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_LIMIT),
            auth: self.claim.kind().to_owned(),
            cookie: self.cookie.clone(),
            user_agent: self.user_agent.clone(),
            ..Entry::default()
        }
    }
}

impl World {
    /// Answers a request and enters it in the log; the number is that of the entry.
    pub fn read(&mut self, request: &Request) -> (Answer, u64) {
        let mut entry = request.entry(self.clock.stamp());
        let effects = self.faults.strike(Subject {
            on: Target::Table,
            table: &request.table,
            query: &entry.query,
            limit: entry.limit,
            fields: entry.param("sysparm_fields"),
            cookie: request.cookie.is_some(),
        });
        entry.faults = effects.iter().map(Effect::name).collect();
        let rate = self.spend();
        let replaced = effects.iter().find_map(replacement);
        let mut answer = match replaced {
            Some(answer) => answer,
            None => match self.gate(request, rate.spent) {
                Some(answer) => answer,
                None => self.evaluate(request, &twists(&effects), &mut entry),
            },
        };
        answer.headers.extend(rate.headers);
        self.finish(&effects, &mut answer, &mut entry);
        let number = self.log.add(entry);
        for effect in effects {
            if let Effect::Then { commands } = effect {
                for command in commands {
                    if let Err(why) = self.apply(command) {
                        self.refuse(&format!("a change after an answer failed: {why}"));
                    }
                }
            }
        }
        (answer, number)
    }

    /// Headers that every answer has, the transport's faults, and the entry's last fields.
    pub fn finish(&mut self, effects: &[Effect], answer: &mut Answer, entry: &mut Entry) {
        if self.settings.cookies {
            let session = format!("JSESSIONID={}; Path=/; HttpOnly", self.random.id().to_ascii_uppercase());
            answer.header("set-cookie", session);
            answer.header("set-cookie", format!("glide_user_route=glide.{}; Path=/; HttpOnly", self.random.id()));
        }
        answer.header("date", self.clock.http_date());
        answer.gzip = self.settings.gzip;
        for effect in effects {
            disturb(effect, answer);
        }
        entry.status = answer.status;
        entry.bytes = answer.body.len() + answer.transport.padding;
    }

    /// Everything before the query: the length of the URL, the sender, the allowance, the form of the request.
    fn gate(&mut self, request: &Request, spent: bool) -> Option<Answer> {
        if self.settings.url_limit.is_some_and(|most| request.url_length > most) {
            let page = "<html><head><title>Error</title></head><body>Request header is too large</body></html>";
            let status = match self.settings.url_too_long {
                TooLong::BadRequest => 400,
                TooLong::UriTooLong => 414,
            };
            return Some(Answer::html(status, page));
        }
        if let Err(body) =
            admit(&request.claim, &self.credentials, (&mut self.tokens, &mut self.lockout), self.settings.lock_after, self.clock.seconds())
        {
            let mut answer = Answer::json(401, body);
            answer.header("www-authenticate", "BASIC realm=\"Service-now\"".to_owned());
            return Some(answer);
        }
        if spent {
            let limit = self.settings.rate_limit.as_ref().map_or(0, |rate| rate.limit);
            let detail = format!("Rate limit of {limit} requests per hour for Table API exceeded");
            return Some(Answer::json(429, error_body("Rate limit exceeded", Some(&detail))));
        }
        if request.method != "GET" {
            return Some(self.refusal(&format!("{} {}", request.method, request.path)));
        }
        let accepts = |range: &str| {
            let kind = range.split(';').next().unwrap_or_default().trim();
            ["*/*", "application/*", "application/json"].contains(&kind)
        };
        if request.accept.as_deref().is_some_and(|accept| !accept.split(',').any(accepts)) {
            return Some(Answer::json(406, error_body("Requested media type is not acceptable", None)));
        }
        None
    }

    pub fn refusal(&mut self, what: &str) -> Answer {
        self.refuse(what);
        Answer::json(501, error_body("The simulator does not understand this request", Some(what)))
    }

    fn evaluate(&mut self, request: &Request, twists: &Twists, entry: &mut Entry) -> Answer {
        let mut params = match Params::read(&request.pairs, request.sys_id.is_some()) {
            Ok(params) => params,
            Err(Refusal(what)) => return self.refusal(&what),
        };
        if let Err(why) = self.form(&request.table, &mut params).and_then(|()| self.db.refresh(&request.table)) {
            return self.refusal(&why);
        }
        let Some(table) = self.db.table(&request.table) else {
            return Answer::json(400, error_body(&format!("Invalid table {}", request.table), None));
        };
        if let Some(forbidden) = table.access.rules.forbidden {
            let (message, detail) = match forbidden {
                Forbidden::Rights => ("Operation Failed", "Insufficient rights to query records"),
                Forbidden::Api => ("User Not Authorized", "Failed API level ACL Validation"),
            };
            return Answer::json(403, error_body(message, Some(detail)));
        }
        if let Err(what) = params.query.run_scripts(&self.settings.scripts) {
            return self.refusal(&what);
        }
        if request.sys_id.is_some() {
            return self.single(request, &params, twists, entry);
        }
        self.list(request, &params, twists, entry)
    }

    /// The projection of a form view, when no fields are asked for.
    fn form(&self, table: &str, params: &mut Params) -> Result<(), String> {
        let Some(view) = params.view.as_deref().filter(|view| !view.is_empty()) else {
            return Ok(());
        };
        let fields = self.settings.forms.get(table).and_then(|forms| forms.get(view));
        match fields {
            Some(fields) => {
                params.fields.get_or_insert_with(|| fields.clone());
                Ok(())
            }
            None => Err(format!("table `{table}` has no form view `{view}`")),
        }
    }

    fn single(&mut self, request: &Request, params: &Params, twists: &Twists, entry: &mut Entry) -> Answer {
        let Some(table) = self.db.table(&request.table) else {
            return not_found();
        };
        let slot = request.sys_id.as_deref().and_then(|id| table.find(id));
        let other_domain = |slot: u32| {
            let everywhere = params.no_domain && self.settings.no_domain_allowed;
            !everywhere && table.access.rules.other_domain.contains(&*table.id(slot))
        };
        let Some(slot) = slot.filter(|slot| !table.is_hidden(*slot) && !other_domain(*slot)) else {
            return not_found();
        };
        let renderer = Renderer::new(&self.db, table, params, &request.base_url, self.settings.display_offset_seconds)
            .with_overrides(&twists.overrides);
        let mut body = "{\"result\":".to_owned();
        renderer.row(&mut body, slot);
        body.push('}');
        entry.rows = 1;
        Answer::json(200, body)
    }

    fn list(&mut self, request: &Request, params: &Params, twists: &Twists, entry: &mut Entry) -> Answer {
        let Some(table) = self.db.table(&request.table) else {
            return not_found();
        };
        let settings = &self.settings;
        let habits = Habits {
            literal_offset_seconds: settings.literal_offset_seconds,
            invalid_returns_no_rows: settings.invalid_query_returns_no_rows,
        };
        let mut plan = match plan(&self.db, table, &params.query, habits) {
            Ok(plan) => plan,
            Err(FieldDenied) => {
                let detail = "Field(s) present in the query do not have permission to be read";
                return Answer::json(403, error_body("Operation Failed", Some(detail)));
            }
        };
        twists.apply(&mut plan);
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
        let limit = settings.limit_clamp.map_or(limit, |most| limit.min(most));
        let window = Window {
            offset: params.offset,
            limit,
            count: !params.no_count && settings.counts,
            all_domains: params.no_domain && settings.no_domain_allowed,
        };
        let page = select(&self.db, table, &plan, window, &mut self.random);
        entry.limit = limit;
        entry.examined = page.examined;
        entry.dropped = plan.dropped;

        let mut slots: Vec<u32> = page.slots.iter().copied().filter(|slot| !table.is_hidden(*slot)).collect();
        entry.hidden = page.slots.len() - slots.len();
        if slots.is_empty() && request.first_version {
            return not_found();
        }
        let repeated: Vec<u32> = slots.iter().copied().take(twists.repeated).collect();
        slots.extend(repeated);
        slots.truncate(twists.keep.unwrap_or(usize::MAX));
        entry.rows = slots.len();
        let renderer =
            Renderer::new(&self.db, table, params, &request.base_url, settings.display_offset_seconds).with_overrides(&twists.overrides);
        let mut answer = Answer::json(200, body(&renderer, &slots, twists));
        self.describe(request, params, &page, window, twists, &mut answer);
        entry.total = answer.total();
        answer
    }

    /// The count and the links of a page.
    fn describe(&self, request: &Request, params: &Params, page: &Page, window: Window, twists: &Twists, answer: &mut Answer) {
        if let Some(total) = page.total {
            answer.header("x-total-count", twists.total.unwrap_or(total as u64).to_string());
        }
        let linked = self.settings.links && !params.suppress_pagination_header && (window.count || self.settings.links_without_count);
        if linked {
            let url = format!("{}{}", request.base_url, request.path);
            let place = (window.offset, window.limit);
            if let Some(links) = link_header(&url, &request.pairs, place, page.more, page.total) {
                answer.header("link", links);
            }
        }
    }
}

fn not_found() -> Answer {
    let detail = "Record doesn't exist or ACL restricts the record retrieval";
    Answer::json(404, error_body("No Record found", Some(detail)))
}

fn body(renderer: &Renderer<'_>, slots: &[u32], twists: &Twists) -> String {
    let mut body = "{\"result\":[".to_owned();
    let mut last_row = body.len();
    for (place, slot) in slots.iter().enumerate() {
        if place > 0 {
            body.push(',');
        }
        last_row = body.len();
        match twists.empty_every {
            Some(every) if (place + 1) % every.max(1) == 0 => body.push_str("{}"),
            _ => renderer.row(&mut body, *slot),
        }
    }
    if twists.malformed {
        let middle = last_row + (body.len() - last_row) / 2;
        let cut = (last_row..=middle).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(last_row);
        body.truncate(cut);
        body.push_str("}\"\"");
        return body;
    }
    body.push(']');
    if twists.keep.is_some() {
        let error = error_body("Transaction cancelled: maximum execution time exceeded", None);
        body.push(',');
        body.push_str(&error[1..]);
    } else {
        body.push('}');
    }
    body
}
