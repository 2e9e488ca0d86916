//! Loading what an operation on a group may touch.

use std::collections::BTreeMap;

use mongodb::bson::{Document, Uuid, doc};
use mongodb::{ClientSession, Collection};
use rheo_core::backend::{GroupRef, Range};
use rheo_core::progress::{AttemptRun, Dead, DeadEvent, OpenRun};
use rheo_core::{Fence, Result, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Store;
use crate::collections::all;
use crate::error::Failure;
use crate::state::{Group, long, of_partition, of_stream};

/// What lies in some partitions.
type ByPartition<T> = BTreeMap<u32, Vec<T>>;

/// Up to so many ranges are looked into at a time.
const MOST_LOOKUPS: usize = 64;

/// The longest range that shares a look with others: what is found in a look
/// has to fit into one document.
const LONGEST_SHARED: u64 = 512;

#[derive(Debug, Deserialize)]
struct RunFields {
    partition: u32,
    first: u64,
    last: u64,
    attempt: u32,
    fence: Option<Uuid>,
    due: i64,
}

#[derive(Debug, Deserialize)]
struct AttemptFields {
    partition: u32,
    first: u64,
    last: u64,
    attempt: u32,
}

#[derive(Debug, Deserialize)]
struct DeadFields {
    partition: u32,
    sequence: u64,
    attempt: u32,
    reason: String,
    at: i64,
}

/// What several looks found.
#[derive(Debug, Deserialize)]
struct Looked<T> {
    found: Vec<Vec<T>>,
}

impl Store {
    /// The open runs that have a sequence in these ranges, whole.
    pub(crate) async fn runs_in(
        &self,
        session: &mut ClientSession,
        group: &Group,
        ranges: &[Range],
    ) -> Result<ByPartition<OpenRun>, Failure> {
        let runs = &self.collections.runs;
        let found = self.in_ranges(session, runs, group, ranges, "first").await?;
        Ok(by_partition(found, |run: RunFields| (run.partition, run.first, run.into())))
    }

    /// The kept attempts that have a sequence in these ranges, whole.
    pub(crate) async fn attempts_in(
        &self,
        session: &mut ClientSession,
        group: &Group,
        ranges: &[Range],
    ) -> Result<ByPartition<AttemptRun>, Failure> {
        let attempts = &self.collections.attempts;
        let found = self.in_ranges(session, attempts, group, ranges, "first").await?;
        Ok(by_partition(found, |run: AttemptFields| (run.partition, run.first, run.into())))
    }

    /// The dead letters in these ranges.
    pub(crate) async fn dead_in(
        &self,
        session: &mut ClientSession,
        group: &Group,
        ranges: &[Range],
    ) -> Result<ByPartition<DeadEvent>, Failure> {
        let letters = &self.collections.dead_letters;
        let found = self.in_ranges(session, letters, group, ranges, "sequence").await?;
        Ok(by_partition(found, |dead: DeadFields| (dead.partition, dead.sequence, dead.into())))
    }

    /// The lowest open runs of a partition, at most so many: of those found due
    /// only, or of all.
    pub(crate) async fn lowest_runs(
        &self,
        session: &mut ClientSession,
        group: &Group,
        partition: u32,
        found_due: bool,
        most: usize,
    ) -> Result<Vec<OpenRun>, Failure> {
        let mut runs = of_partition(&group.name, partition);
        if found_due {
            runs.insert("due", Timestamp::MIN.as_micros());
        }
        let typed = self.collections.runs.clone_with_type::<RunFields>();
        let finding = typed.find(runs).sort(doc! { "first": 1 });
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let cursor = finding.limit(most).session(&mut *session).await?;
        Ok(all(cursor, session).await?.into_iter().map(Into::into).collect())
    }

    /// The documents of a group that reach into these ranges, and perhaps some
    /// below them.
    ///
    /// Those of a partition are disjoint: from a range's end downwards, no more
    /// than it has sequences can reach into it.
    async fn in_ranges<T: DeserializeOwned + Send + Sync + Unpin>(
        &self,
        session: &mut ClientSession,
        collection: &Collection<Document>,
        group: &Group,
        ranges: &[Range],
        first: &str,
    ) -> Result<Vec<T>, Failure> {
        let is_shared = |range: &&Range| range.last - range.first < LONGEST_SHARED;
        let (shared, alone): (Vec<&Range>, Vec<&Range>) = ranges.iter().partition(is_shared);
        let mut found = Vec::new();
        let typed = collection.clone_with_type::<T>();
        // A look of its own is a simpler statement.
        let (shared, alone) =
            if ranges.len() == 1 { (vec![], ranges.iter().collect()) } else { (shared, alone) };
        for range in alone {
            let finding = typed.find(below(&group.name, range, first));
            let finding = finding.sort(doc! { first: -1 }).limit(length(range));
            let cursor = finding.session(&mut *session).await?;
            found.extend(all(cursor, session).await?);
        }
        for ranges in shared.chunks(MOST_LOOKUPS) {
            let pipeline = look_below(collection.name(), &group.name, ranges, first);
            let looking = self.collections.streams.aggregate(pipeline);
            let cursor = looking.with_type::<Looked<T>>().session(&mut *session).await?;
            found.extend(
                all(cursor, session)
                    .await?
                    .into_iter()
                    .flat_map(|looked| looked.found.into_iter().flatten()),
            );
        }
        Ok(found)
    }
}

/// What begins in a range of a partition or below it.
fn below(group: &GroupRef, range: &Range, first: &str) -> Document {
    let mut documents = of_partition(group, range.partition);
    documents.insert(first, doc! { "$lte": long(range.last) });
    documents
}

/// How many documents of a range there can be.
fn length(range: &Range) -> i64 {
    long((range.last - range.first).saturating_add(1))
}

/// Looks into several ranges at once.
fn look_below(from: &str, group: &GroupRef, ranges: &[&Range], first: &str) -> Vec<Document> {
    let names: Vec<String> = (0..ranges.len()).map(|number| format!("range{number}")).collect();
    let mut pipeline = vec![doc! { "$match": of_stream(&group.stream) }];
    for (name, range) in names.iter().zip(ranges) {
        pipeline.push(doc! { "$lookup": {
            "from": from,
            "pipeline": [
                { "$match": below(group, range, first) },
                { "$sort": { first: -1 } },
                { "$limit": length(range) },
            ],
            "as": name,
        } });
    }
    let names: Vec<String> = names.iter().map(|name| format!("${name}")).collect();
    pipeline.push(doc! { "$project": { "_id": 0, "found": names } });
    pipeline
}

/// By partition and sequence, each once.
fn by_partition<F, T>(found: Vec<F>, place: impl Fn(F) -> (u32, u64, T)) -> ByPartition<T> {
    let places = found.into_iter().map(place);
    let each: BTreeMap<(u32, u64), T> =
        places.map(|(partition, first, item)| ((partition, first), item)).collect();
    let mut sorted = ByPartition::new();
    for ((partition, _), item) in each {
        sorted.entry(partition).or_default().push(item);
    }
    sorted
}

impl From<RunFields> for OpenRun {
    fn from(run: RunFields) -> Self {
        let RunFields { first, last, attempt, fence, due, .. } = run;
        let fence = fence.map(|fence| Fence::from_u128(u128::from_be_bytes(fence.bytes())));
        Self { first, last, attempt, fence, due: Timestamp::from_micros(due) }
    }
}

impl From<AttemptFields> for AttemptRun {
    fn from(run: AttemptFields) -> Self {
        Self { first: run.first, last: run.last, attempt: run.attempt }
    }
}

impl From<DeadFields> for DeadEvent {
    fn from(dead: DeadFields) -> Self {
        let DeadFields { sequence, attempt, reason, at, .. } = dead;
        let at = Timestamp::from_micros(at);
        Self { sequence, dead: Dead { attempt, reason: reason.into(), at } }
    }
}
