//! What binding makes of a tree: every name is a place in a row, every node has a type.

use std::sync::Arc;

use super::super::sql::{JoinKind, Operator};
use super::super::types::Type;
use super::super::value::Value;
use super::access::Access;
use super::functions::Function;
use super::select::OutputColumn;

/// A row as it is read: shared with the table that it comes from.
pub type Line = Arc<[Value]>;

#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Value(Value),
    /// `depth` counts the queries around this one.
    Column {
        depth: usize,
        place: usize,
    },
    /// What a reader without the permission to unmask sees.
    Masked(Box<Node>, Type),
    Not(Box<Node>),
    Negate(Box<Node>, Type),
    Arithmetic(Operator, Box<Node>, Box<Node>, Type),
    Compare(Operator, Box<Node>, Box<Node>, Type),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    IsNull(Box<Node>, bool),
    In(Box<Node>, Vec<Node>, Type),
    InQuery(Box<Node>, Box<Plan>, Type),
    Exists(Box<Plan>),
    Scalar(Box<Plan>),
    Like {
        of: Box<Node>,
        pattern: Box<Node>,
        escape: Option<char>,
        of_type: Type,
        pattern_type: Type,
    },
    Case(Vec<(Node, Node)>, Option<Box<Node>>),
    Cast {
        of: Box<Node>,
        from: Type,
        to: Type,
        style: i64,
        attempt: bool,
    },
    Call(Function, Vec<Typed>),
}

/// A node with what is known of its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Typed {
    pub node: Node,
    pub ty: Type,
    pub nullable: bool,
}

impl Node {
    /// Does it read the row at hand, or a query around, or other tables?
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Value(_) => true,
            Self::Column { depth, .. } => *depth > 0,
            Self::Masked(of, _) | Self::Not(of) | Self::Negate(of, _) | Self::IsNull(of, _) | Self::Cast { of, .. } => of.is_constant(),
            Self::Arithmetic(_, left, right, _) | Self::Compare(_, left, right, _) | Self::And(left, right) | Self::Or(left, right) => {
                left.is_constant() && right.is_constant()
            }
            Self::Call(function, arguments) => function.is_stable() && arguments.iter().all(|argument| argument.node.is_constant()),
            _ => false,
        }
    }

    /// Can it be computed from the row alone, after the databases have been let go?
    pub fn is_local(&self) -> bool {
        match self {
            Self::Value(_) => true,
            Self::Column { depth, .. } => *depth == 0,
            Self::Masked(of, _) | Self::Not(of) | Self::Negate(of, _) | Self::IsNull(of, _) | Self::Cast { of, .. } => of.is_local(),
            Self::Arithmetic(_, left, right, _) | Self::Compare(_, left, right, _) | Self::And(left, right) | Self::Or(left, right) => {
                left.is_local() && right.is_local()
            }
            Self::In(of, list, _) => of.is_local() && list.iter().all(Self::is_local),
            Self::Like { of, pattern, .. } => of.is_local() && pattern.is_local(),
            Self::Case(arms, otherwise) => {
                arms.iter().all(|(when, then)| when.is_local() && then.is_local()) && otherwise.as_ref().is_none_or(|node| node.is_local())
            }
            Self::Call(function, arguments) => function.is_local() && arguments.iter().all(|argument| argument.node.is_local()),
            Self::InQuery(..) | Self::Exists(_) | Self::Scalar(_) => false,
        }
    }
}

/// Where rows come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// One row without columns: `SELECT 1`.
    Nothing,
    /// A table of a database, by the numbers of both.
    Table {
        database: usize,
        object: i32,
        access: Access,
    },
    /// Rows that are known already: a relation of the catalog.
    Lines(Vec<Line>),
    Rows(Vec<Vec<Node>>),
    Query(Box<Plan>),
    Series(Box<Node>, Box<Node>),
    Join {
        kind: JoinKind,
        left: Box<Input>,
        right: Box<Input>,
        on: Option<Node>,
        width: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregation {
    Count,
    CountDistinct,
    CountAll,
    Max,
    Min,
    Sum,
    Average,
    Join,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub kind: Aggregation,
    pub of: Node,
    pub of_type: Type,
    /// The type of the result.
    pub ty: Type,
    /// What `STRING_AGG` puts in between.
    pub separator: Option<Node>,
    pub order: Vec<(Node, Type, bool)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SelectPlan {
    pub input: Input,
    pub filter: Option<Node>,
    /// Keys and aggregates, if the rows are grouped; what follows reads their row.
    pub group: Option<(Vec<Typed>, Vec<Aggregate>)>,
    pub having: Option<Node>,
    pub project: Vec<Node>,
    pub distinct: bool,
    pub order: Vec<(Node, Type, bool)>,
    pub top: Option<Node>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub parts: Vec<SelectPlan>,
    pub columns: Vec<OutputColumn>,
    /// Of several parts: places of the output.
    pub order: Vec<(usize, bool)>,
    pub offset: Option<Node>,
    pub fetch: Option<Node>,
}
