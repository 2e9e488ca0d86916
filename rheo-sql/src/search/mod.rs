//! Searching.
//!
//! The parts of the log that are asked for are gone through side by side, a
//! page of rows at a time, since events come in the order of their sequences
//! whatever their partition.

#[cfg(feature = "postgres")]
mod candidates;
mod content;
mod pushdown;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rheo_core::adapter::Spans;
use rheo_core::backend::{Range, Search, Seek};
use rheo_core::{Event, Filter, Order, Position, Result};

use crate::Store;
use crate::codec;
use crate::db::{Conn, Row, args};
use crate::error::Failure;
use crate::operation::Operation;
use crate::search::pushdown::Asked;
use crate::seek::{Place, find_places};

/// How many partitions one statement looks into.
const LANES: usize = 64;
/// How many rows a statement returns at most.
const LARGEST_PAGE: usize = 1000;
/// How many rows the first statement returns at least, where there are so many.
const SMALLEST_PAGE: usize = 16;
/// How many events the first window holds at least.
const FIRST_WINDOW: usize = 2048;
/// How many times as long as the one before each window is.
const WINDOW_GROWTH: u64 = 4;
/// How many bytes a statement should return at most.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

impl Operation for Search {
    const NAME: &'static str = "query";
    type Output = Vec<Event>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<Event>, Failure> {
        let asked = Asked::of(&self.filters, store.statements.dialect());
        let first = self.ranges.first().map_or(0, |range| range.partition);
        let last = self.ranges.last().map_or(0, |range| range.partition);
        let seek = asked.since.map_or(Seek::End, Seek::At);
        let places = find_places(store, conn, Self::NAME, &self.stream, first..=last, seek).await?;
        let mut spans = Spans::new(self.order, spans(self, &asked, &places));
        let stream_id = places.first().map_or(0, |place| place.stream_id);
        let mut finder = Finder::new(store, self, asked, stream_id);
        finder.find(conn, &mut spans).await?;
        Ok(finder.found)
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
pub(crate) struct Finder<'a> {
    pub(crate) store: &'a Store,
    pub(crate) request: &'a Search,
    pub(crate) asked: Asked,
    pub(crate) stream_id: i64,
    /// How many rows the next statement returns at most.
    pub(crate) page: usize,
    /// The first of what matches, in order, at most as many as are wanted.
    pub(crate) found: Vec<Event>,
}

impl<'a> Finder<'a> {
    fn new(store: &'a Store, request: &'a Search, asked: Asked, stream_id: i64) -> Self {
        let page = request.limit.clamp(SMALLEST_PAGE, LARGEST_PAGE);
        Self { store, request, asked, stream_id, page, found: Vec::new() }
    }

    async fn find(&mut self, conn: &mut Conn<'_>, spans: &mut Spans) -> Result<(), Failure> {
        #[cfg(feature = "postgres")]
        if !self.asked.by_index.is_empty() {
            return self.find_by_content(conn, spans).await;
        }
        self.walk(conn, spans).await
    }

    /// Goes through the spans, until enough is found or nothing is left of them.
    ///
    /// Partitions with few matches do not go on to their ends while others have
    /// plenty: all go together through windows of sequences. Each window is
    /// longer than the one before, for there may be few matches anywhere.
    pub(crate) async fn walk(
        &mut self,
        conn: &mut Conn<'_>,
        spans: &mut Spans,
    ) -> Result<(), Failure> {
        let mut length = match spans.len() {
            0 | 1 => u64::MAX,
            lanes => FIRST_WINDOW.max(self.request.limit).div_ceil(lanes) as u64,
        };
        while !spans.is_empty() {
            self.walk_through(conn, spans, length).await?;
            length = length.saturating_mul(WINDOW_GROWTH);
        }
        Ok(())
    }

    /// Goes through the first `length` sequences of the spans, page by page.
    pub(crate) async fn walk_through(
        &mut self,
        conn: &mut Conn<'_>,
        spans: &mut Spans,
        length: u64,
    ) -> Result<(), Failure> {
        let mut window = spans.take(length);
        while !window.is_empty() {
            let lanes = window.next(LANES.min(self.page)).to_vec();
            let each = self.rows_of_each(lanes.len());
            let events = self.look_into(conn, &lanes, each).await?;
            pass(&mut window, &lanes, &events, each);
            self.keep(events, &mut window);
        }
        self.stop_where_enough(spans);
        Ok(())
    }

    fn rows_of_each(&self, lanes: usize) -> usize {
        let each = self.page.div_ceil(lanes);
        if self.asked.exact { each.min(self.request.limit) } else { each }
    }

    /// The first rows of each lane, in the order of the search.
    async fn look_into(
        &self,
        conn: &mut Conn<'_>,
        lanes: &[Range],
        each: usize,
    ) -> Result<Vec<Event>, Failure> {
        let mut args = args![self.stream_id];
        args.extend(self.asked.args.iter().cloned());
        args.push(each.into());
        let limit = args.len();
        // Nothing lies in the lanes that are added, and few numbers of lanes
        // mean few statements to prepare.
        let nothing = Range { partition: 0, first: 1, last: 0 };
        let mut parts = Vec::new();
        for index in 0..lanes.len().next_power_of_two() {
            let Range { partition, first, last } = *lanes.get(index).unwrap_or(&nothing);
            parts.push(self.part(args.len() + 1, limit));
            args.extend(args![partition, first, last]);
        }
        let statement = self.store.statements.adapt(&parts.join(" UNION ALL "));
        let rows = conn.rows(&statement, args).await?;
        self.events(&rows)
    }

    /// Looks into one lane; `lane` and `limit` are numbers of arguments.
    fn part(&self, lane: usize, limit: usize) -> String {
        let Asked { conditions, by_reading, .. } = &self.asked;
        let direction = match self.request.order {
            Order::Ascending => "",
            Order::Descending => " DESC",
        };
        let (first, last) = (lane + 1, lane + 2);
        format!(
            r#"SELECT * FROM (
                SELECT {{event}} FROM {{p}}events e
                WHERE e.stream_id = $1 AND e."partition" = ${lane}
                    AND e.sequence BETWEEN ${first} AND ${last}{conditions}{by_reading}
                ORDER BY e.sequence{direction} LIMIT ${limit}) AS part{lane}"#
        )
    }

    /// The events of these rows, in the order of the search.
    pub(crate) fn events(&self, rows: &[Row]) -> Result<Vec<Event>, Failure> {
        let event = |row| codec::event(row, 0, &self.request.stream.name);
        let mut events: Vec<_> = rows.iter().map(event).collect::<Result<_, Failure>>()?;
        self.sort(&mut events);
        Ok(events)
    }

    /// Keeps what matches. Where that is enough, what comes after it in the
    /// spans comes too late.
    pub(crate) fn keep(&mut self, events: Vec<Event>, spans: &mut Spans) {
        self.choose_page(&events);
        let filters = &self.request.filters;
        self.found.extend(events.into_iter().filter(|event| Filter::matches_all(filters, event)));
        let mut found = std::mem::take(&mut self.found);
        self.sort(&mut found);
        found.truncate(self.request.limit);
        self.found = found;
        self.stop_where_enough(spans);
    }

    pub(crate) fn stop_where_enough(&self, spans: &mut Spans) {
        if let (0, Some(last)) = (self.missing(), self.found.last()) {
            spans.stop_at(last.position());
        }
    }

    pub(crate) fn missing(&self) -> usize {
        self.request.limit - self.found.len()
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
