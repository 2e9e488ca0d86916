//! placeholder of create

use clap::Args;
use rheo::Rheo;

use crate::failure::Outcome;
use crate::output::Output;

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct CreateStream {}

impl CreateStream {
    pub(crate) async fn run(&self, _rheo: &Rheo, _output: Output) -> Outcome {
        Ok(())
    }
}

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct CreateGroup {}

impl CreateGroup {
    pub(crate) async fn run(&self, _rheo: &Rheo, _output: Output) -> Outcome {
        Ok(())
    }
}
