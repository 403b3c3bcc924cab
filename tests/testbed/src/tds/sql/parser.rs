//! Tokens to statements. Queries, expressions and definitions have files of their own.

use super::lexer::{Token, tokens};
use super::{Expr, InsertSource, Literal, ObjectName, Permission, Statement, SyntaxError, TypeName};

pub type Parsed<T> = Result<T, SyntaxError>;

/// A script, statement after statement. `text` of the source is kept for definitions that show it.
pub struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<(usize, Token)>,
    at: usize,
}

/// The statements of a script.
pub fn script(text: &str) -> Parsed<Vec<Statement>> {
    let mut parser = Parser::new(text)?;
    let mut statements = Vec::new();
    loop {
        while parser.symbol(";") {}
        if parser.ended() {
            return Ok(statements);
        }
        statements.extend(parser.statement()?);
    }
}

/// The declarations in the second argument of `sp_executesql`.
pub fn declarations(text: &str) -> Parsed<Vec<(String, TypeName)>> {
    let mut parser = Parser::new(text)?;
    let mut declared = Vec::new();
    while !parser.ended() {
        let name = parser.variable()?;
        parser.word("as");
        declared.push((name, parser.type_name()?));
        // `OUTPUT` would need a value in return, which nobody here asks for.
        if !parser.symbol(",") && !parser.ended() {
            return Err(parser.error());
        }
    }
    Ok(declared)
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Parsed<Self> {
        Ok(Self { text, tokens: tokens(text)?, at: 0 })
    }

    pub(super) fn ended(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, by: usize) -> Option<&Token> {
        self.tokens.get(self.at + by).map(|(_, token)| token)
    }

    pub(super) fn advance(&mut self) -> Parsed<Token> {
        let token = self.peek().cloned().ok_or_else(|| self.error())?;
        self.at += 1;
        Ok(token)
    }

    /// Where the token that comes next begins in the text.
    pub(super) fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text.len(), |(place, _)| *place)
    }

    pub(super) fn error(&self) -> SyntaxError {
        SyntaxError { near: self.peek().map_or_else(|| "the end".to_owned(), ToString::to_string) }
    }

    pub(super) fn is_word(&self, by: usize, word: &str) -> bool {
        matches!(self.ahead(by), Some(Token::Word { text, quoted: false }) if text.eq_ignore_ascii_case(word))
    }

    /// Takes the word if it comes next.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        self.at += usize::from(found);
        found
    }

    /// Takes these words if they come next, all of them.
    pub(super) fn words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(by, word)| self.is_word(by, word));
        self.at += if found { words.len() } else { 0 };
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.word(word) { Ok(()) } else { Err(self.error()) }
    }

    pub(super) fn is_symbol(&self, by: usize, symbol: &str) -> bool {
        matches!(self.ahead(by), Some(Token::Symbol(found)) if *found == symbol)
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(0, symbol);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.error()) }
    }

    /// A name, in brackets or not.
    pub(super) fn name(&mut self) -> Parsed<String> {
        match self.peek() {
            Some(Token::Word { text, .. }) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.error()),
        }
    }

    pub(super) fn variable(&mut self) -> Parsed<String> {
        match self.peek() {
            Some(Token::Variable(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.error()),
        }
    }

    /// `a.b.c`, in which a part may be left out: `tempdb..t`.
    pub(super) fn object_name(&mut self) -> Parsed<ObjectName> {
        let mut parts = vec![self.name()?];
        while self.symbol(".") {
            parts.push(if self.is_symbol(0, ".") { String::new() } else { self.name()? });
        }
        Ok(ObjectName(parts))
    }

    pub(super) fn integer(&mut self) -> Parsed<i64> {
        let negative = self.symbol("-");
        match self.advance()? {
            Token::Integer(text) => text.parse().map(|number: i64| if negative { -number } else { number }).map_err(|_| self.error()),
            _ => Err(self.error()),
        }
    }

    pub(super) fn text_literal(&mut self) -> Parsed<String> {
        match self.advance()? {
            Token::Chars(text) | Token::Wide(text) => Ok(text),
            other => Err(SyntaxError { near: other.to_string() }),
        }
    }

    /// `item, item, …` in parentheses.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.expect("(")?;
        let mut items = vec![item(self)?];
        while self.symbol(",") {
            items.push(item(self)?);
        }
        self.expect(")")?;
        Ok(items)
    }

    /// One statement; a `DECLARE` of several variables is several.
    pub(super) fn statement(&mut self) -> Parsed<Vec<Statement>> {
        if self.is_word(0, "select") || self.is_word(0, "with") {
            return Ok(vec![Statement::Select(self.query()?)]);
        }
        let begun = self.error();
        let word = match self.peek() {
            Some(Token::Word { text, quoted: false }) => text.to_ascii_lowercase(),
            _ => return Err(begun),
        };
        self.at += 1;
        let one = match word.as_str() {
            "insert" => self.insert()?,
            "update" => self.update()?,
            "delete" => self.delete()?,
            "truncate" => {
                self.expect_word("table")?;
                Statement::Truncate(self.object_name()?)
            }
            "create" => self.create()?,
            "alter" => self.alter()?,
            "drop" => self.drop()?,
            "exec" | "execute" => self.execute()?,
            "dbcc" => self.reseed()?,
            "grant" | "deny" | "revoke" => self.permission(word)?,
            "set" => self.set()?,
            "declare" => return self.declare(),
            "if" => self.conditional()?,
            "begin" if self.word("tran") || self.word("transaction") => Statement::Begin,
            "begin" => return self.block(),
            "commit" => {
                let _ = self.word("tran") || self.word("transaction");
                Statement::Commit
            }
            "rollback" => {
                let _ = self.word("tran") || self.word("transaction");
                Statement::Rollback
            }
            "use" => Statement::Use(self.name()?),
            "print" => Statement::Print(self.expr()?),
            "throw" => self.throw()?,
            "raiserror" => self.raise()?,
            _ => return Err(begun),
        };
        Ok(vec![one])
    }

    /// The statements up to `END`.
    fn block(&mut self) -> Parsed<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            while self.symbol(";") {}
            if self.word("end") {
                return Ok(statements);
            }
            statements.extend(self.statement()?);
        }
    }

    fn conditional(&mut self) -> Parsed<Statement> {
        let condition = self.expr()?;
        let then = self.statement()?;
        let save = self.at;
        while self.symbol(";") {}
        let otherwise = if self.word("else") {
            self.statement()?
        } else {
            self.at = save;
            Vec::new()
        };
        Ok(Statement::If { condition, then, otherwise })
    }

    fn insert(&mut self) -> Parsed<Statement> {
        self.word("into");
        let table = self.object_name()?;
        let columns = if self.is_symbol(0, "(") { self.list(Self::name)? } else { Vec::new() };
        let source = if self.words(&["default", "values"]) {
            InsertSource::Defaults
        } else if self.word("values") {
            let mut rows = vec![self.list(Self::value_or_default)?];
            while self.symbol(",") {
                rows.push(self.list(Self::value_or_default)?);
            }
            InsertSource::Values(rows)
        } else {
            InsertSource::Query(Box::new(self.query()?))
        };
        Ok(Statement::Insert { table, columns, source })
    }

    fn value_or_default(&mut self) -> Parsed<Option<Expr>> {
        if self.word("default") { Ok(None) } else { self.expr().map(Some) }
    }

    fn update(&mut self) -> Parsed<Statement> {
        let table = self.object_name()?;
        self.expect_word("set")?;
        let mut set = Vec::new();
        loop {
            let column = self.name()?;
            self.expect("=")?;
            set.push((column, self.expr()?));
            if !self.symbol(",") {
                break;
            }
        }
        let filter = if self.word("where") { Some(self.expr()?) } else { None };
        Ok(Statement::Update { table, set, filter })
    }

    fn delete(&mut self) -> Parsed<Statement> {
        self.word("from");
        let table = self.object_name()?;
        let filter = if self.word("where") { Some(self.expr()?) } else { None };
        Ok(Statement::Delete { table, filter })
    }

    /// `sp_rename` is the only procedure; `sp_executesql` comes as a remote procedure call.
    fn execute(&mut self) -> Parsed<Statement> {
        let begun = self.error();
        let name = self.object_name()?;
        if !name.name().eq_ignore_ascii_case("sp_rename") {
            return Err(SyntaxError { near: format!("{} {name}", begun.near) });
        }
        let object = self.text_literal()?;
        self.expect(",")?;
        let to = self.text_literal()?;
        let column = self.symbol(",") && self.text_literal()?.eq_ignore_ascii_case("column");
        Ok(Statement::Rename { object, to, column })
    }

    /// `DBCC CHECKIDENT ('t', RESEED, n)`.
    fn reseed(&mut self) -> Parsed<Statement> {
        self.expect_word("checkident")?;
        self.expect("(")?;
        let table = if matches!(self.peek(), Some(Token::Word { .. })) { self.object_name()?.to_string() } else { self.text_literal()? };
        self.expect(",")?;
        self.expect_word("reseed")?;
        self.expect(",")?;
        let to = self.integer()?;
        self.expect(")")?;
        Ok(Statement::Reseed { table, to })
    }

    /// `DENY SELECT ON t (c) TO login`.
    fn permission(&mut self, verb: String) -> Parsed<Statement> {
        let mut permission = self.name()?;
        if self.word("definition") {
            permission.push_str(" definition");
        }
        self.expect_word("on")?;
        if self.word("object") {
            self.expect("::")?;
        }
        let object = self.object_name()?;
        let columns = if self.is_symbol(0, "(") { self.list(Self::name)? } else { Vec::new() };
        if !(self.word("to") || self.word("from")) {
            return Err(self.error());
        }
        let principal = self.name()?;
        Ok(Statement::Permission(Permission { verb, permission: permission.to_ascii_lowercase(), object, columns, principal }))
    }

    /// `SET option value`. What follows is one or two words or a number, whatever the option; unknown options are the
    /// engine's to refuse.
    fn set(&mut self) -> Parsed<Statement> {
        if matches!(self.peek(), Some(Token::Variable(_))) {
            let name = self.variable()?;
            self.expect("=")?;
            return Ok(Statement::SetVariable(name, self.expr()?));
        }
        let mut option = self.name()?.to_ascii_lowercase();
        if option == "transaction" {
            self.expect_word("isolation")?;
            self.expect_word("level")?;
            "transaction isolation level".clone_into(&mut option);
            let mut level = self.name()?;
            if level.eq_ignore_ascii_case("read") || level.eq_ignore_ascii_case("repeatable") {
                level = format!("{level} {}", self.name()?);
            }
            return Ok(Statement::Set(option, level.to_ascii_lowercase()));
        }
        // `SET ANSI_NULLS, QUOTED_IDENTIFIER ON`, and `SET IDENTITY_INSERT t ON`.
        while self.symbol(",") {
            option = format!("{option},{}", self.name()?.to_ascii_lowercase());
        }
        if option == "identity_insert" || option == "statistics" {
            option = format!("{option} {}", self.object_name()?);
        }
        let negative = self.symbol("-");
        let value = match self.advance()? {
            Token::Word { text, .. } | Token::Integer(text) | Token::Chars(text) | Token::Wide(text) => text,
            other => return Err(SyntaxError { near: other.to_string() }),
        };
        Ok(Statement::Set(option, if negative { format!("-{value}") } else { value.to_ascii_lowercase() }))
    }

    fn declare(&mut self) -> Parsed<Vec<Statement>> {
        let mut declared = Vec::new();
        loop {
            let name = self.variable()?;
            self.word("as");
            let ty = self.type_name()?;
            let value = if self.symbol("=") { Some(self.expr()?) } else { None };
            declared.push(Statement::Declare(name, ty, value));
            if !self.symbol(",") {
                return Ok(declared);
            }
        }
    }

    fn throw(&mut self) -> Parsed<Statement> {
        let number = i32::try_from(self.integer()?).map_err(|_| self.error())?;
        self.expect(",")?;
        let message = self.expr()?;
        self.expect(",")?;
        let state = self.expr()?;
        Ok(Statement::Raise { number, message, severity: Expr::Literal(Literal::Integer("16".to_owned())), state })
    }

    fn raise(&mut self) -> Parsed<Statement> {
        self.expect("(")?;
        let message = self.expr()?;
        self.expect(",")?;
        let severity = self.expr()?;
        self.expect(",")?;
        let state = self.expr()?;
        self.expect(")")?;
        Ok(Statement::Raise { number: 50_000, message, severity, state })
    }

    /// `nvarchar(max)`, `decimal(38, 0)`, `sys.sysname`, `varchar(10) COLLATE Thai_CI_AS`.
    pub(super) fn type_name(&mut self) -> Parsed<TypeName> {
        let mut name = self.object_name()?;
        // Two words that are one type.
        if name.name().eq_ignore_ascii_case("double") && self.word("precision") {
            name = ObjectName(vec!["float".to_owned()]);
        }
        let mut arguments = Vec::new();
        if self.is_symbol(0, "(") && (matches!(self.ahead(1), Some(Token::Integer(_))) || self.is_word(1, "max")) {
            arguments = self.list(|parser| if parser.word("max") { Ok(-1) } else { parser.integer() })?;
        }
        let collation = if self.word("collate") { Some(self.name()?) } else { None };
        Ok(TypeName { name, arguments, collation })
    }
}

impl Parser<'_> {
    /// The parts of a name in a text: `[a.b].[c]`.
    pub fn name_of(text: &str) -> Option<Vec<String>> {
        let mut parser = Parser::new(text).ok()?;
        let name = parser.object_name().ok()?;
        parser.ended().then_some(name.0)
    }
}
