//! Searching.
//!
//! The parts of the log that are asked for are gone through side by side, a
//! page of documents at a time, since events come in the order of their
//! sequences whatever their partition.

mod content;
mod pushdown;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use mongodb::ClientSession;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use rheo_core::adapter::Spans;
use rheo_core::backend::{Range, Search, Seek};
use rheo_core::{Event, Filter, Order, Position, Result};

use crate::Store;
use crate::codec;
use crate::collections::all;
use crate::error::Failure;
use crate::operation::Operation;
use crate::search::pushdown::Asked;
use crate::seek::{Place, find_places};
use crate::state::long;

/// How many partitions one aggregation looks into.
const LANES: usize = 64;
/// How many documents an aggregation returns at most.
const LARGEST_PAGE: usize = 1000;
/// How many documents the first one returns at least, where there are so many.
const SMALLEST_PAGE: usize = 16;
/// How many events the first window holds at least.
const FIRST_WINDOW: usize = 2048;
/// How many times as long as the one before each window is.
const WINDOW_GROWTH: u64 = 4;
/// How many bytes an aggregation should return at most.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// How long an aggregation may be: every lane repeats the conditions.
const QUESTION_BYTES: usize = 4 * 1024 * 1024;

impl Operation for Search {
    const NAME: &'static str = "query";
    type Output = Vec<Event>;

    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<Vec<Event>, Failure> {
        let asked = Asked::of(&self.filters);
        let first = self.ranges.first().map_or(0, |range| range.partition);
        let last = self.ranges.last().map_or(0, |range| range.partition);
        let seek = asked.since.map_or(Seek::End, Seek::At);
        let stream = &self.stream;
        let places = find_places(store, session, Self::NAME, stream, first..=last, seek).await?;
        let spans = Spans::new(self.order, spans(self, &asked, &places));
        let page = self.limit.clamp(SMALLEST_PAGE, LARGEST_PAGE);
        let finder = Finder { store, request: self, asked, page, found: Vec::new() };
        finder.walk(session, spans).await
    }
}

/// Where to look in each range: as far as the log goes now, within the bounds
/// that filters set, and from the first event that a time filter allows.
fn spans(request: &Search, asked: &Asked, places: &[Place]) -> Vec<Range> {
    if asked.nothing {
        return Vec::new();
    }
    let (first_partition, last_partition) = asked.partitions.ends();
    let (first_sequence, last_sequence) = asked.sequences.ends();
    let span = |range: &Range| {
        let partition = range.partition;
        let place = places.binary_search_by_key(&partition, |place| place.partition).ok()?;
        let place = &places[place];
        let allowed = (first_partition..=last_partition).contains(&partition.into());
        let after = if asked.since.is_some() { place.before } else { 0 };
        allowed.then_some(Range {
            partition,
            first: range.first.max(first_sequence).max(after + 1),
            last: range.last.min(last_sequence).min(place.last),
        })
    };
    request.ranges.iter().filter_map(span).collect()
}

/// Leaves out of the window what lanes have been looked into, where each lane
/// showed at most `each` of its events.
fn pass(window: &mut Spans, lanes: &[Range], events: &[Event], each: usize) {
    let mut seen: BTreeMap<u32, (usize, Position)> = BTreeMap::new();
    for position in events.iter().map(Event::position) {
        let (count, end) = seen.entry(position.partition).or_insert((0, position));
        (*count, *end) = (*count + 1, position);
    }
    for lane in lanes {
        match seen.get(&lane.partition) {
            Some(&(count, end)) if count == each => window.pass_in_partition(end),
            _ => window.remove(lane.partition),
        }
    }
}

/// A search on its way.
#[derive(Debug)]
struct Finder<'a> {
    store: &'a Store,
    request: &'a Search,
    asked: Asked,
    /// How many documents the next aggregation returns at most.
    page: usize,
    /// The first of what matches, in order, at most as many as are wanted.
    found: Vec<Event>,
}

