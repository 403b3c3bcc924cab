//! The writes of a sweep, and of blobs, as one `UpdateItem` each.
//!
//! A condition here says what [`apply`](crate::cursor::apply) checks, in the same words. Being too strict costs a second
//! request, since `apply` judges what a condition turned down; being too lax would be a fault, and the promises of
//! `cursor/conformance.rs` are there to show it.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

use super::layout::{self as attribute, number, text};
use crate::cursor::protocol::DEATHS;
use crate::cursor::{Acquire, Expect, FORMAT, Hold, Progress, Standing, Write};

/// One `UpdateItem`.
pub(super) struct Update {
    set: Vec<String>,
    remove: Vec<String>,
    conditions: Vec<String>,
    /// What `#name` in the expressions stands for. Every attribute is named so: many words are reserved.
    pub(super) names: HashMap<String, String>,
    /// What `:value` stands for.
    pub(super) values: HashMap<String, AttributeValue>,
    /// What the answer carries.
    pub(super) returns: ReturnValue,
}

impl Update {
    fn new(returns: ReturnValue) -> Self {
        Self { set: vec![], remove: vec![], conditions: vec![], names: HashMap::new(), values: HashMap::new(), returns }
    }

    /// What every write of a cursor does. That the id is another's keeps a write from being carried out twice.
    fn of(write: &Write) -> Self {
        let mut update = Self::new(ReturnValue::AllNew);
        update.require("#format = :format", &[attribute::FORMAT], [(":format", number(FORMAT))]);
        update.require("#write_id <> :write_id", &[], []);
        update.set(attribute::WRITE_ID, text(&write.id));
        update.count(attribute::REVISION);
        update
    }

    /// The same for a write of the holder.
    fn held(write: &Write, hold: &Hold) -> Self {
        let mut update = Self::of(write);
        let values = [(":holder", text(&hold.owner)), (":known", number(hold.revision))];
        update.require("#owner = :holder AND #revision = :known", &[attribute::OWNER], values);
        update
    }

    /// A sweep begins.
    pub(super) fn acquire(write: &Write, wish: &Acquire) -> Self {
        let mut update = Self::of(write);
        update.require("attribute_not_exists(#paused)", &[attribute::PAUSED], []);
        update.require("(attribute_not_exists(#until) OR #until <= :now)", &[attribute::UNTIL], [(":now", number(wish.now_ms))]);
        // The write of the last death parks the table, and depends on how it stands: that one is judged.
        update.require("#tries < :last", &[attribute::TRIES], [(":last", number(DEATHS - 1))]);
        // Of the interval it is not asked how the last sweep ended, which lies in the progress: the start of what goes on is judged.
        if let Some(interval) = wish.scheduled {
            update.require("(attribute_not_exists(#next_try) OR #next_try <= :now)", &[attribute::NEXT_TRY], []);
            update.require(
                "(attribute_exists(#parked) OR attribute_exists(#waiting) OR attribute_not_exists(#started) OR #started > :now \
                 OR #started <= :due)",
                &[attribute::STARTED, attribute::PARKED, attribute::WAITING],
                [(":due", number(wish.now_ms.saturating_sub_unsigned(interval)))],
            );
        }
        update.set(attribute::OWNER, text(&wish.owner));
        update.set(attribute::UNTIL, number(wish.until_ms));
        update.set(attribute::STARTED, number(wish.now_ms));
        update.count(attribute::TRIES);
        update
    }

    /// The cursor moves on.
    pub(super) fn commit(write: &Write, hold: &Hold, progress: &Progress) -> Self {
        let mut update = Self::held(write, hold);
        update.set(attribute::PROGRESS, attribute::json(progress));
        update.set(attribute::TRIES, number(0));
        update
    }

    /// The lease is held for longer.
    pub(super) fn renew(write: &Write, hold: &Hold, until_ms: i64) -> Self {
        let mut update = Self::held(write, hold);
        update.set(attribute::UNTIL, number(until_ms));
        update
    }

