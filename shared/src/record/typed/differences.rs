//! What of a page does not fit its types: collected row by row, judged once.
//!
//! A table that is parked waits for a person, so that person is told everything at once: each field that differs, with its
//! first row and value. Told one at a time, a document with five wrong types would cost five rounds of mending and waiting.
//! The message goes to the log, into the table's item and into reports, so it has bounds: [`TOLD`] fields, [`SHOWN`] characters
//! of a value, and how many more there are.

use std::collections::BTreeMap;
use std::fmt;

use super::{Evolution, Mapping};
use crate::failure::{Failure, Retry};

/// The most fields that a message tells.
const TOLD: usize = 20;

/// The most characters of a value that is shown.
const SHOWN: usize = 100;

/// The differences between the rows of a page and their types: per field the first one, and how many.
#[derive(Debug, Default)]
pub(in crate::record) struct Differences {
    unmapped: BTreeMap<String, Difference>,
    /// The unmapped fields in the order in which they were met.
    order: Vec<String>,
    /// By their place among the declared fields.
    unfit: BTreeMap<usize, (String, Difference)>,
}

/// The first row of a field that differs.
#[derive(Debug)]
struct Difference {
    rows: u64,
    key: String,
    value: String,
}

impl Difference {
    fn first(key: &str, json: &str) -> Self {
        let mut value: String = json.chars().take(SHOWN).collect();
        if value.len() < json.len() {
            value.push('…');
        }
        Self { rows: 1, key: key.to_owned(), value }
    }
}

/// The row, its value, and how many more there are.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}: {}", self.key, self.value)?;
        match self.rows - 1 {
            0 => Ok(()),
            1 => f.write_str(", and 1 more row"),
            more => write!(f, ", and {more} more rows"),
        }
    }
}

impl Differences {
    /// A field that no type is declared for.
    pub(super) fn unmapped(&mut self, name: &str, key: &str, json: &str) {
        if let Some(known) = self.unmapped.get_mut(name) {
            known.rows += 1;
        } else {
            self.unmapped.insert(name.to_owned(), Difference::first(key, json));
            self.order.push(name.to_owned());
        }
    }

    /// A value that is none of the type of its field, which is declared at `place`.
    pub(super) fn unfit(&mut self, place: usize, name: &str, key: &str, json: &str) {
        let first = |known: &mut (String, Difference)| known.1.rows += 1;
        self.unfit.entry(place).and_modify(first).or_insert_with(|| (name.to_owned(), Difference::first(key, json)));
    }

    /// The fields that have no type.
    pub(in crate::record) fn unmapped_fields(&self) -> &[String] {
        &self.order
    }

    /// How many values do not fit their types.
    pub(in crate::record) fn unfit_values(&self) -> u64 {
        self.unfit.values().map(|(_, difference)| difference.rows).sum()
    }

    /// What a page with these differences means for `table`, which is how messages name it.
    ///
    /// # Errors
    /// `Record.Unmapped` or `Record.Uncoercible`, where the evolution does not allow them. A page with both kinds fails with the
    /// first, and its message tells both.
    pub(in crate::record) fn judge(&self, mapping: &Mapping, table: &str) -> Result<(), Failure> {
        let unmapped = if mapping.evolution == Evolution::Fail { &self.order[..] } else { &[] };
        let unfit = if mapping.evolution == Evolution::Permissive { None } else { Some(&self.unfit) };
        let without_type = unmapped.iter().map(|name| format!("field {name} has no type ({})", self.unmapped[name]));
        let of_another = unfit.into_iter().flatten().map(|(place, (name, difference))| {
            let declared = mapping.fields.get(*place).map_or_else(String::new, |(_, declared)| declared.to_string());
            format!("field {name} is no {declared} ({difference})")
        });
        let all: Vec<String> = without_type.chain(of_another).collect();
        let Some(more) = (!all.is_empty()).then(|| all.len().saturating_sub(TOLD)) else { return Ok(()) };
        let mut told = all[..all.len() - more].join("; ");
        if more > 0 {
            told.push_str(&format!("; and {more} more {}", if more == 1 { "field" } else { "fields" }));
        }
        let has_unfit = unmapped.len() < all.len();
        let code = if unmapped.is_empty() { "Record.Uncoercible" } else { "Record.Unmapped" };
        Err(Failure::new(code, Retry::Never, format!("{table}: {told}. {}", advice(!unmapped.is_empty(), has_unfit))))
    }

