//! Runs the conformance suite on the toy backend.

use std::process::ExitCode;

use toy_backend::Toy;

fn main() -> ExitCode {
    rheo_conformance::run_in_process("toy", Toy::new)
}
