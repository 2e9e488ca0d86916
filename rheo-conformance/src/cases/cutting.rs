//! Broken connections: law E3 on the way between clients and their store. A
//! store that is reached without any has nothing to cut, and what is asserted
//! holds all the more.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use rheo_core::{Delivery, Effect, ErrorKind, GroupOptions, NewEvent, Outcome, Result, Rheo};
use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::dropping::{log_holds, patient};
use super::outages::{assert_as_before, error_of};
use super::waking::{HOUR, SOON, wakes};
use crate::case::case_table;
use crate::handling::Gated;
use crate::operations::operations;
use crate::trial::{append_to, drain, eventually, fetch, sequences};
use crate::{Proxy, Trial};

case_table! {
    "cut.appends_lose_nothing" [E3 S3] runs alone => appends_lose_nothing;
    "cut.appends_with_an_id_are_stored_once" [E3 S7] runs alone => appends_with_an_id;
    "cut.fetches_hand_nothing_out_twice" [E3 C3 C5] runs alone => fetches_hand_nothing_out_twice;
    "cut.settles_are_done_or_not" [E3 E1 L3] runs alone => settles_are_done_or_not;
    "cut.a_consumer_goes_on" [E3 K5 K6] runs alone => a_consumer_goes_on;
    "cut.a_wait_is_woken_again" [W1] runs alone => a_wait_is_woken_again;
    "cut.out_of_reach_is_unavailable" [E3 E1] runs alone => out_of_reach;
    "cut.silence_is_unavailable_in_time" [E3 E1] runs alone => silence;
    "cut.a_crash_under_load_loses_nothing" [E3 S3 L3] needs [Durable] runs alone
        => a_crash_under_load;
}

const ROUNDS: u64 = 10;
/// How many calls run at once.
const CALLS: u64 = 16;

async fn cut(trial: &Trial) {
    if let Some(proxy) = trial.proxy() {
        proxy.cut().await;
    }
}

/// The answers to calls that run at once; once some of them are there, the rest
/// has `trouble`.
async fn in_trouble<T, F>(
    rng: &mut fastrand::Rng,
    trouble: impl Future<Output = ()>,
    calls: impl IntoIterator<Item = F>,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut running: JoinSet<T> = calls.into_iter().collect();
    let mut answers = Vec::new();
    for _ in 0..rng.usize(0..running.len()) {
        answers.extend(running.join_next().await);
    }
    trouble.await;
    while let Some(answer) = running.join_next().await {
        answers.push(answer);
    }
    answers.into_iter().map(|answer| answer.expect("no call panics")).collect()
}

/// What was answered. A lost connection is the only excuse.
fn answered<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            None
        }
    }
}

/// Appends an event that says `n`: its sequence, and `n`.
async fn append(rheo: Rheo, id: Option<Uuid>, n: u64) -> Result<(u64, u64)> {
    let event = NewEvent::new("n", json!(n)).partition(0);
    let event = id.into_iter().fold(event, NewEvent::id);
    rheo.append("s", event).await.map(|stored| (stored.sequence(), n))
}

/// The handle from before the trouble is as good as new.
async fn assert_works_again(rheo: &Rheo) {
    let worked = async || answered(append(rheo.clone(), None, u64::MAX).await).is_some();
    eventually("the handle works again", worked).await;
}

/// What was acknowledged is in the log, in its place; the rest at most once.
async fn appends_lose_nothing(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    let mut rng = trial.rng();
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let appends = (0..CALLS).map(|n| append(rheo.clone(), None, round * CALLS + n));
        let answers = in_trouble(&mut rng, cut(&trial), appends).await;
        acknowledged.extend(answers.into_iter().filter_map(answered));
    }
    log_holds(&trial.rheo().await, &acknowledged).await;
    assert_works_again(&rheo).await;
}

/// Appended again under its id until the answer arrives, each event is stored once.
async fn appends_with_an_id(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    let mut rng = trial.rng();
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let ids: Vec<_> = (0..CALLS).map(|n| (rng.u128(..), round * CALLS + n)).collect();
        let appends = ids.into_iter().map(|(id, n)| append_until_answered(rheo.clone(), id, n));
        acknowledged.extend(in_trouble(&mut rng, cut(&trial), appends).await);
    }
    let rheo = trial.rheo().await;
    log_holds(&rheo, &acknowledged).await;
    assert_eq!(rheo.read("s", 0, ROUNDS * CALLS, 1).await.expect("the store is there"), []);
}

