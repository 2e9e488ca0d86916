//! Writing back what an operation changed.

use std::collections::BTreeSet;

use mongodb::bson::{DateTime, Document, Uuid, doc};
use mongodb::{ClientSession, Collection};
use rheo_core::progress::{AttemptRun, Dead, DeadEvent, OpenRun, Progress};
use rheo_core::{Fence, Result, Timestamp};

use crate::Store;
use crate::collections::Collections;
use crate::error::{Failure, corrupt};
use crate::state::{Group, NEVER, Piece, long, of_partition};

/// What to know for writing a piece back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saving {
    /// Whether others may have something to claim afterwards.
    pub(crate) frees: bool,
    /// Whether the earliest of what is due was taken, so that it is not known
    /// when the next is.
    pub(crate) took_due: bool,
}

impl Store {
    /// Writes what an operation changed of a piece, the group's own document last.
    pub(crate) async fn save(
        &self,
        session: &mut ClientSession,
        group: &Group,
        piece: &Piece,
        progress: Progress,
        saving: Saving,
    ) -> Result<(), Failure> {
        let after = progress.into_parts();
        let changes = piece.parts.changes_to(&after);
        if changes.is_empty() && !saving.took_due {
            return Ok(());
        }
        let Collections { runs, attempts, dead_letters, .. } = &self.collections;
        let at = of_partition(&group.name, piece.member.partition);

        let stood = piece.parts.open.iter().map(|run| run.first);
        let put = &changes.put_open;
        let gone = gone(stood, &changes.removed_open, put.iter().map(|run| run.first));
        remove(session, runs, &at, "first", gone).await?;
        insert(session, runs, &at, put.iter().map(run_fields)).await?;

        let stood = piece.parts.attempts.iter().map(|run| run.first);
        let put = &changes.put_attempts;
        let gone = self::gone(stood, &changes.removed_attempts, put.iter().map(|run| run.first));
        remove(session, attempts, &at, "first", gone).await?;
        insert(session, attempts, &at, put.iter().map(attempt_fields)).await?;

        let removed = changes.removed_dead.iter().map(|&sequence| long(sequence)).collect();
        remove(session, dead_letters, &at, "sequence", removed).await?;
        insert(session, dead_letters, &at, changes.put_dead.iter().map(dead_fields)).await?;

        let next_due =
            self.next_due(session, group, piece, saving.took_due, changes.earliest_due());
        let next_due = next_due.await?;
        self.set_member(session, at, after.cursor, next_due, saving.frees).await
    }

    /// When the next run of a partition is due. In an ordered group that is
    /// always exact; in others it may be too early where much was settled.
    async fn next_due(
        &self,
        session: &mut ClientSession,
        group: &Group,
        piece: &Piece,
        took_due: bool,
        earliest_put: Option<Timestamp>,
    ) -> Result<i64, Failure> {
        let runs = of_partition(&group.name, piece.member.partition);
        if group.settings.ordered {
            return self.ordered_due(session, runs).await;
        }
        if took_due {
            let earliest = self.first_due(session, runs, doc! { "due": 1 }).await?;
            return Ok(earliest.unwrap_or(NEVER));
        }
        let earliest_put = earliest_put.map_or(NEVER, Timestamp::as_micros);
        Ok(piece.member.next_due.min(earliest_put))
    }

    /// When an ordered group may next have what is open: when every lease has
    /// expired and the lowest event is due.
    async fn ordered_due(
        &self,
        session: &mut ClientSession,
        runs: Document,
    ) -> Result<i64, Failure> {
        let lowest = self.first_due(session, runs.clone(), doc! { "first": 1 }).await?;
        let Some(lowest) = lowest else { return Ok(NEVER) };
        Ok(self.last_expiry(session, runs).await?.map_or(lowest, |expiry| expiry.max(lowest)))
    }

