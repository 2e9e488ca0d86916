//! Saboteurs at replay, reset and inspection.

use async_trait::async_trait;
use rheo_core::backend::{
    Append, Backend, Claim, DeadLetters, GroupRef, LeaseRefusal, Now, Range, Read, Replay, Reset,
    RoutedEvent, Settle,
};
use rheo_core::{
    DeadLetter, Delivery, Error, ErrorKind, EventBody, EventParts, GroupInfo, Outcome, Position,
    Result, Timestamp,
};
use uuid::Uuid;

use super::claiming::{SHORT, with_attempts};
use super::notebook::Notebook;
use super::sabotaged::Sabotage;

#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    /// As counted by the store.
    counted: u32,
    /// How many of them are kept from the consumer.
    hidden: u32,
}

#[derive(Debug, Default)]
pub(super) struct ReplayForgetsAttempts {
    attempts: Notebook<Attempts>,
}

#[async_trait]
impl Sabotage for ReplayForgetsAttempts {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = store.claim(request).await?;
        Ok(with_attempts(request, deliveries, |Delivery { lease, .. }| {
            self.attempts.of(&request.group, |attempts| {
                let attempts = attempts.entry(lease.position()).or_default();
                attempts.counted = lease.attempt();
                if request.lease >= SHORT {
                    return lease.attempt();
                }
                lease.attempt().saturating_sub(attempts.hidden).max(1)
            })
        }))
    }

    async fn replay(&self, store: &dyn Backend, request: &Replay) -> Result<()> {
        store.replay(request).await?;
        self.attempts.of(&request.group, |attempts| {
            for (position, attempts) in attempts {
                if request.ranges.iter().any(|range| within(range, *position)) {
                    attempts.hidden = attempts.counted;
                }
            }
        });
        Ok(())
    }

    async fn reset(&self, store: &dyn Backend, request: &Reset) -> Result<()> {
        store.reset(request).await?;
        self.attempts.forget_all(&request.group);
        Ok(())
    }
}

fn within(range: &Range, position: Position) -> bool {
    range.partition == position.partition && range.contains(position.sequence)
}

#[derive(Debug)]
pub(super) struct ReplayReopensTheRest;

#[async_trait]
impl Sabotage for ReplayReopensTheRest {
    async fn replay(&self, store: &dyn Backend, request: &Replay) -> Result<()> {
        let mut request = request.clone();
        request.ranges.dedup_by_key(|range| range.partition);
        for range in &mut request.ranges {
            range.last = u64::MAX;
        }
        store.replay(&request).await
    }
}

#[derive(Debug, Default)]
pub(super) struct ReplayLeavesLeases {
    held: Notebook<()>,
}

#[async_trait]
impl Sabotage for ReplayLeavesLeases {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = store.claim(request).await?;
        for delivery in &deliveries {
            self.held.note(&request.group, delivery.lease.position(), ());
        }
        Ok(deliveries)
    }

    async fn settle(
        &self,
        store: &dyn Backend,
        request: &Settle,
    ) -> Result<Vec<Result<(), LeaseRefusal>>> {
        let answers = store.settle(request).await?;
        for (settlement, answer) in request.settlements.iter().zip(&answers) {
            if answer.is_ok() {
                let position = settlement.token.lease_id.position();
                self.held.of(&request.group, |held| held.remove(&position));
            }
        }
        Ok(answers)
    }

    async fn replay(&self, store: &dyn Backend, request: &Replay) -> Result<()> {
        let mut held: Vec<_> = self.held.of(&request.group, |held| held.keys().copied().collect());
        held.sort_unstable();
        let ranges = request.ranges.iter().flat_map(|range| without(*range, &held)).collect();
        store.replay(&Replay { ranges, ..request.clone() }).await
    }
}

/// What is left of a range without these events, which ascend.
fn without(range: Range, events: &[Position]) -> Vec<Range> {
    let mut left = Vec::new();
    let mut first = range.first;
    for &event in events.iter().filter(|event| within(&range, **event)) {
        if first < event.sequence {
            let last = event.sequence - 1;
            left.push(Range { first, last, ..range });
        }
        first = event.sequence + 1;
    }
    if first <= range.last {
        left.push(Range { first, ..range });
    }
    left
}

#[derive(Debug)]
pub(super) struct ReplayCopies;

#[async_trait]
impl Sabotage for ReplayCopies {
    async fn replay(&self, store: &dyn Backend, request: &Replay) -> Result<()> {
        store.replay(request).await?;
        let stream = request.group.stream.clone();
        let range = request.ranges[0];
        if range.last < u64::MAX {
            return Ok(());
        }
        let read = Read {
            stream: stream.clone(),
            partition: range.partition,
            after: range.first - 1,
            limit: 1,
        };
        let copies = store.read(&read).await?.into_iter().map(|event| RoutedEvent {
            partition: range.partition,
            body: copy(event.body()),
            idempotent: false,
        });
        let events: Vec<_> = copies.collect();
        if !events.is_empty() {
            store.append(&Append { stream, events }).await?;
        }
        Ok(())
    }
}

fn copy(body: &EventBody) -> EventBody {
    let parts = EventParts {
        id: Uuid::now_v7(),
        timestamp: body.timestamp(),
        event_type: body.event_type(),
        key: body.key(),
        metadata: body.metadata_text(),
        payload: body.payload_text(),
    };
    EventBody::from_store(&parts).expect("it was in the store")
}

#[derive(Debug, Default)]
pub(super) struct ResetKeepsAttempts {
    attempts: Notebook<Kept>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    last: u32,
    before_reset: u32,
}

