//! What appending, claiming and settling cost, through the public handle.

mod common;

use std::time::{Duration, Instant};

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use rheo_core::{
    Confirm, Delivery, FetchOptions, GroupOptions, ManualClock, Outcome, Rheo, Start, Timestamp,
};
use rheo_ets::Memory;
use tokio::runtime::{Builder, Runtime};

const STREAM: &str = "bench";
const GROUP: &str = "group";

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

async fn instance(clock: Option<ManualClock>) -> Rheo {
    let builder = Rheo::builder(Memory::new());
    let builder = match clock {
        Some(clock) => builder.clock(clock),
        None => builder,
    };
    builder.build().await.expect("an instance")
}

/// A stream of `batches` batches and a group that is to begin at `start`.
async fn filled(rheo: &Rheo, partitions: u32, batches: u64, start: Start) {
    rheo.create_stream(STREAM, partitions).await.expect("a new stream");
    for number in 0..batches {
        rheo.append_batch(STREAM, common::batch(number, 1000)).await.expect("appended");
    }
    let options = GroupOptions::default().start(start).max_attempts(u32::MAX);
    rheo.create_group(STREAM, GROUP, options).await.expect("a new group");
}

async fn fetch(rheo: &Rheo, limit: usize, lease: Duration) -> Vec<Delivery> {
    let options = FetchOptions::default().lease(lease);
    rheo.fetch(STREAM, GROUP, limit, options).await.expect("fetched")
}

async fn settle(rheo: &Rheo, deliveries: &[Delivery], outcome: &Outcome) {
    let settlements = deliveries.iter().map(|delivery| (delivery, outcome.clone()));
    for answer in rheo.settle(settlements).await {
        answer.expect("settled");
    }
}

fn append(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("append");
    group.throughput(Throughput::Elements(common::BATCH)).sampling_mode(SamplingMode::Flat);
    for (keys, name) in [(1000, "1000 keys"), (u64::MAX, "each its own key")] {
        let timed = |iterations| {
            runtime.block_on(async {
                let rheo = instance(None).await;
                filled(&rheo, 1, 0, Start::Beginning).await;
                let mut spent = Duration::ZERO;
                for number in 0..iterations {
                    let batch = common::batch(number, keys);
                    let begun = Instant::now();
                    rheo.append_batch(STREAM, batch).await.expect("appended");
                    spent += begun.elapsed();
                }
                spent
            })
        };
        group.bench_function(name, |bencher| bencher.iter_custom(timed));
    }
}

fn consume(criterion: &mut Criterion) {
    const BATCHES: u64 = 1000;
    let runtime = runtime();
    let mut group = criterion.benchmark_group("fetch and settle");
    group.throughput(Throughput::Elements(common::BATCH));
    for partitions in [1, 16, 1024] {
        let rheo = runtime.block_on(instance(None));
        runtime.block_on(filled(&rheo, partitions, BATCHES, Start::Beginning));
        let timed = |iterations| {
            runtime.block_on(async {
                let mut spent = Duration::ZERO;
                for number in 0..iterations {
                    if number % BATCHES == 0 {
                        let reset = rheo.reset_group(STREAM, GROUP, Confirm::Yes, Start::Beginning);
                        reset.await.expect("reset");
                    }
                    let begun = Instant::now();
                    let deliveries =
                        fetch(&rheo, common::BATCH as usize, Duration::from_secs(30)).await;
                    settle(&rheo, &deliveries, &Outcome::Ack).await;
                    spent += begun.elapsed();
                    assert!(!deliveries.is_empty());
                }
                spent
            })
        };
        let id = BenchmarkId::new("partitions", partitions);
        group.bench_function(id, |bencher| bencher.iter_custom(timed));
    }
}

fn history(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("fetch and release after a history");
    group.throughput(Throughput::Elements(common::BATCH));
    for batches in [100, 10_000] {
        let events = batches * common::BATCH;
        let rheo = runtime.block_on(instance(None));
        let start = Start::AfterSequence(events - common::BATCH);
        runtime.block_on(async {
            filled(&rheo, 1, batches, Start::Beginning).await;
            rheo.reset_group(STREAM, GROUP, Confirm::Yes, start).await.expect("reset");
        });
        let once = || {
            runtime.block_on(async {
                let deliveries =
                    fetch(&rheo, common::BATCH as usize, Duration::from_secs(30)).await;
                settle(&rheo, &deliveries, &Outcome::Release).await;
            });
        };
        group.bench_function(BenchmarkId::from_parameter(events), |bencher| bencher.iter(once));
    }
}

fn one_expired_lease(criterion: &mut Criterion) {
    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(1_000_000_000);
    let runtime = runtime();
    let mut group = criterion.benchmark_group("fetch one expired among open leases");
    for open in [0, 200_000] {
        let clock = ManualClock::new(Timestamp::from_micros(0));
        let rheo = runtime.block_on(instance(Some(clock.clone())));
        runtime.block_on(async {
            filled(&rheo, 1, open / common::BATCH + 1, Start::Beginning).await;
            // Each lease is a claim of its own, so that nothing can be kept together.
            for number in 0..open + common::BATCH {
                let lease = if number == open / 2 { SHORT } else { LONG };
                fetch(&rheo, 1, lease).await;
            }
        });
        let once = || {
            clock.advance(SHORT);
            let found = runtime.block_on(fetch(&rheo, 1, SHORT));
            assert_eq!(found.len(), 1);
        };
        group.bench_function(BenchmarkId::from_parameter(open), |bencher| bencher.iter(once));
    }
}

fn nothing(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("fetch nothing");
    for partitions in [1, 1024] {
        let rheo = runtime.block_on(instance(None));
        runtime.block_on(filled(&rheo, partitions, 0, Start::Beginning));
        let once = || runtime.block_on(fetch(&rheo, 100, Duration::from_secs(30)));
        let id = BenchmarkId::new("partitions", partitions);
        group.bench_function(id, |bencher| bencher.iter(once));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2));
    targets = append, consume, history, one_expired_lease, nothing
}
criterion_main!(benches);
