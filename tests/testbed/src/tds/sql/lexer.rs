//! Text to tokens.

use super::SyntaxError;

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// A word as it was written, and whether it stood in brackets or double quotes.
    Word {
        text: String,
        quoted: bool,
    },
    /// `@name` or `@@name`.
    Variable(String),
    Integer(String),
    Decimal(String),
    Float(String),
    Chars(String),
    Wide(String),
    Binary(Vec<u8>),
    /// `<=`, `(`, and so on.
    Symbol(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word { text, .. }
            | Self::Variable(text)
            | Self::Integer(text)
            | Self::Decimal(text)
            | Self::Float(text)
            | Self::Chars(text)
            | Self::Wide(text) => f.write_str(text),
            Self::Binary(bytes) => write!(f, "0x{}", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>()),
            Self::Symbol(symbol) => f.write_str(symbol),
        }
    }
}

/// Longest first, so that `<=` is not read as `<`.
const SYMBOLS: &[&str] = &[
    "<>", "<=", ">=", "!=", "!<", "!>", "::", "+=", "-=", "(", ")", ",", ".", ";", "+", "-", "*", "/", "%", "=", "<", ">", "&", "|", "^",
    "~", ":",
];

/// The tokens of a text, each with the place at which it begins.
pub fn tokens(text: &str) -> Result<Vec<(usize, Token)>, SyntaxError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut found = Vec::new();
    loop {
        lexer.skip_blank()?;
        let start = lexer.at;
        match lexer.next()? {
            Some(token) => found.push((start, token)),
            None => return Ok(found),
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

fn starts_word(char: char) -> bool {
    char.is_alphabetic() || char == '_' || char == '#'
}

fn continues_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '#' | '$' | '@')
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn error(&self) -> SyntaxError {
        SyntaxError { near: self.rest().chars().take(20).collect() }
    }

    fn skip_blank(&mut self) -> Result<(), SyntaxError> {
        loop {
            let trimmed = self.rest().trim_start_matches(|char: char| char.is_whitespace() || char == '\u{feff}').len();
            self.at = self.text.len() - trimmed;
            if self.rest().starts_with("--") {
                self.at += self.rest().find('\n').unwrap_or(trimmed);
            } else if self.rest().starts_with("/*") {
                self.at += self.rest().find("*/").ok_or_else(|| self.error())? + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let taken: String = self.rest().chars().take_while(|char| keep(*char)).collect();
        self.at += taken.len();
        taken
    }

    /// A text up to `end`, in which a doubled end stands for one.
    fn delimited(&mut self, end: char) -> Result<String, SyntaxError> {
        let begin = self.error();
        let mut text = String::new();
        let mut chars = self.rest().char_indices().peekable();
        while let Some((at, char)) = chars.next() {
            if char != end {
                text.push(char);
            } else if chars.next_if(|next| next.1 == end).is_some() {
                text.push(end);
            } else {
                self.at += at + end.len_utf8();
                return Ok(text);
            }
        }
        Err(begin)
    }

    fn next(&mut self) -> Result<Option<Token>, SyntaxError> {
        let Some(first) = self.rest().chars().next() else {
            return Ok(None);
        };
        let second = self.rest().chars().nth(1);
        let token = match first {
            '[' | '"' => {
                self.at += 1;
                Token::Word { text: self.delimited(if first == '[' { ']' } else { '"' })?, quoted: true }
            }
            '\'' => {
                self.at += 1;
                Token::Chars(self.delimited('\'')?)
            }
            'N' | 'n' if second == Some('\'') => {
                self.at += 2;
                Token::Wide(self.delimited('\'')?)
            }
            '@' => Token::Variable(self.take_while(continues_word)),
            '0' if matches!(second, Some('x' | 'X')) => {
                self.at += 2;
                let digits = self.take_while(|char| char.is_ascii_hexdigit());
                Token::Binary(unhex(&digits))
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|char| char.is_ascii_digit()) => self.number(),
            _ if starts_word(first) => Token::Word { text: self.take_while(continues_word), quoted: false },
            '$' => Token::Word { text: self.take_while(continues_word), quoted: false },
            _ => {
                let symbol = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)).ok_or_else(|| self.error())?;
                self.at += symbol.len();
                Token::Symbol(symbol)
            }
        };
        Ok(Some(token))
    }

    fn number(&mut self) -> Token {
        let mut text = self.take_while(|char| char.is_ascii_digit());
        let mut exact = true;
        if self.rest().starts_with('.') {
            exact = false;
            self.at += 1;
            text.push('.');
            text += &self.take_while(|char| char.is_ascii_digit());
        }
        let mut after = self.rest().chars();
        if matches!(after.next(), Some('e' | 'E')) && after.next().is_some_and(|char| char.is_ascii_digit() || matches!(char, '+' | '-')) {
            self.at += 1;
            text.push('e');
            text += &self.take_while(|char| matches!(char, '+' | '-'));
            text += &self.take_while(|char| char.is_ascii_digit());
            return Token::Float(text);
        }
        if exact { Token::Integer(text) } else { Token::Decimal(text) }
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    // An odd number of digits is read with a zero in front.
    let digits = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    digits.as_bytes().chunks(2).filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
