//! The SQL Server source. Its documents are read and checked; sweeping is not built yet and is refused by name.

pub mod keys;
mod position;
