//! Fencing: law L1, a lease settles exactly while it is the current one.

use std::time::Duration;

use futures::future::join_all;
use rheo_core::{
    Delivery, ErrorKind, Fence, FetchOptions, GroupOptions, Lease, LeaseId, Outcome, Receipt,
    Result, Rheo,
};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, attempts, dead, failure, fetch, info};

case_table! {
    "fence.a_lease_taken_over_changes_nothing" [L1] => a_lease_taken_over_changes_nothing;
    "fence.the_name_of_the_consumer_does_not_help" [L1]
        => the_name_of_the_consumer_does_not_help;
    "fence.a_wrong_receipt_is_a_mismatch" [L1] => a_wrong_receipt_is_a_mismatch;
    "fence.a_wrong_lease_id_is_stale" [L1] => a_wrong_lease_id_is_stale;
    "fence.a_lease_is_of_its_group_alone" [L1] => a_lease_is_of_its_group_alone;
    "fence.of_racing_settles_one_wins" [L1 L3] => of_racing_settles_one_wins;
    "fence.a_settle_and_a_claim_never_both_win" [L1 L2] => a_settle_and_a_claim_never_both_win;
}

/// All five ways to use a lease.
#[derive(Clone, Copy, Debug)]
enum Use {
    Ack,
    Retry,
    Reject,
    Release,
    Renew,
}

const USES: [Use; 5] = [Use::Ack, Use::Retry, Use::Reject, Use::Release, Use::Renew];

impl Use {
    async fn of(self, rheo: &Rheo, lease: &Lease) -> Result<()> {
        match self {
            Self::Ack => rheo.ack(lease).await,
            Self::Retry => rheo.retry(lease, "late", Duration::from_secs(1)).await,
            Self::Reject => rheo.reject(lease, "late").await,
            Self::Release => rheo.release(lease).await,
            Self::Renew => rheo.renew(lease, Duration::from_secs(60)).await.map(drop),
        }
    }
}

/// Asserts that every use of the lease is refused in this way and changes nothing.
async fn refused(rheo: &Rheo, lease: &Lease, kind: ErrorKind) {
    let before = (info(rheo).await, dead(rheo).await);
    for way in USES {
        assert_eq!(failure(way.of(rheo, lease).await), kind, "{way:?}");
        let after = (info(rheo).await, dead(rheo).await);
        assert_eq!(after, before, "{way:?}");
    }
}

async fn claim_one(rheo: &Rheo) -> Delivery {
    let mut deliveries = fetch(rheo, 1).await;
    assert_eq!(deliveries.len(), 1);
    deliveries.remove(0)
}

/// After another client took the event over, whatever the first one does is refused.
async fn a_lease_taken_over_changes_nothing(trial: Trial) {
    let slow = trial.with_group(1, GroupOptions::default()).await;
    let heir = trial.rheo().await;
    append_to(&slow, 0, 1).await;
    let late = claim_one(&slow).await;
    trial.advance_secs(5);
    let current = claim_one(&heir).await;
    refused(&slow, &late.lease, ErrorKind::StaleLease).await;
    refused(&heir, &late.lease, ErrorKind::StaleLease).await;
    trial.advance_micros(4_999_999);
    assert_eq!(fetch(&slow, 1).await, []);
    heir.ack(&current).await.unwrap();
    refused(&slow, &late.lease, ErrorKind::StaleLease).await;
    assert_eq!(info(&slow).await.lag(), 0);
}

/// A new claim of the same event under the same consumer name fences the old one off.
async fn the_name_of_the_consumer_does_not_help(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let options = FetchOptions::default().consumer("w").lease(Duration::from_secs(5));
    let old = rheo.fetch("s", "g", 1, options.clone()).await.unwrap().remove(0);
    rheo.release(&old).await.unwrap();
    let new = rheo.fetch("s", "g", 1, options).await.unwrap().remove(0);
    assert_eq!((old.lease.attempt(), new.lease.attempt()), (1, 1));
    refused(&rheo, &old.lease, ErrorKind::StaleLease).await;
    rheo.ack(&new).await.unwrap();
}

/// With its lease id current and its receipt not, a lease is a `ReceiptMismatch`.
async fn a_wrong_receipt_is_a_mismatch(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 2).await;
    let held = fetch(&rheo, 2).await;
    let elses = held[1].lease.receipt().clone();
    for receipt in [Receipt::entry("nothing"), Receipt::entry(""), Receipt::entry("0-1"), elses] {
        if receipt != *held[0].lease.receipt() {
            let lease = held[0].lease.clone().with_receipt(receipt);
            refused(&rheo, &lease, ErrorKind::ReceiptMismatch).await;
        }
    }
    rheo.ack(&held[0]).await.unwrap();
    let ended = held[0].lease.clone().with_receipt(Receipt::entry("nothing"));
    refused(&rheo, &ended, ErrorKind::StaleLease).await;
}

