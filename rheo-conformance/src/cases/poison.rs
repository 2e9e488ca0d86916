//! Poison: law C6, an event is handed out exactly `max_attempts` times.

use std::time::Duration;

use rheo_core::{GroupOptions, Outcome};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, attempts, dead, drain, fetch, frontiers, info, sequences};

case_table! {
    "poison.expiry_alone_ends_in_a_dead_letter" [C6] => expiry_alone_ends_in_a_dead_letter;
    "poison.the_fetch_that_finds_it_buries_it" [C6] => the_fetch_that_finds_it_buries_it;
    "poison.every_mix_of_endings_is_handed_out_n_times" [C6 L4]
        => every_mix_of_endings_is_handed_out_n_times;
    "poison.one_attempt_means_one" [C6 L4] => one_attempt_means_one;
    "poison.the_default_is_five_attempts" [C6 G1] => the_default_is_five_attempts;
    "poison.a_release_is_no_attempt" [C6 L4] => a_release_is_no_attempt;
    "poison.the_last_attempt_can_still_succeed_late" [C6 L2]
        => the_last_attempt_can_still_succeed_late;
    "poison.a_crowd_blocks_nothing" [C6] => a_crowd_blocks_nothing;
    "poison.an_ordered_group_goes_on" [C6 C7] needs [OrderedDelivery] => an_ordered_group_goes_on;
}

/// An event whose consumers all vanish is handed out N times and is then a dead letter.
async fn expiry_alone_ends_in_a_dead_letter(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(3)).await;
    append_to(&rheo, 0, 1).await;
    for attempt in 1..=3 {
        assert_eq!(attempts(&fetch(&rheo, 9).await), [attempt]);
        trial.advance_secs(5);
    }
    assert_eq!(fetch(&rheo, 9).await, []);
    let letters = rheo.dead_letters("s", "g", 10, None).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].event.sequence(), letters[0].attempt), (1, 3));
    assert_eq!(letters[0].dead_at, trial.clock().now());
    assert!(!letters[0].reason.is_empty());
    assert_eq!(info(&rheo).await.lag(), 0);
}

/// Until a fetch finds it, an event that is used up still waits; that fetch goes on to the others.
async fn the_fetch_that_finds_it_buries_it(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 3).await;
    fetch(&rheo, 2).await;
    trial.advance_secs(5);
    assert_eq!(dead(&rheo).await, []);
    let before = info(&rheo).await;
    assert_eq!((before.waiting(), before.dead_letters(), before.lag()), (2, 0, 3));
    assert_eq!(sequences(&fetch(&rheo, 9).await), [3]);
    let after = info(&rheo).await;
    assert_eq!((after.waiting(), after.dead_letters(), after.lag()), (0, 2, 1));
}

/// Whatever mix of retry, delayed retry and expiry ends the attempts, there are N.
async fn every_mix_of_endings_is_handed_out_n_times(trial: Trial) {
    const ENDINGS: usize = 3;
    const ATTEMPTS: u32 = 3;
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(ATTEMPTS)).await;
    // The sequence spells the mix, an ending for each digit.
    let mixes = ENDINGS.pow(ATTEMPTS);
    append_to(&rheo, 0, mixes as u64).await;
    for attempt in 1..=ATTEMPTS {
        let deliveries = fetch(&rheo, 100).await;
        assert_eq!(attempts(&deliveries), vec![attempt; mixes]);
        let ended = deliveries.iter().zip(0..).filter_map(|(delivery, mix)| {
            match mix / ENDINGS.pow(attempt - 1) % ENDINGS {
                0 => Some((delivery, Outcome::retry("failed"))),
                1 => Some((delivery, Outcome::retry_after("failed", Duration::from_secs(2)))),
                _ => None,
            }
        });
        for answer in rheo.settle(ended).await {
            answer.unwrap();
        }
        trial.advance_secs(5);
    }
    assert_eq!(fetch(&rheo, 100).await, []);
    let mut letters: Vec<_> =
        dead(&rheo).await.into_iter().map(|(sequence, attempt, _)| (sequence, attempt)).collect();
    letters.sort_unstable();
    assert_eq!(letters, (1..=mixes as u64).map(|n| (n, ATTEMPTS)).collect::<Vec<_>>());
    assert_eq!(frontiers(&rheo).await, [mixes as u64]);
}

