//! placeholder of conformance

use clap::Args;

use crate::failure::Outcome;
use crate::output::Output;

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct Conformance {}

impl Conformance {
    pub(crate) async fn run(&self, _url: &str, _output: Output) -> Outcome {
        Ok(())
    }
}
