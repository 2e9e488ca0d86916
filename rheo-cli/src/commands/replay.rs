//! Making events claimable again.

use clap::{ArgGroup, Args};
use rheo::{Filter, Position, Query, ReplayOptions, Rheo, Timestamp};
use serde_json::json;

use crate::failure::Outcome;
use crate::output::Output;
use crate::parse;

/// Make events of a group claimable again: exactly one of the options says which
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("which").required(true)),
    after_help = "Example: rheo --url sqlite:rheo.db replay orders billing --matching type=paid"
)]
pub(crate) struct Replay {
    /// The stream
    stream: String,
    /// The group
    group: String,
    /// All events above this sequence
    #[arg(long, value_name = "SEQUENCE", group = "which")]
    after: Option<u64>,
    /// All events from the first one at or after this instant
    #[arg(long, value_name = "INSTANT", value_parser = parse::instant, group = "which")]
    from: Option<Timestamp>,
    /// The events that all of these filters find, as those of the command query
    #[arg(
        long, value_name = "FILTER", value_parser = parse::filter, num_args = 1.., group = "which"
    )]
    matching: Vec<Filter>,
    /// The events at these positions, such as 0-17,3-4
    #[arg(long, value_name = "POSITION", value_delimiter = ',', num_args = 1.., group = "which")]
    positions: Vec<Position>,
    /// The group's dead letters
    #[arg(long, group = "which")]
    dead_letters: bool,
    /// Only in these partitions; in all by default
    #[arg(long, value_name = "PARTITION", value_delimiter = ',', num_args = 1..)]
    partition: Vec<u32>,
}

impl Replay {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let Self { stream, group, .. } = self;
        let mut options = ReplayOptions::default();
        if !self.partition.is_empty() {
            options = options.partitions(&self.partition[..]);
        }
        rheo.replay(stream, group, self.which(), options).await?;
        let waiting = rheo.group_info(stream, group).await?.waiting();
        if output.json {
            let result = json!({ "stream": stream, "group": group, "waiting": waiting });
            return output.document(&result);
        }
        output.line(format!("group {group:?} of stream {stream:?} has {waiting} waiting"))
    }

    fn which(&self) -> rheo::Replay {
        if let Some(sequence) = self.after {
            rheo::Replay::AfterSequence(sequence)
        } else if let Some(instant) = self.from {
            rheo::Replay::From(instant)
        } else if self.dead_letters {
            rheo::Replay::DeadLetters
        } else if !self.positions.is_empty() {
            rheo::Replay::Positions(self.positions.clone())
        } else {
            rheo::Replay::Matching(self.matching.iter().cloned().fold(Query::new(), Query::filter))
        }
    }
}
