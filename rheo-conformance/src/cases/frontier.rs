//! The frontier: law L8, a hole keeps it before it, whatever happens.

use std::collections::BTreeSet;
use std::time::Duration;

use rheo_core::{
    Confirm, Delivery, GroupOptions, Outcome, Position, Replay, ReplayOptions, Rheo, Start,
};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{
    ack_all, append_to, attempts, drain, fetch, frontiers, holding, info, numbered, sequences,
};

case_table! {
    "frontier.a_hole_keeps_it_before_it" [L8] needs [ContiguousFrontier]
        => a_hole_keeps_it_before_it;
    "frontier.a_restart_goes_on_at_the_hole" [L8] needs [ContiguousFrontier]
        => a_restart_goes_on_at_the_hole;
    "frontier.a_dead_letter_is_no_hole" [L8 C6] needs [ContiguousFrontier]
        => a_dead_letter_is_no_hole;
    "frontier.a_retry_and_a_release_are_holes" [L8] needs [ContiguousFrontier]
        => a_retry_and_a_release_are_holes;
    "frontier.it_begins_where_the_group_does" [L8 G1] needs [ContiguousFrontier]
        => it_begins_where_the_group_does;
    "frontier.each_partition_has_its_own" [L8] needs [ContiguousFrontier Partitions]
        => each_partition_has_its_own;
    "frontier.a_replay_takes_it_back" [L8 R1 R2] needs [ContiguousFrontier Replay]
        => a_replay_takes_it_back;
    "frontier.a_reset_sets_it_anew" [L8 R5] needs [ContiguousFrontier Replay]
        => a_reset_sets_it_anew;
    "frontier.a_drained_stream_has_no_lag" [L8 I1] needs [ContiguousFrontier]
        => a_drained_stream_has_no_lag;
    "frontier.it_holds_through_any_history" [L8] needs [ContiguousFrontier Replay]
        => it_holds_through_any_history;
}

/// With every ack the frontier is right before the lowest event that is not acked.
async fn a_hole_keeps_it_before_it(trial: Trial) {
    let (rheo, held) = holding(&trial, 5).await;
    for (sequence, frontier) in [(2, 0), (1, 2), (4, 2), (5, 2), (3, 5)] {
        rheo.ack(&held[sequence - 1]).await.unwrap();
        assert_eq!(frontiers(&rheo).await, [frontier], "after {sequence}");
        assert_eq!(info(&rheo).await.lag(), 5 - frontier);
    }
}

/// With 1, 2 and 4 acked, a client that starts anew gets 3 again, and nothing else.
async fn a_restart_goes_on_at_the_hole(trial: Trial) {
    let (rheo, held) = holding(&trial, 4).await;
    for index in [0, 1, 3] {
        rheo.ack(&held[index]).await.unwrap();
    }
    drop(rheo);
    let restarted = trial.rheo().await;
    assert_eq!(frontiers(&restarted).await, [2]);
    trial.advance_secs(5);
    let again = fetch(&restarted, 9).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![3], vec![2]));
    assert_eq!(frontiers(&restarted).await, [2]);
    ack_all(&restarted, &again).await;
    assert_eq!(frontiers(&restarted).await, [4]);
}

/// The frontier passes what was rejected, used up by retries or used up by expiry.
async fn a_dead_letter_is_no_hole(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 4).await;
    let held = fetch(&rheo, 4).await;
    rheo.reject(&held[0], "bad").await.unwrap();
    assert_eq!(frontiers(&rheo).await, [1]);
    rheo.retry(&held[1], "failed", Duration::ZERO).await.unwrap();
    assert_eq!(frontiers(&rheo).await, [2]);
    rheo.ack(&held[3]).await.unwrap();
    trial.advance_secs(5);
    assert_eq!(frontiers(&rheo).await, [2]);
    assert_eq!(fetch(&rheo, 9).await, []);
    assert_eq!(frontiers(&rheo).await, [4]);
}

