//! Looking at streams, groups and the store.

use std::time::Instant;

use clap::Args;
use rheo::{Guarantee, Mechanism, Position, Rheo};
use serde::Serialize;

use crate::failure::Outcome;
use crate::output::{Output, Table};
use crate::show::DeadLetterJson;

/// List the streams
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db streams")]
pub(crate) struct Streams {}

#[derive(Serialize)]
struct StreamLine {
    name: String,
    partitions: u32,
    events: u64,
}

impl Streams {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let mut lines = Vec::new();
        for stream in rheo.list_streams().await? {
            let name = stream.name.to_string();
            let events = rheo.last_sequences(&name).await?.iter().sum();
            lines.push(StreamLine { name, partitions: stream.partitions, events });
        }
        output.show(&lines, |lines| {
            let mut table = Table::new(["STREAM", "PARTITIONS", "EVENTS"]);
            for line in lines {
                table.row([&line.name, &line.partitions.to_string(), &line.events.to_string()]);
            }
            table
        })
    }
}

/// List the groups of a stream
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db groups orders")]
pub(crate) struct Groups {
    /// The stream
    stream: String,
}

/// A group in a list.
#[derive(Serialize)]
struct GroupLine {
    name: String,
    lag: u64,
    leased: u64,
    waiting: u64,
    dead_letters: u64,
    max_attempts: u32,
    ordered: bool,
}

impl Groups {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let mut lines = Vec::new();
        for name in rheo.list_groups(&self.stream).await? {
            let info = rheo.group_info(&self.stream, name.as_str()).await?;
            lines.push(GroupLine {
                name: name.to_string(),
                lag: info.lag(),
                leased: info.leased(),
                waiting: info.waiting(),
                dead_letters: info.dead_letters(),
                max_attempts: info.max_attempts,
                ordered: info.ordered,
            });
        }
        output.show(&lines, |lines| {
            let heads =
                ["GROUP", "LAG", "LEASED", "WAITING", "DEAD LETTERS", "ATTEMPTS", "ORDERED"];
            let mut table = Table::new(heads);
            for line in lines {
                let ordered = if line.ordered { "yes" } else { "no" };
                let numbers = [line.lag, line.leased, line.waiting, line.dead_letters];
                let numbers = numbers.map(|number| number.to_string());
                let attempts = line.max_attempts.to_string();
                let cells = [line.name.clone()].into_iter().chain(numbers);
                table.row(cells.chain([attempts, ordered.into()]));
            }
            table
        })
    }
}

/// Show how far groups are behind, by partition
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db lag orders billing")]
pub(crate) struct Lag {
    /// The stream
    stream: String,
    /// One of its groups; all by default
    group: Option<String>,
}

/// A group in one partition.
#[derive(Serialize)]
struct LagLine {
    group: String,
    partition: usize,
    high_watermark: u64,
    frontier: u64,
    lag: u64,
}

impl Lag {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let groups = match &self.group {
            Some(group) => vec![group.clone()],
            None => {
                let names = rheo.list_groups(&self.stream).await?;
                names.iter().map(ToString::to_string).collect()
            }
        };
        let mut lines = Vec::new();
        for group in groups {
            let progress = rheo.lag(&self.stream, &group).await?.partitions;
            lines.extend(progress.iter().enumerate().map(|(partition, progress)| LagLine {
                group: group.clone(),
                partition,
                high_watermark: progress.high_watermark,
                frontier: progress.frontier,
                lag: progress.lag(),
            }));
        }
        output.show(&lines, |lines| {
            let mut table = Table::new(["GROUP", "PARTITION", "LAST", "FRONTIER", "LAG"]);
            for line in lines {
                let numbers = [line.partition as u64, line.high_watermark, line.frontier, line.lag];
                let numbers = numbers.map(|number| number.to_string());
                table.row([line.group.clone()].into_iter().chain(numbers));
            }
            table
        })
    }
}

/// Show a group's settings and progress
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db info orders billing")]
pub(crate) struct Info {
    /// The stream
    stream: String,
    /// The group
    group: String,
}

impl Info {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let info = rheo.group_info(&self.stream, &self.group).await?;
        if output.json {
            return output.document(&info);
        }
        let ordered = if info.ordered { ", ordered" } else { "" };
        output.line(format!("at most {} attempts{ordered}", info.max_attempts))?;
        let heads = ["PARTITION", "LAST", "FRONTIER", "LAG", "LEASED", "WAITING", "DEAD LETTERS"];
        let mut table = Table::new(heads);
        for (partition, progress) in info.partitions.iter().enumerate() {
            table.row([
                partition as u64,
                progress.high_watermark,
                progress.frontier,
                progress.lag(),
                progress.leased,
                progress.waiting,
                progress.dead_letters,
            ]);
        }
        output.table(&table)
    }
}

/// List a group's dead letters, oldest first
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db dead-letters orders billing --limit 20")]
pub(crate) struct DeadLetters {
    /// The stream
    stream: String,
    /// The group
    group: String,
    /// Show at most so many
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Go on after the dead letter at this position, such as 0-17
    #[arg(long, value_name = "POSITION")]
    after: Option<Position>,
}

impl DeadLetters {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let letters = rheo.dead_letters(&self.stream, &self.group, self.limit, self.after).await?;
        if output.json {
            let letters: Result<Vec<_>, _> = letters.iter().map(DeadLetterJson::new).collect();
            return output.document(&letters?);
        }
        let mut table = Table::new(["POSITION", "SINCE", "TYPE", "ATTEMPT", "REASON"]);
        for letter in &letters {
            table.row([
                letter.position().to_string(),
                letter.dead_at.to_string(),
                letter.event.event_type().to_string(),
                letter.attempt.to_string(),
                letter.reason.clone(),
            ]);
        }
        output.table(&table)
    }
}

/// Show what the store promises
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db capabilities")]
pub(crate) struct Capabilities {}

impl Capabilities {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let capabilities = rheo.capabilities();
        if output.json {
            return output.document(&capabilities);
        }
        let mut table = Table::new(["PROMISE OR MEANS", "HELD"]);
        let held = |held: bool| if held { "yes" } else { "no" };
        for &guarantee in Guarantee::ALL {
            table.row([guarantee.as_str(), held(capabilities.guarantees.get(guarantee))]);
        }
        for &mechanism in Mechanism::ALL {
            table.row([mechanism.as_str(), held(capabilities.mechanisms.get(mechanism))]);
        }
        output.table(&table)?;
        output.line(format!("largest event: {} bytes", capabilities.limits.event_bytes))
    }
}

/// Ask the store for a sign of life
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db ping")]
pub(crate) struct Ping {}

#[derive(Serialize)]
struct Answer {
    product: String,
    version: String,
    milliseconds: f64,
}

impl Ping {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let asked = Instant::now();
        let server = rheo.ping().await?;
        let milliseconds = asked.elapsed().as_secs_f64() * 1000.0;
        if output.json {
            let (product, version) = (server.product, server.version);
            return output.document(&Answer { product, version, milliseconds });
        }
        output
            .line(format!("{} {} answers in {milliseconds:.1} ms", server.product, server.version))
    }
}
