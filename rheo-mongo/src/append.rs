//! Appending.

use std::collections::{BTreeMap, HashMap, HashSet};

use mongodb::ClientSession;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Binary, doc};
use mongodb::options::ReturnDocument;
use rheo_core::backend::{Append, RoutedEvent, StreamRef};
use rheo_core::{Event, Position, Result, Timestamp};
use serde::Deserialize;
use uuid::Uuid;

use crate::Store;
use crate::codec;
use crate::collections::all;
use crate::error::{Failure, stream_not_found};
use crate::operation::Operation;
use crate::state::of_stream;

/// The end of the log in one partition, as it was before this append.
#[derive(Clone, Debug, Deserialize)]
struct End {
    log: ObjectId,
    last: u64,
    latest: i64,
}

/// The events that given ids stand for, by partition and id.
type Known = HashMap<(u32, Uuid), Event>;

/// What is to be new in one partition.
#[derive(Clone, Copy, Debug)]
struct Growth {
    count: i64,
    latest: Timestamp,
}

impl Operation for Append {
    const NAME: &'static str = "append";
    type Output = Vec<Event>;

    /// The update of a partition's document keeps others from appending there
    /// until the commit, so that commits come in the order of sequences, and no
    /// number is left out.
    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<Vec<Event>, Failure> {
        let mut known = stored(self, store, session).await?;
        let mut ends = BTreeMap::new();
        for (partition, growth) in growths(self, &known) {
            let end = grow(self, store, session, partition, growth).await?;
            let end = end.ok_or_else(|| stream_not_found(Self::NAME, &self.stream.name))?;
            ends.insert(partition, end);
        }
        if ends.is_empty() {
            // What was found may be left of a stream that is being deleted.
            assert_exists(self, store, session).await?;
        }
        let (mut events, mut documents) = (Vec::with_capacity(self.events.len()), Vec::new());
        for event in &self.events {
            let id = (event.partition, event.body.id());
            if let Some(stored) = event.idempotent.then(|| known.get(&id)).flatten() {
                events.push(stored.clone());
                continue;
            }
            // Each partition with something new has grown.
            let Some(end) = ends.get_mut(&event.partition) else { continue };
            end.last += 1;
            end.latest = end.latest.max(event.body.timestamp().as_micros());
            let latest = Timestamp::from_micros(end.latest);
            let stream = &self.stream.name;
            documents.push(codec::document(stream, end.log, end.last, latest, event));
            let position = Position::new(event.partition, end.last);
            let appended = Event::new(self.stream.name.clone(), position, event.body.clone());
            if event.idempotent {
                known.insert(id, appended.clone());
            }
            events.push(appended);
        }
        if !documents.is_empty() {
            store.collections.events.insert_many(documents).session(session).await?;
        }
        Ok(events)
    }
}

/// The stored events that the given ids stand for already.
async fn stored(
    request: &Append,
    store: &Store,
    session: &mut ClientSession,
) -> Result<Known, Failure> {
    let given = request.events.iter().filter(|event| event.idempotent);
    let mut ids: BTreeMap<u32, Vec<Binary>> = BTreeMap::new();
    for event in given {
        ids.entry(event.partition).or_default().push(codec::binary(event.body.id()));
    }
    let mut known = Known::new();
    for (partition, ids) in ids {
        let found = store.collections.events.find(doc! {
            "stream": request.stream.name.as_str(),
            "partition": partition,
            "id": { "$in": ids },
            "given": true,
        });
        let cursor = found.session(&mut *session).await?;
        for document in all(cursor, session).await? {
            let event = codec::event(&document, &request.stream.name)?;
            known.insert((partition, event.id()), event);
        }
    }
    Ok(known)
}

/// By how much each partition is to grow. What is known already adds nothing,
/// and neither does an id that is given twice.
fn growths(request: &Append, known: &Known) -> BTreeMap<u32, Growth> {
    let mut growths = BTreeMap::new();
    let mut given = HashSet::new();
    for RoutedEvent { partition, body, idempotent } in &request.events {
        let id = (*partition, body.id());
        if *idempotent && (known.contains_key(&id) || !given.insert(id)) {
            continue;
        }
        let nothing = Growth { count: 0, latest: Timestamp::MIN };
        let growth = growths.entry(*partition).or_insert(nothing);
        growth.count += 1;
        growth.latest = growth.latest.max(body.timestamp());
    }
    growths
}

/// Takes the next sequences of a partition, and tells where they begin; nothing
/// where there is no such partition.
async fn grow(
    request: &Append,
    store: &Store,
    session: &mut ClientSession,
    partition: u32,
    growth: Growth,
) -> Result<Option<End>, Failure> {
    let ends = store.collections.partitions.clone_with_type::<End>();
    let StreamRef { name, partitions } = &request.stream;
    let end = doc! { "stream": name.as_str(), "partition": partition, "partitions": *partitions };
    let update = doc! {
        "$inc": { "last": growth.count },
        "$max": { "latest": growth.latest.as_micros() },
    };
    let growing = ends.find_one_and_update(end, update);
    Ok(growing.return_document(ReturnDocument::Before).session(session).await?)
}

async fn assert_exists(
    request: &Append,
    store: &Store,
    session: &mut ClientSession,
) -> Result<(), Failure> {
    let found = store.collections.streams.find_one(of_stream(&request.stream)).session(session);
    match found.await? {
        Some(_) => Ok(()),
        None => Err(stream_not_found(Append::NAME, &request.stream.name).into()),
    }
}
