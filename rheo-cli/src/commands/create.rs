//! Creating streams and groups.

use clap::Args;
use rheo::{GroupOptions, Rheo, Start};
use serde_json::json;

use crate::failure::Outcome;
use crate::output::Output;
use crate::parse;

/// Create a stream
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db create-stream orders --partitions 4")]
pub(crate) struct CreateStream {
    /// Its name
    stream: String,
    /// How many partitions it has for good, up to 1024
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    partitions: u32,
}

impl CreateStream {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let Self { stream, partitions } = self;
        rheo.create_stream(stream, *partitions).await?;
        if output.json {
            return output.document(&json!({ "stream": stream, "partitions": partitions }));
        }
        let plural = if *partitions == 1 { "" } else { "s" };
        output.line(format!("stream {stream:?} is there, with {partitions} partition{plural}"))
    }
}

/// Create a group
#[derive(Debug, Args)]
#[command(
    after_help = "Example: rheo --url sqlite:rheo.db create-group orders billing --start end"
)]
pub(crate) struct CreateGroup {
    /// The stream
    stream: String,
    /// The group's name
    group: String,
    /// How often an event is handed out at most; 5 by default
    #[arg(long, value_name = "COUNT")]
    max_attempts: Option<u32>,
    /// Deliver each partition strictly in order, through retries
    #[arg(long)]
    ordered: bool,
    /// Where it begins: beginning, end, after:SEQUENCE (or one for each
    /// partition, as in after:3,5), or at:INSTANT
    #[arg(long, value_parser = start, default_value = "beginning")]
    start: Start,
}

impl CreateGroup {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let Self { stream, group, max_attempts, ordered, start } = self;
        let mut options = GroupOptions::default().ordered(*ordered).start(start.clone());
        if let Some(max_attempts) = max_attempts {
            options = options.max_attempts(*max_attempts);
        }
        rheo.create_group(stream, group, options).await?;
        if output.json {
            return output.document(&json!({ "stream": stream, "group": group }));
        }
        output.line(format!("group {group:?} of stream {stream:?} is there"))
    }
}

/// Where a group begins, as people write it.
pub(super) fn start(text: &str) -> Result<Start, String> {
    let wanted = "beginning, end, after:17, after:3,5 or at:2026-03-15T12:00:00Z is wanted";
    match text.split_once(':') {
        None if text == "beginning" => Ok(Start::Beginning),
        None if text == "end" => Ok(Start::End),
        Some(("after", list)) => {
            let sequences: Result<Vec<u64>, _> = list.split(',').map(str::parse).collect();
            match sequences.map_err(|_| wanted)?[..] {
                [sequence] => Ok(Start::AfterSequence(sequence)),
                ref sequences => Ok(Start::AfterSequences(sequences.into())),
            }
        }
        Some(("at", instant)) => parse::instant(instant).map(Start::At),
        _ => Err(wanted.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_read() {
        assert_eq!(start("beginning"), Ok(Start::Beginning));
        assert_eq!(start("end"), Ok(Start::End));
        assert_eq!(start("after:17"), Ok(Start::AfterSequence(17)));
        assert_eq!(start("after:3,5"), Ok(Start::AfterSequences(vec![3, 5])));
        let noon = "2026-03-15T12:00:00Z".parse().unwrap();
        assert_eq!(start("at:2026-03-15T12:00:00Z"), Ok(Start::At(noon)));
    }

    #[test]
    fn what_is_no_start_is_told() {
        for text in ["", "middle", "after", "after:", "after:1,", "after:-1", "before:3"] {
            assert!(start(text).unwrap_err().contains("after:17"), "{text}");
        }
        assert!(start("at:noon-ish").is_err());
    }
}
