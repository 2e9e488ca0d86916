//! Ordered groups.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use rheo_core::runtime::SubscribeOptions;
use rheo_core::{Delivery, GroupOptions, Outcome};

use crate::{Bench, in_time};

#[tokio::test]
async fn k7_a_partition_is_handled_one_by_one_and_a_retry_holds_up_the_rest() {
    let bench = Bench::with_group(GroupOptions::default().ordered(true)).await;
    bench.append(10).await;
    let log: Arc<Mutex<Vec<(u64, u32)>>> = Arc::default();
    let seen = log.clone();
    let handler = move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            let (sequence, attempt) = (delivery.event.sequence(), delivery.lease.attempt());
            seen.lock().unwrap().push((sequence, attempt));
            // Whoever ran beside this one would show before its end.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert_eq!(seen.lock().unwrap().last(), Some(&(sequence, attempt)));
            if sequence == 4 && attempt < 3 { Outcome::retry("not yet") } else { Outcome::Ack }
        }
    };
    let consumer = bench.rheo.consumer("s", "g").start(handler).await.unwrap();
    bench.drained().await;
    let once = |sequence| (sequence, 1);
    let mut expected: Vec<_> = (1..=4).map(once).collect();
    expected.extend([(4, 2), (4, 3)]);
    expected.extend((5..=10).map(once));
    assert_eq!(*log.lock().unwrap(), expected);
    assert_eq!(consumer.health().counts.stale, 0);
    // The rest of the run goes back after the retry, in the same call.
    let settles = bench.store.settles();
    let retried = |outcomes: &&Vec<Outcome>| outcomes.contains(&Outcome::retry("not yet"));
    let batch = settles.iter().find(retried).unwrap();
    let at = batch.iter().position(|outcome| *outcome == Outcome::retry("not yet")).unwrap();
    assert_eq!(batch[at + 1..], vec![Outcome::Release; 6]);
}

#[tokio::test]
async fn a_subscription_hands_a_partition_on_one_by_one_too() {
    let bench = Bench::with_group(GroupOptions::default().ordered(true)).await;
    bench.append(3).await;
    let mut events = bench.rheo.subscribe("s", "g", SubscribeOptions::default()).await.unwrap();
    let first = in_time(events.next()).await.unwrap();
    assert!(futures::FutureExt::now_or_never(events.next()).is_none());
    first.ack().await.unwrap();
    let second = in_time(events.next()).await.unwrap();
    assert_eq!(second.event().sequence(), 2);
    second.release().await.unwrap();
    let again = in_time(events.next()).await.unwrap();
    assert_eq!((again.event().sequence(), again.lease().attempt()), (2, 1));
}
