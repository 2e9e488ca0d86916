//! Reading a partition by sequence.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rheo::Rheo;

use crate::failure::Outcome;
use crate::output::Output;
use crate::show;

/// How many events are asked for at once: memory holds no more.
const PAGE: usize = 1000;

/// Read a partition by sequence
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db read orders 0 --after 17 --limit 10")]
pub(crate) struct Read {
    /// The stream
    stream: String,
    /// The partition
    partition: u32,
    /// Only events above this sequence
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    after: u64,
    /// Show at most so many
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,
}

impl Read {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let (mut after, mut left) = (self.after, self.limit);
        while left > 0 {
            let asked = left.min(PAGE);
            let events = rheo.read(&self.stream, self.partition, after, asked).await?;
            for event in &events {
                show::event(event, output)?;
                after = event.sequence();
            }
            left = if events.len() < asked { 0 } else { left - asked };
        }
        Ok(())
    }
}
