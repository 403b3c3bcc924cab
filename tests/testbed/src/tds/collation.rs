//! Collations: which code page the bytes of a `char` column are in, and whether case matters.
//!
//! On the wire a collation is five bytes: the locale in 20 bits, flags, a version in 4 bits, and a sort id (MS-TDS
//! 2.2.5.1.2). A client finds the code page by the sort id if it is not zero, else by the locale. The bytes are therefore
//! computed here from the name, as SQL Server does, and not written down per collation.

use std::fmt;

use encoding_rs::Encoding;
use oem_cp::code_table::{DECODING_TABLE_CP437, DECODING_TABLE_CP850, ENCODING_TABLE_CP437, ENCODING_TABLE_CP850};

/// A code page of `char`, `varchar` and `text`.
#[derive(Clone, Copy)]
pub(super) enum Page {
    Utf8,
    Windows(&'static Encoding),
    Oem437,
    Oem850,
}

/// A collation that the server knows.
#[derive(Clone, Copy)]
pub struct Collation {
    name: &'static str,
    lcid: u32,
    sort_id: u8,
    page: Page,
}

const fn windows(name: &'static str, lcid: u32, sort_id: u8, encoding: &'static Encoding) -> Collation {
    Collation { name, lcid, sort_id, page: Page::Windows(encoding) }
}

const fn oem(name: &'static str, sort_id: u8, page: Page) -> Collation {
    Collation { name, lcid: 0x409, sort_id, page }
}

static KNOWN: &[Collation] = &[
    windows("SQL_Latin1_General_CP1_CI_AS", 0x409, 52, encoding_rs::WINDOWS_1252),
    windows("SQL_Latin1_General_CP1_CS_AS", 0x409, 51, encoding_rs::WINDOWS_1252),
    windows("Latin1_General_CI_AS", 0x409, 0, encoding_rs::WINDOWS_1252),
    windows("Latin1_General_CS_AS", 0x409, 0, encoding_rs::WINDOWS_1252),
    windows("Latin1_General_BIN", 0x409, 0, encoding_rs::WINDOWS_1252),
    windows("Latin1_General_BIN2", 0x409, 0, encoding_rs::WINDOWS_1252),
    windows("Latin1_General_100_CI_AS", 0x409, 0, encoding_rs::WINDOWS_1252),
    windows("Latin1_General_100_CI_AS_SC", 0x409, 0, encoding_rs::WINDOWS_1252),
    windows("Latin1_General_100_BIN2", 0x409, 0, encoding_rs::WINDOWS_1252),
    Collation { name: "Latin1_General_100_CI_AS_SC_UTF8", lcid: 0x409, sort_id: 0, page: Page::Utf8 },
    Collation { name: "Latin1_General_100_BIN2_UTF8", lcid: 0x409, sort_id: 0, page: Page::Utf8 },
    oem("SQL_Latin1_General_CP437_BIN", 30, Page::Oem437),
    oem("SQL_Latin1_General_CP437_CS_AS", 31, Page::Oem437),
    oem("SQL_Latin1_General_CP437_CI_AS", 32, Page::Oem437),
    oem("SQL_Latin1_General_CP850_BIN", 40, Page::Oem850),
    oem("SQL_Latin1_General_CP850_CS_AS", 41, Page::Oem850),
    oem("SQL_Latin1_General_CP850_CI_AS", 42, Page::Oem850),
    windows("Arabic_CI_AS", 0x401, 0, encoding_rs::WINDOWS_1256),
    windows("Greek_CI_AS", 0x408, 0, encoding_rs::WINDOWS_1253),
    windows("Hebrew_CI_AS", 0x40d, 0, encoding_rs::WINDOWS_1255),
    windows("Polish_CI_AS", 0x415, 0, encoding_rs::WINDOWS_1250),
    windows("Cyrillic_General_CI_AS", 0x419, 0, encoding_rs::WINDOWS_1251),
    windows("Thai_CI_AS", 0x41e, 0, encoding_rs::WINDOWS_874),
    windows("Turkish_CI_AS", 0x41f, 0, encoding_rs::WINDOWS_1254),
    windows("Lithuanian_CI_AS", 0x427, 0, encoding_rs::WINDOWS_1257),
    windows("Vietnamese_CI_AS", 0x42a, 0, encoding_rs::WINDOWS_1258),
    windows("Japanese_CI_AS", 0x411, 0, encoding_rs::SHIFT_JIS),
    windows("Korean_Wansung_CI_AS", 0x412, 0, encoding_rs::EUC_KR),
    windows("Chinese_Taiwan_Stroke_CI_AS", 0x404, 0, encoding_rs::BIG5),
    windows("Chinese_PRC_CI_AS", 0x804, 0, encoding_rs::GBK),
];

impl Collation {
    /// The collation of a server that was set up with the defaults of an English system.
    pub fn default_of_server() -> &'static Self {
        &KNOWN[0]
    }

