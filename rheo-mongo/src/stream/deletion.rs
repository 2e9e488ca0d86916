//! Deleting a stream, in steps of which each may be the last.
//!
//! The first is a transaction: the stream's document is marked, and all that
//! makes it a stream for others is deleted. Then go its events, in batches, and
//! in the end the document, which until then keeps a new stream of that name
//! from being created. Whoever meets a marked document does the steps that are
//! left. Each names the log that it is about: where it comes late, it does no
//! harm to a stream that was created since.

use std::ops::RangeInclusive;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use mongodb::{ClientSession, Collection};
use rheo_core::{Effect, Result, StreamName};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument;

use super::{StreamFields, find};
use crate::Store;
use crate::collections::{Collections, all};
use crate::error::{Failure, stream_not_found};
use crate::operation::Operation;
use crate::state::long;

/// So many events go with one command.
const BATCH: u64 = 2000;

/// The longest pause before a step is tried again.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// What is left of a deleted stream: its events, perhaps, and its document.
#[derive(Debug)]
pub(super) struct Leftover {
    stream: String,
    log: ObjectId,
    ends: Vec<u64>,
}

impl From<StreamFields> for Leftover {
    fn from(stream: StreamFields) -> Self {
        Self { stream: stream.name, log: stream.log, ends: stream.ends }
    }
}

/// A stream that nobody finds any more.
#[derive(Debug)]
pub(super) struct Dropped {
    pub(super) leftover: Leftover,
    /// Whether somebody else had deleted it.
    pub(super) before: bool,
}

/// Take this stream away from everybody.
pub(super) struct DropStream(pub(super) StreamName);

#[derive(Deserialize)]
struct End {
    last: u64,
}

impl Operation for DropStream {
    const NAME: &'static str = "delete_stream";
    type Output = Dropped;

    /// Whoever appends, claims or settles changes a document that is deleted
    /// here: of the two, one comes first, and the other begins anew.
    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<Dropped, Failure> {
        let found = find(store, session, &self.0).await?;
        let found = found.ok_or_else(|| stream_not_found(Self::NAME, &self.0))?;
        if found.dropping {
            return Ok(Dropped { leftover: found.into(), before: true });
        }
        let of_stream = doc! { "stream": &found.name };
        let Collections { streams, partitions, groups, runs, attempts, dead_letters, .. } =
            &store.collections;
        let all_ends = partitions.clone_with_type::<End>();
        let finding = all_ends.find(of_stream.clone());
        let cursor = finding.sort(doc! { "partition": 1 }).session(&mut *session).await?;
        let ends: Vec<u64> = all(cursor, session).await?.iter().map(|end| end.last).collect();

        let lasts: Vec<i64> = ends.iter().copied().map(long).collect();
        let mark = doc! { "$set": { "dropping": true, "ends": lasts } };
        streams.update_one(doc! { "_id": &found.name }, mark).session(&mut *session).await?;
        for collection in [partitions, groups, runs, attempts, dead_letters] {
            collection.delete_many(of_stream.clone()).session(&mut *session).await?;
        }
        Ok(Dropped { leftover: Leftover { ends, ..found.into() }, before: false })
    }
}

/// What is left of deleted streams?
struct FindLeftovers;

impl Operation for FindLeftovers {
    const NAME: &'static str = "prepare";
    type Output = Vec<Leftover>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let streams = store.collections.streams.clone_with_type::<StreamFields>();
        let cursor = streams.find(doc! { "dropping": true }).session(&mut *session).await?;
        Ok(all(cursor, session).await?.into_iter().map(Leftover::from).collect())
    }
}

impl Store {
    /// Finishes the deletions that were cut off.
    pub(crate) async fn finish_deletions(self: &Arc<Self>) -> Result<()> {
        for leftover in self.read(FindLeftovers).await? {
            self.finish_deletion(FindLeftovers::NAME, leftover).await?;
        }
        Ok(())
    }

    /// Does the steps that are left of a deletion, in a task: it may take
    /// longer than its caller waits.
    pub(super) async fn finish_deletion(
        self: &Arc<Self>,
        operation: &'static str,
        leftover: Leftover,
    ) -> Result<()> {
        let store = Arc::clone(self);
        let remove = async move { store.remove_leftover(&leftover).await };
        let removed = match tokio::spawn(remove.in_current_span()).await {
            Ok(removed) => removed,
            Err(ended) if ended.is_panic() => resume_unwind(ended.into_panic()),
            Err(_) => Err(Failure::Stopped),
        };
        removed.map_err(|failure| failure.into_error(operation, Effect::Unknown))
    }

    async fn remove_leftover(&self, leftover: &Leftover) -> Result<(), Failure> {
        let Leftover { stream, log, ends } = leftover;
        let Collections { streams, events, .. } = &self.collections;
        for (partition, &last) in (0_u32..).zip(ends) {
            for batch in batches(last) {
                let sequences = doc! { "$gte": long(*batch.start()), "$lte": long(*batch.end()) };
                let of_batch = doc! {
                    "stream": stream, "log": log, "partition": partition, "sequence": sequences,
                };
                self.remove(events, of_batch).await?;
            }
        }
        self.remove(streams, doc! { "_id": stream, "log": log }).await
    }

    /// Deletes documents outside of any transaction, and tries again until it
    /// is known that they are gone.
    async fn remove<T: Send + Sync>(
        &self,
        collection: &Collection<T>,
        documents: Document,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + self.options.operation_timeout;
        loop {
            let deletion = collection.delete_many(documents.clone()).into_future();
            let failure = match timeout_at(deadline, deletion).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => Failure::from(error),
                Err(_) => return Err(Failure::Late),
            };
            if !failure.is_conflict() && !failure.is_lost() {
                return Err(failure);
            }
            sleep(LONGEST_PAUSE.mul_f64(fastrand::f64())).await;
        }
    }
}

/// The sequences up to the last, in order.
fn batches(last: u64) -> impl Iterator<Item = RangeInclusive<u64>> {
    let step = usize::try_from(BATCH).unwrap_or(usize::MAX);
    (1..=last).step_by(step).map(move |first| first..=last.min(first + (BATCH - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_each_sequence_once() {
        assert_eq!(batches(0).count(), 0);
        assert_eq!(batches(1).collect::<Vec<_>>(), [1..=1]);
        assert_eq!(batches(BATCH).collect::<Vec<_>>(), [1..=BATCH]);
        assert!(batches(3 * BATCH + 7).flatten().eq(1..=3 * BATCH + 7));
    }
}