/// With `max_attempts` of 1 there is no second delivery, neither after a retry nor after expiry.
async fn one_attempt_means_one(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 2).await;
    let deliveries = fetch(&rheo, 2).await;
    rheo.retry(&deliveries[0], "failed", Duration::ZERO).await.unwrap();
    assert_eq!(dead(&rheo).await, [(1, 1, "failed".into())]);
    trial.advance_secs(5);
    assert_eq!(fetch(&rheo, 2).await, []);
    assert_eq!(info(&rheo).await.dead_letters(), 2);
}

/// A group that does not say hands an event out five times.
async fn the_default_is_five_attempts(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    for attempt in 1..=5 {
        let deliveries = fetch(&rheo, 1).await;
        assert_eq!(attempts(&deliveries), [attempt]);
        rheo.retry(&deliveries[0], "failed", Duration::ZERO).await.unwrap();
    }
    assert_eq!(fetch(&rheo, 1).await, []);
    assert_eq!(dead(&rheo).await, [(1, 5, "failed".into())]);
}

/// An event that is handed back unused, however often, does not use itself up.
async fn a_release_is_no_attempt(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(2)).await;
    append_to(&rheo, 0, 1).await;
    for attempt in [1, 2] {
        for _ in 0..5 {
            let deliveries = fetch(&rheo, 1).await;
            assert_eq!(attempts(&deliveries), [attempt]);
            rheo.release(&deliveries[0]).await.unwrap();
        }
        assert_eq!(attempts(&fetch(&rheo, 1).await), [attempt]);
        trial.advance_secs(5);
    }
    assert_eq!(fetch(&rheo, 1).await, []);
    assert_eq!(info(&rheo).await.dead_letters(), 1);
}

/// The last attempt's lease, expired but not found yet, can still be acked.
async fn the_last_attempt_can_still_succeed_late(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 1).await;
    let deliveries = fetch(&rheo, 1).await;
    trial.advance_secs(60);
    rheo.ack(&deliveries[0]).await.unwrap();
    assert_eq!(fetch(&rheo, 1).await, []);
    let info = info(&rheo).await;
    assert_eq!((info.dead_letters(), info.lag()), (0, 0));
}

/// Ten thousand events that are used up at once neither come again nor keep others waiting.
async fn a_crowd_blocks_nothing(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 10_000).await;
    assert_eq!(fetch(&rheo, 10_000).await.len(), 10_000);
    append_to(&rheo, 0, 1).await;
    trial.advance_secs(5);
    let mut claimed = Vec::new();
    for _ in 0..100 {
        claimed.extend(sequences(&fetch(&rheo, 1).await));
    }
    assert_eq!(claimed, [10_001]);
    let info = info(&rheo).await;
    assert_eq!((info.dead_letters(), info.waiting(), info.leased()), (10_000, 0, 1));
}

/// In an ordered group, too, the events behind a used-up one come next.
async fn an_ordered_group_goes_on(trial: Trial) {
    let options = GroupOptions::default().ordered(true).max_attempts(2);
    let rheo = trial.with_group(1, options).await;
    append_to(&rheo, 0, 3).await;
    for attempt in 1..=2 {
        let deliveries = fetch(&rheo, 1).await;
        assert_eq!((sequences(&deliveries), attempts(&deliveries)), (vec![1], vec![attempt]));
        trial.advance_secs(5);
    }
    assert_eq!(sequences(&drain(&rheo).await), [2, 3]);
    let info = info(&rheo).await;
    assert_eq!((info.dead_letters(), info.lag()), (1, 0));
}
