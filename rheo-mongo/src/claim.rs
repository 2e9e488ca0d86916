//! Claiming.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mongodb::ClientSession;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use rheo_core::backend::{Claim, Settlement};
use rheo_core::progress::{ClaimTurn, Granted, OpenRun, Progress};
use rheo_core::{
    Delivery, Granting, LeaseId, Outcome, Position, Result, StreamName, Timestamp, Token,
};

use crate::Store;
use crate::codec;
use crate::collections::all;
use crate::error::Failure;
use crate::operation::Operation;
use crate::state::{Beside, Group, Member, NEVER, Piece, Saving, long, of_partition};

/// A claim, and at which of the partitions it begins: every turn at another
/// one, and also where it begins anew, since somebody else is busy there.
#[derive(Debug)]
pub(crate) struct ClaimInTurn {
    claim: Claim,
    turn: AtomicUsize,
}

/// A claim on its way through the partitions.
struct Claiming<'a> {
    request: &'a Claim,
    group: &'a Group,
    granting: Granting,
    deliveries: Vec<Delivery>,
}

impl Operation for ClaimInTurn {
    const NAME: &'static str = "fetch";
    type Output = Vec<Delivery>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Vec<Delivery>, Failure> {
        let Self { claim, turn } = self;
        let numbers: Vec<u32> = claim.partitions.numbers(claim.group.stream.partitions).collect();
        let looking =
            store.find_group(session, Self::NAME, &claim.group, &numbers, Beside::Ends, claim.now);
        let group = looking.await?;
        let granting = Granting::new(claim, group.now);
        let mut claiming =
            Claiming { request: claim, group: &group, granting, deliveries: Vec::new() };
        for member in in_turn(&group, turn.fetch_add(1, Ordering::Relaxed)) {
            if claiming.left() == 0 {
                break;
            }
            claiming.claim_from(store, session, member).await?;
        }
        Ok(claiming.deliveries)
    }
}

/// The partitions that have something due or something new, beginning at
/// another one with each turn.
fn in_turn(group: &Group, turn: usize) -> Vec<Member> {
    let has_work = |member: &&Member| {
        let last = group.ends.get(&member.partition).copied().unwrap_or_default();
        member.next_due <= group.now.as_micros() || last > member.cursor
    };
    let mut members: Vec<Member> = group.members.iter().filter(has_work).copied().collect();
    if !members.is_empty() {
        let first = turn % members.len();
        members.rotate_left(first);
    }
    members
}