    /// Logs what a permissive mapping left out. Values are lost with it, so each page says so once per field; a field
    /// without a type is always left out, and is told by `first`, the first time.
    pub(in crate::record) fn log(&self, table: &str, mut first: impl FnMut(&str) -> bool) {
        for (field, Difference { rows, key, value }) in self.unfit.values() {
            tracing::warn!(
                code = "Record.Uncoercible",
                table,
                field,
                row = key,
                value,
                rows,
                "values do not fit their type and are sent as null"
            );
        }
        for (field, Difference { key, value, .. }) in &self.unmapped {
            if first(field) {
                tracing::warn!(
                    code = "Record.Unmapped",
                    table,
                    field,
                    row = key,
                    value,
                    "the field has no type and is left out from here on"
                );
            }
        }
    }
}

/// What to do about fields without a type, values of another one, or both.
fn advice(unmapped: bool, unfit: bool) -> String {
    let types = match (unmapped, unfit) {
        (true, false) => "Give each a type in snow.source.typed.fields, or leave it out with the table's `fields`",
        (false, _) => "Correct the rows, or the types in snow.source.typed.fields",
        (true, true) => {
            "Give each field a type in snow.source.typed.fields that its values fit, leave it out with the table's `fields`, or correct the rows"
        }
    };
    let evolution = if unfit {
        "snow.source.schema.evolution=permissive sends null for what does not fit and leaves out what has no type"
    } else {
        "snow.source.schema.evolution=backward appends such fields as texts, permissive leaves them out"
    };
    format!("{types}; {evolution}")
}

#[cfg(test)]
mod tests {
    use super::super::FieldType;
    use super::*;

    fn mapping(evolution: Evolution, fields: &[(&str, FieldType)]) -> Mapping {
        let fields = fields.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        Mapping { fields, evolution, uninvited: None }
    }

    fn told(differences: &Differences, mapping: &Mapping) -> (String, String) {
        let failure = differences.judge(mapping, "c/inc").expect_err("a difference");
        (failure.code.to_string(), failure.message)
    }

    #[test]
    fn every_difference_is_told_with_field_row_and_value_whatever_its_kind() {
        let fields = [("sys_id", FieldType::Int(8)), ("number", FieldType::Int(32)), ("paid", FieldType::Decimal(2))];
        let mut differences = Differences::default();
        differences.unfit(2, "paid", "r1", "\"1.001\"");
        differences.unmapped("z", "r1", "\"new\"");
        differences.unfit(0, "sys_id", "r1", "\"8f4b\"");
        for row in ["r2", "r3", "r4"] {
            differences.unfit(1, "number", row, "\"INC1\"");
        }
        differences.unmapped("a", "r2", "[1]");
        differences.unmapped("a", "r3", "[2]");
        let unfit = "field sys_id is no int8 (row r1: \"8f4b\"); field number is no int32 (row r2: \"INC1\", and 2 more rows); \
                     field paid is no decimal(2) (row r1: \"1.001\").";
        let (code, message) = told(&differences, &mapping(Evolution::Fail, &fields));
        let unmapped = "c/inc: field z has no type (row r1: \"new\"); field a has no type (row r2: [1], and 1 more row); ";
        assert!(code == "Record.Unmapped" && message.starts_with(&format!("{unmapped}{unfit}")), "{message}");
        let (code, message) = told(&differences, &mapping(Evolution::Backward, &fields));
        assert!(code == "Record.Uncoercible" && message.starts_with(&format!("c/inc: {unfit}")), "{message}");
        assert_eq!(differences.judge(&mapping(Evolution::Permissive, &fields), "c/inc"), Ok(()));
        assert_eq!(differences.unfit_values(), 5);
    }

    #[test]
    fn a_message_tells_the_first_twenty_fields_and_how_many_more_there_are_and_cuts_long_values() {
        let mut differences = Differences::default();
        let long = "ü".repeat(SHOWN + 1);
        for n in 0..TOLD {
            differences.unmapped(&format!("u_{n}"), "r", &long);
        }
        let mapping = mapping(Evolution::Fail, &[("number", FieldType::Int(32))]);
        let (_, message) = told(&differences, &mapping);
        let shown = format!("field u_19 has no type (row r: {}…). ", "ü".repeat(SHOWN));
        assert!(message.contains(&shown) && !message.contains("more"), "{message}");
        differences.unfit(0, "number", "r", "\"x\"");
        assert!(told(&differences, &mapping).1.contains("…); and 1 more field. "));
        differences.unmapped("u_20", "r", "1");
        let (_, message) = told(&differences, &mapping);
        assert!(message.contains("…); and 2 more fields. ") && !message.contains("u_20"), "{message}");
        assert!(message.len() < 8 * 1024, "{}", message.len());
    }
}
