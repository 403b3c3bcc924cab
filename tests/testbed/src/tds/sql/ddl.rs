//! Definitions: `CREATE`, `ALTER`, `DROP`.
//!
//! A test says what its table is like in the language of the database, so that the same words make the same table on a
//! real server.

use super::lexer::Token;
use super::parser::{Parsed, Parser};
use super::{Alteration, ColumnDefinition, Computed, IndexDefinition, KeyDefinition, Statement, TableDefinition};

/// What stands in the parentheses of a table.
enum Part {
    Column(Box<ColumnDefinition>),
    Key(KeyDefinition),
    Index(IndexDefinition),
    /// A check or a period, which change nothing that the server answers.
    Nothing,
}

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Parsed<Statement> {
        if self.word("table") {
            return self.create_table(false);
        }
        if self.words(&["external", "table"]) {
            return self.create_table(true);
        }
        if self.word("schema") {
            return Ok(Statement::CreateSchema(self.name()?));
        }
        if self.word("view") {
            return self.create_view();
        }
        if self.word("synonym") {
            let name = self.object_name()?;
            self.expect_word("for")?;
            return Ok(Statement::CreateSynonym(name, self.object_name()?));
        }
        if self.word("type") {
            let name = self.object_name()?;
            self.expect_word("from")?;
            let ty = self.type_name()?;
            let nullable = !self.words(&["not", "null"]);
            if nullable {
                self.word("null");
            }
            return Ok(Statement::CreateType(name, ty, nullable));
        }
        if self.word("procedure") || self.word("proc") {
            let name = self.object_name()?;
            let begin = self.place();
            while !self.ended() {
                self.advance()?;
            }
            return Ok(Statement::CreateProcedure(name, self.text[begin..].to_owned()));
        }
        if self.word("database") {
            let name = self.name()?;
            let collation = if self.word("collate") { Some(self.name()?) } else { None };
            return Ok(Statement::CreateDatabase(name, collation));
        }
        self.create_index()
    }

    fn create_view(&mut self) -> Parsed<Statement> {
        let name = self.object_name()?;
        self.expect_word("as")?;
        let begin = self.place();
        let query = self.query()?;
        Ok(Statement::CreateView(name, query, self.text[begin..self.place()].to_owned()))
    }

    fn create_index(&mut self) -> Parsed<Statement> {
        let mut index = IndexDefinition { unique: self.word("unique"), ..IndexDefinition::default() };
        index.clustered = self.word("clustered");
        if !index.clustered {
            self.word("nonclustered");
        }
        index.columnstore = self.word("columnstore");
        self.expect_word("index")?;
        index.name = self.name()?;
        self.expect_word("on")?;
        let table = self.object_name()?;
        self.index_rest(&mut index)?;
        Ok(Statement::CreateIndex(table, index))
    }

    fn index_rest(&mut self, index: &mut IndexDefinition) -> Parsed<()> {
        if self.is_symbol(0, "(") {
            index.columns = self.list(Self::key_column)?;
        }
        if self.word("include") {
            index.included = self.list(Self::name)?;
        }
        if self.word("where") {
            let begin = self.place();
            self.expr()?;
            index.filter = Some(self.text[begin..self.place()].trim().to_owned());
        }
        if self.word("with") {
            self.list(|parser| {
                let ignores = parser.word("ignore_dup_key");
                if !ignores {
                    parser.name()?;
                }
                parser.expect("=")?;
                let on = parser.word("on");
                if !on {
                    parser.advance()?;
                }
                index.ignore_duplicates |= ignores && on;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn key_column(&mut self) -> Parsed<(String, bool)> {
        let name = self.name()?;
        let descending = self.word("desc");
        if !descending {
            self.word("asc");
        }
        Ok((name, descending))
    }

    fn create_table(&mut self, external: bool) -> Parsed<Statement> {
        let name = self.object_name()?;
        let mut table = TableDefinition { external, ..TableDefinition::default() };
        if self.words(&["as", "filetable"]) {
            table.file_table = true;
        }
        if self.is_symbol(0, "(") {
            for part in self.list(Self::part)? {
                match part {
                    Part::Column(column) => table.columns.push(*column),
                    Part::Key(key) => table.keys.push(key),
                    Part::Index(index) => table.indexes.push(index),
                    Part::Nothing => {}
                }
            }
        }
        if self.words(&["as", "node"]) {
            table.node = true;
        } else if self.words(&["as", "edge"]) {
            table.edge = true;
        }
        if self.word("with") {
            self.list(|parser| parser.table_option(&mut table))?;
        }
        Ok(Statement::CreateTable(name, table))
    }

    fn table_option(&mut self, table: &mut TableDefinition) -> Parsed<()> {
        let option = self.name()?.to_ascii_lowercase();
        self.expect("=")?;
        match option.as_str() {
            "memory_optimized" => table.memory_optimized = self.word("on"),
            "ledger" => table.ledger = self.word("on"),
            "system_versioning" => {
                self.expect_word("on")?;
                table.history = Some(None);
                if self.symbol("(") {
                    self.expect_word("history_table")?;
                    self.expect("=")?;
                    table.history = Some(Some(self.object_name()?));
                    self.expect(")")?;
                    return Ok(());
                }
            }
            // Where an external table lies, how durable it is, how it is compressed: nothing that is answered.
            "data_source" | "location" | "durability" | "data_compression" | "schema_name" | "object_name" => {
                self.advance()?;
            }
            _ => return Err(super::SyntaxError { near: option }),
        }
        // `MEMORY_OPTIMIZED = OFF` and the like.
        self.word("off");
        Ok(())
    }

    fn part(&mut self) -> Parsed<Part> {
        let name = if self.word("constraint") { Some(self.name()?) } else { None };
        if self.is_word(0, "primary")
            || (self.is_word(0, "unique") && !matches!(self.ahead(1), Some(Token::Word { text, .. }) if text.eq_ignore_ascii_case("int")))
        {
            return Ok(Part::Key(self.key(name)?));
        }
        if self.word("check") {
            self.expect("(")?;
            self.expr()?;
            self.expect(")")?;
            return Ok(Part::Nothing);
        }
        if self.words(&["period", "for", "system_time"]) {
            self.list(Self::name)?;
            return Ok(Part::Nothing);
        }
        if self.is_word(0, "index") && matches!(self.ahead(1), Some(Token::Word { .. })) {
            self.expect_word("index")?;
            let mut index = IndexDefinition { name: self.name()?, ..IndexDefinition::default() };
            index.unique = self.word("unique");
            index.clustered = self.word("clustered");
            self.word("nonclustered");
            index.columnstore = self.word("columnstore");
            self.index_rest(&mut index)?;
            return Ok(Part::Index(index));
        }
        if name.is_some() {
            return Err(self.error());
        }
        Ok(Part::Column(Box::new(self.column()?)))
    }

    /// `PRIMARY KEY`, `UNIQUE`, with columns where it stands for itself and without at a column.
    fn key(&mut self, name: Option<String>) -> Parsed<KeyDefinition> {
        let mut key = KeyDefinition { name, ..KeyDefinition::default() };
        key.primary = self.words(&["primary", "key"]);
        if !key.primary {
            self.expect_word("unique")?;
        }
        if self.word("clustered") {
            key.clustered = Some(true);
        } else if self.word("nonclustered") {
            key.clustered = Some(false);
        }
        key.hash = self.word("hash");
        if self.is_symbol(0, "(") {
            key.columns = self.list(Self::key_column)?;
        }
        if self.word("with") {
            self.list(|parser| {
                parser.name()?;
                parser.expect("=")?;
                parser.advance().map(drop)
            })?;
        }
        Ok(key)
    }

    pub(super) fn column(&mut self) -> Parsed<ColumnDefinition> {
        let mut column = ColumnDefinition { name: self.name()?, ..ColumnDefinition::default() };
        if self.word("as") {
            let begin = self.place();
            let expr = self.expr()?;
            let text = self.text[begin..self.place()].trim().to_owned();
            column.computed = Some(Computed { expr, text, persisted: self.word("persisted") });
        } else {
            column.ty = Some(self.type_name()?);
        }
        while self.attribute(&mut column)? {}
        Ok(column)
    }

    /// One attribute of a column, in any order; whether there was one.
    fn attribute(&mut self, column: &mut ColumnDefinition) -> Parsed<bool> {
        if self.words(&["not", "null"]) {
            column.nullable = Some(false);
        } else if self.word("null") {
            column.nullable = Some(true);
        } else if self.word("identity") {
            column.identity = Some((1, 1));
            if self.is_symbol(0, "(") {
                let both = self.list(Self::integer)?;
                let [seed, step] = both[..] else { return Err(self.error()) };
                column.identity = Some((seed, step));
            }
        } else if self.word("default") {
            column.default = Some(self.expr()?);
        } else if self.word("sparse") {
            column.sparse = true;
        } else if self.words(&["column_set", "for", "all_sparse_columns"]) {
            column.column_set = true;
        } else if self.word("hidden") {
            column.hidden = true;
        } else if self.words(&["generated", "always", "as", "row", "start"]) {
            column.generated = 1;
        } else if self.words(&["generated", "always", "as", "row", "end"]) {
            column.generated = 2;
        } else if self.word("masked") {
            column.mask = Some(self.masking()?);
        } else if self.word("encrypted") {
            column.encryption = Some(self.encryption()?);
        } else if self.word("constraint") {
            let name = self.name()?;
            if self.word("default") {
                column.default = Some(self.expr()?);
            } else {
                column.key = Some(self.key(Some(name))?);
            }
        } else if self.is_word(0, "primary") || self.is_word(0, "unique") {
            column.key = Some(self.key(None)?);
        } else if self.word("rowguidcol") {
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn masking(&mut self) -> Parsed<String> {
        self.expect_word("with")?;
        self.expect("(")?;
        self.expect_word("function")?;
        self.expect("=")?;
        let function = self.text_literal()?;
        self.expect(")")?;
        Ok(function)
    }

    fn encryption(&mut self) -> Parsed<u8> {
        self.expect_word("with")?;
        let mut kind = 2;
        self.list(|parser| {
            parser.name()?;
            parser.expect("=")?;
            if parser.word("deterministic") {
                kind = 1;
            } else {
                parser.advance()?;
            }
            Ok(())
        })?;
        Ok(kind)
    }

    pub(super) fn alter(&mut self) -> Parsed<Statement> {
        if self.word("index") {
            let name = self.name()?;
            self.expect_word("on")?;
            let table = self.object_name()?;
            let disable = self.word("disable");
            if !disable {
                self.expect_word("rebuild")?;
            }
            return Ok(Statement::AlterIndex { name, table, disable });
        }
        if self.word("database") {
            let name = self.name()?;
            if self.word("collate") {
                return Ok(Statement::AlterDatabase { name, option: "collate".to_owned(), value: self.name()? });
            }
            self.expect_word("set")?;
            let option = self.name()?.to_ascii_lowercase();
            let value = self.name()?.to_ascii_lowercase();
            return Ok(Statement::AlterDatabase { name, option, value });
        }
        self.expect_word("table")?;
        let table = self.object_name()?;
        Ok(Statement::AlterTable(table, self.alteration()?))
    }

    fn alteration(&mut self) -> Parsed<Alteration> {
        if self.word("add") {
            let mut columns = Vec::new();
            let mut keys = Vec::new();
            loop {
                match self.part()? {
                    Part::Column(column) => columns.push(*column),
                    Part::Key(key) => keys.push(key),
                    Part::Index(_) | Part::Nothing => return Err(self.error()),
                }
                if !self.symbol(",") {
                    return Ok(Alteration::Add(columns, keys));
                }
            }
        }
        if self.word("drop") {
            if self.word("constraint") {
                return Ok(Alteration::DropConstraint(self.name()?));
            }
            self.expect_word("column")?;
            let mut names = vec![self.name()?];
            while self.symbol(",") {
                names.push(self.name()?);
            }
            return Ok(Alteration::DropColumn(names));
        }
        self.expect_word("alter")?;
        self.expect_word("column")?;
        let save = self.name()?;
        for (word, on) in [("add", true), ("drop", false)] {
            if self.word(word) {
                let mark = self.name()?.to_ascii_lowercase();
                if mark == "masked" && on {
                    self.masking()?;
                }
                return Ok(Alteration::Mark(save, mark, on));
            }
        }
        let mut column = ColumnDefinition { name: save, ty: Some(self.type_name()?), ..ColumnDefinition::default() };
        while self.attribute(&mut column)? {}
        Ok(Alteration::AlterColumn(Box::new(column)))
    }

    pub(super) fn drop(&mut self) -> Parsed<Statement> {
        let kind = self.name()?.to_ascii_lowercase();
        if !["table", "view", "synonym", "index", "schema", "type", "procedure", "database"].contains(&kind.as_str()) {
            return Err(super::SyntaxError { near: kind });
        }
        let if_exists = self.words(&["if", "exists"]);
        let name = self.object_name()?;
        let table = if kind == "index" {
            self.expect_word("on")?;
            Some(self.object_name()?)
        } else {
            None
        };
        Ok(Statement::DropObject { kind, name, table, if_exists })
    }
}