/// What waits for a retry or was handed back is open, with or without a delay.
async fn a_retry_and_a_release_are_holes(trial: Trial) {
    let (rheo, held) = holding(&trial, 4).await;
    rheo.retry(&held[0], "later", Duration::from_secs(9)).await.unwrap();
    rheo.release(&held[2]).await.unwrap();
    rheo.ack(&held[1]).await.unwrap();
    rheo.ack(&held[3]).await.unwrap();
    assert_eq!(frontiers(&rheo).await, [0]);
    assert_eq!(sequences(&drain(&rheo).await), [3]);
    assert_eq!(frontiers(&rheo).await, [0]);
    trial.advance_secs(9);
    assert_eq!(sequences(&drain(&rheo).await), [1]);
    assert_eq!(frontiers(&rheo).await, [4]);
}

/// What lies before a group's start is not its business: neither hole nor lag.
async fn it_begins_where_the_group_does(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.unwrap();
    append_to(&rheo, 0, 5).await;
    for (group, start, lag) in [
        ("beginning", Start::Beginning, 5),
        ("third", Start::AfterSequence(3), 2),
        ("end", Start::End, 0),
    ] {
        rheo.create_group("s", group, GroupOptions::default().start(start)).await.unwrap();
        let progress = rheo.group_info("s", group).await.unwrap().partitions[0];
        assert_eq!((progress.frontier, progress.lag()), (5 - lag, lag), "{group}");
        assert_eq!(progress.high_watermark, 5, "{group}");
    }
}

/// A hole in one partition keeps no other back; the lag is the sum.
async fn each_partition_has_its_own(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default()).await;
    for partition in 0..3 {
        append_to(&rheo, partition, 3).await;
    }
    let mut held = Vec::new();
    for _ in 0..9 {
        held.extend(fetch(&rheo, 1).await);
    }
    let open = [Position::new(0, 1), Position::new(1, 3)];
    held.retain(|delivery| !open.contains(&delivery.event.position()));
    assert_eq!(held.len(), 7);
    ack_all(&rheo, &held).await;
    assert_eq!(frontiers(&rheo).await, [0, 2, 3]);
    assert_eq!(info(&rheo).await.lag(), 4);
}

/// Replaying makes holes: the frontier is right before the lowest one.
async fn a_replay_takes_it_back(trial: Trial) {
    let (rheo, held) = holding(&trial, 9).await;
    ack_all(&rheo, &held).await;
    let at = |sequence| Position::new(0, sequence);
    for (selection, frontier, replayed) in [
        (Replay::AfterSequence(9), 9, vec![]),
        (Replay::AfterSequence(6), 6, vec![7, 8, 9]),
        (Replay::Positions(vec![at(8), at(3)]), 2, vec![3, 8]),
        (Replay::AfterSequence(0), 0, (1..=9).collect()),
    ] {
        rheo.replay("s", "g", selection, ReplayOptions::default()).await.unwrap();
        assert_eq!(frontiers(&rheo).await, [frontier]);
        assert_eq!(sequences(&drain(&rheo).await), replayed);
        assert_eq!(frontiers(&rheo).await, [9]);
    }
}

/// After a reset the frontier is at the new start, further on or further back.
async fn a_reset_sets_it_anew(trial: Trial) {
    let (rheo, held) = holding(&trial, 6).await;
    rheo.ack(&held[0]).await.unwrap();
    rheo.ack(&held[4]).await.unwrap();
    for (start, frontier) in [(Start::AfterSequence(3), 3), (Start::End, 6), (Start::Beginning, 0)]
    {
        rheo.reset_group("s", "g", Confirm::Yes, start).await.unwrap();
        assert_eq!(frontiers(&rheo).await, [frontier]);
    }
    assert_eq!(sequences(&drain(&rheo).await), [1, 2, 3, 4, 5, 6]);
}

