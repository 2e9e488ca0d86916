//! Finding events.

use std::pin::pin;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use futures::stream::{iter, try_unfold};
use futures::{Stream, StreamExt, TryStreamExt};
use rheo::{Event, Filter, MAX_BATCH, Position, Rheo, Timestamp};

use crate::failure::Outcome;
use crate::output::Output;
use crate::{parse, show};

/// How many events are asked for at once: memory holds no more.
const PAGE: usize = MAX_BATCH;

/// Find events
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url sqlite:rheo.db query orders type=order.placed \
                        'total>100' --since 2h --order desc --limit 20")]
pub(crate) struct Query {
    /// The stream
    stream: String,
    /// Only events for which this holds, such as type=price or 'price>2'; --help tells all
    #[arg(value_name = "FILTER", value_parser = parse::filter, long_help = parse::FILTERS)]
    filters: Vec<Filter>,
    /// Only events appended then or later: 2026-11-30T12:00:00Z, 2026-11-30, or 15m ago
    #[arg(long, value_name = "INSTANT", value_parser = parse::instant)]
    since: Option<Timestamp>,
    /// Only events appended before
    #[arg(long, value_name = "INSTANT", value_parser = parse::instant)]
    until: Option<Timestamp>,
    /// Only events above this sequence
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    after: u64,
    /// Only events up to this sequence, itself included
    #[arg(long, value_name = "SEQUENCE")]
    until_sequence: Option<u64>,
    /// Only events of this partition, or of these: 0,3
    #[arg(long, value_name = "PARTITION", value_delimiter = ',')]
    partition: Vec<u32>,
    /// By sequence: the lowest first, or the highest
    #[arg(long, value_enum, default_value_t = Order::Asc)]
    order: Order,
    /// Show at most so many
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    Asc,
    Desc,
}

impl Query {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let query = self.query().limit(self.limit.min(PAGE));
        match self.order {
            Order::Asc => self.print(rheo.query_stream(&self.stream, query), output).await,
            Order::Desc => self.print(descending(rheo, &self.stream, query), output).await,
        }
    }

    fn query(&self) -> rheo::Query {
        let mut query = rheo::Query::new().after_sequence(self.after);
        if let Some(sequence) = self.until_sequence {
            query = query.until_sequence(sequence);
        }
        if let Some(instant) = self.since {
            query = query.since(instant);
        }
        if let Some(instant) = self.until {
            query = query.before(instant);
        }
        if !self.partition.is_empty() {
            query = query.partitions(self.partition.iter().copied());
        }
        self.filters.iter().cloned().fold(query, rheo::Query::filter)
    }

    async fn print(
        &self,
        found: impl Stream<Item = rheo::Result<Event>>,
        output: Output,
    ) -> Outcome {
        let mut found = pin!(found.take(self.limit));
        while let Some(event) = found.try_next().await? {
            show::event(&event, output)?;
        }
        Ok(())
    }
}

/// All events that match, the highest sequence first, fetched by pages.
///
/// A page begins with the last sequence of the page before, since that can
/// have more events in other partitions; those that were there are left out.
fn descending(
    rheo: &Rheo,
    stream: &str,
    query: rheo::Query,
) -> impl Stream<Item = rheo::Result<Event>> {
    let query = query.descending();
    let page = move |last: Option<Position>| {
        let query = match last {
            Some(last) => query.clone().until_sequence(last.sequence),
            None => query.clone(),
        };
        async move { rheo.query(stream, &query).await }
    };
    let pages = try_unfold(Some(None), move |from: Option<Option<Position>>| {
        let page = from.map(&page);
        async move {
            let (Some(last), Some(page)) = (from, page) else { return Ok(None) };
            let events = page.await?;
            let full = events.last().filter(|_| events.len() == PAGE);
            let next = full.map(|event| Some(event.position()));
            let new = move |event: &Event| last.is_none_or(|last| event.position() < last);
            Ok(Some((iter(events.into_iter().filter(new).map(Ok)), next)))
        }
    });
    pages.try_flatten()
}
