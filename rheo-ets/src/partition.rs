//! [`Partition`]: the log of one partition, with its indexes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use rheo_core::backend::RoutedEvent;
use rheo_core::{EventBody, Order};
use uuid::Uuid;

use crate::index::{Index, Term, Terms};
use crate::lock;
use crate::log::Log;

/// One partition of a stream.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    contents: RwLock<Contents>,
    /// The last sequence, to be seen without the lock: a claim looks at
    /// every partition, and most have nothing new.
    high_watermark: AtomicU64,
}

impl Partition {
    pub(crate) fn high_watermark(&self) -> u64 {
        self.high_watermark.load(Ordering::Acquire)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Contents> {
        lock::read(&self.contents)
    }

    pub(crate) fn write(&self) -> Writer<'_> {
        Writer { contents: lock::write(&self.contents), high_watermark: &self.high_watermark }
    }
}

/// The right to append to a partition. What was appended becomes visible when
/// it is dropped.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    contents: RwLockWriteGuard<'a, Contents>,
    high_watermark: &'a AtomicU64,
}

impl Writer<'_> {
    /// Appends an event, or finds the one that its id stands for; returns it
    /// as stored.
    pub(crate) fn append(&mut self, event: &RoutedEvent, terms: &Terms) -> (u64, EventBody) {
        self.contents.append(event, terms)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        let high_watermark = self.contents.log.high_watermark();
        self.high_watermark.store(high_watermark, Ordering::Release);
    }
}

/// What a partition's lock guards.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) log: Log,
    /// The sequence for each id that a caller gave.
    ids: HashMap<Uuid, u64>,
    index: Index,
}

impl Contents {
    fn append(&mut self, event: &RoutedEvent, terms: &Terms) -> (u64, EventBody) {
        if event.idempotent {
            match self.ids.entry(event.body.id()) {
                Entry::Occupied(stored) => {
                    let sequence = *stored.get();
                    let body = self.log.get(sequence).unwrap_or(&event.body);
                    return (sequence, body.clone());
                }
                Entry::Vacant(place) => {
                    place.insert(self.log.high_watermark() + 1);
                }
            }
        }
        let sequence = self.log.push(event.body.clone());
        self.index.add(terms, sequence);
        (sequence, event.body.clone())
    }

    /// The next at most `limit` events of the span that may match: those which
    /// have, for every list of terms, one of its terms. Of the lists the one
    /// that names the fewest events is followed.
    pub(crate) fn candidates(
        &self,
        span: Span,
        wanted: &[Vec<Term>],
        order: Order,
        limit: usize,
    ) -> Vec<(u64, EventBody)> {
        let found = |terms: &Vec<Term>| -> Vec<&[u64]> {
            terms.iter().map(|&term| self.index.find(term, span.first, span.last)).collect()
        };
        let size = |lists: &Vec<&[u64]>| -> usize { lists.iter().map(|list| list.len()).sum() };
        match wanted.iter().map(found).min_by_key(size) {
            None => {
                let range = self.log.range(span.first, span.last);
                let own = |(sequence, body): (u64, &EventBody)| (sequence, body.clone());
                match order {
                    Order::Ascending => range.take(limit).map(own).collect(),
                    Order::Descending => range.rev().take(limit).map(own).collect(),
                }
            }
            Some(lists) => {
                let sequences = merge(&lists, order, limit).into_iter();
                sequences
                    .filter_map(|sequence| Some((sequence, self.log.get(sequence)?.clone())))
                    .collect()
            }
        }
    }
}

/// The first `limit` sequences of ascending lists, in order, each once.
fn merge(lists: &[&[u64]], order: Order, limit: usize) -> Vec<u64> {
    let mut merged = Vec::new();
    for list in lists {
        match order {
            Order::Ascending => merged.extend(list.iter().take(limit)),
            Order::Descending => merged.extend(list.iter().rev().take(limit)),
        }
    }
    if lists.len() > 1 {
        merged.sort_unstable();
        if order == Order::Descending {
            merged.reverse();
        }
        merged.dedup();
        merged.truncate(limit);
    }
    merged
}

