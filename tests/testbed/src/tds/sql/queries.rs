//! `SELECT` and what it reads from.

use super::lexer::Token;
use super::parser::{Parsed, Parser};
use super::{JoinKind, OrderItem, Query, Select, SelectItem, Source};

/// Words that end an expression or a source, and are therefore no alias without `AS`.
const CLAUSES: &[&str] = &[
    "from", "where", "group", "having", "order", "union", "option", "on", "inner", "left", "right", "full", "cross", "outer", "join",
    "with", "offset", "fetch", "for", "when", "end", "else", "then", "and", "or", "if", "insert", "update", "delete", "select", "set",
    "declare", "begin", "commit", "rollback", "create", "alter", "drop", "exec", "execute", "print", "use", "grant", "deny", "revoke",
    "truncate", "dbcc", "throw",
];

impl Parser<'_> {
    pub(super) fn query(&mut self) -> Parsed<Query> {
        let mut query = Query::default();
        if self.word("with") {
            loop {
                let name = self.name()?;
                let columns = if self.is_symbol(0, "(") { self.list(Self::name)? } else { Vec::new() };
                self.expect_word("as")?;
                self.expect("(")?;
                let inner = self.query()?;
                self.expect(")")?;
                query.with.push((name, columns, inner));
                if !self.symbol(",") {
                    break;
                }
            }
        }
        query.parts.push(self.select()?);
        while self.words(&["union", "all"]) {
            query.parts.push(self.select()?);
        }
        if self.words(&["order", "by"]) {
            query.order = self.order()?;
        }
        if self.word("offset") {
            query.offset = Some(self.expr()?);
            let _ = self.word("rows") || self.word("row");
            if self.word("fetch") {
                let _ = self.word("next") || self.word("first");
                query.fetch = Some(self.expr()?);
                let _ = self.word("rows") || self.word("row");
                self.expect_word("only")?;
            }
        }
        if self.word("option") {
            self.list(Self::query_option)?;
        }
        Ok(query)
    }

    /// Options steer a plan; they change no result.
    fn query_option(&mut self) -> Parsed<()> {
        if self.word("recompile") {
            return Ok(());
        }
        for option in ["maxdop", "fast", "query_governor_cost_limit"] {
            if self.word(option) {
                return self.integer().map(drop);
            }
        }
        if self.words(&["optimize", "for", "unknown"]) || self.words(&["keepfixed", "plan"]) || self.words(&["force", "order"]) {
            return Ok(());
        }
        Err(self.error())
    }

    fn order(&mut self) -> Parsed<Vec<OrderItem>> {
        let mut items = Vec::new();
        loop {
            let expr = self.expr()?;
            let descending = self.word("desc");
            if !descending {
                self.word("asc");
            }
            items.push(OrderItem { expr, descending });
            if !self.symbol(",") {
                return Ok(items);
            }
        }
    }

    fn select(&mut self) -> Parsed<Select> {
        if self.symbol("(") {
            let inner = self.select()?;
            self.expect(")")?;
            return Ok(inner);
        }
        self.expect_word("select")?;
        let distinct = self.word("distinct");
        if !distinct {
            self.word("all");
        }
        let mut select = Select { distinct, ..Select::default() };
        if self.word("top") {
            // Without parentheses only a number may follow.
            select.top = Some(if self.symbol("(") {
                let count = self.expr()?;
                self.expect(")")?;
                count
            } else {
                let count = self.integer()?;
                super::Expr::Literal(super::Literal::Integer(count.to_string()))
            });
            if self.word("percent") || self.words(&["with", "ties"]) {
                return Err(self.error());
            }
        }
        select.items.push(self.item()?);
        while self.symbol(",") {
            select.items.push(self.item()?);
        }
        if self.word("from") {
            let mut from = self.source()?;
            while self.symbol(",") {
                let right = Box::new(self.source()?);
                from = Source::Join { kind: JoinKind::Cross, left: Box::new(from), right, on: None };
            }
            select.from = Some(from);
        }
        if self.word("where") {
            select.filter = Some(self.expr()?);
        }
        if self.words(&["group", "by"]) {
            select.group.push(self.expr()?);
            while self.symbol(",") {
                select.group.push(self.expr()?);
            }
        }
        if self.word("having") {
            select.having = Some(self.expr()?);
        }
        Ok(select)
    }

    fn item(&mut self) -> Parsed<SelectItem> {
        if self.symbol("*") {
            return Ok(SelectItem::Star(None));
        }
        if matches!(self.peek(), Some(Token::Word { .. })) && self.is_symbol(1, ".") && self.is_symbol(2, "*") {
            let name = self.name()?;
            self.expect(".")?;
            self.expect("*")?;
            return Ok(SelectItem::Star(Some(name)));
        }
        // `alias = expression`, T-SQL's own form.
        if matches!(self.peek(), Some(Token::Word { .. })) && self.is_symbol(1, "=") {
            let alias = Some(self.name()?);
            self.expect("=")?;
            return Ok(SelectItem::Expr { expr: self.expr()?, alias });
        }
        let expr = self.expr()?;
        Ok(SelectItem::Expr { expr, alias: self.alias(true)? })
    }

    /// `AS name`, `name`, and `AS 'name'` where columns are named.
    fn alias(&mut self, of_column: bool) -> Parsed<Option<String>> {
        if self.word("as") {
            return match self.peek() {
                Some(Token::Chars(text) | Token::Wide(text)) if of_column => {
                    let text = text.clone();
                    self.advance()?;
                    Ok(Some(text))
                }
                _ => self.name().map(Some),
            };
        }
        match self.peek() {
            Some(Token::Word { quoted: true, .. }) => self.name().map(Some),
            Some(Token::Word { text, .. }) if !CLAUSES.iter().any(|word| text.eq_ignore_ascii_case(word)) => self.name().map(Some),
            _ => Ok(None),
        }
    }

    fn source(&mut self) -> Parsed<Source> {
        let mut left = self.table()?;
        loop {
            let kind = if self.words(&["cross", "join"]) {
                JoinKind::Cross
            } else if self.words(&["cross", "apply"]) {
                JoinKind::CrossApply
            } else if self.words(&["outer", "apply"]) {
                JoinKind::OuterApply
            } else if self.word("join") || self.words(&["inner", "join"]) {
                JoinKind::Inner
            } else if self.words(&["left", "join"]) || self.words(&["left", "outer", "join"]) {
                JoinKind::Left
            } else {
                return Ok(left);
            };
            let right = Box::new(self.table()?);
            let on = if matches!(kind, JoinKind::Inner | JoinKind::Left) {
                self.expect_word("on")?;
                Some(self.expr()?)
            } else {
                None
            };
            left = Source::Join { kind, left: Box::new(left), right, on };
        }
    }

    fn table(&mut self) -> Parsed<Source> {
        if self.symbol("(") {
            if self.word("values") {
                let mut rows = vec![self.list(Self::expr)?];
                while self.symbol(",") {
                    rows.push(self.list(Self::expr)?);
                }
                self.expect(")")?;
                let alias = self.alias(false)?.ok_or_else(|| self.error())?;
                let columns = self.list(Self::name)?;
                return Ok(Source::Values { rows, alias, columns });
            }
            if self.is_word(0, "select") || self.is_word(0, "with") {
                let query = Box::new(self.query()?);
                self.expect(")")?;
                let alias = self.alias(false)?.ok_or_else(|| self.error())?;
                let columns = if self.is_symbol(0, "(") { self.list(Self::name)? } else { Vec::new() };
                return Ok(Source::Query { query, alias, columns });
            }
            let inner = self.source()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let name = self.object_name()?;
        if self.is_symbol(0, "(") {
            let arguments = self.list(Self::expr)?;
            let alias = self.alias(false)?;
            return Ok(Source::Function { name: name.to_string(), arguments, alias });
        }
        let alias = self.alias(false)?;
        let mut hints = Vec::new();
        if self.word("with") {
            hints = self.list(Self::name)?.into_iter().map(|hint| hint.to_ascii_lowercase()).collect();
        }
        Ok(Source::Table { name, alias, hints })
    }
}
