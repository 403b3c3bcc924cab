//! The ServiceNow sweep against a simulated instance, through the whole engine, from documents to a file.

mod allowance;
mod errors;
mod faults;
mod hostile_hour;
mod keys;
mod probe;
mod records;
mod rows;
mod sign_in;
mod transport;
