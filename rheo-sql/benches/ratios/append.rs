//! Appending batches, against the bare driver's insert into the same table.

use ratios::{BATCH, Row, append_batches, rate, side_by_side};

use crate::ROUNDS;
use crate::bare::Bare;
use crate::events::bare_events;
use crate::place::Place;

/// How many batches each client appends in a round.
const BATCHES: u64 = 150;
/// Rows of the bare driver stand in the same table, as streams of no name.
const NAMELESS: i64 = 1_000_000;

pub(crate) async fn measure(place: &Place) {
    for clients in [1, 4] {
        against(place, clients, false).await;
        if place.store == "postgres" {
            against(place, clients, true).await;
        }
    }
}

async fn against(place: &Place, clients: u32, arrays: bool) {
    let rheo = place.rheo().await;
    let stream = format!("append-{clients}-{arrays}");
    rheo.create_stream(&stream, clients).await.expect("a new stream");
    let count = u64::from(clients) * BATCHES * BATCH;
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS as u64 {
        let nameless = NAMELESS + i64::from(clients) * 2 + i64::from(arrays);
        let bare = rate(count, insert(place, clients, (nameless, round), arrays).await);
        let ours = append_batches(&rheo, &stream, clients, clients, BATCHES).await;
        pairs.push((bare, rate(count, ours)));
    }
    let against = if arrays { "unnest" } else { "VALUES" };
    let name = format!("append of 100, {clients} clients, against {against}");
    Row { name: &name, unit: "events/s", target: "0.8" }.print(&pairs[1..]);
}

/// How many microseconds the bare driver takes for the same.
async fn insert(place: &Place, clients: u32, (stream, round): (i64, u64), arrays: bool) -> f64 {
    let mut tasks = Vec::new();
    for client in 0..clients {
        let mut bare: Bare = place.bare().await;
        let text = bare.insert_text(BATCH as usize);
        let first = |batch| (round * BATCHES + batch) * BATCH;
        let batches: Vec<_> =
            (0..BATCHES).map(|batch| (first(batch), bare_events(first(batch), BATCH))).collect();
        tasks.push(async move {
            let partition = (stream, i64::from(client));
            for (first, batch) in batches {
                let first = first.cast_signed() + 1;
                if arrays {
                    bare.insert_arrays(partition, first, &batch).await;
                } else {
                    bare.insert(&text, partition, first, &batch).await;
                }
            }
        });
    }
    side_by_side(tasks).await
}
