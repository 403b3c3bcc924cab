//! Changes of the instance's rows, between sweeps. What lies outside the documented limits is not done.

use tablesweep_testbed::table_api::Fields;

use super::{Life, TABLE, stamp};
use crate::bed::words;
use crate::history::{Ids, Setup};
use crate::world::{Row, sys_id};

impl Life<'_> {
    pub(crate) fn insert(&mut self, rows: u8, back: i64, hidden: bool) -> Result<(), String> {
        let second = self.now - back;
        for _ in 0..rows {
            if !self.world.may_appear_in(second) {
                return Ok(());
            }
            let id = self.world.new_id();
            self.api.insert(TABLE, fields(&self.setup, &id, second, 0)?).map_err(words)?;
            if hidden {
                self.api.hide(TABLE, [sys_id(&id)]).map_err(words)?;
            }
            self.tally.add(if hidden { "hidden rows" } else { "rows" }, 1);
            self.tally.add("late rows", u64::from(back > 0 && !hidden && !self.world.is_ahead(second)));
            self.world.put(id, Row { second, mod_count: 0, hidden });
        }
        Ok(())
    }

    pub(crate) fn update(&mut self, pick: u16, back: i64) -> Result<(), String> {
        let Some(id) = self.world.pick(pick) else { return Ok(()) };
        self.change(&id, self.now - back).map(drop)
    }

    /// Gives the row a new version; answers whether it did.
    fn change(&mut self, id: &str, second: i64) -> Result<bool, String> {
        let Some(row) = self.world.rows.get(id).cloned().filter(|_| self.world.may_appear_in(second)) else { return Ok(false) };
        let mod_count = row.mod_count + 1;
        self.api.update(TABLE, &sys_id(id), fields(&self.setup, id, second, mod_count)?).map_err(words)?;
        self.world.put(id.to_owned(), Row { second, mod_count, ..row });
        self.tally.add("updates", 1);
        Ok(true)
    }

    pub(crate) fn hide(&mut self, pick: u16) -> Result<(), String> {
        let Some(id) = self.world.pick(pick) else { return Ok(()) };
        self.api.hide(TABLE, [sys_id(&id)]).map_err(words)?;
        self.world.hide(&id, true);
        Ok(())
    }

    /// A row that a sweep may have passed is shown with an update, as it would otherwise leave no trace.
    pub(crate) fn show(&mut self, pick: u16) -> Result<(), String> {
        let Some(id) = self.world.pick(pick) else { return Ok(()) };
        let Some(row) = self.world.rows.get(&id).filter(|row| row.hidden) else { return Ok(()) };
        if self.world.is_ahead(row.second) || self.change(&id, self.now)? {
            self.api.unhide(TABLE, [sys_id(&id)]).map_err(words)?;
            self.world.hide(&id, false);
            self.tally.add("rows shown", 1);
        }
        Ok(())
    }

    pub(crate) fn delete(&mut self, pick: u16) -> Result<(), String> {
        let Some(id) = self.world.pick(pick) else { return Ok(()) };
        self.api.delete(TABLE, &sys_id(&id)).map_err(words)?;
        self.world.rows.remove(&id);
        Ok(())
    }
}

/// The field of ids that are no `sys_id`s.
pub(crate) const KEY: &str = "u_key";

/// A row as the instance keeps it.
pub(crate) fn fields(setup: &Setup, id: &str, second: i64, mod_count: u64) -> Result<Fields, String> {
    let mut fields = Fields::from([("sys_id", sys_id(id)), ("sys_updated_on", stamp(second)?), ("sys_mod_count", mod_count.to_string())]);
    if setup.ids != Ids::SysId {
        fields.set(KEY, id.to_owned());
    }
    if setup.most_bytes.is_some() {
        fields.set("u_text", "x".repeat(300));
    }
    Ok(fields)
}
