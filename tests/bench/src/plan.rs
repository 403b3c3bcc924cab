//! The plan of the floor: which pages a sweep asked for, and where in them the records lie that it produced.
//!
//! Rows that a page repeats, because a sweep asks again for the second that it stopped in, are in the plan once, as they
//! are once in the topic. The plan is made from the pages themselves by reading their JSON, in the conductor, where it
//! costs the floor nothing. It lies in two files: `pages.json`, and `pieces` with 24 bytes for each record, so that
//! reading it is a copy.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;
use std::vec::IntoIter;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failed::Failed;

/// A page to download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// With all parameters.
    pub url: String,
    /// Bytes of the body, inflated.
    pub bytes: u64,
    /// Records to produce from it.
    pub records: usize,
}

/// A record within a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    key: (u32, u32),
    value: (u32, u32),
    /// The record's timestamp.
    pub timestamp_ms: i64,
}

/// Bytes of a piece in the file.
const PIECE: usize = 24;

impl Piece {
    /// Key and value of the record; `None` if the body is too short for it.
    pub fn of<'b>(&self, body: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
        let cut = |(from, length): (u32, u32)| body.get(from as usize..)?.get(..length as usize);
        Some((cut(self.key)?, cut(self.value)?))
    }

    fn written(&self) -> [u8; PIECE] {
        let mut bytes = [0; PIECE];
        for (place, number) in [self.key.0, self.key.1, self.value.0, self.value.1].into_iter().enumerate() {
            bytes[place * 4..place * 4 + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[16..].copy_from_slice(&self.timestamp_ms.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; PIECE]) -> Self {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut time = [0; 8];
        time.copy_from_slice(&bytes[16..]);
        Self { key: (number(0), number(4)), value: (number(8), number(12)), timestamp_ms: i64::from_le_bytes(time) }
    }
}

/// Makes a plan, page by page.
#[derive(Debug)]
pub struct Writer<'d> {
    folder: &'d Path,
    pages: Vec<Page>,
    pieces: BufWriter<File>,
    seen: HashSet<Box<str>>,
}

impl<'d> Writer<'d> {
    /// A plan in `folder`, without a page.
    pub fn create(folder: &'d Path) -> Result<Self, Failed> {
        let file = File::create(folder.join("pieces")).map_err(|error| Failed::at("making the plan", error))?;
        Ok(Self { folder, pages: Vec::new(), pieces: BufWriter::new(file), seen: HashSet::new() })
    }

    /// Adds the page of `url`. Without `rows` the page is downloaded and nothing of it is produced.
    pub fn add(&mut self, url: &str, body: &str, rows: bool) -> Result<(), Failed> {
        let failed = |why: &dyn std::fmt::Display| Failed::at(format!("planning the page {url}"), why);
        let pieces = if rows { pieces(body, &mut self.seen).map_err(|why| failed(&why))? } else { Vec::new() };
        for piece in &pieces {
            self.pieces.write_all(&piece.written()).map_err(|error| failed(&error))?;
        }
        self.pages.push(Page { url: url.to_owned(), bytes: body.len() as u64, records: pieces.len() });
        Ok(())
    }

    /// Finishes the plan, and gives the number of its records.
    pub fn finish(mut self) -> Result<u64, Failed> {
        let failed = |why: &dyn std::fmt::Display| Failed::at("writing the plan", why);
        self.pieces.flush().map_err(|error| failed(&error))?;
        let pages = serde_json::to_vec(&self.pages).map_err(|error| failed(&error))?;
        std::fs::write(self.folder.join("pages.json"), pages).map_err(|error| failed(&error))?;
        Ok(self.pages.iter().map(|page| page.records as u64).sum())
    }
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    result: Vec<&'a RawValue>,
}

/// What every generated row has; none of it needs an escape.
#[derive(Deserialize)]
struct Named<'a> {
    sys_id: &'a str,
    sys_updated_on: &'a str,
}

/// The rows of `body` that were not seen before, in their order.
fn pieces(body: &str, seen: &mut HashSet<Box<str>>) -> Result<Vec<Piece>, String> {
    let rows: Body<'_> = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let place = |part: &str| {
        let from = part.as_ptr() as usize - body.as_ptr() as usize;
        let number = |number: usize| u32::try_from(number).map_err(|_| "a page of more than 4 GiB".to_owned());
        Ok::<_, String>((number(from)?, number(part.len())?))
    };
    let mut pieces = Vec::with_capacity(rows.result.len());
    for row in rows.result {
        let named: Named<'_> = serde_json::from_str(row.get()).map_err(|error| error.to_string())?;
        if !seen.insert(named.sys_id.into()) {
            continue;
        }
        let timestamp_ms = epoch_ms(named.sys_updated_on).ok_or_else(|| format!("{} is no time", named.sys_updated_on))?;
        pieces.push(Piece { key: place(named.sys_id)?, value: place(row.get())?, timestamp_ms });
    }
    Ok(pieces)
}