/// The sequences from `first` to `last`; none where `last` is below `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Span {
    pub(crate) const fn is_empty(self) -> bool {
        self.last < self.first
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { first: self.first.max(other.first), last: self.last.min(other.last) }
    }

    /// What comes after `sequence`, in the given order.
    pub(crate) fn beyond(self, sequence: u64, order: Order) -> Self {
        match order {
            Order::Ascending => Self { first: sequence.saturating_add(1), ..self },
            Order::Descending => Self { last: sequence.saturating_sub(1), ..self },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rheo_core::{EventParts, Timestamp};

    use super::*;
    use crate::index::Vocabulary;

    const PARTS: EventParts<'_> = EventParts {
        id: Uuid::nil(),
        timestamp: Timestamp::MIN,
        event_type: "t",
        key: None,
        metadata: "{}",
        payload: "1",
    };

    pub(crate) fn body_at(micros: i64) -> EventBody {
        let timestamp = Timestamp::from_micros(micros);
        EventBody::from_store(&EventParts { timestamp, ..PARTS }).unwrap()
    }

    pub(crate) fn body(event_type: &str, key: Option<&str>, metadata: &str) -> EventBody {
        EventBody::from_store(&EventParts { event_type, key, metadata, ..PARTS }).unwrap()
    }

    fn event(id: u128, idempotent: bool, payload: &str) -> RoutedEvent {
        let id = Uuid::from_u128(id);
        let body = EventBody::from_store(&EventParts { id, payload, ..PARTS }).unwrap();
        RoutedEvent { partition: 0, body, idempotent }
    }

    #[test]
    fn a_given_id_yields_the_stored_event() {
        let partition = Partition::default();
        let append = |event| partition.write().append(&event, &Terms::default());
        assert_eq!(append(event(1, true, "1")).0, 1);
        assert_eq!(append(event(2, false, "2")).0, 2);
        let (sequence, body) = append(event(1, true, "3"));
        assert_eq!((sequence, body.payload_text()), (1, "1"));
        assert_eq!(append(event(2, false, "4")).0, 3);
        assert_eq!(partition.high_watermark(), 3);
    }

    #[test]
    fn the_shortest_list_names_the_candidates() {
        let vocabulary = Vocabulary::default();
        let partition = Partition::default();
        for number in 0..100 {
            let event_type = ["even", "odd"][number % 2];
            let body = body(event_type, Some(&(number / 10).to_string()), "{}");
            let terms = vocabulary.of_event(&body);
            let event = RoutedEvent { partition: 0, body, idempotent: false };
            partition.write().append(&event, &terms);
        }
        let terms = |field, values: &[&str]| {
            let values = values.iter().map(|&value| value.into()).collect();
            let filter = rheo_core::Filter::new(field, rheo_core::Condition::In(values));
            vocabulary.of_filter(&filter).unwrap()
        };
        let even = terms(rheo_core::Field::Type, &["even", "even"]);
        let keys = terms(rheo_core::Field::Key, &["3", "1"]);
        let span = Span { first: 15, last: 90 };
        let contents = partition.read();
        let find = |wanted: &[Vec<Term>], order, limit| -> Vec<u64> {
            let found = contents.candidates(span, wanted, order, limit);
            found.into_iter().map(|(sequence, _)| sequence).collect()
        };
        let ascending = find(&[even.clone(), keys], Order::Ascending, 8);
        assert_eq!(ascending, [15, 16, 17, 18, 19, 20, 31, 32]);
        assert_eq!(find(&[even], Order::Descending, 3), [89, 87, 85]);
        assert_eq!(find(&[], Order::Descending, 2), [90, 89]);
        assert_eq!(find(&[vec![]], Order::Ascending, 2), [0; 0]);
    }
}
