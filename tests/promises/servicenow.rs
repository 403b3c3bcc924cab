//! The ServiceNow sweep against a simulated instance, through the whole engine, from documents to a file.

mod allowance;
mod faults;
mod keys;
mod probe;
mod records;
mod rows;
mod sign_in;
mod transport;
