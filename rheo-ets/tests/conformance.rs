//! Runs the conformance suite on the in-memory backend.

use std::process::ExitCode;

use rheo_ets::Memory;

fn main() -> ExitCode {
    rheo_conformance::run_in_process("memory", Memory::new)
}
