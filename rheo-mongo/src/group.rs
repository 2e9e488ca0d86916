//! Creating, deleting and listing groups.

use mongodb::ClientSession;
use mongodb::bson::{Document, doc};
use rheo_core::backend::{CreateGroup, GroupRef, StreamRef};
use rheo_core::{Error, ErrorKind, GroupName, Result};
use serde::Deserialize;

use crate::Store;
use crate::collections::{Collections, all};
use crate::error::{Failure, corrupt, group_not_found, stream_not_found};
use crate::operation::Operation;
use crate::state::{NEVER, long, of_group, of_partition, of_stream};

impl Operation for CreateGroup {
    const NAME: &'static str = "create_group";
    type Output = ();

    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<(), Failure> {
        let GroupRef { stream, name } = &self.group;
        count_change(store, session, Self::NAME, stream).await?;
        let groups = &store.collections.groups;
        let there = groups.find_one(of_partition(&self.group, 0)).session(&mut *session).await?;
        if there.is_some() {
            let context = format!("group {name:?} of stream {:?}", stream.name);
            return Err(Error::new(ErrorKind::AlreadyExists, Self::NAME, context).into());
        }
        let members = (0..).zip(&self.start);
        let members = members.map(|(partition, &start)| member_document(self, partition, start));
        groups.insert_many(members).session(session).await?;
        Ok(())
    }
}

/// The names stand in the `_id`, since of a change that is all that a change
/// stream tells.
fn member_document(request: &CreateGroup, partition: u32, start: u64) -> Document {
    let names = of_partition(&request.group, partition);
    let mut member = doc! { "_id": names.clone() };
    member.extend(names);
    member.extend(doc! {
        "max_attempts": request.settings.max_attempts,
        "ordered": request.settings.ordered,
        "start": long(start),
        "cursor": long(start),
        "next_due": NEVER,
        "version": 0_i64,
        "freed": 0_i64,
    });
    member
}

/// Delete this group.
pub(crate) struct DeleteGroup(pub(crate) GroupRef);

impl Operation for DeleteGroup {
    const NAME: &'static str = "delete_group";
    type Output = ();

    /// Whoever claims or settles changes a document of the group: of the two,
    /// one comes first, and the other begins anew.
    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<(), Failure> {
        count_change(store, session, Self::NAME, &self.0.stream).await?;
        let groups = &store.collections.groups;
        let deleted = groups.delete_many(of_group(&self.0)).session(&mut *session).await?;
        if deleted.deleted_count == 0 {
            return Err(group_not_found(Self::NAME, &self.0).into());
        }
        forget_work(store, session, &self.0).await
    }
}

/// Which groups has this stream?
pub(crate) struct ListGroups(pub(crate) StreamRef);

#[derive(Deserialize)]
struct Named {
    group: String,
}

impl Operation for ListGroups {
    const NAME: &'static str = "list_groups";
    type Output = Vec<GroupName>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let Collections { streams, groups, .. } = &store.collections;
        let stream = streams.find_one(of_stream(&self.0)).session(&mut *session).await?;
        if stream.is_none() {
            return Err(stream_not_found(Self::NAME, &self.0.name).into());
        }
        let first = doc! { "stream": self.0.name.as_str(), "partition": 0 };
        let groups = groups.clone_with_type::<Named>();
        let finding = groups.find(first).projection(doc! { "_id": 0, "group": 1 });
        let cursor = finding.sort(doc! { "group": 1 }).session(&mut *session).await?;
        let name = |found: Named| {
            GroupName::new(found.group).map_err(|why| corrupt("a group's name", why))
        };
        all(cursor, session).await?.into_iter().map(name).collect()
    }
}

/// Counts in the stream's document that its groups change, so that such
/// changes, and the stream's deletion, come one after the other.
async fn count_change(
    store: &Store,
    session: &mut ClientSession,
    operation: &'static str,
    stream: &StreamRef,
) -> Result<(), Failure> {
    let counted = doc! { "$inc": { "groups": 1_i64 } };
    let counting = store.collections.streams.update_one(of_stream(stream), counted);
    if counting.session(session).await?.matched_count == 0 {
        return Err(stream_not_found(operation, &stream.name).into());
    }
    Ok(())
}

/// Deletes a group's leases, attempts and dead letters. To be called where the
/// group's documents are changed in all partitions.
pub(crate) async fn forget_work(
    store: &Store,
    session: &mut ClientSession,
    group: &GroupRef,
) -> Result<(), Failure> {
    let Collections { runs, attempts, dead_letters, .. } = &store.collections;
    for collection in [runs, attempts, dead_letters] {
        collection.delete_many(of_group(group)).session(&mut *session).await?;
    }
    Ok(())
}
