//! placeholder of append

use clap::Args;
use rheo::Rheo;

use crate::failure::Outcome;
use crate::output::Output;

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct Append {}

impl Append {
    pub(crate) async fn run(&self, _rheo: &Rheo, _output: Output) -> Outcome {
        Ok(())
    }
}
