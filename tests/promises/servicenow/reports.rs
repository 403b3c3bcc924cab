//! What users of other connectors report of real instances, each as a test of the kind of fault, not of the one input.
//!
//! docs/reports.md lists every report with its address and the tests that hold it; some of those live with the promise
//! that they are a case of.

mod answers;
mod fields;
mod order;
mod paging;
mod time;
