//! Settling: laws L2 to L7.

use std::time::Duration;

use rheo_core::{ErrorKind, FetchOptions, GroupOptions, Lease, Outcome, Result, Rheo};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{
    ack_all, append_to, attempts, dead, failure, fetch, holding, info, numbered, sequences,
};

case_table! {
    "settle.an_acked_event_never_comes_again" [L4] => an_acked_event_never_comes_again;
    "settle.a_rejected_event_is_a_dead_letter" [L4] => a_rejected_event_is_a_dead_letter;
    "settle.a_retried_event_comes_again_at_once" [L4] => a_retried_event_comes_again_at_once;
    "settle.a_delayed_retry_comes_on_its_microsecond" [L4]
        => a_delayed_retry_comes_on_its_microsecond;
    "settle.a_delayed_event_holds_up_no_other" [L4] => a_delayed_event_holds_up_no_other;
    "settle.the_last_retry_is_a_dead_letter" [L4] => the_last_retry_is_a_dead_letter;
    "settle.a_release_does_not_count_the_attempt" [L4] => a_release_does_not_count_the_attempt;
    "settle.an_expired_lease_can_still_be_settled" [L2] => an_expired_lease_can_still_be_settled;
    "settle.an_expired_lease_can_still_be_renewed" [L2 L5]
        => an_expired_lease_can_still_be_renewed;
    "settle.a_second_settle_is_stale" [L3] => a_second_settle_is_stale;
    "settle.a_renewed_lease_lasts_from_now" [L5] => a_renewed_lease_lasts_from_now;
    "settle.a_renewal_of_zero_is_invalid" [L5] => a_renewal_of_zero_is_invalid;
    "settle.each_of_many_gets_its_own_answer" [L6] => each_of_many_gets_its_own_answer;
    "settle.leases_of_many_groups_go_together" [L6] => leases_of_many_groups_go_together;
    "settle.the_same_lease_twice_counts_once" [L3 L6] => the_same_lease_twice_counts_once;
    "settle.none_is_settled_too" [L6] => none_is_settled_too;
    "settle.ten_thousand_at_once" [L6 C1] => ten_thousand_at_once;
    "settle.more_than_one_call_takes" [L6] => more_than_one_call_takes;
    "settle.reasons_are_cut_at_a_character" [L7] => reasons_are_cut_at_a_character;
    "settle.odd_reasons_never_fail" [L7] => odd_reasons_never_fail;
    "settle.a_lease_settles_in_another_process" [L1 C2] => a_lease_settles_in_another_process;
}

/// What is acked is done, also after its lease would have expired.
async fn an_acked_event_never_comes_again(trial: Trial) {
    let (rheo, held) = holding(&trial, 2).await;
    rheo.ack(&held[0]).await.unwrap();
    let info = info(&rheo).await;
    assert_eq!((info.lag(), info.leased(), info.waiting()), (1, 1, 0));
    trial.advance_secs(60);
    assert_eq!(sequences(&fetch(&rheo, 9).await), [2]);
}

/// A reject makes a dead letter that tells event, attempt, reason and time, and is done.
async fn a_rejected_event_is_a_dead_letter(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    trial.advance_micros(1_000_003);
    rheo.reject(&held[0], "no such account").await.unwrap();
    let letters = rheo.dead_letters("s", "g", 10, None).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].event, held[0].event);
    assert_eq!((letters[0].attempt, letters[0].reason.as_str()), (1, "no such account"));
    assert_eq!(letters[0].dead_at, trial.clock().now());
    trial.advance_secs(60);
    assert_eq!(fetch(&rheo, 9).await, []);
    assert_eq!(info(&rheo).await.lag(), 0);
}

/// Without a delay a retried event is in the next fetch.
async fn a_retried_event_comes_again_at_once(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    rheo.retry(&held[0], "again", Duration::ZERO).await.unwrap();
    let counts = info(&rheo).await;
    assert_eq!((counts.leased(), counts.waiting(), counts.lag()), (0, 1, 1));
    assert_eq!(attempts(&fetch(&rheo, 9).await), [2]);
}