impl Claiming<'_> {
    fn left(&self) -> usize {
        self.request.limit - self.deliveries.len()
    }

    async fn claim_from(
        &mut self,
        store: &Store,
        session: &mut ClientSession,
        member: Member,
    ) -> Result<(), Failure> {
        let ordered = self.group.settings.ordered;
        let is_due = member.next_due <= self.group.now.as_micros();
        if ordered && !is_due && member.next_due != NEVER {
            return Ok(());
        }
        let took_due = is_due && !ordered;
        if took_due {
            self.mark_due(store, session, member).await?;
        }
        let open = if is_due { self.claimable(store, session, member).await? } else { Vec::new() };
        let piece = Piece::new(member, open, Vec::new(), Vec::new());
        let mut progress = piece.progress();
        let granted = progress.claim(&self.turn(member));
        self.deliver(store, session, member.partition, &granted, &mut progress).await?;
        let saving = Saving { frees: false, took_due };
        store.save(session, self.group, &piece, progress, saving).await
    }

    fn turn(&self, member: Member) -> ClaimTurn<'_> {
        ClaimTurn {
            limit: self.left(),
            high_watermark: self.group.ends.get(&member.partition).copied().unwrap_or_default(),
            fence: self.request.fence,
            now: self.group.now,
            expires_at: self.granting.expires_at(),
            settings: &self.group.settings,
        }
    }

    /// Marks the runs whose time has come, so that an index has them by sequence.
    async fn mark_due(
        &self,
        store: &Store,
        session: &mut ClientSession,
        member: Member,
    ) -> Result<(), Failure> {
        let (found, now) = (Timestamp::MIN.as_micros(), self.group.now.as_micros());
        let mut runs = of_partition(&self.request.group, member.partition);
        runs.insert("due", doc! { "$gt": found, "$lte": now });
        let mark = doc! { "$set": { "due": found } };
        store.collections.runs.update_many(runs, mark).session(session).await?;
        Ok(())
    }

    /// The lowest open runs that are due, in an ordered group whether due or
    /// not: as many as fill the claim, or all.
    async fn claimable(
        &self,
        store: &Store,
        session: &mut ClientSession,
        member: Member,
    ) -> Result<Vec<OpenRun>, Failure> {
        let found_due = !self.group.settings.ordered;
        let mut most = self.left();
        loop {
            let looking = store.lowest_runs(session, self.group, member.partition, found_due, most);
            let open = looking.await?;
            if open.len() < most || self.is_filled_by(&open) {
                return Ok(open);
            }
            most = most.saturating_mul(2);
        }
    }

    /// Whether the claim has enough in these runs. Leases whose attempts are
    /// used up become dead letters instead.
    fn is_filled_by(&self, open: &[OpenRun]) -> bool {
        let handed_out =
            |run: &&OpenRun| run.fence.is_none() || run.attempt < self.group.settings.max_attempts;
        let events = open.iter().filter(handed_out).map(|run| run.last - run.first + 1);
        events.sum::<u64>() >= self.left() as u64
    }

    /// Reads what was granted. An event that vanished from the log becomes a
    /// dead letter, so that it holds up nothing.
    async fn deliver(
        &mut self,
        store: &Store,
        session: &mut ClientSession,
        partition: u32,
        granted: &[Granted],
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        if granted.is_empty() {
            return Ok(());
        }
        let stream = &self.request.group.stream.name;
        let mut documents = store.events_in(session, stream, partition, granted).await?;
        let mut documents = documents.drain(..).peekable();
        let mut vanished = Vec::new();
        for run in granted {
            for sequence in run.first..=run.last {
                match documents.next_if(|document| codec::sequence(document) == Some(sequence)) {
                    Some(document) => {
                        let event = codec::event(&document, stream)?;
                        self.deliveries.push(self.granting.delivery(event, run.attempt));
                    }
                    None => vanished.push(sequence),
                }
            }
        }
        self.bury(partition, &vanished, progress);
        Ok(())
    }

    fn bury(&self, partition: u32, vanished: &[u64], progress: &mut Progress) {
        let rejection = |&sequence: &u64| Settlement {
            token: Token::new(LeaseId::new(self.request.fence, Position::new(partition, sequence))),
            outcome: Outcome::reject("the event is missing from the store"),
        };
        let rejections: Vec<_> = vanished.iter().map(rejection).collect();
        let rejections: Vec<_> = rejections.iter().collect();
        progress.settle(&rejections, self.group.now, &self.group.settings);
    }
}

impl Store {
    /// Claims in a transaction of its own.
    pub(crate) async fn claim(self: &Arc<Self>, request: &Claim) -> Result<Vec<Delivery>> {
        let turn = self.next_turn(&request.group).into();
        self.write(ClaimInTurn { claim: request.clone(), turn }).await
    }

    /// The events of these runs of a partition that are there, ascending.
    async fn events_in(
        &self,
        session: &mut ClientSession,
        stream: &StreamName,
        partition: u32,
        runs: &[Granted],
    ) -> Result<Vec<RawDocumentBuf>, Failure> {
        let runs = runs.iter().map(|run| {
            let sequence = doc! { "$gte": long(run.first), "$lte": long(run.last) };
            doc! { "stream": stream.as_str(), "partition": partition, "sequence": sequence }
        });
        let mut runs: Vec<Document> = runs.collect();
        let events = if runs.len() == 1 {
            runs.remove(0)
        } else {
            doc! { "$or": runs }
        };
        let finding = self.collections.events.find(events).sort(doc! { "sequence": 1 });
        let cursor = finding.session(&mut *session).await?;
        all(cursor, session).await
    }
}
