//! Figures and the bars that they must clear.

use std::fmt::Write as _;

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Bar {
    fn clears(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
        }
    }
}

/// Something that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name, by which a reader of the JSON finds it.
    pub name: &'static str,
    /// The value.
    pub value: f64,
    /// What it is counted in; empty for a ratio.
    pub unit: &'static str,
    /// What it must be, if anything.
    pub bar: Option<Bar>,
}

impl Figure {
    /// A figure that is reported only.
    pub fn of(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self { name, value, unit, bar: None }
    }

    /// The same with a bar.
    #[must_use]
    pub fn bar(self, bar: Bar) -> Self {
        Self { bar: Some(bar), ..self }
    }

    /// Whether it clears its bar; `None` if it has none. What is no number clears none.
    pub fn passed(&self) -> Option<bool> {
        self.bar.map(|bar| bar.clears(self.value))
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut figure = serializer.serialize_struct("Figure", 6)?;
        figure.serialize_field("name", self.name)?;
        figure.serialize_field("value", &self.value)?;
        figure.serialize_field("unit", self.unit)?;
        let (least, most) = match self.bar {
            Some(Bar::AtLeast(bar)) => (Some(bar), None),
            Some(Bar::AtMost(bar)) => (None, Some(bar)),
            None => (None, None),
        };
        figure.serialize_field("at_least", &least)?;
        figure.serialize_field("at_most", &most)?;
        figure.serialize_field("passed", &self.passed())?;
        figure.end()
    }
}

/// The middle one; of an even number the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

/// The figures for a person.
pub fn table(figures: &[Figure]) -> String {
    let rows: Vec<[String; 4]> = figures.iter().map(row).collect();
    let head = ["figure", "value", "bar", ""].map(str::to_owned);
    let width = |column: usize| rows.iter().chain([&head]).map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for row in [&head].into_iter().chain(&rows) {
        let line = format!("{:<3$}  {:>4$}  {:>5$}", row[0], row[1], row[2], widths[0], widths[1], widths[2]);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format!("{line}  {}", row[3]).trim_end());
    }
    text
}

fn row(figure: &Figure) -> [String; 4] {
    let bar = match figure.bar {
        Some(Bar::AtLeast(bar)) => format!(">= {}", shown(bar)),
        Some(Bar::AtMost(bar)) => format!("<= {}", shown(bar)),
        None => String::new(),
    };
    let passed = match figure.passed() {
        Some(true) => "pass",
        Some(false) => "MISSED",
        None => "",
    };
    [figure.name.to_owned(), format!("{} {}", shown(figure.value), figure.unit).trim_end().to_owned(), bar, passed.to_owned()]
}

/// As many digits as can mean something.
fn shown(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_passes_up_to_its_bar_and_no_further() {
        let ratio = |value| Figure::of("ratio", value, "").bar(Bar::AtLeast(0.7)).passed();
        assert_eq!((ratio(0.7), ratio(0.699), ratio(f64::NAN)), (Some(true), Some(false), Some(false)));
        let requests = |value| Figure::of("requests", value, "").bar(Bar::AtMost(1.0)).passed();
        assert_eq!((requests(1.0), requests(2.0), requests(f64::NAN)), (Some(true), Some(false), Some(false)));
        assert_eq!(Figure::of("rows", 3.0, "").passed(), None);
    }

    #[test]
    fn a_median_is_moved_by_no_outlier() {
        assert_eq!(median([3.0, 1.0, 900.0]), 3.0);
        assert_eq!(median([1.0, 2.0, 4.0, 900.0]), 3.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn the_table_marks_what_was_missed() {
        let figures = [
            Figure::of("rows", 1_000_000.0, ""),
            Figure::of("ratio to the floor", 0.5214, "").bar(Bar::AtLeast(0.7)),
            Figure::of("peak memory", 97.26, "MiB").bar(Bar::AtMost(128.0)),
        ];
        let table = table(&figures);
        let lines: Vec<Vec<&str>> =
            table.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
        assert_eq!(lines[1], ["rows", "1000000"]);
        assert_eq!(lines[2], ["ratio to the floor", "0.521", ">= 0.700", "MISSED"]);
        assert_eq!(lines[3], ["peak memory", "97.3 MiB", "<= 128", "pass"]);
    }

    #[test]
    fn json_names_the_bar_by_its_direction() {
        let json = serde_json::to_value(Figure::of("ratio", 0.5, "").bar(Bar::AtLeast(0.7))).expect("JSON");
        let expected = serde_json::json!({"name": "ratio", "value": 0.5, "unit": "", "at_least": 0.7, "at_most": null, "passed": false});
        assert_eq!(json, expected);
    }
}