/// With a delay it comes when the delay is over, and not a microsecond before.
async fn a_delayed_retry_comes_on_its_microsecond(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    trial.advance_secs(2);
    rheo.retry(&held[0], "later", Duration::from_micros(90_000_001)).await.unwrap();
    trial.advance_micros(90_000_000);
    assert_eq!(fetch(&rheo, 9).await, []);
    assert_eq!(info(&rheo).await.waiting(), 1);
    trial.advance_micros(1);
    assert_eq!(attempts(&fetch(&rheo, 9).await), [2]);
}

/// Where order is not asked for, others are handed out while an event waits for its delay.
async fn a_delayed_event_holds_up_no_other(trial: Trial) {
    let (rheo, held) = holding(&trial, 2).await;
    append_to(&rheo, 0, 1).await;
    rheo.retry(&held[0], "later", Duration::from_secs(60)).await.unwrap();
    rheo.retry(&held[1], "again", Duration::ZERO).await.unwrap();
    let others = fetch(&rheo, 9).await;
    assert_eq!((sequences(&others), attempts(&others)), (vec![2, 3], vec![2, 1]));
}

/// A retry of the last attempt, with or without a delay, gives the event up with its reason.
async fn the_last_retry_is_a_dead_letter(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(2)).await;
    append_to(&rheo, 0, 2).await;
    for delivery in fetch(&rheo, 2).await {
        rheo.retry(&delivery, "first", Duration::ZERO).await.unwrap();
    }
    assert_eq!(dead(&rheo).await, []);
    let last = fetch(&rheo, 2).await;
    rheo.retry(&last[0], "second", Duration::ZERO).await.unwrap();
    rheo.retry(&last[1], "second", Duration::from_secs(60)).await.unwrap();
    assert_eq!(dead(&rheo).await, [(1, 2, "second".into()), (2, 2, "second".into())]);
    trial.advance_secs(60);
    assert_eq!(fetch(&rheo, 9).await, []);
}

/// A released event is claimable at once, with the attempt it had.
async fn a_release_does_not_count_the_attempt(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    rheo.release(&held[0]).await.unwrap();
    let first = fetch(&rheo, 9).await;
    assert_eq!(attempts(&first), [1]);
    rheo.retry(&first[0], "again", Duration::ZERO).await.unwrap();
    let second = fetch(&rheo, 9).await;
    rheo.release(&second[0]).await.unwrap();
    assert_eq!(attempts(&fetch(&rheo, 9).await), [2]);
}

/// Long after its expiry a lease that nobody took over settles like any other.
async fn an_expired_lease_can_still_be_settled(trial: Trial) {
    let (rheo, held) = holding(&trial, 4).await;
    trial.advance_secs(3600);
    rheo.ack(&held[0]).await.unwrap();
    rheo.retry(&held[1], "again", Duration::from_secs(9)).await.unwrap();
    rheo.reject(&held[2], "bad").await.unwrap();
    rheo.release(&held[3]).await.unwrap();
    let left = fetch(&rheo, 9).await;
    assert_eq!((sequences(&left), attempts(&left)), (vec![4], vec![1]));
    assert_eq!(dead(&rheo).await, [(3, 1, "bad".into())]);
    trial.advance_secs(9);
    assert_eq!(attempts(&fetch(&rheo, 1).await), [2]);
}

/// A lease that expired and was not taken over is renewed, and holds again.
async fn an_expired_lease_can_still_be_renewed(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    trial.advance_secs(3600);
    let renewed = rheo.renew(&held[0], Duration::from_secs(7)).await.unwrap();
    assert_eq!(renewed.expires_at(), trial.clock().now() + Duration::from_secs(7));
    trial.advance_micros(6_999_999);
    assert_eq!(fetch(&rheo, 9).await, []);
    trial.advance_micros(1);
    assert_eq!(attempts(&fetch(&rheo, 9).await), [2]);
}

/// Whatever ended a lease, no further settle or renewal is accepted.
async fn a_second_settle_is_stale(trial: Trial) {
    let (rheo, held) = holding(&trial, 4).await;
    for (delivery, outcome) in held.iter().zip(outcomes()) {
        settle(&rheo, delivery, outcome).await.unwrap();
    }
    let before = info(&rheo).await;
    for delivery in &held {
        for outcome in outcomes() {
            let second = settle(&rheo, delivery, outcome).await;
            assert_eq!(failure(second), ErrorKind::StaleLease);
        }
        let renewed = rheo.renew(delivery, Duration::from_secs(5)).await;
        assert_eq!(failure(renewed), ErrorKind::StaleLease);
    }
    assert_eq!(info(&rheo).await, before);
    assert_eq!(dead(&rheo).await, [(3, 1, "bad".into())]);
}

