//! The tree of a script.

/// `name`, `schema.name`, `database.schema.name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName(pub Vec<String>);

impl ObjectName {
    /// The last part.
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The part before it.
    pub fn schema(&self) -> Option<&str> {
        self.0.len().checked_sub(2).and_then(|at| self.0.get(at)).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The part before that.
    pub fn database(&self) -> Option<&str> {
        self.0.len().checked_sub(3).and_then(|at| self.0.get(at)).map(String::as_str).filter(|name| !name.is_empty())
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName {
    pub name: ObjectName,
    /// `max` is given as -1.
    pub arguments: Vec<i64>,
    pub collation: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Null,
    Integer(String),
    Decimal(String),
    Float(String),
    Chars(String),
    Wide(String),
    Binary(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Literal(Literal),
    Column(Vec<String>),
    Variable(String),
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    IsNull { of: Box<Expr>, not: bool },
    In { of: Box<Expr>, list: Vec<Expr>, not: bool },
    InQuery { of: Box<Expr>, query: Box<Query>, not: bool },
    Like { of: Box<Expr>, pattern: Box<Expr>, escape: Option<Box<Expr>>, not: bool },
    Exists(Box<Query>),
    Scalar(Box<Query>),
    Case { operand: Option<Box<Expr>>, arms: Vec<(Expr, Expr)>, otherwise: Option<Box<Expr>> },
    Cast { of: Box<Expr>, to: TypeName, style: Option<Box<Expr>>, attempt: bool },
    Call { name: String, arguments: Vec<Expr>, star: bool, distinct: bool },
    Collate(Box<Expr>, String),
    Method { of: Box<Expr>, name: String, arguments: Vec<Expr> },
}

#[derive(Debug, Clone, PartialEq)]
pub enum SelectItem {
    Star(Option<String>),
    Expr { expr: Expr, alias: Option<String> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Cross,
    CrossApply,
    OuterApply,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    Table { name: ObjectName, alias: Option<String>, hints: Vec<String> },
    Query { query: Box<Query>, alias: String, columns: Vec<String> },
    Values { rows: Vec<Vec<Expr>>, alias: String, columns: Vec<String> },
    Function { name: String, arguments: Vec<Expr>, alias: Option<String> },
    Join { kind: JoinKind, left: Box<Source>, right: Box<Source>, on: Option<Expr> },
}

#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Select {
    pub distinct: bool,
    pub top: Option<Expr>,
    pub items: Vec<SelectItem>,
    pub from: Option<Source>,
    pub filter: Option<Expr>,
    pub group: Vec<Expr>,
    pub having: Option<Expr>,
}

/// One `SELECT` or several under `UNION ALL`, with what stands around them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    pub with: Vec<(String, Vec<String>, Query)>,
    pub parts: Vec<Select>,
    pub order: Vec<OrderItem>,
    pub offset: Option<Expr>,
    pub fetch: Option<Expr>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnDefinition {
    pub name: String,
    pub ty: Option<TypeName>,
    pub computed: Option<Computed>,
    pub nullable: Option<bool>,
    pub identity: Option<(i64, i64)>,
    pub default: Option<Expr>,
    pub key: Option<KeyDefinition>,
    pub sparse: bool,
    pub column_set: bool,
    pub hidden: bool,
    /// 1 for the start of a row's period, 2 for its end.
    pub generated: u8,
    pub mask: Option<String>,
    /// 1 for deterministic encryption, 2 for randomised.
    pub encryption: Option<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    pub expr: Expr,
    pub text: String,
    pub persisted: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyDefinition {
    pub name: Option<String>,
    pub primary: bool,
    pub clustered: Option<bool>,
    pub hash: bool,
    pub columns: Vec<(String, bool)>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexDefinition {
    pub name: String,
    pub unique: bool,
    pub clustered: bool,
    pub columnstore: bool,
    pub columns: Vec<(String, bool)>,
    pub included: Vec<String>,
    pub filter: Option<String>,
    pub ignore_duplicates: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableDefinition {
    pub columns: Vec<ColumnDefinition>,
    pub keys: Vec<KeyDefinition>,
    pub indexes: Vec<IndexDefinition>,
    pub external: bool,
    pub file_table: bool,
    pub node: bool,
    pub edge: bool,
    pub memory_optimized: bool,
    pub ledger: bool,
    pub history: Option<Option<ObjectName>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Alteration {
    Add(Vec<ColumnDefinition>, Vec<KeyDefinition>),
    DropColumn(Vec<String>),
    DropConstraint(String),
    AlterColumn(Box<ColumnDefinition>),
    /// `ADD MASKED`, `DROP MASKED`, `ADD HIDDEN`, `DROP HIDDEN`, `ADD SPARSE`, `DROP SPARSE`.
    Mark(String, String, bool),
}

#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    Values(Vec<Vec<Option<Expr>>>),
    Query(Box<Query>),
    Defaults,
}

/// What a login may not do, or may.
#[derive(Debug, Clone, PartialEq)]
pub struct Permission {
    pub verb: String,
    pub permission: String,
    pub object: ObjectName,
    pub columns: Vec<String>,
    pub principal: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Select(Query),
    Insert { table: ObjectName, columns: Vec<String>, source: InsertSource },
    Update { table: ObjectName, set: Vec<(String, Expr)>, filter: Option<Expr> },
    Delete { table: ObjectName, filter: Option<Expr> },
    Truncate(ObjectName),
    CreateTable(ObjectName, TableDefinition),
    CreateIndex(ObjectName, IndexDefinition),
    CreateSchema(String),
    CreateView(ObjectName, Query, String),
    CreateSynonym(ObjectName, ObjectName),
    CreateType(ObjectName, TypeName, bool),
    CreateProcedure(ObjectName, String),
    CreateDatabase(String, Option<String>),
    AlterTable(ObjectName, Alteration),
    AlterIndex { name: String, table: ObjectName, disable: bool },
    AlterDatabase { name: String, option: String, value: String },
    DropObject { kind: String, name: ObjectName, table: Option<ObjectName>, if_exists: bool },
    Rename { object: String, to: String, column: bool },
    Reseed { table: String, to: i64 },
    Permission(Permission),
    Set(String, String),
    SetVariable(String, Expr),
    Declare(String, TypeName, Option<Expr>),
    If { condition: Expr, then: Vec<Statement>, otherwise: Vec<Statement> },
    Begin,
    Commit,
    Rollback,
    Use(String),
    Print(Expr),
    Raise { number: i32, message: Expr, severity: Expr, state: Expr },
}
