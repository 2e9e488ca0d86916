//! Showing the latest events, and those that follow.

use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use futures::{StreamExt, TryStreamExt};
use rheo::{Event, Filter, Query, Rheo};

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::signals::Signals;
use crate::{parse, show};

/// How many events of a partition are asked for at once.
const PAGE: usize = 1000;

/// How many partitions are asked at once.
const AT_ONCE: usize = 4;

/// Show the latest events, and go on with -f
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db tail orders type=order.placed -n 5 -f")]
pub(crate) struct Tail {
    /// The stream
    stream: String,
    /// Only events for which this holds, such as type=price or 'price>2'; --help tells all
    #[arg(value_name = "FILTER", value_parser = parse::filter, long_help = parse::FILTERS)]
    filters: Vec<Filter>,
    /// Begin with so many of the latest events
    #[arg(
        short = 'n',
        long,
        default_value_t = 10,
        value_parser = RangedU64ValueParser::<usize>::new().range(..=10_000)
    )]
    lines: usize,
    /// Go on with what is appended, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// How often to look for more, such as 500ms or 5s
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse::duration)]
    poll: Duration,
}

impl Tail {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        if self.poll.is_zero() {
            return Err(Failure::usage(
                "--poll is the pause between two looks, as in 500ms, not 0",
            ));
        }
        let ends = rheo.last_sequences(&self.stream).await?;
        if self.lines > 0 {
            print(&self.latest(rheo, &ends).await?, output)?;
        }
        if !self.follow {
            return Ok(());
        }
        let mut signals = Signals::catch()?;
        tokio::select! {
            outcome = self.go_on(rheo, ends, output) => outcome,
            () = signals.next() => Ok(()),
        }
    }

    /// The latest events up to `ends`, over all partitions.
    async fn latest(&self, rheo: &Rheo, ends: &[u64]) -> rheo::Result<Vec<Event>> {
        let latest = (0..).zip(ends).map(|(partition, &end)| async move {
            let query = self.query(partition).until_sequence(end).descending().limit(self.lines);
            let mut events = rheo.query(&self.stream, &query).await?;
            events.reverse();
            rheo::Result::Ok(events)
        });
        let lists = futures::stream::iter(latest).buffered(AT_ONCE).try_collect().await?;
        let mut events = by_time(lists);
        events.drain(..events.len().saturating_sub(self.lines));
        Ok(events)
    }

    /// Prints what comes after `seen`, for each partition, without end.
    async fn go_on(&self, rheo: &Rheo, mut seen: Vec<u64>, output: Output) -> Outcome {
        loop {
            let ends = rheo.last_sequences(&self.stream).await?;
            let anew = ends.len() != seen.len() || ends.iter().zip(&seen).any(|(end, at)| end < at);
            if anew {
                // The stream was deleted, and created again.
                seen = vec![0; ends.len()];
            }
            let mut lists = Vec::new();
            for ((partition, at), &end) in (0..).zip(&mut seen).zip(&ends) {
                if *at < end {
                    let events = self.between(rheo, partition, *at, end).await?;
                    let full = events.last().filter(|_| events.len() == PAGE);
                    *at = full.map_or(end, Event::sequence);
                    lists.push(events);
                }
            }
            print(&by_time(lists), output)?;
            if seen == ends {
                tokio::time::sleep(self.poll).await;
            }
        }
    }

    /// A page of the events of a partition that lie above `after`, up to `end`.
    async fn between(
        &self,
        rheo: &Rheo,
        partition: u32,
        after: u64,
        end: u64,
    ) -> rheo::Result<Vec<Event>> {
        let query = self.query(partition).after_sequence(after).until_sequence(end).limit(PAGE);
        rheo.query(&self.stream, &query).await
    }

    fn query(&self, partition: u32) -> Query {
        self.filters.iter().cloned().fold(Query::new().partition(partition), Query::filter)
    }
}

fn print(events: &[Event], output: Output) -> Outcome {
    events.iter().try_for_each(|event| show::event(event, output))
}

/// The events of several partitions by time. Those of one partition stay in
/// their order, also where the clocks of their producers differ.
fn by_time(lists: Vec<Vec<Event>>) -> Vec<Event> {
    let mut lists: Vec<_> = lists.into_iter().map(|list| list.into_iter().peekable()).collect();
    let mut merged = Vec::new();
    loop {
        let heads = lists.iter_mut().filter_map(|list| Some((list.peek()?.timestamp(), list)));
        let Some((_, earliest)) = heads.min_by_key(|(timestamp, _)| *timestamp) else {
            return merged;
        };
        merged.extend(earliest.next());
    }
}
