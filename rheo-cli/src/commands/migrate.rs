//! placeholder of migrate

use clap::Args;

use crate::failure::Outcome;
use crate::output::Output;

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct Migrate {}

impl Migrate {
    pub(crate) async fn run(&self, _url: &str, _output: Output) -> Outcome {
        Ok(())
    }
}