/// A hundred thousand events, ten thousand at a time: the lag counts down to 0.
async fn a_drained_stream_has_no_lag(trial: Trial) {
    const BATCHES: u64 = 10;
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let events = numbered(10_000);
    for _ in 0..BATCHES {
        rheo.append_batch("s", events.clone()).await.unwrap();
    }
    for batch in 0..BATCHES {
        let deliveries = fetch(&rheo, 10_000).await;
        let first = batch * 10_000 + 1;
        assert_eq!(sequences(&deliveries), (first..first + 10_000).collect::<Vec<_>>());
        ack_all(&rheo, &deliveries).await;
        assert_eq!(frontiers(&rheo).await, [first + 9_999]);
    }
    let info = info(&rheo).await;
    assert_eq!((info.lag(), info.leased(), info.waiting()), (0, 0, 0));
    assert_eq!(info.partitions[0].high_watermark, BATCHES * 10_000);
}

/// Through a random history of everything that a group can undergo, the law holds at every step.
async fn it_holds_through_any_history(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(u32::MAX)).await;
    let mut history = History { rng: trial.rng(), ..History::default() };
    for step in 0..300 {
        history.step(&trial, &rheo).await;
        assert_eq!(frontiers(&rheo).await, [history.frontier()], "after step {step}");
    }
}

/// What the group has undergone, as far as its frontier goes.
#[derive(Default)]
struct History {
    rng: fastrand::Rng,
    appended: u64,
    terminal: BTreeSet<u64>,
    held: Vec<Delivery>,
}

impl History {
    fn frontier(&self) -> u64 {
        (1..).find(|sequence| !self.terminal.contains(sequence)).map_or(0, |open| open - 1)
    }

    async fn step(&mut self, trial: &Trial, rheo: &Rheo) {
        match self.rng.u8(0..20) {
            0..3 => {
                let count = self.rng.u64(1..=4);
                append_to(rheo, 0, count).await;
                self.appended += count;
            }
            3..9 => self.held.extend(fetch(rheo, self.rng.usize(1..=6)).await),
            9..17 => self.settle(rheo).await,
            17 => trial.advance_secs(self.rng.u64(1..=6)),
            18 => self.replay(rheo).await,
            _ => {
                let start = self.rng.u64(0..=self.appended);
                let anew = Start::AfterSequence(start);
                rheo.reset_group("s", "g", Confirm::Yes, anew).await.unwrap();
                self.terminal = (1..=start).collect();
            }
        }
    }

    async fn settle(&mut self, rheo: &Rheo) {
        if self.held.is_empty() {
            return;
        }
        let delivery = self.held.swap_remove(self.rng.usize(..self.held.len()));
        let (outcome, ends) = match self.rng.u8(0..8) {
            0..5 => (Outcome::Ack, true),
            5 => (Outcome::reject("bad"), true),
            6 => (Outcome::retry_after("later", Duration::from_secs(2)), false),
            _ => (Outcome::Release, false),
        };
        let settled = rheo.settle([(&delivery, outcome)]).await.remove(0).is_ok();
        if settled && ends {
            self.terminal.insert(delivery.event.sequence());
        }
    }

    async fn replay(&mut self, rheo: &Rheo) {
        let after = self.rng.u64(0..=self.appended);
        let selection = match after {
            0 => Replay::DeadLetters,
            at if self.rng.bool() => Replay::Positions(vec![Position::new(0, at)]),
            _ => Replay::AfterSequence(after),
        };
        match &selection {
            Replay::DeadLetters => {
                for (dead, ..) in crate::trial::dead(rheo).await {
                    self.terminal.remove(&dead);
                }
            }
            Replay::Positions(_) => {
                self.terminal.remove(&after);
            }
            _ => self.terminal.retain(|&sequence| sequence <= after),
        }
        rheo.replay("s", "g", selection, ReplayOptions::default()).await.unwrap();
    }
}
