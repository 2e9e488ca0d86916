//! Searching.

use rheo_core::backend::{Range, Search};
use rheo_core::{Condition, Event, Field, Filter, Order, Position, Result, Timestamp};
use tokio::task::coop::consume_budget;

use crate::Memory;
use crate::index::Term;
use crate::partition::Span;
use crate::store::Stream;

/// How many events are copied out under a partition's lock at a time.
const PIECE: usize = 1024;
/// The length of the first window, where the limit does not ask for more.
const FIRST_WINDOW: u64 = 64;

impl Memory {
    pub(crate) async fn search_events(&self, request: &Search) -> Result<Vec<Event>> {
        let stream = self.stream("search", &request.stream)?;
        let of_filter = |filter| stream.vocabulary.of_filter(filter);
        let finder = Finder {
            stream: &stream,
            request,
            wanted: request.filters.iter().filter_map(of_filter).collect(),
            spans: spans(&stream, request),
        };
        Ok(finder.run().await)
    }
}

/// Where to look in each range: as far as the log goes now, and from the first
/// event that a time filter allows.
fn spans(stream: &Stream, request: &Search) -> Vec<Span> {
    let since = request.filters.iter().filter_map(lower_bound).max();
    let span = |range: &Range| {
        let log = &stream.partition(range.partition).read().log;
        let last = range.last.min(log.high_watermark());
        let earliest = since.map_or(Some(1), |instant| log.first_at(instant));
        let first = earliest.map_or(u64::MAX, |sequence| sequence.max(range.first));
        Span { first, last }
    };
    request.ranges.iter().map(span).collect()
}

/// The instant before which no event matches the filter.
fn lower_bound(filter: &Filter) -> Option<Timestamp> {
    match (filter.field(), filter.condition()) {
        (Field::Timestamp, Condition::GreaterOrEqual(value) | Condition::Greater(value)) => {
            value.as_str()?.parse().ok()
        }
        _ => None,
    }
}

struct Finder<'a> {
    stream: &'a Stream,
    request: &'a Search,
    /// What the index can say, for each filter that it can say something about.
    wanted: Vec<Vec<Term>>,
    /// Where to look, for each range of the request.
    spans: Vec<Span>,
}

impl Finder<'_> {
    /// Walks all partitions side by side, window after window, since their
    /// events come in the order of their sequences.
    async fn run(&self) -> Vec<Event> {
        let mut found = Vec::new();
        for window in self.windows() {
            let missing = self.request.limit - found.len();
            if missing == 0 {
                break;
            }
            found.extend(self.find_in(window, missing).await);
        }
        found
    }

    /// Each window is twice as long as the one before: few for what is rare,
    /// short for what is not.
    fn windows(&self) -> impl Iterator<Item = Span> + use<> {
        let spans = || self.spans.iter().filter(|span| !span.is_empty());
        let order = self.request.order;
        let mut rest = Span {
            first: spans().map(|span| span.first).min().unwrap_or(1),
            last: spans().map(|span| span.last).max().unwrap_or(0),
        };
        let mut length = FIRST_WINDOW.max(self.request.limit.min(PIECE) as u64);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let window = match order {
                Order::Ascending => Span { last: rest.first.saturating_add(length - 1), ..rest },
                Order::Descending => Span { first: rest.last.saturating_sub(length - 1), ..rest },
            };
            let window = window.and(rest);
            rest = match order {
                Order::Ascending => rest.beyond(window.last, order),
                Order::Descending => rest.beyond(window.first, order),
            };
            length = length.saturating_mul(2);
            Some(window)
        })
    }

    /// The first `limit` events of the window that match.
    async fn find_in(&self, mut window: Span, limit: usize) -> Vec<Event> {
        let mut found: Vec<Event> = Vec::new();
        for (range, &span) in self.request.ranges.iter().zip(&self.spans) {
            let matches = self.find_in_partition(range.partition, span.and(window), limit).await;
            if matches.is_empty() {
                continue;
            }
            found.extend(matches);
            match self.request.order {
                Order::Ascending => found.sort_by_key(Event::position),
                Order::Descending => found.sort_by_key(|event| std::cmp::Reverse(event.position())),
            }
            found.truncate(limit);
            if let (true, Some(last)) = (found.len() == limit, found.last()) {
                // Whatever lies beyond comes too late.
                match self.request.order {
                    Order::Ascending => window.last = last.sequence(),
                    Order::Descending => window.first = last.sequence(),
                }
            }
        }
        found
    }

    /// The first `limit` events of one partition's span that match.
    async fn find_in_partition(&self, partition: u32, mut span: Span, limit: usize) -> Vec<Event> {
        let (order, log) = (self.request.order, self.stream.partition(partition));
        let mut found = Vec::new();
        while !span.is_empty() {
            let piece = log.read().candidates(span, &self.wanted, order, PIECE);
            // A long search lets others of its thread have their turn.
            consume_budget().await;
            let Some(&(last, _)) = piece.last() else {
                break;
            };
            for (sequence, body) in piece {
                let position = Position::new(partition, sequence);
                let event = Event::new(self.request.stream.name.clone(), position, body);
                if Filter::matches_all(&self.request.filters, &event) {
                    found.push(event);
                    if found.len() == limit {
                        return found;
                    }
                }
            }
            span = span.beyond(last, order);
        }
        found
    }
}
