//! The TDS server under clients that were not written for it: FreeTDS' `tsql`, pymssql (FreeTDS below, another build of it)
//! and python-tds (Python alone). None shares a line with the driver of the product.

mod client;
mod logins;
mod requests;
mod types;
