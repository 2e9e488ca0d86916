//! Reading by sequence.

use mongodb::ClientSession;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use rheo_core::backend::Read;
use rheo_core::{Event, Result};

use crate::Store;
use crate::codec;
use crate::collections::all;
use crate::error::{Failure, stream_not_found};
use crate::operation::Operation;
use crate::seek::of_partitions;
use crate::state::long;

impl Operation for Read {
    const NAME: &'static str = "read";
    type Output = Vec<Event>;

    /// Of a stream that is being deleted there are events for a while, but no
    /// partitions: so the partition's document comes first in the answer.
    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<Vec<Event>, Failure> {
        let most = u32::try_from(self.limit).unwrap_or(u32::MAX).saturating_add(2);
        let reading = store.collections.partitions.aggregate(pipeline(self, store));
        let reading = reading.with_type::<RawDocumentBuf>().batch_size(most);
        let found = all(reading.session(&mut *session).await?, session).await?;
        match found.split_first() {
            Some((partition, events)) if is_partition(partition) => {
                events.iter().map(|event| codec::event(event, &self.stream.name)).collect()
            }
            _ => Err(stream_not_found(Self::NAME, &self.stream.name).into()),
        }
    }
}

/// The partition, then its events.
fn pipeline(request: &Read, store: &Store) -> Vec<Document> {
    let Read { stream, partition, after, limit } = request;
    let events = doc! {
        "stream": stream.name.as_str(),
        "partition": *partition,
        "sequence": { "$gt": long(*after) },
    };
    let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
    vec![
        doc! { "$match": of_partitions(stream, *partition..=*partition) },
        doc! { "$project": { "_id": 0, "is_partition": { "$literal": true } } },
        doc! { "$unionWith": {
            "coll": store.collections.events.name(),
            "pipeline": [
                { "$match": events },
                { "$sort": { "sequence": 1 } },
                { "$limit": limit },
            ],
        } },
    ]
}

fn is_partition(document: &RawDocumentBuf) -> bool {
    document.get_bool("is_partition").is_ok()
}