async fn append_until_answered(rheo: Rheo, id: u128, n: u64) -> (u64, u64) {
    loop {
        let answer = append(rheo.clone(), Some(Uuid::from_u128(id)), n).await;
        if let Some(stored) = answered(answer) {
            return stored;
        }
        tokio::task::yield_now().await;
    }
}

/// While their leases are current, events are handed out once, and those whose
/// fetch was not answered to nobody. When their time is over, they come again.
async fn fetches_hand_nothing_out_twice(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    let count = ROUNDS * CALLS * 2;
    append_to(&rheo, 0, count).await;
    let mut rng = trial.rng();
    let mut delivered = BTreeSet::new();
    let mut held = Vec::new();
    for _ in 0..ROUNDS {
        let fetches = (0..CALLS).map(|_| fetch_two(rheo.clone()));
        let answers = in_trouble(&mut rng, cut(&trial), fetches).await;
        held.extend(answers.into_iter().filter_map(answered).flatten());
    }
    assert!(held.iter().all(|one| delivered.insert(one.event.sequence())), "one came twice");
    let rheo = trial.rheo().await;
    for delivery in &held {
        rheo.ack(delivery).await.expect("the lease is current");
    }
    trial.advance_secs(60);
    let rest = drain_to_the_end(&rheo).await;
    assert!(rest.into_iter().all(|one| delivered.insert(one)), "an acked event came again");
    assert_eq!(delivered.len() as u64, count);
}

/// Drains until nothing is left: what was cut off may take effect a little later.
async fn drain_to_the_end(rheo: &Rheo) -> Vec<u64> {
    let mut came = Vec::new();
    loop {
        came.extend(sequences(&drain(rheo).await));
        if rheo.lag("s", "g").await.expect("the group is there").total() == 0 {
            return came;
        }
    }
}

async fn fetch_two(rheo: Rheo) -> Result<Vec<Delivery>> {
    rheo.fetch("s", "g", 2, rheo_core::FetchOptions::default()).await
}

/// A settle is done or not. Settled again it is done, or stale where the first
/// one said that it may have taken effect.
async fn settles_are_done_or_not(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    append_to(&rheo, 0, ROUNDS * CALLS).await;
    let deliveries = fetch(&rheo, (ROUNDS * CALLS) as usize).await;
    let mut rng = trial.rng();
    for deliveries in deliveries.chunks(CALLS as usize) {
        let acks =
            deliveries.iter().map(|delivery| ack_until_answered(rheo.clone(), delivery.clone()));
        in_trouble(&mut rng, cut(&trial), acks).await;
    }
    let rheo = trial.rheo().await;
    assert_eq!(rheo.lag("s", "g").await.expect("the group is there").total(), 0);
    trial.advance_secs(60);
    assert_eq!(fetch(&rheo, 9).await, []);
}

