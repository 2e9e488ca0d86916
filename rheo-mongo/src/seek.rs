//! Finding places in the log.
//!
//! The running maximum of timestamps, `latest`, never falls from one sequence
//! to the next. So an instant is found by looking at a few events between two
//! bounds, and then between two of these: no index on times is needed, which
//! every append would have to keep.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use mongodb::ClientSession;
use mongodb::bson::{Document, doc};
use rheo_core::backend::{Seek, StreamRef};
use rheo_core::{MAX_PARTITIONS, Result};
use serde::Deserialize;

use crate::Store;
use crate::collections::all;
use crate::error::{Failure, stream_not_found};
use crate::operation::Operation;
use crate::state::long;

/// At how many events one look is taken, in all partitions together.
const PROBES: usize = 2048;
/// At how many in one partition: two at least, so that each look narrows much.
const PROBES_IN_ONE: RangeInclusive<usize> = 2..=256;

/// Find a place in each partition of a stream.
#[derive(Debug)]
pub(crate) struct FindPlaces {
    pub(crate) stream: StreamRef,
    pub(crate) seek: Seek,
}

/// A place in one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) partition: u32,
    /// The partition's last sequence.
    pub(crate) last: u64,
    /// The sequence just before what was looked for.
    pub(crate) before: u64,
}

/// Where a partition ends.
#[derive(Debug, Deserialize)]
struct End {
    partition: u32,
    last: u64,
    latest: i64,
}

/// What is known of the event at one place.
#[derive(Debug, Deserialize)]
struct Probe {
    partition: u32,
    sequence: u64,
    latest: i64,
}

/// Between which sequences of a partition an instant lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    /// All up to here are before it.
    after: u64,
    /// This one is not.
    until: u64,
}

impl Operation for FindPlaces {
    const NAME: &'static str = "seek";
    type Output = Vec<u64>;

    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<Vec<u64>, Failure> {
        let all = 0..=self.stream.partitions - 1;
        let places = find_places(store, session, Self::NAME, &self.stream, all, self.seek).await?;
        Ok(places.iter().map(|place| place.before).collect())
    }
}

/// The documents of some partitions, of a stream as the caller knows it. They
/// go in the moment that begins its deletion.
pub(crate) fn of_partitions(stream: &StreamRef, partitions: RangeInclusive<u32>) -> Document {
    doc! {
        "stream": stream.name.as_str(),
        "partitions": stream.partitions,
        "partition": { "$gte": *partitions.start(), "$lte": *partitions.end() },
    }
}

/// Finds a place in each of these partitions, of which the stream has one at
/// least.
///
/// # Errors
/// `StreamNotFound`.
pub(crate) async fn find_places(
    store: &Store,
    session: &mut ClientSession,
    operation: &'static str,
    stream: &StreamRef,
    partitions: RangeInclusive<u32>,
    seek: Seek,
) -> Result<Vec<Place>, Failure> {
    let ends = store.collections.partitions.clone_with_type::<End>();
    let finding = ends.find(of_partitions(stream, partitions)).sort(doc! { "partition": 1 });
    let cursor = finding.batch_size(MAX_PARTITIONS + 1).session(&mut *session).await?;
    let ends = all(cursor, session).await?;
    if ends.is_empty() {
        return Err(stream_not_found(operation, &stream.name).into());
    }
    let mut gaps = BTreeMap::new();
    if let Seek::At(instant) = seek {
        let instant = instant.as_micros();
        let reaching = ends.iter().filter(|end| end.latest >= instant && end.last > 0);
        gaps = reaching.map(|end| (end.partition, Gap { after: 0, until: end.last })).collect();
        Look { store, stream: stream.name.as_str(), instant }.narrow(session, &mut gaps).await?;
    }
    let place = |&End { partition, last, .. }: &End| {
        let before = gaps.get(&partition).map_or(last, |gap| gap.until.saturating_sub(1));
        Place { partition, last, before }
    };
    Ok(ends.iter().map(place).collect())
}

/// A look for an instant.
#[derive(Debug)]
struct Look<'a> {
    store: &'a Store,
    stream: &'a str,
    instant: i64,
}

