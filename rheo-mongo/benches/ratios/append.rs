//! Appending batches, against an insert of the same number of natural documents
//! in a transaction.

use ratios::{BATCH, Row, append_batches, rates, side_by_side, take_turns};

use crate::bare::Log;
use crate::place::{Place, create};

/// How many turns a round has.
const TURNS: usize = 6;
/// How many batches each caller appends in a turn.
const EACH: u64 = 2;

pub(crate) async fn measure(place: &Place) {
    for callers in [1, 4] {
        against(place, callers, Indexes::Order).await;
        against(place, callers, Indexes::All).await;
    }
}

/// What the bare driver's collection can be searched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Indexes {
    /// The sequence alone.
    Order,
    /// All that Rheo's events can be searched by.
    All,
}

async fn against(place: &Place, callers: u32, indexes: Indexes) {
    let (indexed, target) = match indexes {
        Indexes::Order => ("one index", "0.7"),
        Indexes::All => ("Rheo's indexes", "none"),
    };
    let stream = format!("append-{callers}-{indexes:?}");
    let (rheo, log) = (place.rheo().await, place.bare_log(&stream).await);
    create(&rheo, &stream).await;
    if indexes == Indexes::All {
        log.index_like(&place.events()).await;
    }
    let theirs = async || insert(&log, callers).await;
    let ours = async || append_batches(&rheo, &stream, 1, callers, EACH).await;
    let pairs = take_turns(TURNS, theirs, ours).await;
    let name = format!("append of 100, callers at once: {callers}, against {indexed}");
    let row = Row { name: &name, unit: "events/s", target };
    row.print(&rates(u64::from(callers) * EACH * BATCH, &pairs));
    log.drop().await;
}

async fn insert(log: &Log, callers: u32) -> f64 {
    let task = |_| {
        let log = log.clone();
        let batches: Vec<_> = (0..EACH).map(|_| log.events(BATCH)).collect();
        async move {
            for batch in batches {
                log.append(&batch).await;
            }
        }
    };
    let tasks: Vec<_> = (0..callers).map(task).collect();
    side_by_side(tasks).await
}
