//! The protocol's own files, without the rest of the library: what a mutant is compiled from.
//!
//! A mutation changes a copy of these files, and the library around them takes minutes to build. The model sees the
//! same paths and the same types.

/// As in the library, as far as the files below need it.
pub mod cursor {
    mod model;
    mod notes;
    mod protocol;

    pub use model::*;
    pub use notes::*;
    pub use protocol::*;

    /// What must hold for a blob to be written.
    #[derive(Debug, Clone, Copy)]
    pub enum Expect {
        /// There is none of a higher revision.
        UpTo(u64),
    }

    impl Expect {
        /// Whether it holds for a blob of `revision`.
        pub fn holds(self, revision: Option<u64>) -> bool {
            let Expect::UpTo(most) = self;
            revision.is_none_or(|revision| revision <= most)
        }
    }

    /// Why a store could not answer.
    #[derive(Debug, thiserror::Error)]
    pub enum StoreError {
        /// What is stored was not written by this program.
        #[error("{partition} {place}: {detail}")]
        Format {
            /// The partition key.
            partition: String,
            /// The sort key.
            place: String,
            /// What is wrong.
            detail: String,
        },
    }
}

/// As in the library, as far as a checkpoint goes.
pub mod source {
    mod checkpoint;

    pub use checkpoint::*;
}

/// As in the library, as far as the files below need it.
pub mod sink {
    /// What became of the records of one page.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Delivered {
        /// Acknowledged.
        pub rows: u64,
        /// Left out.
        pub skipped: u64,
    }
}

/// As in the library.
pub mod sweep {
    mod fold;
    mod hand;
    mod kept;
    mod lease;
    mod owed;
    mod pipeline;
    mod window;

    pub use fold::*;
    pub use hand::*;
    pub use kept::Kept;
    pub use lease::*;
    pub use owed::*;
    pub use pipeline::*;
    pub use window::*;
}

mod host {
    /// Lower-case hexadecimal digits.
    pub fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
