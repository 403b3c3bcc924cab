//! The format of `java.util.Properties`, as its `load` reads it.
//!
//! Logical lines may run over several natural ones (an odd number of backslashes before the end of the line), keys end
//! at the first unescaped `=`, `:` or white space, and `\uXXXX` counts UTF-16 units, so that a character outside the
//! basic plane takes two of them.

use std::iter::Peekable;
use std::str::Chars;

/// Why a text is not in the format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::config) enum Error {
    /// `\u` without its four digits.
    #[error("has a malformed \\uXXXX escape in line {0}")]
    Escape(usize),
    /// Half of a character outside the basic plane.
    #[error("has an unpaired surrogate escape in line {0}")]
    Surrogate(usize),
}

/// Reads all pairs in order, doubles included.
pub(in crate::config) fn parse(text: &str) -> Result<Vec<(String, String)>, Error> {
    let mut pairs = Vec::new();
    for (number, line) in logical_lines(text) {
        let mut chars = line.chars().peekable();
        let key = unescape(&mut chars, number, true)?;
        skip_separator(&mut chars);
        let value = unescape(&mut chars, number, false)?;
        pairs.push((key, value));
    }
    Ok(pairs)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// Joins continued lines and drops blanks and comments; each line comes with the number of its first natural line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut natural = unified.split('\n').enumerate();
    while let Some((index, first)) = natural.next() {
        let first = first.trim_start_matches(is_blank);
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut line = first.to_owned();
        while continues(&line) {
            line.pop();
            match natural.next() {
                Some((_, next)) => line.push_str(next.trim_start_matches(is_blank)),
                None => break,
            }
        }
        lines.push((index + 1, line));
    }
    lines
}

/// Whether the line break is escaped: an even number of backslashes escapes only each other.
fn continues(line: &str) -> bool {
    line.chars().rev().take_while(|&c| c == '\\').count() % 2 == 1
}

fn skip_separator(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|&c| is_blank(c)).is_some() {}
    if chars.next_if(|&c| c == '=' || c == ':').is_some() {
        while chars.next_if(|&c| is_blank(c)).is_some() {}
    }
}

/// Reads a key (up to its separator) or a value (up to the end).
fn unescape(chars: &mut Peekable<Chars<'_>>, line: usize, is_key: bool) -> Result<String, Error> {
    let mut text = String::new();
    while let Some(c) = chars.next_if(|&c| !(is_key && (is_blank(c) || c == '=' || c == ':'))) {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('f') => text.push('\u{c}'),
            Some('u') => text.push(character(chars, line)?),
            Some(other) => text.push(other),
            None => {}
        }
    }
    Ok(text)
}

/// The character of a `\u` escape, whose second half follows as another escape if there is one.
fn character(chars: &mut Peekable<Chars<'_>>, line: usize) -> Result<char, Error> {
    let first = unit(chars, line)?;
    let mut units = vec![first];
    if (0xd800..0xdc00).contains(&first) {
        if chars.next() != Some('\\') || chars.next() != Some('u') {
            return Err(Error::Surrogate(line));
        }
        units.push(unit(chars, line)?);
    }
    match char::decode_utf16(units).next() {
        Some(Ok(c)) => Ok(c),
        _ => Err(Error::Surrogate(line)),
    }
}

fn unit(chars: &mut Peekable<Chars<'_>>, line: usize) -> Result<u16, Error> {
    let mut unit = 0;
    for _ in 0..4 {
        let digit = chars.next().and_then(|c| c.to_digit(16)).ok_or(Error::Escape(line))?;
        unit = unit * 16 + digit;
    }
    u16::try_from(unit).map_err(|_| Error::Escape(line))
}
