//! The command `rheo`: for the person who operates what the library does.
//!
//! It ends with 0 where all was done, with 1 where something was refused or
//! failed, which a sentence on standard error tells, and with 2 where the
//! command line is wrong.

mod cli;
mod commands;
mod failure;
mod output;
mod parse;
mod show;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use cli::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = output::Output::new(cli.json);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failure::Failure::new(format!("no runtime: {error}")).tell(),
    };
    match runtime.block_on(commands::run(&cli, &output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
