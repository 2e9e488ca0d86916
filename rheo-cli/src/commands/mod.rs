//! The commands, a file for each subject. Each has its arguments as a struct
//! and a `run`.

pub(crate) mod append;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod conformance;
pub(crate) mod consume;
pub(crate) mod create;
pub(crate) mod destroy;
pub(crate) mod inspect;
pub(crate) mod migrate;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod replay;
pub(crate) mod tail;
pub(crate) mod watch;

use rheo::Rheo;

use crate::cli::{Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Carries out what the command line asks for.
pub(crate) async fn run(cli: &Cli, output: &Output) -> Outcome {
    let output = *output;
    match &cli.command {
        Command::Streams(args) => args.run(&connect(cli).await?, output).await,
        Command::Groups(args) => args.run(&connect(cli).await?, output).await,
        Command::Lag(args) => args.run(&connect(cli).await?, output).await,
        Command::Info(args) => args.run(&connect(cli).await?, output).await,
        Command::DeadLetters(args) => args.run(&connect(cli).await?, output).await,
        Command::Capabilities(args) => args.run(&connect(cli).await?, output).await,
        Command::Ping(args) => args.run(&connect(cli).await?, output).await,
        Command::Watch(args) => args.run(&connect(cli).await?, output).await,
        Command::Query(args) => args.run(&connect(cli).await?, output).await,
        Command::Read(args) => args.run(&connect(cli).await?, output).await,
        Command::Tail(args) => args.run(&connect(cli).await?, output).await,
        Command::Append(args) => args.run(&connect(cli).await?, output).await,
        Command::Consume(args) => args.run(&connect(cli).await?, output).await,
        Command::CreateStream(args) => args.run(&connect(cli).await?, output).await,
        Command::CreateGroup(args) => args.run(&connect(cli).await?, output).await,
        Command::Replay(args) => args.run(&connect(cli).await?, output).await,
        Command::Reset(args) => args.run(&connect(cli).await?, output).await,
        Command::DeleteGroup(args) => args.run(&connect(cli).await?, output).await,
        Command::DeleteStream(args) => args.run(&connect(cli).await?, output).await,
        Command::Migrate(args) => args.run(cli, output).await,
        Command::Conformance(args) => args.run(url(cli)?, output).await,
        Command::Bench(args) => args.run(cli.url.as_deref(), output).await,
        Command::Completions(args) => args.run(),
    }
}

/// The store's URL.
fn url(cli: &Cli) -> Result<&str, Failure> {
    cli.url.as_deref().ok_or_else(|| {
        Failure::usage("which store? --url sqlite:rheo.db says so, or the variable RHEO_URL")
    })
}

async fn connect(cli: &Cli) -> Result<Rheo, Failure> {
    Ok(rheo::connect(url(cli)?).await?)
}
