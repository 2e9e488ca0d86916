//! What cannot be undone: it asks on a terminal, and wants `--yes` elsewhere.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use rheo::{Confirm, Rheo, Start};
use serde_json::json;

use super::create::start;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, counted};

/// Let a group begin anew: its progress, leases and dead letters are forgotten
#[derive(Debug, Args)]
#[command(
    after_help = "Example: rheo --url sqlite:rheo.db reset orders billing --start beginning --yes"
)]
pub(crate) struct Reset {
    /// The stream
    stream: String,
    /// The group
    group: String,
    /// Where it begins: beginning, end, after:SEQUENCE (or one for each
    /// partition, as in after:3,5), or at:INSTANT
    #[arg(long, value_parser = start)]
    start: Start,
    #[command(flatten)]
    meant: Meant,
}

impl Reset {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let Self { stream, group, start, meant } = self;
        let info = rheo.group_info(stream, group).await?;
        let lost = format!(
            "this makes group {group:?} of stream {stream:?} forget its progress and {}",
            counted(info.dead_letters(), "dead letter")
        );
        let confirm = meant.confirm(&lost, group)?;
        rheo.reset_group(stream, group, confirm, start.clone()).await?;
        if output.json {
            return output.document(&json!({ "stream": stream, "group": group }));
        }
        output.line(format!("group {group:?} of stream {stream:?} begins anew"))
    }
}

/// Delete a group
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db delete-group orders billing --yes")]
pub(crate) struct DeleteGroup {
    /// The stream
    stream: String,
    /// The group
    group: String,
    #[command(flatten)]
    meant: Meant,
}

impl DeleteGroup {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let Self { stream, group, meant } = self;
        let info = rheo.group_info(stream, group).await?;
        let lost = format!(
            "this deletes group {group:?} of stream {stream:?} with its progress and {}",
            counted(info.dead_letters(), "dead letter")
        );
        let confirm = meant.confirm(&lost, group)?;
        rheo.delete_group(stream, group, confirm).await?;
        if output.json {
            return output.document(&json!({ "stream": stream, "group": group }));
        }
        output.line(format!("group {group:?} of stream {stream:?} is deleted"))
    }
}

/// Delete a stream, its events and its groups
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db delete-stream orders --yes")]
pub(crate) struct DeleteStream {
    /// The stream
    stream: String,
    #[command(flatten)]
    meant: Meant,
}

impl DeleteStream {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let Self { stream, meant } = self;
        let events = rheo.last_sequences(stream).await?.iter().sum();
        let groups = rheo.list_groups(stream).await?.len() as u64;
        let lost = format!(
            "this deletes stream {stream:?} with {} and {}",
            counted(events, "event"),
            counted(groups, "group")
        );
        let confirm = meant.confirm(&lost, stream)?;
        rheo.delete_stream(stream, confirm).await?;
        if output.json {
            return output.document(&json!({ "stream": stream }));
        }
        output.line(format!("stream {stream:?} is deleted"))
    }
}

/// Whether it is meant.
#[derive(Debug, Args)]
struct Meant {
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

impl Meant {
    /// Asks for the name of what would be lost, where there is someone to ask.
    fn confirm(&self, lost: &str, name: &str) -> Result<Confirm, Failure> {
        if self.yes {
            return Ok(Confirm::Yes);
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(Failure::new(format!("{lost}, for good: --yes says that it is meant")));
        }
        let mut asked = io::stderr().lock();
        write!(asked, "{lost}, for good.\nIts name, if that is meant: ")?;
        asked.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        match answer.trim() == name {
            true => Ok(Confirm::Yes),
            false => Err(Failure::new("that is another name: nothing was done")),
        }
    }
}
