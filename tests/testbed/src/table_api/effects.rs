//! What the effects of faults do to an answer: replace it, twist its making, or disturb its way.

use super::answer::error_body;
use super::faults::Effect;
use super::plan::Plan;
use super::wire::{Answer, Transport};

/// What the faults of a request do to its evaluation and its body.
#[derive(Default)]
pub(super) struct Twists {
    pub predicate_ignored: bool,
    pub order_ignored: bool,
    pub repeated: usize,
    pub empty_every: Option<usize>,
    pub keep: Option<usize>,
    pub malformed: bool,
    pub overrides: Vec<(String, Option<String>)>,
    pub total: Option<u64>,
}

impl Twists {
    pub fn apply(&self, plan: &mut Plan) {
        if self.predicate_ignored {
            plan.groups.clear();
        }
        if self.order_ignored {
            plan.order.clear();
        }
    }
}

/// The answer that a fault puts in the place of the true one.
pub(super) fn replacement(effect: &Effect) -> Option<Answer> {
    match effect {
        Effect::Status { status, body, content_type, headers } => {
            let text = body.clone().unwrap_or_else(|| error_body(&format!("Status {status}"), None));
            let mut answer = Answer::json(*status, text);
            if let Some(kind) = content_type {
                answer.content_type(kind);
            }
            for (name, value) in headers {
                answer.header(name, value.clone());
            }
            Some(answer)
        }
        Effect::EmptyBody => Some(Answer::json(200, String::new())),
        Effect::Accepted { body } => Some(Answer::json(202, body.clone())),
        Effect::Html { page } => Some(Answer::html(200, page.text())),
        Effect::Reset => Some(Answer { transport: Transport { reset: true, ..Transport::default() }, ..Answer::json(200, String::new()) }),
        Effect::Redirect { location, status } => {
            let mut answer = Answer::html(status.unwrap_or(302), "");
            answer.header("location", location.clone());
            Some(answer)
        }
        _ => None,
    }
}

pub(super) fn twists(effects: &[Effect]) -> Twists {
    let mut twists = Twists::default();
    for effect in effects {
        match effect {
            Effect::PredicateIgnored => twists.predicate_ignored = true,
            Effect::OrderIgnored => twists.order_ignored = true,
            Effect::RowsRepeated { rows } => twists.repeated = *rows,
            Effect::EmptyRows { every } => twists.empty_every = Some(*every),
            Effect::Cancelled { keep } => twists.keep = Some(*keep),
            Effect::MalformedJson => twists.malformed = true,
            Effect::FieldToken { field, token } => twists.overrides.push((field.clone(), Some(token.clone()))),
            Effect::FieldMissing { field } => twists.overrides.push((field.clone(), None)),
            Effect::TotalCount { total } => twists.total = Some(*total),
            _ => {}
        }
    }
    twists
}

/// What a fault does to a finished answer and to its way.
pub(super) fn disturb(effect: &Effect, answer: &mut Answer) {
    match effect {
        Effect::CutBody { after } => answer.transport.cut_after = Some(*after),
        Effect::DelayHeaders { millis } => answer.transport.delay_millis += millis,
        Effect::DelayBody { after, millis } => answer.transport.pause = Some((*after, *millis)),
        Effect::SlowBody { chunk, millis } => answer.transport.trickle = Some((*chunk, *millis)),
        Effect::BigBody { bytes } => {
            answer.transport.padding = bytes.saturating_sub(answer.body.len());
            answer.gzip = false;
        }
        Effect::GzipBomb { bytes } => {
            answer.transport.padding = bytes.saturating_sub(answer.body.len());
            answer.transport.gzip_always = true;
        }
        Effect::ContentType { value } => answer.content_type(value),
        Effect::DateHeader { value } => answer.replace("date", value.clone()),
        _ => {}
    }
}
