//! Searching.
//!
//! Either the log is walked, all partitions side by side, since events come in
//! the order of their sequences whatever their partition; or an index of the
//! stream names candidates. What matches is for the reference matcher to say.

mod candidates;
mod walk;

use std::cmp::Ordering;

use redis::{Cmd, cmd};
use rheo_core::backend::{Range, Search, Seek};
use rheo_core::{Condition, Event, Field, Filter, Order, Position, Result, Timestamp};

use crate::Store;
use crate::call::About;
use crate::codec::{self, entry_id};
use crate::seek::Place;

const OPERATION: &str = "query";
/// How many events the first round trip brings at most, and at least, where
/// there are so many.
const FIRST_PAGE: usize = 256;
const SMALLEST_PAGE: usize = 16;
/// How many events a round trip brings at most.
const LARGEST_PAGE: usize = 8192;
/// How many bytes a round trip should bring at most.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// How many times as long as the one before a page is at most.
const PAGE_GROWTH: usize = 4;

impl Store {
    /// Finds events.
    pub(crate) async fn search(&self, request: &Search) -> Result<Vec<Event>> {
        // Also where nothing is asked for, the stream must be there.
        let asked = request.ranges.iter().map(|range| range.partition);
        let none = request.ranges.is_empty().then_some(0);
        let since = request.filters.iter().filter_map(since).max();
        let seek = since.map_or(Seek::End, Seek::At);
        let places = self.places(OPERATION, &request.stream, asked.chain(none), seek).await?;
        let ranges = narrowed(request, &places, since.is_some());
        let indexes = places.first().map_or("", |place| place.indexes.as_str());
        let mut finder = Finder::new(self, request);
        match finder.candidates(&ranges, indexes).await? {
            Some(candidates) => finder.look_at_candidates(candidates).await?,
            None => finder.walk(ranges).await?,
        }
        Ok(finder.found)
    }
}

/// Where to look in each range: as far as the log goes now, and from the first
/// event that a filter on the timestamp allows.
fn narrowed(request: &Search, places: &[Place], from_place: bool) -> Vec<Range> {
    if request.filters.iter().any(holds_for_nothing) {
        return Vec::new();
    }
    let narrow = |(range, place): (&Range, &Place)| {
        let first = if from_place { range.first.max(place.before + 1) } else { range.first };
        Range { first, last: range.last.min(place.last), ..*range }
    };
    let ranges = request.ranges.iter().zip(places).map(narrow);
    ranges.filter(|range| range.first <= range.last).collect()
}

fn holds_for_nothing(filter: &Filter) -> bool {
    matches!(filter.condition(), Condition::In(values) if values.is_empty())
}

/// The instant before which no event meets the filter.
fn since(filter: &Filter) -> Option<Timestamp> {
    match (filter.field(), filter.condition()) {
        (
            Field::Timestamp,
            Condition::GreaterOrEqual(value) | Condition::Greater(value) | Condition::Equals(value),
        ) => value.as_str()?.parse().ok(),
        _ => None,
    }
}

/// Which of two positions a search in this order comes to first.
fn compare(order: Order, one: Position, other: Position) -> Ordering {
    match order {
        Order::Ascending => one.cmp(&other),
        Order::Descending => other.cmp(&one),
    }
}

/// A search on its way.
#[derive(Debug)]
struct Finder<'a> {
    store: &'a Store,
    request: &'a Search,
    /// How many events the next round trip brings at most.
    page: usize,
    /// The first of what matches, in order, at most as many as are wanted.
    found: Vec<Event>,
}

impl<'a> Finder<'a> {
    fn new(store: &'a Store, request: &'a Search) -> Self {
        let page = request.limit.clamp(SMALLEST_PAGE, FIRST_PAGE);
        Self { store, request, page, found: Vec::new() }
    }

    fn has_enough(&self) -> bool {
        self.found.len() == self.request.limit
    }

    /// Reads these parts of the log in one round trip, and keeps what matches.
    async fn look_into(&mut self, ranges: &[Range]) -> Result<()> {
        let about = About::from(&self.request.stream);
        let reads: Vec<Cmd> = ranges.iter().map(|range| self.read(range)).collect();
        let answers = self.store.read(OPERATION, &about, &reads).await?;
        let (mut count, mut bytes) = (0, 0);
        for (range, answer) in ranges.iter().zip(answers) {
            let events = codec::events(answer, &self.request.stream.name, range.partition)?;
            count += events.len();
            bytes += events.iter().map(|event| event.body().encoded_len()).sum::<usize>();
            let matches = |event: &Event| Filter::matches_all(&self.request.filters, event);
            self.found.extend(events.into_iter().filter(matches));
        }
        let order = self.request.order;
        self.found.sort_by(|one, other| compare(order, one.position(), other.position()));
        self.found.truncate(self.request.limit);
        self.choose_page(count, bytes);
        Ok(())
    }

    fn read(&self, range: &Range) -> Cmd {
        let mut read = cmd("XRANGE");
        read.arg(self.store.keys.log(&self.request.stream.name, range.partition));
        read.arg(entry_id(range.first)).arg(entry_id(range.last));
        read
    }

    /// Pages get longer, as far as events are small.
    fn choose_page(&mut self, count: usize, bytes: usize) {
        let average = bytes.div_ceil(count.max(1)).max(1);
        let fits = (PAGE_BYTES / average).clamp(1, LARGEST_PAGE);
        self.page = (self.page * PAGE_GROWTH).min(fits);
    }
}
