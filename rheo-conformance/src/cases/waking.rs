//! Waking: law W1.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use rheo_core::{ErrorKind, GroupOptions, NewEvent, Outcome, Rheo};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::handling::Gated;
use crate::outage::Fault;
use crate::trial::{append_to, eventually, fetch};

case_table! {
    "waking.a_wait_ends_when_work_arrives" [W1] => a_wait_ends_when_work_arrives;
    "waking.a_wait_ends_at_once_where_work_is_there" [W1] => a_wait_sees_what_is_there;
    "waking.a_wait_ends_with_its_timeout" [W1] => a_wait_ends_with_its_timeout;
    "waking.a_wait_takes_nothing" [W1] => a_wait_takes_nothing;
    "waking.without_waking_consumers_poll" [W1] => without_waking_consumers_poll;
    "waking.a_broken_wait_leaves_polling_and_comes_back" [W1] => a_broken_wait;
    "waking.waking_in_vain_does_no_harm" [W1] => waking_in_vain;
    "waking.settles_do_not_queue_behind_a_wait" [W1] => settles_do_not_queue_behind_a_wait;
}

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// Far less than the waits here, and far more than a call.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Whether the backend has any means of telling that work has arrived.
pub(crate) async fn wakes(trial: &Trial) -> bool {
    let mechanisms = trial.capabilities().await.mechanisms;
    mechanisms.notifications || mechanisms.change_feed || mechanisms.blocking_reads
}

async fn append_one(rheo: &Rheo) {
    rheo.append("s", NewEvent::new("t", json!(1))).await.expect("it is appended");
}

/// An append ends the wait of another client long before its timeout; where
/// the backend cannot tell, the timeout does, and the event is there.
async fn a_wait_ends_when_work_arrives(trial: Trial) {
    let waiting = trial.with_group(1, GroupOptions::default()).await;
    if !wakes(&trial).await {
        append_one(&waiting).await;
        waiting.wait("s", "g", Duration::from_millis(20)).await.expect("the group is there");
        assert_eq!(fetch(&waiting, 10).await.len(), 1);
        return;
    }
    let appending = trial.rheo().await;
    let mut wait = pin!(waiting.wait("s", "g", HOUR));
    // More than one event: what arrives before the wait has begun may go unheard.
    let arrivals = async {
        loop {
            append_one(&appending).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let woken =
        async { matches!(select(wait.as_mut(), pin!(arrivals)).await, Either::Left((Ok(()), _))) };
    assert_eq!(tokio::time::timeout(SOON, woken).await, Ok(true), "it was not woken");
}

/// Where there is something to claim already, a wait does not last.
async fn a_wait_sees_what_is_there(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_one(&rheo).await;
    if wakes(&trial).await {
        let wait = tokio::time::timeout(SOON, rheo.wait("s", "g", HOUR)).await;
        wait.expect("it ends at once").expect("the group is there");
    }
    assert_eq!(fetch(&rheo, 10).await.len(), 1);
}

/// With nothing to do, a wait ends with its timeout, and well.
async fn a_wait_ends_with_its_timeout(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let wait = rheo.wait("s", "g", Duration::from_millis(20));
    let wait = tokio::time::timeout(SOON, wait).await.expect("it ends with its timeout");
    wait.expect("that is no error");
    rheo.wait("s", "g", Duration::ZERO).await.expect("nor is no time at all");
}

/// However many wait, an event is claimed by who fetches it, at its first attempt.
async fn a_wait_takes_nothing(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_one(&rheo).await;
    for _ in 0..3 {
        rheo.wait("s", "g", Duration::from_millis(1)).await.expect("the group is there");
    }
    let info = rheo.group_info("s", "g").await.expect("the group is there");
    assert_eq!((info.lag(), info.leased(), info.waiting()), (1, 0, 0));
    assert_eq!(fetch(&rheo, 10).await[0].lease.attempt(), 1);
}

/// With waking off, a consumer handles everything at the speed of its polling.
async fn without_waking_consumers_poll(trial: Trial) {
    trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.waking(false).build().await.expect("the store is made ready");
    let gated = Gated::open(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").poll_interval(HOUR).lease(HOUR * 100_000);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    for handled in 1..=5 {
        append_one(&rheo).await;
        eventually("a poll finds the event", async || {
            trial.clock().advance(HOUR);
            gated.begun().len() == handled
        })
        .await;
    }
    assert_eq!(line.calls("wait"), 0);
}

/// While waits fail, a consumer polls; when they work again, it is woken again.
async fn a_broken_wait(trial: Trial) {
    trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    let gated = Gated::open(|_| Outcome::Ack);
    line.fail_at(&["wait"], Fault::Refused(ErrorKind::Unavailable));
    let consumer = rheo.consumer("s", "g").poll_interval(HOUR).lease(HOUR * 100_000);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("it has tried to wait", async || line.calls("wait") > 0).await;
    append_one(&rheo).await;
    eventually("a poll finds the event", async || {
        trial.clock().advance(HOUR);
        gated.begun().len() == 1
    })
    .await;
    line.mend();
    if !wakes(&trial).await {
        return;
    }
    let tried = line.calls("wait");
    eventually("it waits again", async || {
        trial.clock().advance(HOUR);
        line.calls("wait") > tried
    })
    .await;
    // The clock stands still from here on: there is no poll.
    eventually("it is woken", async || {
        append_one(&rheo).await;
        gated.begun().len() > 1
    })
    .await;
}

/// A consumer that is woken all the time handles each event once.
async fn waking_in_vain(trial: Trial) {
    trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    let gated = Gated::open(|_| Outcome::Ack);
    line.fail_at(&["wait"], Fault::WokenInVain);
    let consumer = rheo.consumer("s", "g").poll_interval(HOUR);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("it has looked in vain", async || line.calls("claim") > 5).await;
    append_to(&rheo, 0, 10).await;
    eventually("all is settled", async || {
        rheo.lag("s", "g").await.is_ok_and(|lag| lag.total() == 0)
    })
    .await;
    let once: Vec<_> = (1..=10).map(|sequence| (sequence, 1)).collect();
    assert_eq!(gated.begun_sorted(), once);
}

/// Settles and all else on a handle are answered while it waits.
async fn settles_do_not_queue_behind_a_wait(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 20).await;
    let deliveries = fetch(&rheo, 20).await;
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let rheo = rheo.clone();
            tokio::spawn(async move { rheo.wait("s", "g", HOUR).await })
        })
        .collect();
    let settled = async {
        for delivery in &deliveries {
            rheo.ack(delivery).await.expect("the lease is current");
        }
        rheo.lag("s", "g").await.expect("the group is there").total()
    };
    assert_eq!(tokio::time::timeout(SOON, settled).await, Ok(0), "the acks waited");
    for wait in waits {
        wait.abort();
    }
}
