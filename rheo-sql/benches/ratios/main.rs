//! What Rheo costs beside the bare driver, as ratios inside one run.
//!
//! `cargo bench -p rheo-sql --all-features --bench ratios --no-run` builds it. The
//! program takes the names of stores (`sqlite`, `postgres`, `mysql`) and of rows
//! (`append`, `consume`, `singles`, `history`, `garbage`, `waking`) in any order;
//! without names it does all. With `plans` it writes the page
//! `docs/sql-plans.md` instead.
//!
//! Both sides of a row take turns, a round each, on one server with its
//! durable defaults. A ratio is the median of the rounds, beside the least and
//! the greatest.

mod append;
mod bare;
mod consume;
mod events;
mod garbage;
mod history;
mod place;
mod plans;
mod queue;
mod singles;
mod waking;

use std::env;

use place::{Place, STORES};
// The crate's own files, from which plans are made, look for these here.
#[allow(unused_imports, reason = "some look only where they are tested")]
use plans::texts::{Dialect, config, config::Options};
use ratios::begin;

/// How often both sides of a row take turns, after a round that does not count.
const ROUNDS: usize = 5;

const ROWS: [&str; 6] = ["append", "consume", "singles", "history", "garbage", "waking"];

#[tokio::main]
async fn main() {
    // Cargo adds a flag of its own.
    let names: Vec<String> = env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let asked = |all: &[&'static str]| -> Vec<&'static str> {
        let named: Vec<_> =
            all.iter().filter(|row| names.iter().any(|name| name == *row)).collect();
        if named.is_empty() { all.to_vec() } else { named.into_iter().copied().collect() }
    };
    let (stores, rows) = (asked(&STORES), asked(&ROWS));
    if names.iter().any(|name| name == "plans") {
        return plans::print(&stores).await;
    }
    for store in stores {
        let place = Place::start(store).await;
        begin(&format!("{}: {}", place.store, place.version));
        for row in &rows {
            measure(row, &place).await;
        }
    }
}

async fn measure(row: &str, place: &Place) {
    let on_postgres = place.store == "postgres";
    match row {
        "append" => append::measure(place).await,
        "consume" => consume::measure(place).await,
        "singles" => singles::measure(place).await,
        "history" => history::measure(place).await,
        "garbage" if on_postgres => garbage::measure(place).await,
        "waking" if on_postgres => waking::measure(place).await,
        _ => {}
    }
}
