//! What Rheo costs beside the bare driver, as ratios inside one run.
//!
//! `cargo bench -p rheo-redis --bench ratios --no-run` builds it. The program
//! takes the names of rows (`append`, `consume`, `singles`, `memory`,
//! `history`, `expired`, `stats`) in any order; without names it does all.
//!
//! Both sides of a row take turns, call by call, on one server and with one
//! multiplexed connection each. A ratio is the median of several rounds, beside
//! the least and the greatest; what a round compares are medians of its calls.

mod append;
mod bare;
mod consume;
mod events;
mod expired;
mod history;
mod memory;
mod place;
mod singles;
mod stats;

use std::env;

use place::Place;
use ratios::begin;

const ROWS: [&str; 7] = ["append", "consume", "singles", "memory", "history", "expired", "stats"];

#[tokio::main]
async fn main() {
    // Cargo adds a flag of its own.
    let names: Vec<String> = env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let place = Place::start().await;
    begin(&place.version);
    for row in ROWS.iter().filter(|row| names.is_empty() || names.iter().any(|name| name == *row)) {
        measure(row, &place).await;
    }
}

async fn measure(row: &str, place: &Place) {
    match row {
        "append" => append::measure(place).await,
        "consume" => consume::measure(place).await,
        "singles" => singles::measure(place).await,
        "memory" => memory::measure(place).await,
        "history" => history::measure(place).await,
        "expired" => expired::measure(place).await,
        _ => stats::measure(place).await,
    }
}