    /// When the last of these leases expires.
    pub(crate) async fn last_expiry(
        &self,
        session: &mut ClientSession,
        mut runs: Document,
    ) -> Result<Option<i64>, Failure> {
        runs.insert("fence", doc! { "$ne": null });
        self.first_due(session, runs, doc! { "due": -1 }).await
    }

    /// When the first of these runs is due, in this order.
    async fn first_due(
        &self,
        session: &mut ClientSession,
        runs: Document,
        order: Document,
    ) -> Result<Option<i64>, Failure> {
        let finding = self.collections.runs.find_one(runs).sort(order);
        let found = finding.projection(doc! { "_id": 0, "due": 1 }).session(session).await?;
        found
            .map(|run| run.get_i64("due").map_err(|why| corrupt("when a run is due", why)))
            .transpose()
    }

    /// Lets a group begin anew in a partition.
    pub(crate) async fn restart(
        &self,
        session: &mut ClientSession,
        member: Document,
        start: u64,
    ) -> Result<(), Failure> {
        let update = doc! {
            "$set": { "start": long(start), "cursor": long(start), "next_due": NEVER },
            "$inc": { "version": 1_i64, "freed": 1_i64 },
        };
        self.collections.groups.update_one(member, update).session(session).await?;
        Ok(())
    }

    async fn set_member(
        &self,
        session: &mut ClientSession,
        member: Document,
        cursor: u64,
        next_due: i64,
        frees: bool,
    ) -> Result<(), Failure> {
        let mut update = doc! {
            "$set": { "cursor": long(cursor), "next_due": next_due },
            "$inc": { "version": 1_i64 },
        };
        if frees {
            update.insert("$inc", doc! { "version": 1_i64, "freed": 1_i64 });
        }
        self.collections.groups.update_one(member, update).session(session).await?;
        Ok(())
    }
}

/// The documents to delete: those removed, and those that are put anew.
fn gone(
    stood: impl Iterator<Item = u64>,
    removed: &[u64],
    put: impl Iterator<Item = u64>,
) -> Vec<i64> {
    let put: BTreeSet<u64> = put.collect();
    let replaced = stood.filter(|first| put.contains(first));
    removed.iter().copied().chain(replaced).map(long).collect()
}

async fn remove(
    session: &mut ClientSession,
    collection: &Collection<Document>,
    at: &Document,
    key: &str,
    values: Vec<i64>,
) -> Result<(), Failure> {
    for values in values.chunks(MOST_AT_ONCE) {
        let mut documents = at.clone();
        documents.insert(key, doc! { "$in": values.to_vec() });
        collection.delete_many(documents).session(&mut *session).await?;
    }
    Ok(())
}

/// So many values stay far below the size of a command.
const MOST_AT_ONCE: usize = 100_000;

async fn insert(
    session: &mut ClientSession,
    collection: &Collection<Document>,
    at: &Document,
    fields: impl Iterator<Item = Document>,
) -> Result<(), Failure> {
    let document = |fields: Document| {
        let mut document = at.clone();
        document.extend(fields);
        document
    };
    let documents: Vec<Document> = fields.map(document).collect();
    if !documents.is_empty() {
        collection.insert_many(documents).session(session).await?;
    }
    Ok(())
}

fn run_fields(run: &OpenRun) -> Document {
    doc! {
        "first": long(run.first),
        "last": long(run.last),
        "attempt": run.attempt,
        "fence": run.fence.map(uuid),
        "due": run.due.as_micros(),
    }
}

fn attempt_fields(run: &AttemptRun) -> Document {
    doc! { "first": long(run.first), "last": long(run.last), "attempt": run.attempt }
}

fn dead_fields(event: &DeadEvent) -> Document {
    let Dead { attempt, reason, at } = &event.dead;
    doc! {
        "sequence": long(event.sequence),
        "attempt": *attempt,
        "reason": &**reason,
        "at": at.as_micros(),
        "time": DateTime::from_millis(at.as_micros().div_euclid(1000)),
    }
}

fn uuid(fence: Fence) -> Uuid {
    Uuid::from_bytes(fence.as_u128().to_be_bytes())
}
