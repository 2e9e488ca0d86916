//! Appending: one event from arguments, or the events of a file.

mod feed;
mod fields;
mod ids;
mod input;
mod lines;
mod rows;
mod tally;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, value_parser};
use rheo::{MAX_BATCH, Rheo};
use serde_json::value::{RawValue, to_raw_value};

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::show::EventJson;
use feed::Feed;
use fields::{Fields, Maker, Own};
use input::{Entry, Lines};
use tally::{Screen, Tally};
use write::Writer;

const ABOUT: &str = "\
A line of NDJSON is an event: an object with type and payload and, where it has them, \
key, id, partition and metadata, as the other commands print events. With --type or \
--type-field the whole object is the payload. What a line says itself comes before \
the options.

An id is an idempotency key within its partition: with ids, the same file can be \
appended again, and nothing goes in twice. An id that is no UUID becomes one, of \
version 5: uuid5(uuid5(NAMESPACE_URL, \"rheo:STREAM\"), id). Of several --id-field, the \
id is the compact JSON array of their texts.

Nothing of a batch with a bad line is written, unless --skip-bad. Batches before it \
are, and the answer tells the line to go on from.";

const EXAMPLES: &str = "\
Example: rheo --url sqlite:rheo.db append orders --type placed '{\"total\": 12.5}'
         rheo --url sqlite:rheo.db append market --ndjson market.ndjson
         rheo --url sqlite:rheo.db append orders --type placed --csv < orders.csv";

/// Append events from arguments, NDJSON or CSV
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("source").required(true).args(["payload", "ndjson", "csv"]),
    after_help = EXAMPLES,
    after_long_help = format!("{ABOUT}\n\n{EXAMPLES}"),
)]
pub(crate) struct Append {
    /// The stream
    stream: String,

    /// The payload of one event, as JSON
    #[arg(allow_negative_numbers = true)]
    payload: Option<String>,

    /// Take the payload as a string, whatever it looks like
    #[arg(long, requires = "payload")]
    text: bool,

    /// Append the events of a file, a JSON object on each line; - is standard input
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    ndjson: Option<PathBuf>,

    /// Append the rows of a file, with the header's columns as fields; - is standard input
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    csv: Option<PathBuf>,

    /// Take numbers, true, false, null and empty cells of CSV as such, not as strings
    #[arg(long, requires = "csv")]
    infer: bool,

    #[command(flatten)]
    fields: Fields,

    /// How many events are appended at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        conflicts_with = "payload",
        value_parser = value_parser!(u64).range(1..=MAX_BATCH as u64),
    )]
    batch: u64,

    /// The line to begin with
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "payload",
        value_parser = value_parser!(u64).range(1..),
    )]
    from_line: u64,

    /// Leave bad lines out, and append the others of their batch
    #[arg(long, conflicts_with = "payload")]
    skip_bad: bool,
}

impl Append {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let maker = Maker { stream: self.stream.clone(), fields: self.fields.clone() };
        if self.ndjson.is_none() && !maker.knows_type() {
            return Err(Failure::usage("which type? --type or --type-field says so"));
        }
        let writer = Writer { rheo, stream: &self.stream };
        match (&self.payload, &self.ndjson, &self.csv) {
            (Some(payload), ..) => self.append_one(&maker, payload, &writer, output).await,
            (_, Some(path), _) => {
                let (lines, size) = self.open(path, rheo).await?;
                self.append_all(lines::NdJson { lines, maker }, size, writer, output).await
            }
            (_, _, Some(path)) => {
                let (lines, size) = self.open(path, rheo).await?;
                let rows = rows::Csv::new(lines, self.infer, maker)?;
                self.append_all(rows, size, writer, output).await
            }
            // The group of arguments is required.
            (None, None, None) => Err(Failure::usage("append what? PAYLOAD, --ndjson or --csv")),
        }
    }

    /// Opens the input of a stream that is there.
    async fn open(&self, path: &Path, rheo: &Rheo) -> Result<(Lines, Option<u64>), Failure> {
        rheo.partitions(&self.stream).await?;
        input::open(path)
    }

    async fn append_one(
        &self,
        maker: &Maker,
        payload: &str,
        writer: &Writer<'_>,
        output: Output,
    ) -> Outcome {
        let payload = self.payload(payload)?;
        let draft = lines::of_payload(maker, Own::default(), &payload);
        let written = writer.write(vec![draft.map_err(Failure::usage)?]).await?;
        for event in &written.events {
            if output.json {
                output.document(&EventJson::new(event)?)?;
            } else {
                let known = if written.appended == 0 { "  (there already)" } else { "" };
                output.line(format!("{}  {}{known}", event.position(), event.id()))?;
            }
        }
        Ok(())
    }

    fn payload(&self, payload: &str) -> Result<Box<RawValue>, Failure> {
        let raw = match self.text {
            true => to_raw_value(payload),
            false => serde_json::from_str(payload),
        };
        raw.map_err(|error| {
            Failure::usage(format!("the payload is no JSON ({error}); --text takes it as a string"))
        })
    }

    async fn append_all(
        &self,
        entries: impl Iterator<Item = io::Result<Entry>> + Send + 'static,
        size: Option<u64>,
        writer: Writer<'_>,
        output: Output,
    ) -> Outcome {
        let from = self.from_line;
        let to_do = move |entry: &io::Result<Entry>| match entry {
            Ok(entry) => entry.first >= from,
            Err(_) => true,
        };
        let entries = input::read_ahead(entries.filter(to_do));
        let tally = Tally {
            stream: self.stream.clone(),
            read: 0,
            appended: 0,
            known: 0,
            skipped: 0,
            last_line: from - 1,
        };
        let mut feed = Feed {
            writer,
            batch: usize::try_from(self.batch).unwrap_or(MAX_BATCH),
            skip_bad: self.skip_bad,
            screen: Screen::new(size),
            tally,
        };
        let outcome = feed.run(entries).await;
        feed.screen.end();
        if output.json {
            output.document(&feed.tally)?;
        } else {
            feed.screen.tell(&feed.tally.sentence());
        }
        outcome
    }
}