#[async_trait]
impl Sabotage for ResetKeepsAttempts {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = store.claim(request).await?;
        Ok(with_attempts(request, deliveries, |Delivery { lease, .. }| {
            self.attempts.of(&request.group, |attempts| {
                let kept = attempts.entry(lease.position()).or_default();
                kept.last = lease.attempt() + kept.before_reset;
                kept.last
            })
        }))
    }

    async fn reset(&self, store: &dyn Backend, request: &Reset) -> Result<()> {
        store.reset(request).await?;
        self.attempts.of(&request.group, |attempts| {
            for kept in attempts.values_mut() {
                kept.before_reset = kept.last;
            }
        });
        Ok(())
    }

    async fn delete_group(&self, store: &dyn Backend, group: &GroupRef) -> Result<()> {
        self.attempts.forget_all(group);
        store.delete_group(group).await
    }
}

#[derive(Debug, Default)]
pub(super) struct ResetKeepsDeadLetters {
    kept: Notebook<DeadLetter>,
}

#[async_trait]
impl Sabotage for ResetKeepsDeadLetters {
    async fn reset(&self, store: &dyn Backend, request: &Reset) -> Result<()> {
        let group = &request.group;
        let all = DeadLetters { group: group.clone(), after: None, limit: usize::MAX };
        for letter in store.dead_letters(&all).await? {
            self.kept.note(group, letter.position(), letter);
        }
        store.reset(request).await
    }

    async fn dead_letters(
        &self,
        store: &dyn Backend,
        request: &DeadLetters,
    ) -> Result<Vec<DeadLetter>> {
        let mut letters = store.dead_letters(request).await?;
        if request.after.is_none() {
            let kept = self.kept.of(&request.group, |kept| kept.values().cloned().collect());
            letters = [kept, letters].concat();
            letters.truncate(request.limit);
        }
        Ok(letters)
    }
}

/// The highest acked event of each partition, and sequence 0 of it as its place.
#[derive(Debug, Default)]
pub(super) struct FrontierPastHole {
    highest: Notebook<u64>,
}

const fn place(partition: u32) -> Position {
    Position::new(partition, 0)
}

#[async_trait]
impl Sabotage for FrontierPastHole {
    async fn settle(
        &self,
        store: &dyn Backend,
        request: &Settle,
    ) -> Result<Vec<Result<(), LeaseRefusal>>> {
        let answers = store.settle(request).await?;
        self.highest.of(&request.group, |highest| {
            for (settlement, answer) in request.settlements.iter().zip(&answers) {
                let Position { partition, sequence } = settlement.token.lease_id.position();
                if answer.is_ok() && settlement.outcome == Outcome::Ack {
                    let highest = highest.entry(place(partition)).or_default();
                    *highest = sequence.max(*highest);
                }
            }
        });
        Ok(answers)
    }

    async fn replay(&self, store: &dyn Backend, request: &Replay) -> Result<()> {
        self.highest.forget_all(&request.group);
        store.replay(request).await
    }

    async fn reset(&self, store: &dyn Backend, request: &Reset) -> Result<()> {
        self.highest.forget_all(&request.group);
        store.reset(request).await
    }

    async fn delete_group(&self, store: &dyn Backend, group: &GroupRef) -> Result<()> {
        self.highest.forget_all(group);
        store.delete_group(group).await
    }

    async fn group_info(
        &self,
        store: &dyn Backend,
        group: &GroupRef,
        now: Now,
    ) -> Result<GroupInfo> {
        let mut info = store.group_info(group, now).await?;
        for (partition, progress) in (0..).zip(&mut info.partitions) {
            let highest = self.highest.get(group, place(partition)).unwrap_or(0);
            // Never the whole way: who waits for a lag of 0 is not to race the last acks.
            let last = progress.high_watermark.saturating_sub(1);
            progress.frontier = progress.frontier.max(highest.min(last));
        }
        Ok(info)
    }
}

#[derive(Debug)]
pub(super) struct LongHistoryIsLag;

#[async_trait]
impl Sabotage for LongHistoryIsLag {
    async fn group_info(
        &self,
        store: &dyn Backend,
        group: &GroupRef,
        now: Now,
    ) -> Result<GroupInfo> {
        let mut info = store.group_info(group, now).await?;
        for progress in &mut info.partitions {
            if progress.lag() == 0 && progress.high_watermark >= 10_000 {
                progress.frontier = 0;
            }
        }
        Ok(info)
    }
}

#[derive(Debug)]
pub(super) struct ExpiredCountAsLeased;

#[async_trait]
impl Sabotage for ExpiredCountAsLeased {
    async fn group_info(&self, store: &dyn Backend, group: &GroupRef, _: Now) -> Result<GroupInfo> {
        store.group_info(group, Now::At(Timestamp::MIN)).await
    }
}

#[derive(Debug)]
pub(super) struct UnknownLetterAccepted;

#[async_trait]
impl Sabotage for UnknownLetterAccepted {
    async fn dead_letters(
        &self,
        store: &dyn Backend,
        request: &DeadLetters,
    ) -> Result<Vec<DeadLetter>> {
        match store.dead_letters(request).await {
            Err(error) if error.kind() == ErrorKind::CursorNotFound => Ok(Vec::new()),
            letters => letters,
        }
    }
}

#[derive(Debug)]
pub(super) struct GroupBeforeStream;

#[async_trait]
impl Sabotage for GroupBeforeStream {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        store.claim(request).await.map_err(group_missing)
    }

    async fn group_info(
        &self,
        store: &dyn Backend,
        group: &GroupRef,
        now: Now,
    ) -> Result<GroupInfo> {
        store.group_info(group, now).await.map_err(group_missing)
    }
}

fn group_missing(error: Error) -> Error {
    match error.kind() {
        ErrorKind::StreamNotFound => {
            Error::new(ErrorKind::GroupNotFound, error.operation(), error.context())
        }
        _ => error,
    }
}
