//! Tables for people, within 100 columns.

use std::fmt::Write as _;

/// No line is longer, so that two windows fit side by side and a paste into a ticket does not wrap.
pub const WIDTH: usize = 100;

/// The least that is left of the first column.
const NAME: usize = 16;

/// How far notes are indented.
const INDENT: &str = "    ";

/// Rows of cells under a heading; each row may have notes below it.
#[derive(Debug)]
pub struct Table {
    heading: Vec<&'static str>,
    left: usize,
    rows: Vec<(Vec<String>, Vec<String>)>,
}

impl Table {
    /// A table with this heading; the first `left` columns are aligned to the left, the others to the right.
    pub fn new(heading: &[&'static str], left: usize) -> Self {
        Self { heading: heading.to_vec(), left, rows: Vec::new() }
    }

    /// Adds a row and what is to stand below it.
    pub fn row(&mut self, cells: Vec<String>, notes: Vec<String>) {
        self.rows.push((cells, notes));
    }

    /// The text. The first column gives way when a line would be too long.
    pub fn render(&self) -> String {
        let mut widths: Vec<usize> = self.heading.iter().map(|cell| cell.len()).collect();
        for (cells, _) in &self.rows {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let others: usize = widths.iter().skip(1).map(|width| width + 2).sum();
        if let Some(first) = widths.first_mut() {
            *first = (*first).min(WIDTH.saturating_sub(others)).max(NAME.min(*first));
        }
        let mut text = String::new();
        self.line(&mut text, &widths, self.heading.iter().map(|cell| (*cell).to_owned()));
        for (cells, notes) in &self.rows {
            self.line(&mut text, &widths, cells.iter().cloned());
            for note in notes {
                wrapped(&mut text, note);
            }
        }
        text
    }

    fn line(&self, text: &mut String, widths: &[usize], cells: impl Iterator<Item = String>) {
        let mut line = String::new();
        for (column, (cell, width)) in cells.zip(widths).enumerate() {
            let cell = shortened(&cell, *width);
            let gap = if column == 0 { "" } else { "  " };
            let fill = " ".repeat(width - cell.chars().count());
            // Writing into a string cannot fail.
            let _written = if column < self.left { write!(line, "{gap}{cell}{fill}") } else { write!(line, "{gap}{fill}{cell}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// The end of a name tells tables apart, so the middle goes.
fn shortened(cell: &str, width: usize) -> String {
    let letters: Vec<char> = cell.chars().collect();
    if letters.len() <= width {
        return cell.to_owned();
    }
    let tail = width.saturating_sub(1) * 2 / 3;
    let head = width.saturating_sub(1) - tail;
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

/// Adds a note, wrapped at blanks and indented.
pub fn wrapped(text: &mut String, note: &str) {
    for paragraph in note.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace().flat_map(pieces) {
            if !line.is_empty() && INDENT.len() + line.chars().count() + 1 + word.chars().count() > WIDTH {
                text.push_str(INDENT);
                text.push_str(&std::mem::take(&mut line));
                text.push('\n');
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        text.push_str(INDENT);
        text.push_str(&line);
        text.push('\n');
    }
}

/// A word that fits a line as it is; one that does not, such as an address, in pieces that do.
fn pieces(word: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(WIDTH - INDENT.len()).map(|piece| piece.iter().collect()).collect::<Vec<String>>().into_iter()
}

/// A length of time in its two largest units: `42s`, `5m10s`, `3h2m`, `12d4h`.
pub fn duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{}s", seconds % 60),
        3600..86_400 => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

/// A length of time that may not be known.
pub fn lag(seconds: Option<i64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_a_hundred_columns() {
        let mut table = Table::new(&["table", "outcome", "rows"], 2);
        let name = format!("{}/{}", "connector".repeat(12), "alias".repeat(9));
        table.row(vec![name, "caught_up".into(), "123456789".into()], vec!["a reason of many words ".repeat(12)]);
        table.row(vec!["c/inc".into(), "more".into(), "7".into()], vec![]);
        let text = table.render();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().any(|line| line.starts_with("    a reason")), "{text}");
        let ends: Vec<usize> = text.lines().filter(|line| !line.starts_with(' ')).map(|line| line.chars().count()).collect();
        assert_eq!(ends, [100, 100, 100], "numbers end in one column: {text}");
    }

    #[test]
    fn a_shortened_name_keeps_its_alias() {
        assert_eq!(shortened("servicenow-production/incident", 20), "service…ion/incident");
        assert_eq!(shortened("short", 20), "short");
    }

    #[test]
    fn a_length_of_time_has_its_two_largest_units() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (310, "5m10s"), (10_920, "3h2m"), (1_051_200, "12d4h")] {
            assert_eq!(duration(seconds), text);
        }
    }
}
