//! Expiry: law C5, an expired lease is anyone's.

use std::time::Duration;

use rheo_core::{FetchOptions, GroupOptions};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, attempts, drain, fetch, info, sequences};

case_table! {
    "expiry.a_lease_expires_on_its_microsecond" [C5] => a_lease_expires_on_its_microsecond;
    "expiry.an_expired_lease_is_found_among_pending_ones" [C5]
        => an_expired_lease_is_found_among_pending_ones;
    "expiry.a_consumer_that_vanished_costs_its_lease_time" [C5]
        => a_consumer_that_vanished_costs_its_lease_time;
    "expiry.a_consumer_restarted_under_its_name_gets_its_events_back" [C5]
        => a_consumer_restarted_under_its_name_gets_its_events_back;
    "expiry.counts_return_to_zero_when_leases_expire" [C5 I1]
        => counts_return_to_zero_when_leases_expire;
}

/// A lease holds until its expiry, to the microsecond, and from then on anyone gets the event.
async fn a_lease_expires_on_its_microsecond(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    fetch(&rheo, 1).await;
    trial.advance_micros(4_999_999);
    let other = trial.rheo().await;
    assert_eq!(fetch(&other, 1).await, []);
    trial.advance_micros(1);
    let taken = fetch(&other, 1).await;
    assert_eq!((sequences(&taken), attempts(&taken)), (vec![1], vec![2]));
}

/// One expired lease is found by the next fetch among many that are still pending.
async fn an_expired_lease_is_found_among_pending_ones(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 2001).await;
    let long = FetchOptions::default().lease(Duration::from_secs(3600));
    assert_eq!(rheo.fetch("s", "g", 999, long.clone()).await.unwrap().len(), 999);
    assert_eq!(sequences(&fetch(&rheo, 1).await), [1000]);
    assert_eq!(rheo.fetch("s", "g", 1000, long).await.unwrap().len(), 1000);
    trial.advance_secs(5);
    let found = fetch(&trial.rheo().await, 1).await;
    assert_eq!((sequences(&found), attempts(&found)), (vec![1000], vec![2]));
    assert_eq!(sequences(&fetch(&rheo, 9).await), [2001]);
}

/// What a consumer held that never comes back is claimable by others after its lease.
async fn a_consumer_that_vanished_costs_its_lease_time(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 6).await;
    let gone = trial.rheo().await;
    fetch(&gone, 4).await;
    drop(gone);
    let during = fetch(&rheo, 9).await;
    assert_eq!(sequences(&during), [5, 6]);
    rheo.ack(&during[0]).await.unwrap();
    rheo.ack(&during[1]).await.unwrap();
    trial.advance_secs(5);
    let taken = drain(&rheo).await;
    assert_eq!((sequences(&taken), attempts(&taken)), (vec![1, 2, 3, 4], vec![2; 4]));
    assert_eq!(info(&rheo).await.lag(), 0);
}

/// A consumer that died and starts again under its old name gets what it held, after expiry.
async fn a_consumer_restarted_under_its_name_gets_its_events_back(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    let options = FetchOptions::default().consumer("w").lease(Duration::from_secs(5));
    let died = trial.rheo().await;
    assert_eq!(died.fetch("s", "g", 3, options.clone()).await.unwrap().len(), 3);
    drop(died);
    let restarted = trial.rheo().await;
    assert_eq!(restarted.fetch("s", "g", 3, options.clone()).await.unwrap(), []);
    trial.advance_secs(5);
    let back = restarted.fetch("s", "g", 3, options).await.unwrap();
    assert_eq!((sequences(&back), attempts(&back)), (vec![1, 2, 3], vec![2; 3]));
}

/// When all consumers are gone and their leases over, nothing counts as leased.
async fn counts_return_to_zero_when_leases_expire(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 9).await;
    for consumer in ["a", "b", "c"] {
        let options = FetchOptions::default().consumer(consumer).lease(Duration::from_secs(5));
        let client = trial.rheo().await;
        assert_eq!(client.fetch("s", "g", 3, options).await.unwrap().len(), 3);
    }
    let before = info(&rheo).await;
    assert_eq!((before.leased(), before.waiting(), before.lag()), (9, 0, 9));
    trial.advance_secs(5);
    let expired = info(&rheo).await;
    assert_eq!((expired.leased(), expired.waiting(), expired.lag()), (0, 9, 9));
    drain(&rheo).await;
    let after = info(&rheo).await;
    assert_eq!((after.leased(), after.waiting(), after.lag()), (0, 0, 0));
}