fn outcomes() -> [Outcome; 4] {
    [Outcome::Ack, Outcome::retry("again"), Outcome::reject("bad"), Outcome::Release]
}

async fn settle(rheo: &Rheo, lease: impl AsRef<Lease>, outcome: Outcome) -> Result<()> {
    rheo.settle([(lease, outcome)]).await.remove(0)
}

/// A renewal counts from now, keeps the lease id and the attempt, and can be repeated.
async fn a_renewed_lease_lasts_from_now(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    let mut lease = held[0].lease.clone();
    for _ in 0..3 {
        trial.advance_micros(4_000_001);
        let renewed = rheo.renew(&lease, Duration::from_micros(8_000_005)).await.unwrap();
        let expires_at = trial.clock().now() + Duration::from_micros(8_000_005);
        assert_eq!(renewed.expires_at(), expires_at);
        assert_eq!((renewed.token(), renewed.attempt()), (lease.token(), 1));
        assert_eq!(renewed.leased_at(), lease.leased_at());
        lease = renewed;
    }
    trial.advance_micros(8_000_004);
    assert_eq!(fetch(&trial.rheo().await, 9).await, []);
    trial.advance_micros(1);
    assert_eq!(attempts(&fetch(&trial.rheo().await, 9).await), [2]);
}

/// A lease cannot be renewed for no time; it stays as it was.
async fn a_renewal_of_zero_is_invalid(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    let renewed = rheo.renew(&held[0], Duration::ZERO).await;
    assert_eq!(failure(renewed), ErrorKind::Invalid);
    assert_eq!(info(&rheo).await.leased(), 1);
    rheo.ack(&held[0]).await.unwrap();
}

/// One stale lease among many, with all kinds of outcomes, spoils none of the others.
async fn each_of_many_gets_its_own_answer(trial: Trial) {
    let (rheo, held) = holding(&trial, 6).await;
    rheo.ack(&held[2]).await.unwrap();
    let answers = rheo
        .settle([
            (&held[5], Outcome::Ack),
            (&held[0], Outcome::retry("again")),
            (&held[2], Outcome::reject("too late")),
            (&held[3], Outcome::reject("bad")),
            (&held[1], Outcome::Release),
        ])
        .await;
    let kinds: Vec<_> = answers.into_iter().map(|answer| answer.err().map(|e| e.kind())).collect();
    assert_eq!(kinds, [None, None, Some(ErrorKind::StaleLease), None, None]);
    let again = fetch(&rheo, 9).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![1, 2], vec![2, 1]));
    assert_eq!(dead(&rheo).await, [(4, 1, "bad".into())]);
    rheo.ack(&held[4]).await.unwrap();
}

/// Leases of several groups and streams are settled in one call, answered in its order.
async fn leases_of_many_groups_go_together(trial: Trial) {
    let (rheo, held) = holding(&trial, 2).await;
    rheo.create_group("s", "h", GroupOptions::default()).await.unwrap();
    rheo.create_stream("t", 1).await.unwrap();
    rheo.create_group("t", "g", GroupOptions::default()).await.unwrap();
    rheo.append_batch("t", numbered(2)).await.unwrap();
    let of_h = rheo.fetch("s", "h", 2, FetchOptions::default()).await.unwrap();
    let of_t = rheo.fetch("t", "g", 2, FetchOptions::default()).await.unwrap();
    rheo.ack(&of_h[0]).await.unwrap();
    let mixed = [&of_t[0], &held[0], &of_h[0], &held[1], &of_h[1], &of_t[1]];
    let answers = rheo.settle(mixed.map(|delivery| (delivery, Outcome::Ack))).await;
    let kinds: Vec<_> = answers.into_iter().map(|answer| answer.err().map(|e| e.kind())).collect();
    assert_eq!(kinds, [None, None, Some(ErrorKind::StaleLease), None, None, None]);
    for (stream, group) in [("s", "g"), ("s", "h"), ("t", "g")] {
        assert_eq!(rheo.lag(stream, group).await.unwrap().total(), 0, "{stream} {group}");
    }
}

