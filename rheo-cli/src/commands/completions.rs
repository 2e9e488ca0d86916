//! Completions for the usual shells.

use std::io;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Outcome;

/// For which shell.
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo completions bash > /etc/bash_completion.d/rheo")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Outcome {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "rheo", &mut text);
        Ok(io::Write::write_all(&mut io::stdout(), &text)?)
    }
}