    /// The sweep ends.
    pub(super) fn release(write: &Write, hold: &Hold, progress: &Progress, standing: &Standing) -> Self {
        let mut update = Self::commit(write, hold, progress);
        update.remove(attribute::OWNER);
        update.remove(attribute::UNTIL);
        for (name, value) in attribute::standing(standing) {
            match value {
                Some(value) => update.set(name, value),
                None => update.remove(name),
            }
        }
        update
    }

    /// A blob is written. `now_s`: epoch seconds, by which a blob may be past its time.
    pub(super) fn blob(id: &str, bytes: &[u8], expect: Expect, expires_at_ms: Option<i64>, now_s: AttributeValue) -> Self {
        // The answer of an update with a new revision carries the bytes back too, so it is asked for only where the
        // revision does not follow from what was expected.
        let mut update = Self::new(match expect {
            Expect::Revision(_) | Expect::UpTo(_) => ReturnValue::None,
            Expect::Absent | Expect::Any => ReturnValue::UpdatedNew,
        });
        // No cursor is overwritten, and no blob twice by one write.
        update.require(
            "(attribute_not_exists(#place) OR (attribute_exists(#bytes) AND #write_id <> :write_id))",
            &[attribute::PLACE, attribute::BYTES],
            [],
        );
        match expect {
            Expect::Any => {}
            Expect::Absent => {
                update.require("(attribute_not_exists(#place) OR #expires <= :now)", &[attribute::EXPIRES], [(":now", now_s)])
            }
            Expect::Revision(revision) => update.require(
                "#revision = :expected AND (attribute_not_exists(#expires) OR #expires > :now)",
                &[attribute::EXPIRES],
                [(":expected", number(revision)), (":now", now_s)],
            ),
            Expect::UpTo(revision) => update.require(
                "(attribute_not_exists(#place) OR #revision <= :expected OR #expires <= :now)",
                &[attribute::EXPIRES],
                [(":expected", number(revision)), (":now", now_s)],
            ),
        }
        update.set(attribute::WRITE_ID, text(id));
        update.set(attribute::BYTES, attribute::bytes(bytes));
        if let Expect::UpTo(revision) = expect {
            update.set(attribute::REVISION, number(revision));
        } else {
            update.name(attribute::REVISION);
            update.set.push("#revision = if_not_exists(#revision, :zero) + :one".to_owned());
            update.values.extend([(":zero".to_owned(), number(0)), (":one".to_owned(), number(1))]);
        }
        match expires_at_ms {
            // Rounded up: never forgotten too early.
            Some(end) => update.set(attribute::EXPIRES, number(end.saturating_add(999).div_euclid(1_000))),
            None => update.remove(attribute::EXPIRES),
        }
        update
    }

    /// The update expression.
    pub(super) fn expression(&self) -> String {
        let mut expression = format!("SET {}", self.set.join(", "));
        if !self.remove.is_empty() {
            expression.push_str(" REMOVE ");
            expression.push_str(&self.remove.join(", "));
        }
        expression
    }

    /// The condition expression.
    pub(super) fn condition(&self) -> String {
        self.conditions.join(" AND ")
    }

    fn name(&mut self, name: &str) {
        self.names.insert(format!("#{name}"), name.to_owned());
    }

    /// Adds a condition, with those of its names and values that no other part of the update brings.
    fn require<const N: usize>(&mut self, condition: &str, names: &[&str], values: [(&str, AttributeValue); N]) {
        self.conditions.push(condition.to_owned());
        for name in names {
            self.name(name);
        }
        self.values.extend(values.map(|(name, value)| (name.to_owned(), value)));
    }

    fn set(&mut self, name: &str, value: AttributeValue) {
        self.name(name);
        self.set.push(format!("#{name} = :{name}"));
        self.values.insert(format!(":{name}"), value);
    }

    fn count(&mut self, name: &str) {
        self.name(name);
        self.set.push(format!("#{name} = #{name} + :one"));
        self.values.insert(":one".to_owned(), number(1));
    }

    fn remove(&mut self, name: &str) {
        self.name(name);
        self.remove.push(format!("#{name}"));
    }
}
