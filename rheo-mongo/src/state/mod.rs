//! The delivery state of a group as documents: what is loaded of it, and how
//! it is written back.
//!
//! Whoever changes a group in a partition updates its document there, in the
//! same transaction: of two who do so at once, one has to begin anew. What an
//! operation means is `rheo-core`'s [`Progress`]; here a piece of it is loaded,
//! and the documents that differ afterwards are written.

mod load;
mod save;

use std::collections::BTreeMap;

use mongodb::ClientSession;
use mongodb::bson::{Document, doc};
use rheo_core::backend::{GroupRef, Now, StreamRef};
use rheo_core::progress::{AttemptRun, DeadEvent, OpenRun, Parts, Progress};
use rheo_core::{GroupSettings, Result, Timestamp};
use serde::Deserialize;

use crate::Store;
use crate::error::{Failure, group_not_found, stream_not_found};

pub(crate) use save::Saving;

/// When nothing is open, so nothing is due.
pub(crate) const NEVER: i64 = i64::MAX;

/// A group as it was found by its names.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: GroupRef,
    pub(crate) settings: GroupSettings,
    /// What judges: the given instant, or the server's time.
    pub(crate) now: Timestamp,
    /// Where it stands in the partitions asked for, ascending.
    pub(crate) members: Vec<Member>,
    /// The last sequences of these partitions, where they were asked for.
    pub(crate) ends: BTreeMap<u32, u64>,
}

/// Where a group stands in one partition.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Member {
    pub(crate) partition: u32,
    max_attempts: u32,
    ordered: bool,
    pub(crate) start: u64,
    pub(crate) cursor: u64,
    pub(crate) next_due: i64,
}

/// What to look at beside the group itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// The ends of its partitions.
    Ends,
}

/// What one look at a stream and a group tells.
#[derive(Debug, Deserialize)]
struct Found {
    /// In milliseconds.
    now: i64,
    members: Vec<Member>,
    #[serde(default)]
    ends: Vec<End>,
}

#[derive(Debug, Deserialize)]
struct End {
    partition: u32,
    last: u64,
}

/// A piece of a group's progress in one partition, as loaded.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) member: Member,
    parts: Parts,
}

impl Piece {
    pub(crate) fn new(
        member: Member,
        open: Vec<OpenRun>,
        attempts: Vec<AttemptRun>,
        dead: Vec<DeadEvent>,
    ) -> Self {
        let Member { start, cursor, .. } = member;
        Self { member, parts: Parts { start, cursor, open, attempts, dead } }
    }

    /// The pure state, to be changed and saved.
    pub(crate) fn progress(&self) -> Progress {
        Progress::from_parts(self.parts.clone())
    }
}

/// Sequences beyond what the server counts to do not exist.
pub(crate) fn long(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// The document of a stream as the caller knows it.
pub(crate) fn of_stream(stream: &StreamRef) -> Document {
    doc! {
        "_id": stream.name.as_str(),
        "partitions": stream.partitions,
        "dropping": { "$exists": false },
    }
}

/// The documents of a group.
pub(crate) fn of_group(group: &GroupRef) -> Document {
    doc! { "stream": group.stream.name.as_str(), "group": group.name.as_str() }
}

/// The documents of a group in one partition.
pub(crate) fn of_partition(group: &GroupRef, partition: u32) -> Document {
    let mut documents = of_group(group);
    documents.insert("partition", partition);
    documents
}

impl Store {
    /// Finds where a group stands in these partitions: `StreamNotFound`, then
    /// `GroupNotFound`.
    pub(crate) async fn find_group(
        &self,
        session: &mut ClientSession,
        operation: &'static str,
        name: &GroupRef,
        partitions: &[u32],
        beside: Beside,
        now: Now,
    ) -> Result<Group, Failure> {
        let pipeline = self.look_at(name, partitions, beside);
        let looking = self.collections.streams.aggregate(pipeline).with_type::<Found>();
        let mut cursor = looking.session(&mut *session).await?;
        let Some(found) = cursor.next(session).await.transpose()? else {
            return Err(stream_not_found(operation, &name.stream.name).into());
        };
        let first = found.members.first().ok_or_else(|| group_not_found(operation, name))?;
        Ok(Group {
            name: name.clone(),
            settings: GroupSettings { max_attempts: first.max_attempts, ordered: first.ordered },
            now: match now {
                Now::Store => Timestamp::from_micros(found.now.saturating_mul(1000)),
                Now::At(instant) => instant,
            },
            ends: found.ends.iter().map(|end| (end.partition, end.last)).collect(),
            members: found.members,
        })
    }

    fn look_at(&self, name: &GroupRef, partitions: &[u32], beside: Beside) -> Vec<Document> {
        let partitions = doc! { "$in": partitions.to_vec() };
        let mut members = of_group(name);
        members.insert("partition", &partitions);
        let mut pipeline = vec![
            doc! { "$match": of_stream(&name.stream) },
            doc! { "$lookup": {
                "from": self.collections.groups.name(),
                "pipeline": [{ "$match": members }, { "$sort": { "partition": 1 } }],
                "as": "members",
            } },
            doc! { "$set": { "now": { "$toLong": "$$NOW" } } },
        ];
        if beside == Beside::Ends {
            let stream = name.stream.name.as_str();
            pipeline.push(doc! { "$lookup": {
                "from": self.collections.partitions.name(),
                "pipeline": [
                    { "$match": { "stream": stream, "partition": partitions } },
                    { "$project": { "_id": 0, "partition": 1, "last": 1 } },
                ],
                "as": "ends",
            } });
        }
        pipeline
    }
}
