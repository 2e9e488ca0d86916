//! Whose clock judges: law C8.

use std::time::Duration;

use rheo_core::{Clock, FetchOptions, GroupOptions, Rheo};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, eventually, info, sequences};

case_table! {
    "clock.a_client_ahead_steals_nothing" [C8] needs [StoreClock] => a_client_ahead_steals_nothing;
    "clock.a_client_behind_loses_nothing" [C8] needs [StoreClock] => a_client_behind_loses_nothing;
    "clock.the_store_stamps_the_lease" [C8 C2] needs [StoreClock] => the_store_stamps_the_lease;
    "clock.a_renewal_counts_by_the_store" [C8 L5] needs [StoreClock]
        => a_renewal_counts_by_the_store;
    "clock.a_delay_counts_by_the_store" [C8 L4] needs [StoreClock] => a_delay_counts_by_the_store;
    "clock.leases_end_by_the_store" [C8 C5] needs [StoreClock] => leases_end_by_the_store;
    "clock.a_manual_clock_alone_rules" [C8] => a_manual_clock_alone_rules;
}

const TEN_MINUTES: i64 = 600_000_000;
const LEASE: Duration = Duration::from_secs(120);

/// A client whose clock is off by so much.
async fn off_by(trial: &Trial, micros: i64) -> Rheo {
    let builder = trial.builder().await.clock(Clock::off_by_micros(micros));
    builder.build().await.expect("the store is made ready")
}

/// A client on time, one ahead and one behind, on a group with so many events.
async fn clients(trial: &Trial, count: u64) -> [Rheo; 3] {
    let on_time = trial.rheo_on_store_time().await;
    on_time.create_stream("s", 1).await.expect("the stream is new");
    on_time.create_group("s", "g", GroupOptions::default()).await.expect("the group is new");
    append_to(&on_time, 0, count).await;
    [on_time, off_by(trial, TEN_MINUTES).await, off_by(trial, -TEN_MINUTES).await]
}

async fn claim(rheo: &Rheo, limit: usize, lease: Duration) -> Vec<rheo_core::Delivery> {
    let options = FetchOptions::default().lease(lease);
    rheo.fetch("s", "g", limit, options).await.expect("the fetch succeeds")
}

/// For a client ten minutes ahead a lease of two minutes is as current as for anyone.
async fn a_client_ahead_steals_nothing(trial: Trial) {
    let [on_time, ahead, behind] = clients(&trial, 2).await;
    let own = claim(&on_time, 1, LEASE).await;
    let of_behind = claim(&behind, 1, LEASE).await;
    assert_eq!((sequences(&own), sequences(&of_behind)), (vec![1], vec![2]));
    assert_eq!(claim(&ahead, 9, LEASE).await, []);
    assert_eq!(info(&ahead).await.leased(), 2);
    on_time.ack(&own[0]).await.unwrap();
    behind.ack(&of_behind[0]).await.unwrap();
}

/// What a client ten minutes behind claims stays its own for the whole lease.
async fn a_client_behind_loses_nothing(trial: Trial) {
    let [on_time, ahead, behind] = clients(&trial, 1).await;
    let own = claim(&behind, 1, LEASE).await;
    for other in [&on_time, &ahead, &behind] {
        assert_eq!(claim(other, 9, LEASE).await, []);
        let counts = info(other).await;
        assert_eq!((counts.leased(), counts.waiting()), (1, 0));
    }
    behind.ack(&own[0]).await.unwrap();
    assert_eq!(info(&on_time).await.lag(), 0);
}

/// The times of a lease are the store's, whatever the client's clock says.
async fn the_store_stamps_the_lease(trial: Trial) {
    let [on_time, ahead, behind] = clients(&trial, 3).await;
    let reference = claim(&on_time, 1, LEASE).await.remove(0).lease;
    for client in [&ahead, &behind] {
        let lease = claim(client, 1, LEASE).await.remove(0).lease;
        let later = lease.leased_at().since(reference.leased_at());
        assert!(lease.leased_at() >= reference.leased_at() && later < LEASE, "{later:?} later");
        assert_eq!(lease.expires_at(), lease.leased_at() + LEASE);
    }
}

/// A renewal by a client whose clock is off lasts as long as any.
async fn a_renewal_counts_by_the_store(trial: Trial) {
    let [on_time, ahead, behind] = clients(&trial, 2).await;
    for client in [&ahead, &behind] {
        let own = claim(client, 1, LEASE).await.remove(0);
        let renewed = client.renew(&own, 2 * LEASE).await.unwrap();
        let lasting = renewed.duration();
        assert!(lasting >= 2 * LEASE && lasting < 3 * LEASE, "{lasting:?}");
    }
    for client in [&on_time, &ahead, &behind] {
        assert_eq!(claim(client, 9, LEASE).await, []);
    }
}

/// A delay set by a client whose clock is off is over when the store says so.
async fn a_delay_counts_by_the_store(trial: Trial) {
    let [on_time, ahead, behind] = clients(&trial, 0).await;
    for (client, delay) in [
        (&ahead, LEASE),
        (&behind, LEASE),
        (&ahead, Duration::from_millis(5)),
        (&behind, Duration::from_millis(5)),
    ] {
        append_to(&on_time, 0, 1).await;
        let own = claim(client, 1, LEASE).await.remove(0);
        client.retry(&own, "later", delay).await.unwrap();
        if delay == LEASE {
            assert_eq!(info(&on_time).await.waiting(), own.event.sequence());
        } else {
            let comes = || async { !claim(&on_time, 9, LEASE).await.is_empty() };
            eventually("the short delay is over", comes).await;
        }
    }
    assert_eq!(claim(&ahead, 9, LEASE).await, []);
    assert_eq!(claim(&behind, 9, LEASE).await, []);
}

/// A short lease of a client ahead ends soon, also for a client behind.
async fn leases_end_by_the_store(trial: Trial) {
    let [_, ahead, behind] = clients(&trial, 1).await;
    for (holder, heir) in [(&ahead, &behind), (&behind, &ahead)] {
        let short = Duration::from_millis(5);
        let held = || async { !claim(holder, 1, short).await.is_empty() };
        eventually("the holder gets the event", held).await;
        let taken = || async { !claim(heir, 1, short).await.is_empty() };
        eventually("the lease is over for the heir", taken).await;
    }
}

/// With a manual clock the system's time means nothing: no lease ends before it is moved.
async fn a_manual_clock_alone_rules(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let short = Duration::from_micros(1);
    assert_eq!(claim(&rheo, 1, short).await.len(), 1);
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(claim(&trial.rheo().await, 1, short).await, []);
    trial.advance_micros(1);
    assert_eq!(claim(&trial.rheo().await, 1, short).await.len(), 1);
}
