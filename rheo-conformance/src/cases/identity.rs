//! Event ids, given and generated: law S7.

use std::collections::HashSet;

use futures::future::join_all;
use rheo_core::{Event, NewEvent, Query, Rheo};
use serde_json::json;
use uuid::Uuid;

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, numbered};

case_table! {
    "id.generated_ones_are_uuid_v7_and_differ" [S7] => generated_ones_are_uuid_v7_and_differ;
    "id.a_given_one_is_kept" [S7] => a_given_one_is_kept;
    "id.a_repeated_one_returns_the_stored_event" [S7] => a_repeated_one_returns_the_stored_event;
    "id.32_racing_appends_store_one_event" [S7] => of_32_racing_appends_one_is_stored;
    "id.racing_batches_store_each_event_once" [S7] => racing_batches_store_each_event_once;
    "id.a_batch_can_repeat_its_own" [S7 S4] => a_batch_can_repeat_its_own;
    "id.a_batch_can_mix_stored_and_new" [S7 S4 S3] => a_batch_can_mix_stored_and_new;
    "id.it_is_a_key_within_its_partition" [S7] needs [Partitions] => it_is_a_key_in_its_partition;
    "id.it_is_a_key_within_its_stream" [S7] => it_is_a_key_within_its_stream;
    "id.given_and_generated_ones_stand_together" [S7] => given_and_generated_ones_stand_together;
    "id.a_retried_append_survives_a_crash" [S7] needs [Durable] runs alone
        => a_retried_append_after_a_crash;
}

fn event(id: Uuid, n: u64) -> NewEvent {
    NewEvent::new("t", json!({ "n": n })).id(id)
}

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

async fn with_stream(trial: &Trial, partitions: u32) -> Rheo {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", partitions).await.expect("the stream is new");
    rheo
}

async fn append(rheo: &Rheo, event: NewEvent) -> Event {
    rheo.append("s", event).await.expect("it is appended")
}

async fn stored(rheo: &Rheo) -> Vec<Event> {
    rheo.query("s", &Query::new().limit(1000)).await.expect("it finds")
}

/// Ids that Rheo makes are UUIDs of version 7, and no two are equal.
async fn generated_ones_are_uuid_v7_and_differ(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    let mut events = append_to(&rheo, 0, 100).await;
    for n in numbered(20) {
        events.push(append(&rheo, n).await);
    }
    assert!(events.iter().all(|event| event.id().get_version_num() == 7));
    let distinct: HashSet<Uuid> = events.iter().map(Event::id).collect();
    assert_eq!(distinct.len(), 120);
}

/// An id of any version is kept as given, the least and the greatest included.
async fn a_given_one_is_kept(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    let ids = [Uuid::nil(), Uuid::max(), id(1), id(1 << 127), Uuid::new_v4(), Uuid::now_v7()];
    for given in ids {
        assert_eq!(append(&rheo, event(given, 1)).await.id(), given);
        let found = rheo.query("s", &Query::new().id(given)).await.expect("it finds");
        assert_eq!(found.iter().map(Event::id).collect::<Vec<_>>(), [given]);
    }
    let kept: Vec<Uuid> = stored(&rheo).await.iter().map(Event::id).collect();
    assert_eq!(kept, ids);
}

/// Appending an id again, with whatever else, returns the event that is
/// stored, unchanged, and uses up no sequence.
async fn a_repeated_one_returns_the_stored_event(trial: Trial) {
    let (rheo, other) = (with_stream(&trial, 1).await, trial.rheo().await);
    let first = append(&rheo, event(id(7), 1).key("k").metadata("m", 1)).await;
    append_to(&rheo, 0, 2).await;
    trial.advance_secs(60);
    let different = NewEvent::new("other", "x").id(id(7)).key("l").metadata("m", 2).partition(0);
    for rheo in [&rheo, &other] {
        assert_eq!(append(rheo, different.clone()).await, first);
        let batch = rheo.append_batch("s", vec![different.clone()]).await.expect("it is there");
        assert_eq!(batch, std::slice::from_ref(&first));
    }
    assert_eq!(append_to(&rheo, 0, 1).await[0].sequence(), 4);
    assert_eq!(stored(&rheo).await[0], first);
}

/// 32 appends of one id race: one event is stored, and all return it.
async fn of_32_racing_appends_one_is_stored(trial: Trial) {
    let clients = [with_stream(&trial, 1).await, trial.rheo().await];
    let racers = (0..32).map(|n| {
        let rheo = clients[n as usize % 2].clone();
        tokio::spawn(async move { append(&rheo, event(id(7), n)).await })
    });
    let returned: Vec<Event> =
        join_all(racers).await.into_iter().map(|event| event.expect("no panic")).collect();
    let stored = stored(&clients[0]).await;
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].sequence(), 1);
    assert!(returned.iter().all(|event| *event == stored[0]));
}

