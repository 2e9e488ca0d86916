//! Settling and renewing leases.

use mongodb::ClientSession;
use rheo_core::adapter::{Leases, widened};
use rheo_core::backend::{GroupRef, LeaseRefusal, Now, Renew, Settle, Settlement};
use rheo_core::progress::{OpenRun, Progress};
use rheo_core::{Outcome, Result, Timestamp, Token};

use crate::Store;
use crate::error::Failure;
use crate::operation::Operation;
use crate::state::{Beside, Group, Member, Piece, Saving};

type Answer<T> = Result<T, LeaseRefusal>;

impl Operation for Settle {
    const NAME: &'static str = "settle";
    type Output = Vec<Answer<()>>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let leases = Leases::of(&self.settlements, |settlement| &settlement.token);
        let group = find_group(&leases, store, session, Self::NAME, &self.group, self.now).await?;
        let changing = Changing {
            acks: self.settlements.iter().any(|settlement| settlement.outcome == Outcome::Ack),
            frees: group.settings.ordered || self.settlements.iter().any(hands_back),
        };
        let settle = |progress: &mut Progress, settlements: &[&Settlement]| {
            progress.settle(settlements, group.now, &group.settings)
        };
        change(&leases, store, session, &group, changing, settle).await
    }
}

impl Operation for Renew {
    const NAME: &'static str = "renew";
    type Output = Vec<Answer<Timestamp>>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let leases = Leases::of(&self.tokens, |token| token);
        let group = find_group(&leases, store, session, Self::NAME, &self.group, self.now).await?;
        let expires_at = group.now + self.lease;
        let renew = |progress: &mut Progress, tokens: &[&Token]| progress.renew(tokens, expires_at);
        change(&leases, store, session, &group, Changing::default(), renew).await
    }
}

/// What a change of leases can bring about.
#[derive(Clone, Copy, Debug, Default)]
struct Changing {
    /// Events may be acked.
    acks: bool,
    /// Others may have something to claim.
    frees: bool,
}

/// Finds the group in the partitions of these leases. One that the stream
/// does not have is left out.
async fn find_group<T>(
    leases: &Leases<'_, T>,
    store: &Store,
    session: &mut ClientSession,
    operation: &'static str,
    name: &GroupRef,
    now: Now,
) -> Result<Group, Failure> {
    let numbers: Vec<u32> = leases.by_partition().map(|(number, _)| number).collect();
    store.find_group(session, operation, name, &numbers, Beside::Nothing, now).await
}

/// Changes each partition's leases, and answers in the order of the items.
async fn change<'a, T, A: Clone>(
    leases: &Leases<'a, T>,
    store: &Store,
    session: &mut ClientSession,
    group: &Group,
    changing: Changing,
    apply: impl Fn(&mut Progress, &[&'a T]) -> Vec<Answer<A>>,
) -> Result<Vec<Answer<A>>, Failure> {
    let mut answers = vec![Err(LeaseRefusal::Stale); leases.items().len()];
    let ranges = leases.ranges();
    let mut runs = store.runs_in(session, group, &ranges).await?;
    let keeps = |member: &Member| {
        let runs = runs.get(&member.partition);
        runs.is_some_and(|runs| runs.iter().any(|run| leaves_attempts(run, member)))
    };
    let mut attempts = if changing.acks && group.members.iter().any(keeps) {
        store.attempts_in(session, group, &widened(&ranges)).await?
    } else {
        Default::default()
    };
    for (number, places) in leases.by_partition() {
        let Some(&member) = group.members.iter().find(|member| member.partition == number) else {
            continue;
        };
        let open = runs.remove(&number).unwrap_or_default();
        let attempts = attempts.remove(&number).unwrap_or_default();
        let piece = Piece::new(member, open, attempts, Vec::new());
        let mut progress = piece.progress();
        let chosen: Vec<&T> = places.iter().map(|&at| &leases.items()[at]).collect();
        for (&at, answer) in places.iter().zip(apply(&mut progress, &chosen)) {
            answers[at] = answer;
        }
        let saving = Saving { frees: changing.frees, ..Saving::default() };
        store.save(session, group, &piece, progress, saving).await?;
    }
    Ok(answers)
}

/// Whether acking the run leaves attempts that its position does not imply.
fn leaves_attempts(run: &OpenRun, member: &Member) -> bool {
    run.attempt != 1 || run.first <= member.start
}

/// Whether the event becomes claimable again.
fn hands_back(settlement: &Settlement) -> bool {
    matches!(settlement.outcome, Outcome::Retry { .. } | Outcome::Release)
}
