//! placeholder of destroy

use clap::Args;
use rheo::Rheo;

use crate::failure::Outcome;
use crate::output::Output;

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct Reset {}

impl Reset {
    pub(crate) async fn run(&self, _rheo: &Rheo, _output: Output) -> Outcome {
        Ok(())
    }
}

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct DeleteGroup {}

impl DeleteGroup {
    pub(crate) async fn run(&self, _rheo: &Rheo, _output: Output) -> Outcome {
        Ok(())
    }
}

/// Placeholder.
#[derive(Debug, Args)]
pub(crate) struct DeleteStream {}

impl DeleteStream {
    pub(crate) async fn run(&self, _rheo: &Rheo, _output: Output) -> Outcome {
        Ok(())
    }
}