    /// The default with upper and lower case told apart.
    pub fn case_sensitive() -> &'static Self {
        &KNOWN[1]
    }

    /// A collation by its name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Are its `char` columns UTF-8?
    pub fn is_utf8(&self) -> bool {
        matches!(self.page, Page::Utf8)
    }

    pub(super) fn ignores_case(&self) -> bool {
        self.name.contains("_CI")
    }

    /// The five bytes of the wire.
    pub(super) fn bytes(&self) -> [u8; 5] {
        let mut info = self.lcid;
        if self.name.contains("_BIN2") {
            info |= 1 << 25;
        } else if self.name.contains("_BIN") {
            info |= 1 << 24;
        } else {
            // Kana and width are ignored by every collation that does not name them; SQL_Latin1_General_CP1_CI_AS is
            // 09 04 D0 00 34 on the wire of every server.
            info |= u32::from(self.ignores_case()) << 20 | u32::from(self.name.contains("_AI")) << 21 | 1 << 22 | 1 << 23;
        }
        info |= u32::from(self.is_utf8()) << 26;
        info |= u32::from(self.name.contains("_100_")) << 29;
        let low = info.to_le_bytes();
        [low[0], low[1], low[2], low[3], self.sort_id]
    }

    /// Bytes of the code page as characters. What does not decode becomes U+FFFD, as a conversion to Unicode in the
    /// server gives some replacement and never an error.
    pub(super) fn decode(&self, bytes: &[u8]) -> String {
        match self.page {
            Page::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Page::Windows(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
            Page::Oem437 => bytes.iter().map(|byte| oem_char(&DECODING_TABLE_CP437, *byte)).collect(),
            Page::Oem850 => bytes.iter().map(|byte| oem_char(&DECODING_TABLE_CP850, *byte)).collect(),
        }
    }

    /// Characters as bytes of the code page. A character that is not in it becomes a question mark.
    pub(super) fn encode(&self, text: &str) -> Vec<u8> {
        match self.page {
            Page::Utf8 => text.as_bytes().to_vec(),
            Page::Windows(encoding) => encode_windows(encoding, text),
            Page::Oem437 => text.chars().map(|char| oem_byte(&ENCODING_TABLE_CP437, char)).collect(),
            Page::Oem850 => text.chars().map(|char| oem_byte(&ENCODING_TABLE_CP850, char)).collect(),
        }
    }

    /// Do two strings compare equal? Trailing spaces never count; whether case does is the collation's.
    pub(super) fn compare(&self, left: &str, right: &str) -> std::cmp::Ordering {
        let (left, right) = (left.trim_end_matches(' '), right.trim_end_matches(' '));
        if self.ignores_case() { folded(left).cmp(&folded(right)) } else { left.cmp(right) }
    }
}

fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

fn oem_char(table: &[char; 128], byte: u8) -> char {
    if byte < 0x80 { char::from(byte) } else { table[usize::from(byte) - 0x80] }
}

fn oem_byte(table: &oem_cp::OEMCPHashMap<char, u8>, char: char) -> u8 {
    if char.is_ascii() { char as u8 } else { table.get(&char).copied().unwrap_or(b'?') }
}

/// One character at a time: what the library puts for a missing character is a numeric reference for HTML.
fn encode_windows(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut buffer = [0; 4];
    for char in text.chars() {
        let (encoded, _, missing) = encoding.encode(char.encode_utf8(&mut buffer));
        if missing { bytes.push(b'?') } else { bytes.extend_from_slice(&encoded) }
    }
    bytes
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Collation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_of_the_usual_collations_is_that_of_real_servers() {
        assert_eq!(Collation::default_of_server().bytes(), [0x09, 0x04, 0xd0, 0x00, 0x34]);
        let utf8 = Collation::named("Latin1_General_100_CI_AS_SC_UTF8").unwrap();
        assert_eq!(utf8.bytes(), [0x09, 0x04, 0xd0, 0x24, 0x00]);
    }

    #[test]
    fn every_code_page_reads_what_it_wrote() {
        for (collation, text, bytes) in [
            ("SQL_Latin1_General_CP437_CI_AS", "Müller ≥", &b"M\x81ller \xf2"[..]),
            ("SQL_Latin1_General_CP850_CI_AS", "Müller", b"M\x81ller"),
            ("SQL_Latin1_General_CP1_CI_AS", "5 € für ü", b"5 \x80 f\xfcr \xfc"),
            ("Thai_CI_AS", "ก", b"\xa1"),
            ("Cyrillic_General_CI_AS", "Я", b"\xdf"),
        ] {
            let collation = Collation::named(collation).unwrap();
            assert_eq!(collation.encode(text), bytes, "{collation:?}");
            assert_eq!(collation.decode(bytes), text, "{collation:?}");
        }
        assert_eq!(Collation::default_of_server().encode("Я"), b"?");
    }
}
