//! Reading the log: by sequence, by query, by pages.

use std::collections::VecDeque;

use futures::Stream;
use futures::stream::try_unfold;

use super::Rheo;
use super::inspect::check_limit;
use super::streams::Known;
use crate::backend::{Range, Read, Search, Seek, StreamRef};
use crate::{Cursor, Error, Event, Order, Page, Position, Query, Result};

impl Rheo {
    /// At most `limit` (1 to 10 000) events of a partition, by sequence, after
    /// `after`. No group is touched.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn read(
        &self,
        stream: &str,
        partition: u32,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>> {
        check_limit("read", limit)?;
        let mut known = self.known("read", stream).await?;
        loop {
            let stream = known.stream.clone();
            if partition >= stream.partitions {
                let context = format!(
                    "partition {partition} is out of range: the stream has {}",
                    stream.partitions
                );
                return Err(Error::invalid("read", context));
            }
            let request = Read { stream, partition, after, limit };
            let mut result = self.read_call("read", || self.store().read(&request)).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// The last sequence of each partition, 0 where it is empty.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn last_sequences(&self, stream: &str) -> Result<Vec<u64>> {
        let mut known = self.known("last_sequences", stream).await?;
        loop {
            let mut result = self.ends("last_sequences", &known.stream).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// The events that match, up to the query's limit, in its order.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn query(&self, stream: &str, query: &Query) -> Result<Vec<Event>> {
        let mut known = self.known("query", stream).await?;
        loop {
            query.validate(known.stream.partitions).map_err(|error| error.in_operation("query"))?;
            let ranges = query.ranges(known.stream.partitions);
            let mut result = self.search("query", &known.stream, query, ranges).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// One page of the events that match, in ascending order, as many as the
    /// query's limit, after `cursor` or from the beginning.
    ///
    /// Walking pages neither skips nor repeats an event that was there at the
    /// start, also while others append. The page's cursor survives restarts.
    ///
    /// # Errors
    /// Those of [`Rheo`]; a descending query is `Invalid`, and so is a cursor
    /// of another stream or another query, or a mangled one.
    pub async fn query_page(
        &self,
        stream: &str,
        query: &Query,
        cursor: Option<&Cursor>,
    ) -> Result<Page> {
        let mut known = self.known("query_page", stream).await?;
        loop {
            let mut result = self.page_after(&known, query, cursor).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// All events that match, in ascending order, fetched lazily by pages of
    /// the query's limit: memory holds one page at a time.
    ///
    /// The stream ends with the last event there is, or with the first error.
    /// Its errors are those of [`query_page`](Self::query_page).
    pub fn query_stream(
        &self,
        stream: &str,
        query: Query,
    ) -> impl Stream<Item = Result<Event>> + Send + Unpin + use<> {
        let walk = Walk {
            rheo: self.clone(),
            stream: stream.into(),
            query,
            cursor: None,
            page: VecDeque::new(),
            more: true,
        };
        Box::pin(try_unfold(walk, Walk::next))
    }

    async fn page_after(
        &self,
        known: &Known,
        query: &Query,
        cursor: Option<&Cursor>,
    ) -> Result<Page> {
        let in_operation = |error: Error| error.in_operation("query_page");
        let stream = &known.stream;
        query.validate(stream.partitions).map_err(in_operation)?;
        if query.order() == Order::Descending {
            return Err(Error::invalid("query_page", "pages are in ascending order"));
        }
        let mut positions = match cursor {
            Some(cursor) => cursor.positions(stream, query).map_err(in_operation)?,
            None => vec![0; stream.partitions as usize],
        };
        let ends = self.ends("query_page", stream).await?;
        let events = self.walk("query_page", stream, query, &mut positions, &ends).await?;
        Ok(Page {
            more: events.len() == query.page_size(),
            cursor: Cursor::new(stream, query, &positions),
            events,
        })
    }

    /// The last sequence of each partition.
    pub(super) async fn ends(
        &self,
        operation: &'static str,
        stream: &StreamRef,
    ) -> Result<Vec<u64>> {
        self.read_call(operation, || self.store().seek(stream, Seek::End)).await
    }

    /// The next events that match after `positions` and up to `ends`; moves
    /// `positions` on to where the search has come in each partition.
    ///
    /// The ends are taken before the search: what is appended during it may lie
    /// below what the search has passed elsewhere, and belongs to the next page.
    pub(super) async fn walk(
        &self,
        operation: &'static str,
        stream: &StreamRef,
        query: &Query,
        positions: &mut [u64],
        ends: &[u64],
    ) -> Result<Vec<Event>> {
        let limit = query.page_size();
        let remaining = |range: Range| {
            let partition = range.partition as usize;
            let first = range.first.max(positions[partition].saturating_add(1));
            let last = range.last.min(ends[partition]);
            (first <= last).then_some(Range { first, last, ..range })
        };
        let ranges = query.ranges(stream.partitions).into_iter().filter_map(remaining);
        let ranges: Vec<Range> = ranges.collect();
        let events = self.search(operation, stream, query, ranges.clone()).await?;
        let full = events.len() >= limit;
        let last = events.last().filter(|_| full).map(Event::position);
        for range in ranges {
            positions[range.partition as usize] = searched_to(&range, last);
        }
        Ok(events)
    }

    async fn search(
        &self,
        operation: &'static str,
        stream: &StreamRef,
        query: &Query,
        ranges: Vec<Range>,
    ) -> Result<Vec<Event>> {
        let request = Search {
            stream: stream.clone(),
            ranges,
            filters: query.filters().to_vec(),
            order: query.order(),
            limit: query.page_size(),
        };
        self.read_call(operation, || self.store().search(&request)).await
    }
}

/// How far a search has come in a range, when it stopped at `last` or, without
/// one, at the range's end.
fn searched_to(range: &Range, last: Option<Position>) -> u64 {
    let Some(last) = last else {
        return range.last;
    };
    let passed = if range.partition <= last.partition { last.sequence } else { last.sequence - 1 };
    passed.clamp(range.first - 1, range.last)
}

/// A lazy walk through the pages of a query.
struct Walk {
    rheo: Rheo,
    stream: String,
    query: Query,
    cursor: Option<Cursor>,
    page: VecDeque<Event>,
    more: bool,
}

impl Walk {
    async fn next(mut self) -> Result<Option<(Event, Self)>> {
        loop {
            if let Some(event) = self.page.pop_front() {
                return Ok(Some((event, self)));
            }
            if !self.more {
                return Ok(None);
            }
            let cursor = self.cursor.as_ref();
            let page = self.rheo.query_page(&self.stream, &self.query, cursor).await?;
            self.page = page.events.into();
            self.more = page.more;
            self.cursor = Some(page.cursor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_has_passed_what_sorts_before_its_last_event() {
        let range = |partition| Range { partition, first: 3, last: 9 };
        let last = Some(Position::new(1, 5));
        let passed = [0, 1, 2].map(|partition| searched_to(&range(partition), last));
        assert_eq!(passed, [5, 5, 4]);
        assert_eq!(searched_to(&range(0), Some(Position::new(0, 100))), 9);
        assert_eq!(searched_to(&range(2), Some(Position::new(0, 1))), 2);
        assert_eq!(searched_to(&range(0), None), 9);
    }
}
