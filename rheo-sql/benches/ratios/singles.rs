//! Single appends: many at once, against one after another.

use rheo_core::Rheo;

use crate::events::events;
use crate::place::Place;
use crate::table::{ROUNDS, Row, Table, rate, side_by_side};

const CLIENTS: u64 = 32;
/// How many events each client appends in a round.
const EACH: u64 = 100;
const ALONE: u64 = 500;

pub(crate) async fn measure(place: &Place, table: &Table) {
    let rheo = place.rheo().await;
    rheo.create_stream("singles", 1).await.expect("a new stream");
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        let alone = singles(&rheo, "singles", 1, ALONE).await;
        pairs.push((alone, singles(&rheo, "singles", CLIENTS, EACH).await));
    }
    let name = "single appends, 32 at once, against one after another";
    table.row(&Row { name, unit: "events/s", target: "8" }, &pairs[1..]);
}

/// How many events a second clients append that wait for each one.
pub(crate) async fn singles(rheo: &Rheo, stream: &str, clients: u64, each: u64) -> f64 {
    let task = |client: u64| {
        let (rheo, stream) = (rheo.clone(), stream.to_string());
        let events = events(client * each, each, 0);
        async move {
            for event in events {
                rheo.append(&stream, event).await.expect("appended");
            }
        }
    };
    let tasks: Vec<_> = (0..clients).map(task).collect();
    rate(clients * each, side_by_side(tasks).await)
}
