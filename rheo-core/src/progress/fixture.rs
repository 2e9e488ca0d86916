//! A group's only member, with a log and a clock, for the tests of this module.

use super::{ClaimTurn, Progress};
use crate::backend::{LeaseRefusal, Settlement};
use crate::{Fence, GroupSettings, LeaseId, Outcome, Position, Timestamp, Token};

/// How long its leases last, in microseconds.
const LEASE: i64 = 10;

pub(super) type Answer = Result<(), LeaseRefusal>;

pub(super) struct Member {
    pub(super) progress: Progress,
    pub(super) settings: GroupSettings,
    pub(super) high_watermark: u64,
    pub(super) now: i64,
    claims: u128,
}

impl Member {
    /// A log of `high_watermark` events, and a group that starts with the first.
    pub(super) fn new(high_watermark: u64) -> Self {
        let settings = GroupSettings { max_attempts: 3, ordered: false };
        Self { progress: Progress::starting_after(0), settings, high_watermark, now: 0, claims: 0 }
    }

    /// Claims, and returns the first, the last and the attempt of each run.
    pub(super) fn claim(&mut self, limit: usize) -> Vec<(u64, u64, u32)> {
        self.claims += 1;
        let granted = self.progress.claim(&ClaimTurn {
            limit,
            high_watermark: self.high_watermark,
            fence: Fence::from_u128(self.claims),
            now: at(self.now),
            expires_at: at(self.now + LEASE),
            settings: &self.settings,
        });
        self.progress.assert_sound();
        granted.iter().map(|run| (run.first, run.last, run.attempt)).collect()
    }

    /// Lets all leases expire.
    pub(super) fn expire(&mut self) {
        self.now += LEASE;
    }

    /// The token that the latest claim gave for `sequence`.
    pub(super) fn token(&self, sequence: u64) -> Token {
        token(self.claims, sequence)
    }

    /// Settles leases of the latest claim.
    pub(super) fn settle(&mut self, outcomes: &[(u64, Outcome)]) -> Vec<Answer> {
        let settlements: Vec<_> = outcomes
            .iter()
            .map(|(sequence, outcome)| Settlement {
                token: self.token(*sequence),
                outcome: outcome.clone(),
            })
            .collect();
        let settlements: Vec<_> = settlements.iter().collect();
        let answers = self.progress.settle(&settlements, at(self.now), &self.settings);
        self.progress.assert_sound();
        answers
    }

    /// Acks a run of the latest claim.
    pub(super) fn ack(&mut self, (first, last, _): (u64, u64, u32)) {
        let outcomes: Vec<_> = (first..=last).map(|n| (n, Outcome::Ack)).collect();
        assert!(self.settle(&outcomes).iter().all(Result::is_ok));
    }

    /// Sequence, attempt and reason of the dead letters, oldest first.
    pub(super) fn dead(&self) -> Vec<(u64, u32, &str)> {
        let dead = self.progress.dead_letters_from(Timestamp::MIN, 0);
        dead.map(|(sequence, dead)| (sequence, dead.attempt, &*dead.reason)).collect()
    }
}

pub(super) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

/// The token of the event at `sequence` in the given claim.
pub(super) fn token(claim: u128, sequence: u64) -> Token {
    Token::new(LeaseId::new(Fence::from_u128(claim), Position::new(0, sequence)))
}
