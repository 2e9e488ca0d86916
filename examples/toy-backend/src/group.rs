//! [`Group`]: what one group has done with its stream.

use rheo_core::backend::{
    Claim, CreateGroup, DeadLetters, LeaseRefusal, Now, Renew, Settle, Settlement,
};
use rheo_core::progress::{ClaimTurn, Dead, Progress};
use rheo_core::{
    DeadLetter, Delivery, Error, ErrorKind, Granting, GroupInfo, GroupName, GroupSettings,
    Position, Result, Timestamp, Token,
};

use crate::log::{Log, PARTITION};

/// A group's rules and its delivery state.
///
/// [`Progress`] is the state machine of the core: leases, attempts, delays,
/// dead letters and the frontier are its business. It knows neither log nor
/// clock, so whoever calls it brings the last sequence and the time.
#[derive(Debug)]
pub(crate) struct Group {
    settings: GroupSettings,
    progress: Progress,
}

impl Group {
    pub(crate) fn new(request: &CreateGroup) -> Self {
        // One entry for each partition, and there is one.
        let start = request.start.first().copied().unwrap_or(0);
        Self { settings: request.settings, progress: Progress::starting_after(start) }
    }

    pub(crate) fn claim(&mut self, log: &Log, request: &Claim) -> Vec<Delivery> {
        let now = request.now.or_system();
        // Makes the leases, so that no adapter can get one wrong.
        let granting = Granting::new(request, now);
        let granted = self.progress.claim(&ClaimTurn {
            limit: request.limit,
            high_watermark: log.last_sequence(),
            fence: request.fence,
            now,
            expires_at: granting.expires_at(),
            settings: &self.settings,
        });
        let mut deliveries = Vec::new();
        for run in granted {
            let events = log.range(run.first, run.last).iter().cloned();
            deliveries.extend(events.map(|event| granting.delivery(event, run.attempt)));
        }
        deliveries
    }

    /// Ends each lease by itself: a refused one changes nothing.
    pub(crate) fn settle(&mut self, request: &Settle) -> Vec<Result<(), LeaseRefusal>> {
        let now = request.now.or_system();
        let settle = |settlement: &Settlement| {
            in_this_partition(&settlement.token)?;
            self.progress.settle(&[settlement], now, &self.settings).remove(0)
        };
        request.settlements.iter().map(settle).collect()
    }

    pub(crate) fn renew(&mut self, request: &Renew) -> Vec<Result<Timestamp, LeaseRefusal>> {
        let expires_at = request.now.or_system() + request.lease;
        let renew = |token: &Token| {
            in_this_partition(token)?;
            self.progress.renew(&[token], expires_at).remove(0)
        };
        request.tokens.iter().map(renew).collect()
    }

    pub(crate) fn info(&self, log: &Log, name: GroupName, now: Now) -> GroupInfo {
        GroupInfo {
            name,
            max_attempts: self.settings.max_attempts,
            ordered: self.settings.ordered,
            partitions: vec![self.progress.progress(log.last_sequence(), now.or_system())],
        }
    }

    pub(crate) fn has_work(&self, log: &Log, now: Timestamp) -> bool {
        self.progress.claimable(log.last_sequence(), now, &self.settings)
    }

    pub(crate) fn dead_letters(&self, log: &Log, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        let (at, sequence) = match request.after {
            None => (Timestamp::MIN, 0),
            Some(after) => (self.dead_letter(after)?.at, after.sequence),
        };
        let page = self
            .progress
            .dead_letters_from(at, sequence)
            // The list is given from that letter on, and the page begins after it.
            .skip(usize::from(request.after.is_some()))
            .take(request.limit);
        let letter = |(sequence, dead): (u64, &Dead)| {
            Some(DeadLetter {
                event: log.get(sequence)?.clone(),
                attempt: dead.attempt,
                reason: dead.reason.as_ref().into(),
                dead_at: dead.at,
            })
        };
        Ok(page.filter_map(letter).collect())
    }

    fn dead_letter(&self, position: Position) -> Result<&Dead> {
        let here = position.partition == PARTITION;
        let found = self.progress.dead_letter(position.sequence).filter(|_| here);
        found.ok_or_else(|| {
            let context = format!("{position} is not in the dead-letter list");
            Error::new(ErrorKind::CursorNotFound, "dead_letters", context)
        })
    }
}

/// `Progress` sees one partition and trusts that the token belongs to it.
fn in_this_partition(token: &Token) -> Result<(), LeaseRefusal> {
    match token.lease_id.position().partition {
        PARTITION => Ok(()),
        _ => Err(LeaseRefusal::Stale),
    }
}