/// Batches that hold the same ids in different orders race: each id is stored
/// once, without a gap, and everyone is told the same.
async fn racing_batches_store_each_event_once(trial: Trial) {
    let clients = [with_stream(&trial, 1).await, trial.rheo().await];
    let mut rng = trial.rng();
    let racers = (0..16).map(|n| {
        let rheo = clients[n % 2].clone();
        let mut ids: Vec<u128> = (1..=20).collect();
        rng.shuffle(&mut ids);
        tokio::spawn(async move {
            let batch = ids.iter().map(|&n| event(id(n), 0)).collect();
            let returned = rheo.append_batch("s", batch).await.expect("they are appended");
            let expected: Vec<Uuid> = ids.into_iter().map(id).collect();
            assert_eq!(returned.iter().map(Event::id).collect::<Vec<_>>(), expected);
            returned
        })
    });
    let racers: Vec<_> = racers.collect();
    let returned = join_all(racers).await;
    let stored = stored(&clients[1]).await;
    let sequences: Vec<u64> = stored.iter().map(Event::sequence).collect();
    assert_eq!(sequences, (1..=20).collect::<Vec<_>>());
    for event in returned.into_iter().flat_map(|events| events.expect("no panic")) {
        assert_eq!(event, stored[event.sequence() as usize - 1]);
    }
}

/// An id that stands twice in a batch is stored once, as it stood first.
async fn a_batch_can_repeat_its_own(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    let batch = vec![event(id(1), 1), event(id(2), 2), event(id(1), 3), event(id(3), 4)];
    let returned = rheo.append_batch("s", batch).await.expect("they are appended");
    let told: Vec<_> = returned.iter().map(|one| (one.sequence(), one.payload())).collect();
    let n = |n: u64| json!({ "n": n });
    assert_eq!(told, [(1, n(1)), (2, n(2)), (1, n(1)), (3, n(4))]);
    assert_eq!(stored(&rheo).await.len(), 3);
}

/// In a batch of stored and new ids the stored ones come back as they are, and
/// the new ones are contiguous.
async fn a_batch_can_mix_stored_and_new(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    let old = append(&rheo, event(id(1), 1)).await;
    append_to(&rheo, 0, 1).await;
    let batch = vec![event(id(2), 2), event(id(1), 9), NewEvent::new("t", 3), event(id(3), 4)];
    let returned = rheo.append_batch("s", batch).await.expect("they are appended");
    let sequences: Vec<u64> = returned.iter().map(Event::sequence).collect();
    assert_eq!(sequences, [3, 1, 4, 5]);
    assert_eq!(returned[1], old);
    assert_eq!(stored(&rheo).await.len(), 5);
}

/// The same id in another partition is another event.
async fn it_is_a_key_in_its_partition(trial: Trial) {
    let rheo = with_stream(&trial, 2).await;
    let first = append(&rheo, event(id(7), 1).partition(0)).await;
    let second = append(&rheo, event(id(7), 2).partition(1)).await;
    assert_eq!((second.partition(), second.sequence()), (1, 1));
    assert_eq!(second.payload(), json!({ "n": 2 }));
    assert_eq!(append(&rheo, event(id(7), 3).partition(0)).await, first);
    assert_eq!(append(&rheo, event(id(7), 3).partition(1)).await, second);
    let found = rheo.query("s", &Query::new().id(id(7))).await.expect("it finds");
    assert_eq!(found, [first, second]);
}

/// The same id in another stream is another event.
async fn it_is_a_key_within_its_stream(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    rheo.create_stream("other", 1).await.expect("the stream is new");
    append(&rheo, event(id(7), 1)).await;
    let other = rheo.append("other", event(id(7), 2)).await.expect("it is appended");
    assert_eq!((other.stream().as_str(), other.sequence()), ("other", 1));
    assert_eq!(other.payload(), json!({ "n": 2 }));
}

/// An event with a given id, beside those that Rheo gave one, stays the only one with it.
async fn given_and_generated_ones_stand_together(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    append_to(&rheo, 0, 3).await;
    let given = append(&rheo, event(id(7), 1)).await;
    append_to(&rheo, 0, 3).await;
    assert_eq!(append(&rheo, event(id(7), 2)).await, given);
    assert_eq!(stored(&rheo).await.len(), 7);
}

/// Who does not know whether an append was stored appends it again after the
/// crash: it is stored once.
async fn a_retried_append_after_a_crash(trial: Trial) {
    let first = append(&with_stream(&trial, 1).await, event(id(7), 1)).await;
    trial.crash().await;
    let rheo = trial.rheo().await;
    assert_eq!(append(&rheo, event(id(7), 1)).await, first);
    assert_eq!(stored(&rheo).await, [first]);
}
