//! Expressions, from the loosest binding to the tightest.

use super::lexer::Token;
use super::parser::{Parsed, Parser};
use super::{Expr, Literal, Operator};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let mut left = self.conjunction()?;
        while self.word("or") {
            left = Expr::Binary(Operator::Or, Box::new(left), Box::new(self.conjunction()?));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Parsed<Expr> {
        let mut left = self.negation()?;
        while self.word("and") {
            left = Expr::Binary(Operator::And, Box::new(left), Box::new(self.negation()?));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Parsed<Expr> {
        if self.word("not") { Ok(Expr::Not(Box::new(self.negation()?))) } else { self.predicate() }
    }

    fn predicate(&mut self) -> Parsed<Expr> {
        let left = self.sum()?;
        for (symbol, operator) in [
            ("=", Operator::Equal),
            ("<>", Operator::NotEqual),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessEqual),
            (">=", Operator::GreaterEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("!<", Operator::GreaterEqual),
            ("!>", Operator::LessEqual),
        ] {
            if self.symbol(symbol) {
                return Ok(Expr::Binary(operator, Box::new(left), Box::new(self.sum()?)));
            }
        }
        let of = Box::new(left);
        if self.word("is") {
            let not = self.word("not");
            self.expect_word("null")?;
            return Ok(Expr::IsNull { of, not });
        }
        let not = self.is_word(0, "not") && ["in", "like", "between"].iter().any(|word| self.is_word(1, word)) && self.word("not");
        if self.word("in") {
            return self.membership(of, not);
        }
        if self.word("like") {
            let pattern = Box::new(self.sum()?);
            let escape = if self.word("escape") { Some(Box::new(self.sum()?)) } else { None };
            return Ok(Expr::Like { of, pattern, escape, not });
        }
        if self.word("between") {
            let low = self.sum()?;
            self.expect_word("and")?;
            let high = self.sum()?;
            let above = Expr::Binary(Operator::GreaterEqual, of.clone(), Box::new(low));
            let below = Expr::Binary(Operator::LessEqual, of, Box::new(high));
            let both = Expr::Binary(Operator::And, Box::new(above), Box::new(below));
            return Ok(if not { Expr::Not(Box::new(both)) } else { both });
        }
        Ok(*of)
    }

    fn membership(&mut self, of: Box<Expr>, not: bool) -> Parsed<Expr> {
        if self.is_symbol(0, "(") && self.is_word(1, "select") {
            self.expect("(")?;
            let query = Box::new(self.query()?);
            self.expect(")")?;
            return Ok(Expr::InQuery { of, query, not });
        }
        Ok(Expr::In { of, list: self.list(Self::expr)?, not })
    }

    fn sum(&mut self) -> Parsed<Expr> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Symbol("+")) => Operator::Add,
                Some(Token::Symbol("-")) => Operator::Subtract,
                Some(Token::Symbol("&")) => Operator::BitAnd,
                Some(Token::Symbol("|")) => Operator::BitOr,
                _ => return Ok(left),
            };
            self.advance()?;
            left = Expr::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Parsed<Expr> {
        let mut left = self.unary()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Symbol("*")) => Operator::Multiply,
                Some(Token::Symbol("/")) => Operator::Divide,
                Some(Token::Symbol("%")) => Operator::Modulo,
                _ => return Ok(left),
            };
            self.advance()?;
            left = Expr::Binary(operator, Box::new(left), Box::new(self.unary()?));
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        if self.symbol("-") {
            return Ok(Expr::Negate(Box::new(self.unary()?)));
        }
        if self.symbol("+") {
            return self.unary();
        }
        let mut of = self.primary()?;
        loop {
            if self.word("collate") {
                of = Expr::Collate(Box::new(of), self.name()?);
            } else if self.is_symbol(0, ".") && matches!(of, Expr::Cast { .. } | Expr::Call { .. } | Expr::Method { .. }) {
                self.expect(".")?;
                let name = self.name()?;
                of = Expr::Method { of: Box::new(of), name, arguments: self.arguments()? };
            } else {
                return Ok(of);
            }
        }
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        if self.is_symbol(0, "(") && self.is_symbol(1, ")") {
            self.expect("(")?;
            self.expect(")")?;
            return Ok(Vec::new());
        }
        self.list(Self::expr)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let literal = match self.peek().ok_or_else(|| self.error())?.clone() {
            Token::Integer(text) => Literal::Integer(text),
            Token::Decimal(text) => Literal::Decimal(text),
            Token::Float(text) => Literal::Float(text),
            Token::Chars(text) => Literal::Chars(text),
            Token::Wide(text) => Literal::Wide(text),
            Token::Binary(bytes) => Literal::Binary(bytes),
            Token::Variable(name) => {
                self.advance()?;
                return Ok(Expr::Variable(name));
            }
            Token::Symbol("(") => return self.parenthesis(),
            Token::Symbol(_) => return Err(self.error()),
            Token::Word { quoted, .. } => return if quoted { self.column_or_call() } else { self.keyword() },
        };
        self.advance()?;
        Ok(Expr::Literal(literal))
    }

    fn parenthesis(&mut self) -> Parsed<Expr> {
        self.expect("(")?;
        let inner = if self.is_word(0, "select") { Expr::Scalar(Box::new(self.query()?)) } else { self.expr()? };
        self.expect(")")?;
        Ok(inner)
    }

    /// What begins with a word that may be one of the language's.
    fn keyword(&mut self) -> Parsed<Expr> {
        if self.word("null") {
            return Ok(Expr::Literal(Literal::Null));
        }
        if self.word("exists") {
            self.expect("(")?;
            let query = Box::new(self.query()?);
            self.expect(")")?;
            return Ok(Expr::Exists(query));
        }
        if self.word("case") {
            return self.case();
        }
        for (name, attempt) in [("cast", false), ("try_cast", true)] {
            if self.is_word(0, name) && self.is_symbol(1, "(") {
                return self.cast(attempt);
            }
        }
        for (name, attempt) in [("convert", false), ("try_convert", true)] {
            if self.is_word(0, name) && self.is_symbol(1, "(") {
                return self.convert(attempt);
            }
        }
        if ["current_user", "session_user", "system_user", "current_timestamp"].iter().any(|name| self.is_word(0, name)) {
            let name = self.name()?;
            return Ok(Expr::Call { name, arguments: Vec::new(), star: false, distinct: false });
        }
        // A word that begins a clause is never a column; without this, `SELECT FROM t` would have a column `FROM`.
        const RESERVED: &[&str] = &[
            "from", "where", "order", "group", "having", "union", "select", "on", "join", "inner", "left", "top", "as", "and", "or",
            "when", "then", "else", "end", "in", "is", "like", "between", "for", "option", "values", "set", "into", "distinct", "all",
            "by",
        ];
        if RESERVED.iter().any(|word| self.is_word(0, word)) {
            return Err(self.error());
        }
        self.column_or_call()
    }

    fn case(&mut self) -> Parsed<Expr> {
        let operand = if self.is_word(0, "when") { None } else { Some(Box::new(self.expr()?)) };
        let mut arms = Vec::new();
        while self.word("when") {
            let when = self.expr()?;
            self.expect_word("then")?;
            arms.push((when, self.expr()?));
        }
        let otherwise = if self.word("else") { Some(Box::new(self.expr()?)) } else { None };
        self.expect_word("end")?;
        Ok(Expr::Case { operand, arms, otherwise })
    }

    fn cast(&mut self, attempt: bool) -> Parsed<Expr> {
        self.advance()?;
        self.expect("(")?;
        let of = Box::new(self.expr()?);
        self.expect_word("as")?;
        let to = self.type_name()?;
        self.expect(")")?;
        Ok(Expr::Cast { of, to, style: None, attempt })
    }

    fn convert(&mut self, attempt: bool) -> Parsed<Expr> {
        self.advance()?;
        self.expect("(")?;
        let to = self.type_name()?;
        self.expect(",")?;
        let of = Box::new(self.expr()?);
        let style = if self.symbol(",") { Some(Box::new(self.expr()?)) } else { None };
        self.expect(")")?;
        Ok(Expr::Cast { of, to, style, attempt })
    }

    /// `a.b.c`, `f(x)`, `COUNT(*)`, `[v].ToString()`.
    fn column_or_call(&mut self) -> Parsed<Expr> {
        let mut parts = vec![self.name()?];
        while self.is_symbol(0, ".") && matches!(self.ahead(1), Some(Token::Word { .. })) {
            self.expect(".")?;
            parts.push(self.name()?);
        }
        if !self.is_symbol(0, "(") {
            return Ok(Expr::Column(parts));
        }
        let name = parts.pop().unwrap_or_default();
        let built_in = parts.is_empty() || matches!(&parts[..], [schema] if schema.eq_ignore_ascii_case("sys"));
        if !built_in {
            let of = Box::new(Expr::Column(parts));
            return Ok(Expr::Method { of, name, arguments: self.arguments()? });
        }
        if self.is_symbol(1, "*") {
            self.expect("(")?;
            self.expect("*")?;
            self.expect(")")?;
            return Ok(Expr::Call { name, arguments: Vec::new(), star: true, distinct: false });
        }
        if self.is_word(1, "distinct") {
            self.expect("(")?;
            self.expect_word("distinct")?;
            let argument = self.expr()?;
            self.expect(")")?;
            return Ok(Expr::Call { name, arguments: vec![argument], star: false, distinct: true });
        }
        let arguments = self.arguments()?;
        Ok(Expr::Call { name, arguments, star: false, distinct: false })
    }
}
