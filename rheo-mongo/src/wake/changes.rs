//! The change stream by which an instance hears of work.
//!
//! What is heard are hints. One that is lost costs a poll interval and nothing
//! else.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use rheo_core::Effect;
use rheo_core::adapter::Bells;
use tokio::time::{sleep, timeout};

use crate::collections::Collections;
use crate::error::Failure;

/// How long the server waits for a change before it says that there was none.
const ROUND: Duration = Duration::from_secs(10);

/// How long an answer may take: where the server is there, it comes sooner.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first pause before a broken stream is begun anew.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Rings for what the server tells, again and again where that breaks.
pub(super) async fn hear_always(collections: Collections, bells: Arc<Bells>) {
    let (mut pause, mut was_refused) = (FIRST_PAUSE, false);
    loop {
        if let Err(failure) = hear(&collections, &bells, &mut pause).await {
            let is_refused = !failure.is_lost();
            let error = failure.into_error("wait", Effect::NotApplied);
            if is_refused && !was_refused {
                tracing::warn!(%error, "changes cannot be watched: polling instead");
            } else {
                tracing::debug!(%error, "no changes are heard: polling until they are");
            }
            was_refused |= is_refused;
        }
        sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Rings until the change stream ends. The driver takes it up again after a
/// broken connection, where the server still knows the place.
async fn hear(
    collections: &Collections,
    bells: &Bells,
    pause: &mut Duration,
) -> Result<(), Failure> {
    let watching = collections.database.watch().pipeline(of_interest(collections));
    let changes = patiently(watching.max_await_time(ROUND).into_future()).await?;
    let mut changes = changes.with_type::<Document>();
    *pause = FIRST_PAUSE;
    // What changed before went unheard.
    bells.ring_all();
    while changes.is_alive() {
        if let Some(change) = patiently(changes.next_if_any()).await? {
            match stream_of(&change) {
                Some(stream) => bells.ring(stream),
                None => bells.ring_all(),
            }
        }
    }
    Ok(())
}

/// The changes after which there may be work: appends, and what makes events of
/// a group claimable again. Where a document is deleted, those who wait are to
/// hear that too.
fn of_interest(collections: &Collections) -> [Document; 2] {
    let (partitions, groups) = (collections.partitions.name(), collections.groups.name());
    let chosen = doc! {
        "ns.coll": { "$in": [partitions, groups] },
        "operationType": { "$in": ["update", "replace", "delete"] },
        "$or": [
            { "ns.coll": partitions },
            { "operationType": { "$ne": "update" } },
            { "updateDescription.updatedFields.freed": { "$exists": true } },
        ],
    };
    [doc! { "$match": chosen }, doc! { "$project": { "documentKey._id.stream": 1 } }]
}

/// Whose change it is.
fn stream_of(change: &Document) -> Option<&str> {
    change.get_document("documentKey").ok()?.get_document("_id").ok()?.get_str("stream").ok()
}

async fn patiently<T>(
    answer: impl Future<Output = mongodb::error::Result<T>>,
) -> Result<T, Failure> {
    Ok(timeout(PATIENCE, answer).await.map_err(|_| Failure::Late)??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_tells_its_stream_or_nothing() {
        let change = |id| doc! { "_id": { "_data": "8263" }, "documentKey": { "_id": id } };
        assert_eq!(stream_of(&change(doc! { "stream": "a.b" })), Some("a.b"));
        assert_eq!(stream_of(&change(doc! { "stream": 7 })), None);
        assert_eq!(stream_of(&doc! { "documentKey": { "_id": 7 } }), None);
    }
}
