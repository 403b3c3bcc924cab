//! The ServiceNow sweep against a simulated instance, through the whole engine, from documents to a file.

mod allowance;
mod cursors;
mod errors;
mod faults;
mod hostile_hour;
mod keys;
mod lag;
mod probe;
mod records;
mod reports;
mod rows;
mod shortened;
mod sign_in;
mod transport;