/// A lease id that was never given is stale, whatever receipt comes with it.
async fn a_wrong_lease_id_is_stale(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let held = claim_one(&rheo).await;
    let guessed = LeaseId::new(Fence::random(), held.event.position()).to_string();
    let with_receipt = altered(&held.lease, &[("lease_id", &guessed)]);
    refused(&rheo, &with_receipt, ErrorKind::StaleLease).await;
    let alone = altered(&held.lease, &[("lease_id", &guessed), ("receipt", &guessed)]);
    refused(&rheo, &alone, ErrorKind::StaleLease).await;
    rheo.ack(&held).await.unwrap();
}

/// A lease shown to another group of the stream, which holds the same event, is stale there.
async fn a_lease_is_of_its_group_alone(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    rheo.create_group("s", "h", GroupOptions::default()).await.unwrap();
    append_to(&rheo, 0, 1).await;
    let of_h = rheo.fetch("s", "h", 1, FetchOptions::default()).await.unwrap().remove(0);
    let of_g = claim_one(&rheo).await;
    let shown_to_g = altered(&of_h.lease, &[("group", "g")]);
    refused(&rheo, &shown_to_g, ErrorKind::StaleLease).await;
    rheo.ack(&of_g).await.unwrap();
    rheo.ack(&of_h).await.unwrap();
}

/// The lease with other values in some of its fields.
fn altered(lease: &Lease, fields: &[(&str, &str)]) -> Lease {
    let mut value = serde_json::to_value(lease).expect("a lease is JSON");
    for (field, text) in fields {
        value[field] = (*text).into();
    }
    serde_json::from_value(value).expect("it is still a lease")
}

/// Of many clients that settle one lease at once, one succeeds, and its outcome is what holds.
async fn of_racing_settles_one_wins(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(99)).await;
    let clients = [trial.rheo().await, trial.rheo().await, trial.rheo().await];
    for sequence in 1..=20 {
        append_to(&rheo, 0, 1).await;
        let held = claim_one(&rheo).await;
        let outcomes = [Outcome::Ack, Outcome::reject("bad"), Outcome::retry("again")];
        let race = clients.iter().zip(&outcomes).map(|(client, outcome)| {
            let (client, held, outcome) = (client.clone(), held.clone(), outcome.clone());
            tokio::spawn(async move { client.settle([(held, outcome)]).await.remove(0) })
        });
        let answers = join_all(race.collect::<Vec<_>>()).await;
        let mut winner = None;
        for (answer, outcome) in answers.into_iter().zip(&outcomes) {
            match answer.expect("no client panics") {
                Ok(()) => assert_eq!(winner.replace(outcome), None, "two settles succeeded"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::StaleLease),
            }
        }
        let again = fetch(&rheo, 9).await;
        let is_dead = dead(&rheo).await.iter().any(|(dead, ..)| *dead == sequence);
        match winner.expect("one settle succeeds") {
            Outcome::Ack => assert_eq!((attempts(&again), is_dead), (vec![], false)),
            Outcome::Reject { .. } => assert_eq!((attempts(&again), is_dead), (vec![], true)),
            _ => assert_eq!((attempts(&again), is_dead), (vec![2], false)),
        }
        for delivery in again {
            rheo.ack(&delivery).await.unwrap();
        }
    }
    assert_eq!(info(&rheo).await.lag(), 0);
}

/// Between an ack of an expired lease and the claim that takes it over, exactly one wins.
async fn a_settle_and_a_claim_never_both_win(trial: Trial) {
    let slow = trial.with_group(1, GroupOptions::default()).await;
    let heir = trial.rheo().await;
    let mut rng = trial.rng();
    for _ in 0..30 {
        append_to(&slow, 0, 1).await;
        let held = claim_one(&slow).await;
        trial.advance_secs(5);
        let yields = [rng.usize(0..3), rng.usize(0..3)];
        let (settler, lease) = (slow.clone(), held.lease);
        let ack = tokio::spawn(async move {
            pause(yields[0]).await;
            settler.ack(&lease).await
        });
        let claimer = heir.clone();
        let claim = tokio::spawn(async move {
            pause(yields[1]).await;
            fetch(&claimer, 1).await
        });
        let acked = ack.await.expect("it does not panic");
        let claimed = claim.await.expect("it does not panic");
        match claimed.first() {
            None => acked.unwrap(),
            Some(taken) => {
                assert_eq!(failure(acked), ErrorKind::StaleLease);
                heir.ack(taken).await.unwrap();
            }
        }
        assert_eq!(info(&slow).await.lag(), 0);
    }
}

async fn pause(yields: usize) {
    for _ in 0..yields {
        tokio::task::yield_now().await;
    }
}
