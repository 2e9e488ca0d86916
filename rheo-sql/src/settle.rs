//! Settling and renewing leases.

use std::sync::Arc;

use rheo_core::adapter::{Leases, widened};
use rheo_core::backend::{LeaseRefusal, Renew, Settle, Settlement};
use rheo_core::progress::{OpenRun, Progress};
use rheo_core::{Effect, Outcome, Result, Timestamp, Token};

use crate::Store;
use crate::db::Conn;
use crate::error::Failure;
use crate::operation::Operation;
use crate::state::{Cursor, Group, Piece};

type Answer<T> = Result<T, LeaseRefusal>;

/// What came of settling.
#[derive(Debug)]
pub(crate) struct Settled {
    /// For each lease, in the order given.
    pub(crate) answers: Vec<Answer<()>>,
    /// Whether others may have something to claim now.
    pub(crate) frees: bool,
}

impl Operation for Settle {
    const NAME: &'static str = "settle";
    type Output = Settled;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Self::Output, Failure> {
        let leases = Leases::of(&self.settlements, |settlement| &settlement.token);
        let group = store.find_group(conn, Self::NAME, &self.group, self.now).await?;
        let acks = self.settlements.iter().any(|settlement| settlement.outcome == Outcome::Ack);
        let settle = |progress: &mut Progress, settlements: &[&Settlement]| {
            progress.settle(settlements, group.now, &group.settings)
        };
        let answers = change(&leases, store, conn, &group, acks, settle).await?;
        let frees = group.settings.ordered || self.settlements.iter().any(hands_back);
        Ok(Settled { answers, frees })
    }
}

impl Operation for Renew {
    const NAME: &'static str = "renew";
    type Output = Vec<Answer<Timestamp>>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Self::Output, Failure> {
        let leases = Leases::of(&self.tokens, |token| token);
        let group = store.find_group(conn, Self::NAME, &self.group, self.now).await?;
        let expires_at = group.now + self.lease;
        change(&leases, store, conn, &group, false, |progress, tokens: &[&Token]| {
            progress.renew(tokens, expires_at)
        })
        .await
    }
}

impl Store {
    /// Settles in transactions of its own.
    pub(crate) async fn settle(self: &Arc<Self>, request: &Settle) -> Result<Vec<Answer<()>>> {
        let done = self.ack_whole_runs(request).await?;
        let mut answers = vec![Ok(()); request.settlements.len()];
        let left: Vec<usize> = (0..answers.len()).filter(|&place| !done[place]).collect();
        if left.is_empty() {
            return Ok(answers);
        }
        let settlements = left.iter().map(|&place| request.settlements[place].clone()).collect();
        let rest = Settle { settlements, ..request.clone() };
        let settled = self.write(rest).await.map_err(|error| {
            if left.len() < done.len() { error.with_effect(Effect::Unknown) } else { error }
        })?;
        for (place, answer) in left.into_iter().zip(settled.answers) {
            answers[place] = answer;
        }
        if settled.frees {
            self.ring(&request.group.stream.name);
        }
        Ok(answers)
    }

    /// Acks what one statement can, and tells for each settlement whether it is done.
    async fn ack_whole_runs(self: &Arc<Self>, request: &Settle) -> Result<Vec<bool>> {
        #[cfg(feature = "postgres")]
        if self.statements.dialect() == crate::Dialect::Postgres {
            return self.once(crate::hot::HotAck(request.clone())).await;
        }
        Ok(vec![false; request.settlements.len()])
    }
}

/// Changes each partition's leases, and answers in the order of the items.
async fn change<'a, T, A: Clone>(
    leases: &Leases<'a, T>,
    store: &Store,
    conn: &mut Conn<'_>,
    group: &Group,
    acks: bool,
    apply: impl Fn(&mut Progress, &[&'a T]) -> Vec<Answer<A>>,
) -> Result<Vec<Answer<A>>, Failure> {
    let mut answers = vec![Err(LeaseRefusal::Stale); leases.items().len()];
    let numbers: Vec<u32> = leases.by_partition().map(|(number, _)| number).collect();
    let cursors = store.lock_cursors(conn, group, numbers).await?;
    let ranges = leases.ranges();
    let mut runs = store.runs_in(conn, group, &ranges).await?;
    let keeps = |cursor: &Cursor| {
        let runs = runs.get(&cursor.partition);
        runs.is_some_and(|runs| runs.iter().any(|run| leaves_attempts(run, cursor)))
    };
    let mut attempts = if acks && cursors.iter().any(keeps) {
        store.attempts_in(conn, group, &widened(&ranges)).await?
    } else {
        Default::default()
    };
    for (number, places) in leases.by_partition() {
        let Some(&cursor) = cursors.iter().find(|cursor| cursor.partition == number) else {
            continue;
        };
        let open = runs.remove(&number).unwrap_or_default();
        let attempts = attempts.remove(&number).unwrap_or_default();
        let piece = Piece::new(cursor, open, attempts, Vec::new());
        let mut progress = piece.progress();
        let chosen: Vec<&T> = places.iter().map(|&at| &leases.items()[at]).collect();
        for (&at, answer) in places.iter().zip(apply(&mut progress, &chosen)) {
            answers[at] = answer;
        }
        store.save(conn, group, &piece, progress).await?;
    }
    Ok(answers)
}

/// Whether acking the run leaves attempts that its position does not imply.
fn leaves_attempts(run: &OpenRun, cursor: &Cursor) -> bool {
    run.attempt != 1 || run.first <= cursor.start
}

/// Whether the event becomes claimable again.
fn hands_back(settlement: &Settlement) -> bool {
    matches!(settlement.outcome, Outcome::Retry { .. } | Outcome::Release)
}
