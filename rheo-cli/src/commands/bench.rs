//! placeholder of bench

use clap::Args;

use crate::failure::Outcome;
use crate::output::Output;

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct Bench {}

impl Bench {
    pub(crate) async fn run(&self, _url: Option<&str>, _output: Output) -> Outcome {
        Ok(())
    }
}
