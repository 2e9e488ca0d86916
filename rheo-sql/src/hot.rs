//! PostgreSQL's hot path: append, claim of new events, and ack of whole runs in
//! one statement each.
//!
//! A statement does the whole of the common case, or nothing; then the general
//! way decides.

use std::collections::HashSet;

use rheo_core::backend::{Append, Partitions, Settle, Settlement};
use rheo_core::{Delivery, Event, Fence, Granting, Outcome, Position, Receipt, Result, Timestamp};

use crate::Store;
use crate::claim::ClaimInTurn;
use crate::codec;
use crate::db::{Arg, Conn};
use crate::error::Failure;
use crate::operation::Operation;
use crate::state::{int, uuid};

/// An append of events that carry no ids of their callers.
pub(crate) struct HotAppend(pub(crate) Append);

/// A claim where nothing is due.
pub(crate) struct HotClaim(pub(crate) ClaimInTurn);

/// The acks of whole runs, where all settlements are acks.
pub(crate) struct HotAck(pub(crate) Settle);

impl Operation for HotAppend {
    const NAME: &'static str = Append::NAME;
    type Output = Vec<Event>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<Event>, Failure> {
        let Self(Append { stream, events }) = self;
        let text = |text: &str| codec::jsonb_text(text).into_owned();
        let bodies = || events.iter().map(|event| &event.body);
        let args = vec![
            stream.name.as_str().into(),
            stream.partitions.into(),
            Arg::Ints(events.iter().map(|event| event.partition.into()).collect()),
            Arg::Uuids(bodies().map(|body| body.id()).collect()),
            Arg::Ints(bodies().map(|body| body.timestamp().as_micros()).collect()),
            Arg::Texts(bodies().map(|body| body.event_type().into()).collect()),
            Arg::OptTexts(bodies().map(|body| body.key().map(Into::into)).collect()),
            Arg::Texts(bodies().map(|body| text(body.metadata_text())).collect()),
            Arg::Texts(bodies().map(|body| text(body.payload_text())).collect()),
        ];
        let rows = conn.rows(&store.sql("hot_append"), args).await?;
        let appended = rows.iter().zip(events).map(|(row, event)| {
            let position = Position::new(event.partition, row.u64(1)?);
            Ok(Event::new(stream.name.clone(), position, event.body.clone()))
        });
        appended.collect()
    }
}

impl Operation for HotClaim {
    const NAME: &'static str = ClaimInTurn::NAME;
    type Output = Vec<Delivery>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<Delivery>, Failure> {
        let Self(ClaimInTurn { claim, turn }) = self;
        let stream = &claim.group.stream;
        let partitions = match &claim.partitions {
            Partitions::All => None,
            Partitions::Only(only) => Some(only.iter().map(|&number| number.into()).collect()),
        };
        let args = vec![
            stream.name.as_str().into(),
            stream.partitions.into(),
            claim.group.name.as_str().into(),
            Arg::OptInts(partitions),
            claim.limit.into(),
            (turn % 1024).into(),
            Arg::Uuid(uuid(claim.fence)),
            i64::try_from(claim.lease.as_micros()).unwrap_or(i64::MAX).into(),
            store.now(claim.now),
        ];
        let rows = conn.rows(&store.sql("hot_claim"), args).await?;
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let granting = Granting::new(claim, Timestamp::from_micros(first.int(0)?));
        let delivery = |row| Ok(granting.delivery(codec::event(row, 2, &stream.name)?, 1));
        rows.iter().map(delivery).collect()
    }
}

impl Operation for HotAck {
    const NAME: &'static str = Settle::NAME;
    /// For each settlement, whether it is done.
    type Output = Vec<bool>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<bool>, Failure> {
        let Self(Settle { group, settlements, .. }) = self;
        let runs = runs(&self.0);
        let mut done = vec![false; settlements.len()];
        if runs.is_empty() {
            return Ok(done);
        }
        let args = vec![
            group.stream.name.as_str().into(),
            group.stream.partitions.into(),
            group.name.as_str().into(),
            Arg::Ints(runs.iter().map(|run| run.partition.into()).collect()),
            Arg::Ints(runs.iter().map(|run| int(run.first)).collect()),
            Arg::Ints(runs.iter().map(|run| int(run.last)).collect()),
            Arg::Uuids(runs.iter().map(|run| uuid(run.fence)).collect()),
        ];
        for row in conn.rows(&store.sql("hot_ack"), args).await? {
            let ordinal = usize::try_from(row.u64(0)?).unwrap_or_default();
            if let Some(run) = ordinal.checked_sub(1).and_then(|at| runs.get(at)) {
                done[run.places.clone()].fill(true);
            }
        }
        Ok(done)
    }
}

/// Acks of one claim that follow each other, in the request and in the log.
struct AckedRun {
    partition: u32,
    first: u64,
    last: u64,
    fence: Fence,
    places: std::ops::Range<usize>,
}

/// None where the order of the settlements could matter.
fn runs(request: &Settle) -> Vec<AckedRun> {
    let position = |settlement: &Settlement| settlement.token.lease_id.position();
    let distinct: HashSet<Position> = request.settlements.iter().map(position).collect();
    let acks = request.settlements.iter().all(|settlement| settlement.outcome == Outcome::Ack);
    if !acks || distinct.len() < request.settlements.len() {
        return Vec::new();
    }
    let mut runs: Vec<AckedRun> = Vec::new();
    for (place, settlement) in request.settlements.iter().enumerate() {
        let token = &settlement.token;
        let (fence, position) = (token.lease_id.fence(), token.lease_id.position());
        let own_receipt = token.receipt == Receipt::lease(token.lease_id);
        if !own_receipt {
            continue;
        }
        match runs.last_mut() {
            Some(run)
                if run.fence == fence
                    && run.partition == position.partition
                    && run.last.checked_add(1) == Some(position.sequence)
                    && run.places.end == place =>
            {
                run.last = position.sequence;
                run.places.end = place + 1;
            }
            _ => runs.push(AckedRun {
                partition: position.partition,
                first: position.sequence,
                last: position.sequence,
                fence,
                places: place..place + 1,
            }),
        }
    }
    runs
}
