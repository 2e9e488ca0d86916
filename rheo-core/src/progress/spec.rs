//! The laws once more, as plainly as can be: one entry for each event, each
//! asked at every step. Slow, and for comparison only.

use super::ClaimTurn;
use super::fixture::Answer;
use crate::backend::{LeaseRefusal, Settlement};
use crate::{Fence, GroupSettings, Outcome, PartitionProgress, Receipt, Timestamp, Token};

#[derive(Clone, Debug, PartialEq)]
enum State {
    New,
    Leased(Fence, Timestamp),
    Waiting(Timestamp),
    Finished,
    Dead(Timestamp, String),
}

/// One event, as the group sees it.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    attempt: u32,
    state: State,
}

impl Entry {
    fn is_due(&self, now: Timestamp) -> bool {
        match self.state {
            State::New => true,
            State::Leased(_, until) | State::Waiting(until) => until <= now,
            State::Finished | State::Dead(..) => false,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Finished | State::Dead(..))
    }

    fn is_leased(&self, now: Timestamp) -> bool {
        matches!(self.state, State::Leased(_, until) if until > now)
    }
}

/// The log and the group's view of it; the event at index i has sequence i + 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spec {
    start: u64,
    entries: Vec<Entry>,
}

impl Spec {
    pub(super) fn starting_after(start: u64, high_watermark: u64) -> Self {
        let entries = Vec::new();
        let mut spec = Self { start, entries };
        spec.append(high_watermark);
        spec
    }

    pub(super) fn append(&mut self, count: u64) {
        for _ in 0..count {
            let skipped = self.high_watermark() < self.start;
            let state = if skipped { State::Finished } else { State::New };
            self.entries.push(Entry { attempt: 0, state });
        }
    }

    pub(super) fn high_watermark(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The same, had nothing been appended that was not handed out.
    pub(super) fn without_new(&self) -> Self {
        let mut spec = self.clone();
        spec.entries.retain(|entry| entry.state != State::New);
        spec
    }

    /// Claims, and returns sequence and attempt of what it handed out.
    pub(super) fn claim(&mut self, turn: &ClaimTurn<'_>) -> Vec<(u64, u32)> {
        let mut granted = Vec::new();
        let ordered = turn.settings.ordered;
        if ordered && self.entries.iter().any(|entry| entry.is_leased(turn.now)) {
            return granted;
        }
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if granted.len() == turn.limit {
                break;
            }
            if entry.is_over() {
                continue;
            }
            if !entry.is_due(turn.now) {
                if ordered {
                    break;
                }
                continue;
            }
            let used_up = entry.attempt >= turn.settings.max_attempts;
            if used_up && matches!(entry.state, State::Leased(..)) {
                let (attempt, most) = (entry.attempt, turn.settings.max_attempts);
                let reason = format!("the lease of attempt {attempt} of {most} expired");
                entry.state = State::Dead(turn.now, reason);
            } else {
                entry.attempt += 1;
                entry.state = State::Leased(turn.fence, turn.expires_at);
                granted.push((index as u64 + 1, entry.attempt));
            }
        }
        granted
    }

    fn current(&mut self, token: &Token) -> Result<&mut Entry, LeaseRefusal> {
        let index = token.lease_id.position().sequence - 1;
        let entry = self.entries.get_mut(index as usize).ok_or(LeaseRefusal::Stale)?;
        match entry.state {
            State::Leased(fence, _) if fence == token.lease_id.fence() => {
                if token.receipt == Receipt::lease(token.lease_id) {
                    Ok(entry)
                } else {
                    Err(LeaseRefusal::ReceiptMismatch)
                }
            }
            _ => Err(LeaseRefusal::Stale),
        }
    }

    pub(super) fn settle(
        &mut self,
        settlement: &Settlement,
        now: Timestamp,
        settings: &GroupSettings,
    ) -> Answer {
        let entry = self.current(&settlement.token)?;
        entry.state = match &settlement.outcome {
            Outcome::Ack => State::Finished,
            Outcome::Reject { reason } => State::Dead(now, reason.clone()),
            Outcome::Retry { reason, .. } if entry.attempt >= settings.max_attempts => {
                State::Dead(now, reason.clone())
            }
            Outcome::Retry { after, .. } => State::Waiting(now + *after),
            Outcome::Release => {
                entry.attempt -= 1;
                State::Waiting(now)
            }
        };
        Ok(())
    }

    pub(super) fn renew(
        &mut self,
        token: &Token,
        expires_at: Timestamp,
    ) -> Result<Timestamp, LeaseRefusal> {
        let entry = self.current(token)?;
        entry.state = State::Leased(token.lease_id.fence(), expires_at);
        Ok(expires_at)
    }

    pub(super) fn reopen(&mut self, first: u64, last: u64, now: Timestamp) {
        for (sequence, entry) in (1..).zip(&mut self.entries) {
            if first <= sequence && sequence <= last && entry.state != State::New {
                entry.state = State::Waiting(now);
            }
        }
    }

    pub(super) fn progress(&self, now: Timestamp) -> PartitionProgress {
        let count = |wanted: &dyn Fn(&Entry) -> bool| {
            self.entries.iter().filter(|entry| wanted(entry)).count() as u64
        };
        let leased = count(&|entry| entry.is_leased(now));
        let open = count(&|entry| !entry.is_over() && entry.state != State::New);
        let hole = self.entries.iter().position(|entry| !entry.is_over());
        PartitionProgress {
            high_watermark: self.high_watermark(),
            frontier: hole.map_or(self.start.max(self.high_watermark()), |index| index as u64),
            leased,
            waiting: open - leased,
            dead_letters: count(&|entry| matches!(entry.state, State::Dead(..))),
        }
    }

    /// Time, sequence, attempt and reason of the dead letters, oldest first.
    pub(super) fn dead_letters(&self) -> Vec<(Timestamp, u64, u32, &str)> {
        let dead = (1..).zip(&self.entries).filter_map(|(sequence, entry)| match &entry.state {
            State::Dead(at, reason) => Some((*at, sequence, entry.attempt, reason.as_str())),
            _ => None,
        });
        let mut dead: Vec<_> = dead.collect();
        dead.sort_unstable();
        dead
    }
}
