//! What Rheo promises, step by step and with exact results: leases and fencing,
//! queries, pages, replay, reset, partitions and the frontier, consumers.
//!
//! The clock is moved by hand, so six seconds take no time.
//!
//! ```sh
//! cargo run --example concepts
//! ```

mod common;

use std::time::Duration;

use futures::TryStreamExt;
use rheo::{
    Confirm, Delivery, ErrorKind, Event, FetchOptions, GroupOptions, Lineage, ManualClock,
    NewEvent, Query, Replay, ReplayOptions, Result, Rheo, Start,
};
use serde_json::json;
use tokio::sync::mpsc;

const CURRENCIES: [&str; 3] = ["EUR", "USD", "GBP"];
const CURVES: [&str; 3] = ["EUR-EURIBOR-6M", "USD-SOFR", "GBP-SONIA"];

/// What every step works on.
struct Market {
    rheo: Rheo,
    clock: ManualClock,
    stream: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let clock = ManualClock::new("2026-03-15T12:00:00Z".parse()?);
    let builder = rheo::builder(&common::url("memory:")).await?;
    let builder = builder.clock(clock.clone()).lease(Duration::from_secs(5)).max_attempts(3);
    let rheo = builder.build().await?;
    let stream = common::free_name(&rheo, "market-events").await?;

    rheo.create_stream(&stream, 1).await?;
    let stored = rheo.append_batch(&stream, (1..=30).map(curve_update).collect()).await?;
    assert!(sequences(&stored).into_iter().eq(1..=30));
    println!("{} curve updates in one partition at {}", stored.len(), clock.now());

    let market = Market { rheo, clock, stream };
    let leased = groups_do_not_affect_each_other(&market).await?;
    an_expired_lease_is_fenced(&market, &leased).await?;
    queries(&market).await?;
    pages(&market).await?;
    replay(&market).await?;
    reset(&market).await?;
    partitions_and_frontier(&market).await?;
    one_consumer_for_each_group(&market).await
}

fn curve_update(i: usize) -> NewEvent {
    let lineage = Lineage::default()
        .correlation_id(format!("corr-{}", i % 7))
        .causation_id(format!("cmd-{i}"))
        .producer("pricing-service-v3")
        .schema("curve_update")
        .schema_version("1");
    let price = ((1.0 + 0.07 * i as f64) * 1e4).round() / 1e4;
    let payload = json!({
        "currency": CURRENCIES[i % 3],
        "curve": CURVES[i % 3],
        "price": price,
    });
    NewEvent::new("curve_update", payload).lineage(&lineage)
}

/// Step 1. Returns the events that `risk` holds.
async fn groups_do_not_affect_each_other(market: &Market) -> Result<Vec<Delivery>> {
    heading("1. Two groups, one log");
    market.create_group("risk", Start::Beginning).await?;
    market.create_group("surveillance", Start::Beginning).await?;
    let risk = market.fetch("risk", 5).await?;
    let surveillance = market.fetch("surveillance", 5).await?;
    assert_eq!(attempts(&risk), [1; 5]);
    assert_eq!(attempts(&surveillance), [1; 5]);
    for (one, other) in risk.iter().zip(&surveillance) {
        assert_eq!(one.event.id(), other.event.id());
        assert_ne!(one.lease.lease_id(), other.lease.lease_id());
    }
    market.ack_all("surveillance", &surveillance).await?;
    println!("   the same event ids, different lease ids");
    Ok(risk)
}

/// Step 2.
async fn an_expired_lease_is_fenced(market: &Market, old: &[Delivery]) -> Result<()> {
    heading("2. A lease expires, and its token is worth nothing any more");
    market.clock.advance(Duration::from_secs(6));
    println!("   six seconds later; a lease lasts five");
    let new = market.fetch("risk", 5).await?;
    assert_eq!(attempts(&new), [2; 5]);
    for (old, new) in old.iter().zip(&new) {
        assert_eq!(old.event.id(), new.event.id());
    }
    let refused = refusal(market.rheo.ack(&old[0]).await);
    assert_eq!(refused, ErrorKind::StaleLease);
    println!("   ack of event 1 with the old lease: {refused}");
    market.ack_all("risk", &new).await
}

/// Step 3.
async fn queries(market: &Market) -> Result<()> {
    heading("3. Queries");
    let table: [(&str, Query, &[u64]); 3] = [
        (
            "EUR-EURIBOR-6M in EUR",
            Query::new()
                .event_type("curve_update")
                .payload("currency", "EUR")
                .payload("curve", "EUR-EURIBOR-6M"),
            &[3, 6, 9, 12, 15, 18, 21, 24, 27, 30],
        ),
        (
            "after 10 until 15",
            Query::new().after_sequence(10).until_sequence(15),
            &[11, 12, 13, 14, 15],
        ),
        ("correlation corr-1", Query::new().correlation_id("corr-1"), &[1, 8, 15, 22, 29]),
    ];
    for (what, query, expected) in table {
        let found = sequences(&market.rheo.query(&market.stream, &query).await?);
        assert_eq!(found, expected);
        println!("   {what:21}  {}", list(&found));
    }
    Ok(())
}