/// Milliseconds since 1970 of `yyyy-MM-dd HH:mm:ss` (UTC).
fn epoch_ms(text: &str) -> Option<i64> {
    let parts: Vec<i64> = text.split(['-', ' ', ':']).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [year, month, day, hour, minute, second] = parts.try_into().ok()?;
    // Years from March on, so that the day that comes and goes is a year's last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 153 + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}

/// Reads a plan, page by page.
#[derive(Debug)]
pub struct Reader {
    pages: IntoIter<Page>,
    pieces: BufReader<File>,
}

impl Reader {
    /// The plan in `folder`.
    pub fn open(folder: &Path) -> Result<Self, Failed> {
        let failed = |why: &dyn std::fmt::Display| Failed::at("reading the plan", why);
        let pages = std::fs::read(folder.join("pages.json")).map_err(|error| failed(&error))?;
        let pages: Vec<Page> = serde_json::from_slice(&pages).map_err(|error| failed(&error))?;
        let pieces = File::open(folder.join("pieces")).map_err(|error| failed(&error))?;
        Ok(Self { pages: pages.into_iter(), pieces: BufReader::with_capacity(1 << 16, pieces) })
    }

    /// The next page with its records.
    pub fn next_page(&mut self) -> Result<Option<(Page, Vec<Piece>)>, Failed> {
        let Some(page) = self.pages.next() else { return Ok(None) };
        let mut pieces = Vec::with_capacity(page.records);
        let mut bytes = [0; PIECE];
        for _ in 0..page.records {
            self.pieces.read_exact(&mut bytes).map_err(|error| Failed::at("reading the plan", error))?;
            pieces.push(Piece::read(&bytes));
        }
        Ok(Some((page, pieces)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = r#"{"sys_updated_on":"2026-02-01 00:00:01","n":"a","sys_id":"b7"}"#;
    const SECOND: &str = r#"{"sys_id":"a1", "n":"é ]}","sys_updated_on":"2026-02-01 00:00:02"}"#;

    #[test]
    fn a_plan_yields_each_record_once_and_as_it_stands_in_its_page() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let bodies = [format!("{{\"result\":[{FIRST}]}}"), format!("{{\"result\":[ {FIRST} ,{SECOND}]}}"), "{\"result\":[]}".to_owned()];
        let mut writer = Writer::create(folder.path()).expect("a plan");
        for (number, body) in bodies.iter().enumerate() {
            writer.add(&format!("http://x/{number}"), body, true).expect("a page");
        }
        assert_eq!(writer.finish().expect("written"), 2);

        let mut reader = Reader::open(folder.path()).expect("a plan");
        let mut records = Vec::new();
        let mut urls = Vec::new();
        while let Some((page, pieces)) = reader.next_page().expect("a page") {
            let body = &bodies[urls.len()];
            assert_eq!(page.bytes, body.len() as u64);
            urls.push(page.url);
            records.extend(pieces.iter().map(|piece| (piece.of(body.as_bytes()).expect("in the page"), piece.timestamp_ms)));
        }
        assert_eq!(urls, ["http://x/0", "http://x/1", "http://x/2"]);
        let expected = [((b"b7".as_slice(), FIRST.as_bytes()), 1_769_904_001_000), ((b"a1", SECOND.as_bytes()), 1_769_904_002_000)];
        assert_eq!(records, expected);
    }

    #[test]
    fn a_body_that_is_not_the_planned_one_is_noticed() {
        let piece = Piece { key: (2, 3), value: (4, 10), timestamp_ms: 0 };
        assert!(piece.of(&[0; 14]).is_some());
        assert!(piece.of(&[0; 13]).is_none());
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01 00:00:00", Some(0)),
            ("2000-02-29 12:00:00", Some(951_825_600)),
            ("2026-03-01 00:00:00", Some(1_772_323_200)),
            ("2026-03-01", None),
        ] {
            assert_eq!(epoch_ms(text), seconds.map(|seconds: i64| seconds * 1000), "{text}");
        }
    }
}
