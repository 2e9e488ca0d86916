//! Runs the conformance suite.

fn main() {}