/// Step 4.
async fn pages(market: &Market) -> Result<()> {
    heading("4. Pages of eight");
    let (rheo, stream) = (&market.rheo, &market.stream);
    let query = Query::new().limit(8);
    let first = rheo.query_page(stream, &query, None).await?;
    let second = rheo.query_page(stream, &query, Some(&first.cursor)).await?;
    let walk: Vec<Event> = rheo.query_stream(stream, query).try_collect().await?;

    let [first, second, walk] =
        [first.events, second.events, walk].map(|events| sequences(&events));
    assert!(first.iter().copied().eq(1..=8));
    assert!(second.iter().copied().eq(9..=16));
    assert!(walk.iter().copied().eq(1..=30));
    println!("   first page   {}", list(&first));
    println!("   second page  {}", list(&second));
    println!("   lazy walk    {}", list(&walk));
    Ok(())
}

/// Step 5.
async fn replay(market: &Market) -> Result<()> {
    heading("5. Replay");
    let before = market.rheo.group_info(&market.stream, "risk").await?;
    market.create_group("risk-replay", Start::AfterSequence(20)).await?;
    let late = market.fetch("risk-replay", 100).await?;
    assert!(numbers(&late).into_iter().eq(21..=30));
    assert_eq!(attempts(&late), [1; 10]);
    assert_eq!(market.rheo.group_info(&market.stream, "risk").await?, before);
    println!("   risk is untouched");

    market.drain("risk").await?;
    market.replay("risk", "after sequence 0", Replay::AfterSequence(0)).await?;
    assert_eq!(market.lag("risk").await?, 30);
    let leased = market.fetch("risk", 5).await?;
    assert!(numbers(&leased).into_iter().eq(1..=5));
    assert_eq!(attempts(&leased), [3; 5]);
    let rest = market.drain("risk").await?;
    assert!(numbers(&rest).into_iter().eq(6..=30));
    assert_eq!(attempts(&rest), [2; 25]);

    let euros = Query::new().payload("currency", "EUR");
    market.replay("risk", "what is in EUR", Replay::Matching(euros)).await?;
    let euros = market.fetch("risk", 20).await?;
    assert_eq!(numbers(&euros), [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]);
    assert_eq!(attempts(&euros), [4, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
    let refused = refusal(market.rheo.ack(&leased[2]).await);
    assert_eq!(refused, ErrorKind::StaleLease);
    println!("   ack of event 3 with the older lease: {refused}");
    Ok(())
}

/// Step 6.
async fn reset(market: &Market) -> Result<()> {
    heading("6. Reset");
    let (rheo, stream) = (&market.rheo, &market.stream);
    let before = rheo.group_info(stream, "risk").await?;
    let start = Start::AfterSequence(25);
    let refused = refusal(rheo.reset_group(stream, "risk", Confirm::No, start.clone()).await);
    assert_eq!(refused, ErrorKind::ConfirmRequired);
    assert_eq!(rheo.group_info(stream, "risk").await?, before);
    println!("   reset without confirm: {refused}");

    rheo.reset_group(stream, "risk", Confirm::Yes, start).await?;
    println!("   reset with confirm, to start after 25");
    let anew = market.fetch("risk", 100).await?;
    assert!(numbers(&anew).into_iter().eq(26..=30));
    assert_eq!(attempts(&anew), [1; 5]);
    let log = sequences(&rheo.read(stream, 0, 0, 100).await?);
    assert!(log.iter().copied().eq(1..=30));
    println!("   the log still holds {}", list(&log));
    Ok(())
}

/// Step 7.
async fn partitions_and_frontier(market: &Market) -> Result<()> {
    heading("7. Four partitions, and the frontier of one");
    let rheo = &market.rheo;
    let stream = common::free_name(rheo, "market-partitions").await?;
    rheo.create_stream(&stream, 4).await?;
    rheo.create_group(&stream, "risk", GroupOptions::default()).await?;
    let mut euros = Vec::new();
    for i in [3, 6, 1, 2, 9] {
        let curve = CURVES[i % 3];
        let event = rheo.append(&stream, curve_update(i).key(curve)).await?;
        println!("   {curve:14}  partition {}, sequence {}", event.partition(), event.sequence());
        if curve == "EUR-EURIBOR-6M" {
            euros.push(event);
        }
    }
    let partition = euros[0].partition();
    assert_eq!(euros[1].partition(), partition);
    assert_eq!(euros[1].sequence(), euros[0].sequence() + 1);

    let only = FetchOptions::default().partitions([partition]);
    let leased = rheo.fetch(&stream, "risk", 10, only).await?;
    assert_eq!(numbers(&leased), sequences(&euros));
    let progress = async |acked: &str| {
        let progress = rheo.lag(&stream, "risk").await?.partitions[partition as usize];
        let (frontier, lag) = (progress.frontier, progress.lag());
        println!("   acked {acked}: frontier {frontier}, lag {lag}");
        Result::Ok((frontier, lag))
    };
    rheo.ack(&leased[0]).await?;
    rheo.ack(&leased[2]).await?;
    assert_eq!(progress("the first and the third").await?, (1, 2));
    rheo.ack(&leased[1]).await?;
    assert_eq!(progress("the second").await?, (3, 0));
    Ok(())
}

/// Step 8.
async fn one_consumer_for_each_group(market: &Market) -> Result<()> {
    heading("8. A consumer");
    market.create_group("archive", Start::Beginning).await?;
    let (handled, mut received) = mpsc::unbounded_channel();
    let handler = move |delivery: Delivery| {
        let sent = handled.send(delivery.event.sequence());
        async move { sent }
    };
    let consumer = market.rheo.consumer(&market.stream, "archive").start(handler).await?;
    let mut processed = Vec::new();
    while processed.len() < 30 {
        processed.extend(received.recv().await);
    }
    processed.sort_unstable();
    assert!(processed.iter().copied().eq(1..=30));
    println!("   archive processed {}", list(&processed));

    let second = market.rheo.consumer(&market.stream, "archive").start(async |_| ()).await;
    let refused = refusal(second);
    assert_eq!(refused, ErrorKind::AlreadyRunning);
    println!("   a second consumer of archive: {refused}");

    let drained = consumer.drain(Duration::from_secs(10)).await?;
    assert!(drained.left.is_empty());
    assert_eq!(market.lag("archive").await?, 0);
    Ok(())
}

/// Operations on the market's stream that say what they do.
impl Market {
    async fn create_group(&self, group: &str, start: Start) -> Result<()> {
        self.rheo.create_group(&self.stream, group, GroupOptions::default().start(start)).await
    }

    async fn fetch(&self, group: &str, limit: usize) -> Result<Vec<Delivery>> {
        let options = FetchOptions::default();
        let deliveries = self.rheo.fetch(&self.stream, group, limit, options).await?;
        println!("   {group} fetched {}", described(&deliveries));
        Ok(deliveries)
    }

    async fn ack_all(&self, group: &str, deliveries: &[Delivery]) -> Result<()> {
        for delivery in deliveries {
            self.rheo.ack(delivery).await?;
        }
        println!("   {group} acked {}", list(&numbers(deliveries)));
        Ok(())
    }

    /// Fetches and acks all that is claimable.
    async fn drain(&self, group: &str) -> Result<Vec<Delivery>> {
        let rest = self.fetch(group, 100).await?;
        self.ack_all(group, &rest).await?;
        assert!(self.rheo.fetch(&self.stream, group, 1, FetchOptions::default()).await?.is_empty());
        Ok(rest)
    }

    async fn replay(&self, group: &str, what: &str, selection: Replay) -> Result<()> {
        self.rheo.replay(&self.stream, group, selection, ReplayOptions::default()).await?;
        println!("   {group} replays {what}: lag {}", self.lag(group).await?);
        Ok(())
    }

    async fn lag(&self, group: &str) -> Result<u64> {
        Ok(self.rheo.lag(&self.stream, group).await?.total())
    }
}

fn heading(text: &str) {
    println!("\n{text}");
}

/// Why an operation was refused, as it must be.
fn refusal<T>(result: Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.kind(),
    }
}

fn sequences(events: &[Event]) -> Vec<u64> {
    events.iter().map(Event::sequence).collect()
}

fn numbers(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|delivery| delivery.event.sequence()).collect()
}

fn attempts(deliveries: &[Delivery]) -> Vec<u32> {
    deliveries.iter().map(|delivery| delivery.lease.attempt()).collect()
}

/// Deliveries by attempt, as in "1..=5 at attempt 2".
fn described(deliveries: &[Delivery]) -> String {
    let of_attempt =
        |run: &[Delivery]| format!("{} at attempt {}", list(&numbers(run)), run[0].lease.attempt());
    let same_attempt = |a: &Delivery, b: &Delivery| a.lease.attempt() == b.lease.attempt();
    let runs: Vec<_> = deliveries.chunk_by(same_attempt).map(of_attempt).collect();
    runs.join("; ")
}

/// Sequences as people write them: "1..=5" where they are contiguous, else "3, 6, 9".
fn list(sequences: &[u64]) -> String {
    match sequences {
        [first, .., last] if sequences.windows(2).all(|pair| pair[0] + 1 == pair[1]) => {
            format!("{first}..={last}")
        }
        _ => sequences.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}