impl Finder<'_> {
    /// Goes through the spans, until enough is found or nothing is left of them.
    ///
    /// Partitions with few matches do not go on to their ends while others have
    /// plenty: all go together through windows of sequences. Each window is
    /// longer than the one before, for there may be few matches anywhere.
    async fn walk(
        mut self,
        session: &mut ClientSession,
        mut spans: Spans,
    ) -> Result<Vec<Event>, Failure> {
        let mut length = match spans.len() {
            0 | 1 => u64::MAX,
            lanes => FIRST_WINDOW.max(self.request.limit).div_ceil(lanes) as u64,
        };
        while !spans.is_empty() {
            self.walk_through(session, spans.take(length)).await?;
            self.stop_where_enough(&mut spans);
            length = length.saturating_mul(WINDOW_GROWTH);
        }
        Ok(self.found)
    }

    /// Goes through a window, page by page.
    async fn walk_through(
        &mut self,
        session: &mut ClientSession,
        mut window: Spans,
    ) -> Result<(), Failure> {
        let most = (QUESTION_BYTES / self.asked.bytes.max(1)).clamp(1, LANES);
        while !window.is_empty() {
            let lanes = window.next(most.min(self.page)).to_vec();
            let each = self.share_of_each(lanes.len());
            let events = self.look_into(session, &lanes, each).await?;
            pass(&mut window, &lanes, &events, each);
            self.keep(events);
            self.stop_where_enough(&mut window);
        }
        Ok(())
    }

    fn share_of_each(&self, lanes: usize) -> usize {
        let each = self.page.div_ceil(lanes);
        if self.asked.exact { each.min(self.request.limit) } else { each }
    }

    /// The first documents of each lane, in the order of the search.
    async fn look_into(
        &self,
        session: &mut ClientSession,
        lanes: &[Range],
        each: usize,
    ) -> Result<Vec<Event>, Failure> {
        let mut stages = lanes.iter().map(|lane| self.stages(lane, each));
        let mut pipeline = stages.next().unwrap_or_default();
        let events = &self.store.collections.events;
        pipeline.extend(stages.map(|stages| {
            doc! { "$unionWith": { "coll": events.name(), "pipeline": stages } }
        }));
        let most = u32::try_from(lanes.len() * each).unwrap_or(u32::MAX).saturating_add(1);
        let looking = events.aggregate(pipeline).with_type::<RawDocumentBuf>().batch_size(most);
        let found = all(looking.session(&mut *session).await?, session).await?;
        let event = |document: &RawDocumentBuf| codec::event(document, &self.request.stream.name);
        let mut events: Vec<_> = found.iter().map(event).collect::<Result<_, Failure>>()?;
        self.sort(&mut events);
        Ok(events)
    }

    /// Looks into one lane: a scan of an index that ends with the sequence.
    fn stages(&self, lane: &Range, each: usize) -> Vec<Document> {
        let mut events = doc! {
            "stream": self.request.stream.name.as_str(),
            "partition": lane.partition,
            "sequence": { "$gte": long(lane.first), "$lte": long(lane.last) },
        };
        if !self.asked.conditions.is_empty() {
            events.insert("$and", self.asked.conditions.clone());
        }
        let direction = match self.request.order {
            Order::Ascending => 1,
            Order::Descending => -1,
        };
        let each = i64::try_from(each).unwrap_or(i64::MAX);
        vec![
            doc! { "$match": events },
            doc! { "$sort": { "sequence": direction } },
            doc! { "$limit": each },
        ]
    }

    /// Keeps what matches.
    fn keep(&mut self, events: Vec<Event>) {
        self.choose_page(&events);
        let filters = &self.request.filters;
        self.found.extend(events.into_iter().filter(|event| Filter::matches_all(filters, event)));
        let mut found = std::mem::take(&mut self.found);
        self.sort(&mut found);
        found.truncate(self.request.limit);
        self.found = found;
    }

    /// Where enough is found, what comes after it in the spans comes too late.
    fn stop_where_enough(&self, spans: &mut Spans) {
        if let Some(last) = self.found.last().filter(|_| self.found.len() == self.request.limit) {
            spans.stop_at(last.position());
        }
    }

    fn sort(&self, events: &mut [Event]) {
        match self.request.order {
            Order::Ascending => events.sort_by_key(Event::position),
            Order::Descending => events.sort_by_key(|event| Reverse(event.position())),
        }
    }

    /// Pages get longer where much is rejected, as far as events are small.
    fn choose_page(&mut self, events: &[Event]) {
        let bytes: usize = events.iter().map(|event| event.body().encoded_len()).sum();
        let average = bytes.div_ceil(events.len().max(1)).max(1);
        self.page = (self.page * 2).min(LARGEST_PAGE).min(PAGE_BYTES / average).max(1);
    }
}
