//! Activation: the boundary between the rows that are there and those that are delivered.
//!
//! The first sweep of a table finds no cursor. Under the lease it looks at the table, reads the highest sequence, stores the
//! baseline beside the cursor, and then answers a page without rows: the commit of that page, which names the baseline's
//! digest, is the activation. A process that dies before it leaves a baseline that no cursor names, and the next one begins
//! anew. Two first sweeps at once agree, since one of them has no lease.
//!
//! With `start=latest` the page also ends the sweep: no row is sent before the boundary is durable, or a second activation
//! could set another one behind rows that were sent. Rows that arrive while nothing runs lie above the boundary and
//! come with the next sweep.

use super::keys::Start;
use super::sequence::Sequence;

/// Where a sweep stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the activation.
    NotActivated,
    /// After this row; `None` is before the first.
    After(Option<Sequence>),
}

impl Place {
    /// The last row that is not to be read again.
    pub(super) fn position(self) -> Option<Sequence> {
        match self {
            Self::NotActivated => None,
            Self::After(position) => position,
        }
    }
}

/// The boundary of a table whose highest sequence is `highest`; `None` is before the first row, be it that there is none.
pub(super) fn watermark(start: &Start, highest: Option<Sequence>) -> Option<Sequence> {
    match start {
        Start::Latest => highest,
        Start::Earliest => None,
        // The documents' check lets 38 digits through.
        Start::After(digits) => Sequence::parse(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_begins_where_its_document_says_and_an_empty_one_with_its_first_row() {
        let at = Sequence::new(41);
        assert_eq!((watermark(&Start::Latest, at), watermark(&Start::Latest, None)), (at, None));
        assert_eq!(watermark(&Start::Earliest, at), None);
        let digits = "9".repeat(38);
        assert_eq!(watermark(&Start::After(digits.clone()), at).map(|at| at.to_string()), Some(digits));
    }
}
