//! `docs/sql-plans.md`: how each database carries out the hot statements, on
//! tables that hold much.

mod cases;
mod explain;
pub(crate) mod texts;

use std::time::Duration;

use ratios::fill;
use rheo_core::{FetchOptions, GroupOptions, Rheo};

use crate::bare::Bare;
use crate::place::Place;

const STREAMS: u32 = 10;
const PARTITIONS: u32 = 4;
const EVENTS_OF_A_STREAM: u64 = 20_000;
/// Streams with a group each and no events.
const NEIGHBOURS: u32 = 500;
/// Claims of one group that stay open, of few events each.
const OPEN_CLAIMS: usize = 1000;

/// Prints the page, with a section for each store.
pub(crate) async fn print(stores: &[&'static str]) {
    println!("{}", include_str!("page.md").trim_end());
    for store in stores {
        let place = Place::start(store).await;
        let rheo = place.rheo().await;
        fill_tables(&rheo).await;
        let mut bare = place.bare().await;
        let ids = ids(&mut bare).await;
        // Servers do so by themselves.
        match place.store {
            "postgres" => bare.run("ANALYZE").await,
            "mysql" => bare.run(ANALYZE_MYSQL).await,
            _ => {}
        }
        println!("\n## {}", place.version);
        for case in cases::of(place.store, ids) {
            println!("\n### {}\n\n```text", case.title);
            for line in explain::plan(&mut bare, &case).await {
                println!("{line}");
            }
            println!("```");
        }
    }
}

const ANALYZE_MYSQL: &str = "ANALYZE TABLE rheo_streams, rheo_partitions, rheo_events, \
    rheo_groups, rheo_cursors, rheo_runs, rheo_attempts";

async fn fill_tables(rheo: &Rheo) {
    for number in 0..NEIGHBOURS {
        let stream = format!("neighbour-{number}");
        rheo.create_stream(&stream, PARTITIONS).await.expect("a new stream");
        rheo.create_group(&stream, "group-1", GroupOptions::default()).await.expect("a new group");
    }
    for number in 0..STREAMS {
        let stream = format!("stream-{number}");
        rheo.create_stream(&stream, PARTITIONS).await.expect("a new stream");
        for group in 0..3 {
            let options = GroupOptions::default();
            let group = format!("group-{group}");
            rheo.create_group(&stream, &group, options).await.expect("a new group");
        }
        fill(rheo, &stream, PARTITIONS, EVENTS_OF_A_STREAM).await;
    }
    let options = || FetchOptions::default().lease(Duration::from_secs(1_000_000));
    for _ in 0..OPEN_CLAIMS {
        let fetched = rheo.fetch(cases::STREAM, cases::GROUP, 5, options()).await;
        assert_eq!(fetched.expect("fetched").len(), 5);
    }
}

/// The ids of the stream and the group that the cases are about.
async fn ids(bare: &mut Bare) -> (String, String) {
    let kind = if matches!(bare, Bare::MySql(_)) { "CHAR" } else { "TEXT" };
    let stream =
        format!("SELECT CAST(id AS {kind}) FROM rheo_streams WHERE name = '{}'", cases::STREAM);
    let stream = bare.lines(&stream).await.remove(0);
    let group = format!(
        "SELECT CAST(id AS {kind}) FROM rheo_groups WHERE stream_id = {stream} AND name = '{}'",
        cases::GROUP
    );
    (stream, bare.lines(&group).await.remove(0))
}
