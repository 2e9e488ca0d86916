//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    append, bench, completions, conformance, consume, create, destroy, inspect, migrate, query,
    read, replay, tail, watch,
};

/// See, query, feed, consume, replay and measure event logs on any backend of Rheo.
#[derive(Debug, Parser)]
#[command(name = "rheo", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The store, such as sqlite:rheo.db or postgres://user@host/database
    #[arg(long, global = true, env = "RHEO_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,

    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the streams
    Streams(inspect::Streams),
    /// List the groups of a stream
    Groups(inspect::Groups),
    /// Show how far groups are behind, by partition
    Lag(inspect::Lag),
    /// Show a group's settings and progress
    Info(inspect::Info),
    /// List a group's dead letters, oldest first
    DeadLetters(inspect::DeadLetters),
    /// Show what the store promises
    Capabilities(inspect::Capabilities),
    /// Ask the store for a sign of life
    Ping(inspect::Ping),
    /// Watch lag, rates and dead letters, redrawn in place
    Watch(watch::Watch),
    /// Find events
    Query(query::Query),
    /// Read a partition by sequence
    Read(read::Read),
    /// Show the latest events, and go on with -f
    Tail(tail::Tail),
    /// Append events from arguments, NDJSON or CSV
    Append(append::Append),
    /// Run a command for each event of a group
    Consume(consume::Consume),
    /// Create a stream
    CreateStream(create::CreateStream),
    /// Create a group
    CreateGroup(create::CreateGroup),
    /// Make events of a group claimable again
    Replay(replay::Replay),
    /// Let a group begin anew
    Reset(destroy::Reset),
    /// Delete a group
    DeleteGroup(destroy::DeleteGroup),
    /// Delete a stream, its events and its groups
    DeleteStream(destroy::DeleteStream),
    /// Make a SQL database ready, or print the SQL that does
    Migrate(migrate::Migrate),
    /// Run the conformance suite on a store, under a prefix of its own
    Conformance(conformance::Conformance),
    /// Measure a store, also against its bare driver
    Bench(bench::Bench),
    /// Print completions for a shell
    Completions(completions::Completions),
}