/// Of two outcomes for one lease in one call, the first counts and the second is stale.
async fn the_same_lease_twice_counts_once(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    let twice = [(&held[0], Outcome::Release), (&held[0], Outcome::Ack)];
    let mut answers = rheo.settle(twice).await;
    assert_eq!(failure(answers.remove(1)), ErrorKind::StaleLease);
    answers.remove(0).unwrap();
    assert_eq!(attempts(&fetch(&rheo, 9).await), [1]);
}

/// Settling nothing answers nothing.
async fn none_is_settled_too(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let answers = rheo.settle(Vec::<(Lease, Outcome)>::new()).await;
    assert_eq!(answers.len(), 0);
}

/// Ten thousand events are appended, claimed, retried and acked in one call each.
async fn ten_thousand_at_once(trial: Trial) {
    let (rheo, held) = holding(&trial, 10_000).await;
    let retries = held.iter().map(|delivery| (delivery, Outcome::retry("again")));
    assert!(rheo.settle(retries).await.iter().all(Result::is_ok));
    let again = fetch(&rheo, 10_000).await;
    assert_eq!(sequences(&again), (1..=10_000).collect::<Vec<_>>());
    assert!(attempts(&again).iter().all(|&attempt| attempt == 2));
    ack_all(&rheo, &again).await;
    let info = info(&rheo).await;
    assert_eq!((info.lag(), info.leased(), info.waiting()), (0, 0, 0));
}

/// A call settles as many leases as it is given, also more than one fetch can claim.
async fn more_than_one_call_takes(trial: Trial) {
    let (rheo, mut held) = holding(&trial, 10_000).await;
    append_to(&rheo, 0, 5).await;
    held.extend(fetch(&rheo, 10_000).await);
    assert_eq!(held.len(), 10_005);
    ack_all(&rheo, &held).await;
    assert_eq!(info(&rheo).await.lag(), 0);
}

/// A reason is kept up to 4 KiB, and never ends within a character.
async fn reasons_are_cut_at_a_character(trial: Trial) {
    let (rheo, held) = holding(&trial, 3).await;
    rheo.reject(&held[0], "é".repeat(3000)).await.unwrap();
    rheo.reject(&held[1], format!("a{}", "é".repeat(3000))).await.unwrap();
    rheo.reject(&held[2], "x".repeat(4096)).await.unwrap();
    let reasons: Vec<_> = dead(&rheo).await.into_iter().map(|(.., reason)| reason).collect();
    assert_eq!(reasons, ["é".repeat(2048), format!("a{}", "é".repeat(2047)), "x".repeat(4096)]);
}

/// No reason, an empty one, quotes, line ends and U+0000 do no harm to any settle.
async fn odd_reasons_never_fail(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 4).await;
    let held = fetch(&rheo, 4).await;
    rheo.reject(&held[0], "").await.unwrap();
    rheo.retry(&held[1], "a\0b", Duration::ZERO).await.unwrap();
    rheo.reject(&held[2], "'\"\\\r\n\u{10ffff}").await.unwrap();
    rheo.reject(&held[3], "\0".repeat(9000)).await.unwrap();
    let reasons: Vec<_> = dead(&rheo).await.into_iter().map(|(.., reason)| reason).collect();
    assert_eq!(reasons[..3], ["", "a\u{fffd}b", "'\"\\\r\n\u{10ffff}"]);
    assert_eq!(reasons[3], "\u{fffd}".repeat(1365));
}

/// A lease that went to another client as text settles there.
async fn a_lease_settles_in_another_process(trial: Trial) {
    let (rheo, held) = holding(&trial, 1).await;
    let text = serde_json::to_string(&held[0].lease).unwrap();
    let lease: Lease = serde_json::from_str(&text).unwrap();
    assert_eq!(lease, held[0].lease);
    trial.rheo().await.ack(&lease).await.unwrap();
    assert_eq!(failure(rheo.ack(&held[0]).await), ErrorKind::StaleLease);
    assert_eq!(info(&rheo).await.lag(), 0);
}