async fn ack_until_answered(rheo: Rheo, delivery: Delivery) {
    let mut may_be_done = false;
    loop {
        match rheo.ack(&delivery).await {
            Ok(()) => return,
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                may_be_done |= error.effect() == Effect::Unknown;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StaleLease, "{error}");
                assert!(may_be_done, "a lease ended by itself");
                return;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// A consumer outlives cuts, and handles each event once; those that were lost
/// on the way to it come again when their leases are over.
async fn a_consumer_goes_on(trial: Trial) {
    const EVENTS: u64 = 400;
    let rheo = trial.with_group(1, patient()).await;
    append_to(&rheo, 0, EVENTS).await;
    let mut rng = trial.rng();
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").poll_interval(Duration::from_millis(20));
    let consumer = consumer.max_demand(10).start(gated.clone()).await.expect("the group is there");
    let mut through = 0;
    for _ in 0..ROUNDS {
        let more = rng.usize(1..10);
        gated.let_through(more);
        through += more;
        eventually("it goes on", async || gated.begun().len() >= through).await;
        cut(&trial).await;
    }
    gated.let_through(EVENTS as usize);
    eventually("it goes on after the last cut", async || gated.begun().len() > through + 20).await;
    let drained = consumer.drain(SOON).await.expect("it drains once");
    assert_eq!(drained.left, []);
    let mut handled: Vec<_> =
        gated.begun_sorted().into_iter().map(|(sequence, _)| sequence).collect();
    let rheo = trial.rheo().await;
    trial.clock().advance(HOUR);
    handled.extend(drain_to_the_end(&rheo).await);
    handled.sort_unstable();
    assert_eq!(handled, (1..=EVENTS).collect::<Vec<_>>());
}

/// After a cut, an append ends a wait again, long before its timeout.
async fn a_wait_is_woken_again(trial: Trial) {
    let waiting = trial.with_group(1, GroupOptions::default()).await;
    if !wakes(&trial).await {
        return;
    }
    for _ in 0..3 {
        let broken = tokio::spawn({
            let waiting = waiting.clone();
            async move { waiting.wait("s", "g", HOUR).await }
        });
        cut(&trial).await;
        let appending = trial.rheo().await;
        let arrivals = async {
            loop {
                append(appending.clone(), None, 1).await.expect("the store is there");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let wait = async { while waiting.wait("s", "g", HOUR).await.is_err() {} };
        let woken = async {
            tokio::select! { () = wait => {}, () = arrivals => {} }
        };
        assert!(tokio::time::timeout(SOON, woken).await.is_ok(), "it was not woken");
        broken.abort();
        drain(&trial.rheo().await).await;
    }
}

/// While the store cannot be reached, everything is `Unavailable`; afterwards
/// the same handle works again.
async fn out_of_reach(trial: Trial) {
    operations_fail(trial, async |proxy| proxy.refuse(true).await).await;
}

/// The same where it is reached, and no answer comes.
async fn silence(trial: Trial) {
    operations_fail(trial, async |proxy| proxy.stall(true)).await;
}

/// Everything on one stream is tried during an outage; another stream is as before.
async fn operations_fail(trial: Trial, outage: impl AsyncFn(&Proxy)) {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let builder = trial.builder().await.clock(trial.clock().clone()).timeout(TIMEOUT);
    let rheo = builder.build().await.expect("the store is made ready");
    for stream in ["s", "doomed"] {
        rheo.create_stream(stream, 1).await.expect("the stream is new");
        let group = rheo.create_group(stream, "g", GroupOptions::default()).await;
        group.expect("the group is new");
    }
    append_to(&rheo, 0, 3).await;
    rheo.append("doomed", NewEvent::new("t", 1)).await.expect("it is appended");
    let fetched = rheo.fetch("doomed", "g", 1, rheo_core::FetchOptions::default()).await;
    let delivery = fetched.expect("it fetches").remove(0);
    if let Some(proxy) = trial.proxy() {
        outage(proxy).await;
        let tried = operations(&rheo, "doomed", "g", Some(&delivery.lease)).into_iter();
        let tried = tried.map(|operation| async move { (operation.name, operation.call.await) });
        let all = tokio::time::timeout(TIMEOUT * 5, join_all(tried)).await;
        for (name, result) in all.expect("each operation ends within its timeout") {
            error_of(name, result);
        }
        // What is still on its way is not to arrive later.
        proxy.refuse(true).await;
        proxy.mend().await;
    }
    eventually("the store is back", async || rheo.ping().await.is_ok()).await;
    assert_as_before(&rheo).await;
}

enum Done {
    Appended((u64, u64)),
    Acked(Delivery),
}

/// Whatever was acknowledged before a crash is there after it, for the handle
/// from before it as well.
async fn a_crash_under_load(trial: Trial) {
    const CRASHES: u64 = 3;
    let rheo = trial.with_group(1, patient()).await;
    let mut log: Vec<_> = Vec::new();
    for n in 0..CRASHES * CALLS {
        log.push(append(rheo.clone(), None, n).await.expect("it is appended"));
    }
    let deliveries = fetch(&rheo, log.len()).await;
    let mut rng = trial.rng();
    let mut acked = Vec::new();
    for (round, deliveries) in (1..).zip(deliveries.chunks(CALLS as usize)) {
        let calls = deliveries.iter().zip(0..).flat_map(|(delivery, n)| {
            let n = CRASHES * CALLS + round * CALLS + n;
            [(rheo.clone(), Ok(n)), (rheo.clone(), Err(delivery.clone()))]
        });
        let calls = calls.map(|(rheo, call)| async move {
            match call {
                Ok(n) => append(rheo, None, n).await.map(Done::Appended),
                Err(delivery) => rheo.ack(&delivery).await.map(|()| Done::Acked(delivery)),
            }
        });
        for done in
            in_trouble(&mut rng, trial.crash(), calls).await.into_iter().filter_map(answered)
        {
            match done {
                Done::Appended(appended) => log.push(appended),
                Done::Acked(delivery) => acked.push(delivery),
            }
        }
        eventually("the store is back", async || rheo.ping().await.is_ok()).await;
    }
    let fresh = trial.rheo().await;
    log_holds(&fresh, &log).await;
    for delivery in &acked {
        let again = fresh.ack(delivery).await.expect_err("it was acked");
        assert_eq!(again.kind(), ErrorKind::StaleLease, "{again}");
    }
    assert_works_again(&rheo).await;
}