impl Look<'_> {
    /// Narrows the gaps of these partitions until nothing is left in them.
    async fn narrow(
        &self,
        session: &mut ClientSession,
        gaps: &mut BTreeMap<u32, Gap>,
    ) -> Result<(), Failure> {
        loop {
            let is_open =
                |(partition, gap): (&u32, &Gap)| gap.is_open().then_some((*partition, *gap));
            let open: Vec<(u32, Gap)> = gaps.iter().filter_map(is_open).collect();
            if open.is_empty() {
                return Ok(());
            }
            let each = (PROBES / open.len()).clamp(*PROBES_IN_ONE.start(), *PROBES_IN_ONE.end());
            for probe in self.probe(session, &open, each).await? {
                let reached = probe.latest >= self.instant;
                gaps.entry(probe.partition).and_modify(|gap| gap.narrow(probe.sequence, reached));
            }
            for (partition, before) in open {
                let Some(gap) = gaps.get_mut(&partition) else { continue };
                if before.inside() <= each as u64 {
                    gap.close();
                } else if *gap == before {
                    // Somebody deleted events by hand.
                    gap.until = self.first_in(session, partition, before).await?;
                    gap.close();
                }
            }
        }
    }

    /// Looks at so many events in each of the gaps.
    async fn probe(
        &self,
        session: &mut ClientSession,
        gaps: &[(u32, Gap)],
        each: usize,
    ) -> Result<Vec<Probe>, Failure> {
        let in_gap = |&(partition, gap): &(u32, Gap)| {
            let sequences: Vec<i64> = gap.probes(each as u64).map(long).collect();
            doc! { "stream": self.stream, "partition": partition, "sequence": { "$in": sequences } }
        };
        let any: Vec<Document> = gaps.iter().map(in_gap).collect();
        let probes = self.store.collections.events.clone_with_type::<Probe>();
        let fields = doc! { "_id": 0, "partition": 1, "sequence": 1, "latest": 1 };
        let finding = probes.find(doc! { "$or": any }).projection(fields);
        let most = u32::try_from(gaps.len() * each).unwrap_or(u32::MAX).saturating_add(1);
        let cursor = finding.batch_size(most).session(&mut *session).await?;
        all(cursor, session).await
    }

    /// The first event of a gap that reaches the instant, or the gap's end.
    async fn first_in(
        &self,
        session: &mut ClientSession,
        partition: u32,
        gap: Gap,
    ) -> Result<u64, Failure> {
        let probes = self.store.collections.events.clone_with_type::<Probe>();
        let finding = probes.find_one(doc! {
            "stream": self.stream,
            "partition": partition,
            "sequence": { "$gt": long(gap.after), "$lt": long(gap.until) },
            "latest": { "$gte": self.instant },
        });
        let first = finding.sort(doc! { "sequence": 1 }).session(session).await?;
        Ok(first.map_or(gap.until, |probe| probe.sequence))
    }
}

impl Gap {
    /// How many sequences lie in it.
    fn inside(self) -> u64 {
        self.until.saturating_sub(self.after).saturating_sub(1)
    }

    fn is_open(self) -> bool {
        self.inside() > 0
    }

    /// At most so many sequences in it, evenly spread; all, where these are enough.
    fn probes(self, count: u64) -> impl Iterator<Item = u64> {
        let (inside, count) = (self.inside(), count.min(self.inside()));
        let offset = move |number| u128::from(inside + 1) * u128::from(number);
        (1..=count).map(move |number| {
            let offset = offset(number) / u128::from(count + 1);
            self.after + u64::try_from(offset).unwrap_or(inside)
        })
    }

    fn narrow(&mut self, sequence: u64, reached: bool) {
        if reached {
            self.until = self.until.min(sequence);
        } else {
            self.after = self.after.max(sequence);
        }
    }

    /// Nothing in it is there.
    fn close(&mut self) {
        self.after = self.until.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_spread_over_a_gap() {
        let probes = |after, until, count| Gap { after, until }.probes(count).collect::<Vec<_>>();
        assert_eq!(probes(0, 10, 4), [2, 4, 6, 8]);
        assert_eq!(probes(3, 7, 100), [4, 5, 6]);
        assert_eq!(probes(3, 4, 100), [0; 0]);
        assert_eq!(probes(0, u64::MAX, 1), [u64::MAX / 2]);
    }

    #[test]
    fn a_gap_narrows_to_the_first_that_reaches() {
        for first in 1..=1000 {
            let (mut gap, mut looks) = (Gap { after: 0, until: 1000 }, 0);
            while gap.is_open() {
                for probe in gap.probes(9).collect::<Vec<_>>() {
                    gap.narrow(probe, probe >= first);
                }
                looks += 1;
            }
            assert_eq!(gap.until, first);
            assert!(looks <= 3, "{looks}");
        }
    }
}
