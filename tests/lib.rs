//! Turns on the failpoints of the programs under test; the tests themselves are in `promises/`.
