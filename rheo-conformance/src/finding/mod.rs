//! What a store finds is what the matcher says: random events, random queries.
//!
//! The cases of the suite ask what people ask. This asks whatever can be asked,
//! so that a store which checks conditions by itself cannot be wrong about a
//! number's spelling or a letter's case. It is for a test file of the adapter's
//! own, since the streams are to fit the store:
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use rheo_conformance::finding::{Plan, finds_what_the_matcher_says};
//!
//! let plans = [
//!     Plan { stream: "short", partitions: 3, events: 300, queries: 300 },
//!     Plan { stream: "wide", partitions: 70, events: 800, queries: 50 },
//! ];
//! finds_what_the_matcher_says("memory", rheo_ets::Memory::new(), &plans).await;
//! # }
//! ```

mod events;
mod queries;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use rheo_core::backend::Backend;
use rheo_core::{Event, Filter, ManualClock, Rheo, Timestamp};

use crate::run::seed;
use queries::Asked;

/// A stream to be filled and searched.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Its name.
    pub stream: &'a str,
    /// How many partitions it has.
    pub partitions: u32,
    /// How many events it holds at least, and at most a twentieth more.
    pub events: usize,
    /// How many queries are tried on it.
    pub queries: usize,
}

/// Fills each of these streams with random events, and asserts that random
/// queries find in them what the matcher says.
///
/// The seed is that of `RHEO_SEED`, or a new one, and is printed.
///
/// # Panics
/// Where the store finds something else, or fails.
pub async fn finds_what_the_matcher_says(
    store: &str,
    backend: Arc<dyn Backend>,
    plans: &[Plan<'_>],
) {
    let mut finding = Finding::new(store, backend);
    for plan in plans {
        let stored = finding.fill(plan).await;
        finding.try_queries(plan, &stored).await;
    }
}

/// The two steps of [`finds_what_the_matcher_says`], for those who have
/// something to do between them.
#[derive(Debug)]
pub struct Finding {
    backend: Arc<dyn Backend>,
    rng: Rng,
}

impl Finding {
    /// Begins with the seed of `RHEO_SEED`, or a new one, and prints it.
    #[must_use]
    pub fn new(store: &str, backend: Arc<dyn Backend>) -> Self {
        let seed = seed();
        eprintln!("{store}: seed {seed}");
        Self { backend, rng: Rng::with_seed(seed) }
    }

    /// Creates and fills a stream, and returns its events by position. Two
    /// instances whose clocks differ do it, so that timestamps do not always
    /// rise.
    ///
    /// # Panics
    /// Where the store fails.
    pub async fn fill(&mut self, plan: &Plan<'_>) -> Vec<Event> {
        let noon: Timestamp = "2026-03-15T12:00:00Z".parse().expect("it is a time");
        let clocks = [noon, noon].map(ManualClock::new);
        let instances = [self.rheo(&clocks[0]).await, self.rheo(&clocks[1]).await];
        let created = instances[0].create_stream(plan.stream, plan.partitions).await;
        created.expect("the stream is created");
        let mut stored: Vec<Event> = Vec::new();
        while stored.len() < plan.events {
            let instance = self.rng.usize(..2);
            clocks[instance].advance(Duration::from_micros(self.rng.u64(..5)));
            let count = self.rng.usize(1..=plan.events.div_ceil(20));
            let batch = (0..count).map(|_| events::event(&mut self.rng, plan.partitions)).collect();
            let appended = instances[instance].append_batch(plan.stream, batch).await;
            stored.extend(appended.expect("the events are appended"));
        }
        stored.sort_by_key(Event::position);
        stored
    }

    /// Asserts that random queries find what they should, where `stored` is
    /// what the stream holds, by position.
    ///
    /// # Panics
    /// Where the store finds something else, or fails.
    pub async fn try_queries(&mut self, plan: &Plan<'_>, stored: &[Event]) {
        let clock = ManualClock::new(Timestamp::from_micros(0));
        let rheo = self.rheo(&clock).await;
        for _ in 0..plan.queries {
            let asked = Asked::random(&mut self.rng, stored);
            try_query(&rheo, plan.stream, &asked, stored).await;
        }
    }

    async fn rheo(&self, clock: &ManualClock) -> Rheo {
        let builder = Rheo::builder(Arc::clone(&self.backend)).clock(clock.clone());
        builder.build().await.expect("the store is ready")
    }
}

async fn try_query(rheo: &Rheo, stream: &str, asked: &Asked, stored: &[Event]) {
    let matches = |event: &&Event| {
        let in_range = asked.after < event.sequence() && event.sequence() <= asked.until;
        in_range && Filter::matches_all(&asked.filters, event)
    };
    let mut expected: Vec<_> = stored.iter().filter(matches).collect();
    if asked.descending {
        expected.reverse();
    }
    expected.truncate(asked.limit);
    let query = asked.query();
    let found = rheo.query(stream, &query).await.expect("the query is answered");
    let found: Vec<_> = found.iter().collect();
    let positions = |events: &[&Event]| {
        events.iter().map(|event| event.position().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(positions(&found), positions(&expected), "{query:?}");
    assert_eq!(found, expected);
}

#[cfg(test)]
mod tests {
    use rheo_ets::Memory;

    use super::*;

    const PLAN: Plan<'static> = Plan { stream: "short", partitions: 3, events: 200, queries: 100 };

    #[tokio::test]
    async fn a_store_that_is_right_passes() {
        finds_what_the_matcher_says("memory", Memory::new(), &[PLAN]).await;
    }

    #[tokio::test]
    #[should_panic(expected = "Query")]
    async fn a_store_that_finds_too_much_does_not() {
        let mut finding = Finding::new("memory", Memory::new());
        let mut stored = finding.fill(&PLAN).await;
        stored.pop();
        finding.try_queries(&PLAN, &stored).await;
    }
}
