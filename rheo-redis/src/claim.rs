//! Claiming.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use redis::{FromRedisValue, Value, cmd};
use rheo_core::backend::{Claim, GroupRef, Settle, Settlement};
use rheo_core::{
    Delivery, ErrorKind, Granting, LeaseId, MAX_BATCH, Outcome, Position, Receipt, Result,
    Timestamp, Token,
};

use crate::Store;
use crate::call::{About, Call, fence_word, instant, micros};
use crate::codec;
use crate::error::corrupt;

const OPERATION: &str = "fetch";

/// How many claims of each group there were, so that each begins with another partition.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<GroupRef, usize>>);

impl Turns {
    fn next(&self, group: &GroupRef) -> usize {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry(group.clone()).or_default();
        *turn = turn.wrapping_add(1);
        *turn
    }
}

/// Neighbouring events that were handed out, all for the same time.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    first: u64,
    last: u64,
    attempt: u32,
}

/// What a partition gave.
struct Granted {
    leased_at: Timestamp,
    runs: Vec<Run>,
    /// The events' entries, as the server reads them.
    entries: Value,
    /// Whether it has more that is due than one call goes through.
    more: bool,
}

impl Store {
    /// Claims from one partition after the other, until it has enough.
    pub(crate) async fn claim(&self, request: &Claim) -> Result<Vec<Delivery>> {
        let mut partitions: Vec<u32> =
            request.partitions.numbers(request.group.stream.partitions).collect();
        let first = self.turns.next(&request.group) % partitions.len().max(1);
        partitions.rotate_left(first);
        let mut deliveries = Vec::new();
        let Some((&first, others)) = partitions.split_first() else { return Ok(deliveries) };
        self.fill_from(request, first, &mut deliveries).await?;
        if deliveries.len() < request.limit && !others.is_empty() {
            for partition in self.with_work(request, others).await? {
                if deliveries.len() == request.limit {
                    break;
                }
                self.fill_from(request, partition, &mut deliveries).await?;
            }
        }
        Ok(deliveries)
    }

    /// Those of the partitions that have something to claim now.
    async fn with_work(&self, request: &Claim, partitions: &[u32]) -> Result<Vec<u32>> {
        let now = instant(request.now);
        let look =
            |&partition: &u32| self.look_at(&request.group, partition, "peek").arg(now.as_str());
        let looks: Vec<Call> = partitions.iter().map(look).collect();
        let answers = self.call_each(OPERATION, &looks).await?;
        // What cannot be looked at is claimed from, and says why.
        let has_work = |answer: &Result<Value>| !matches!(answer, Ok(due) if *due != Value::Int(0));
        let looked = partitions.iter().zip(&answers);
        Ok(looked.filter(|(_, answer)| has_work(answer)).map(|(&partition, _)| partition).collect())
    }

    async fn fill_from(
        &self,
        request: &Claim,
        partition: u32,
        deliveries: &mut Vec<Delivery>,
    ) -> Result<()> {
        loop {
            let left = request.limit - deliveries.len();
            let granted = match self.claim_from(request, partition, left).await {
                Err(error)
                    if error.kind() == ErrorKind::GroupNotFound
                        && self.finish_if_pending(OPERATION, &request.group).await? =>
                {
                    continue;
                }
                granted => granted?,
            };
            let more = granted.more;
            self.deliver(request, partition, granted, deliveries).await?;
            if !more || deliveries.len() == request.limit {
                return Ok(());
            }
        }
    }

    /// Claims in one step of three commands; see `claim.lua`.
    async fn claim_from(&self, request: &Claim, partition: u32, limit: usize) -> Result<Granted> {
        let group = &request.group;
        let claim = self
            .write_to(group, partition, "claim")
            .arg(limit)
            .arg(request.consumer.as_str())
            .arg(micros(request.lease))
            .arg(fence_word(request.fence))
            .arg(instant(request.now));
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(group.name.as_str()).arg(request.consumer.as_str());
        read.arg("COUNT").arg(limit).arg("STREAMS");
        read.arg(self.keys.log(&group.stream.name, partition)).arg(">");
        let grant = self.write_to(group, partition, "grant").arg(fence_word(request.fence));
        let commands = [claim.command(), &read, grant.command()];
        let answers = self.transact(OPERATION, &About::from(group), true, &commands).await?;
        let [claimed, read, granted] = <[Result<Value>; 3]>::try_from(answers)
            .map_err(|_| corrupt(OPERATION, "a claim has three answers"))?;
        Granted::from_answers(claimed?, read, granted)
    }

    /// Pairs what was granted with its entries. An event whose entry vanished,
    /// or is none that Rheo wrote, becomes a dead letter, so that it holds up nothing.
    async fn deliver(
        &self,
        request: &Claim,
        partition: u32,
        granted: Granted,
        deliveries: &mut Vec<Delivery>,
    ) -> Result<()> {
        let granting = Granting::new(request, granted.leased_at);
        let entries = codec::entries(granted.entries, &request.group.stream.name, partition)?;
        let mut entries = entries.into_iter().peekable();
        let (mut vanished, mut damaged) = (Vec::new(), Vec::new());
        for run in &granted.runs {
            for sequence in run.first..=run.last {
                let position = Position::new(partition, sequence);
                match entries.next_if(|(found, _)| *found == sequence) {
                    Some((_, Ok(event))) => {
                        let receipt = Receipt::entry(codec::entry_id(sequence));
                        let attempt = run.attempt;
                        deliveries.push(granting.delivery_with_receipt(event, attempt, receipt));
                    }
                    Some((_, Err(_))) => damaged.push(position),
                    None => vanished.push(position),
                }
            }
        }
        self.bury(request, &damaged, "the event's entry is none that Rheo wrote").await?;
        self.bury(request, &vanished, "the event is missing from the store").await
    }

    async fn bury(&self, request: &Claim, positions: &[Position], reason: &str) -> Result<()> {
        let reject = |&position: &Position| Settlement {
            token: Token {
                lease_id: LeaseId::new(request.fence, position),
                receipt: Receipt::entry(codec::entry_id(position.sequence)),
            },
            outcome: Outcome::reject(reason),
        };
        // As many at once as any other request settles.
        for some in positions.chunks(MAX_BATCH) {
            let settlements = some.iter().map(reject).collect();
            let settle = Settle { group: request.group.clone(), settlements, now: request.now };
            // Where one is refused, a replay has reopened it: the next claim finds it again.
            self.settle(&settle).await?;
        }
        Ok(())
    }
}

impl Granted {
    /// From the answers to `claim`, XREADGROUP and `grant`.
    fn from_answers(claimed: Value, read: Result<Value>, granted: Result<Value>) -> Result<Self> {
        let strange = || corrupt(OPERATION, "the answer to a claim is another than expected");
        let Value::Array(answer) = claimed else { return Err(strange()) };
        let mut answer = answer.into_iter();
        let Some(Value::Int(now)) = answer.next() else { return Err(strange()) };
        let leased_at = Timestamp::from_micros(now);
        match (answer.next(), answer.next(), answer.next()) {
            (None, ..) => {
                let runs = runs(granted?).ok_or_else(strange)?;
                let entries = codec::entries_of_read(read?).ok_or_else(strange)?;
                Ok(Self { leased_at, runs, entries, more: false })
            }
            (Some(Value::Int(more)), Some(here), Some(entries)) => {
                let runs = runs(here).ok_or_else(strange)?;
                Ok(Self { leased_at, runs, entries, more: more == 1 })
            }
            _ => Err(strange()),
        }
    }
}

/// Runs come as their firsts, lasts and attempts in turn.
fn runs(answer: Value) -> Option<Vec<Run>> {
    let numbers = Vec::<u64>::from_redis_value(answer).ok()?;
    let run = |run: &[u64]| match *run {
        [first, last, attempt] => Some(Run { first, last, attempt: u32::try_from(attempt).ok()? }),
        _ => None,
    };
    numbers.chunks(3).map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_as_triples() {
        let numbers =
            |numbers: &[i64]| Value::Array(numbers.iter().copied().map(Value::Int).collect());
        let expected =
            [Run { first: 1, last: 3, attempt: 1 }, Run { first: 7, last: 7, attempt: 2 }];
        assert_eq!(runs(numbers(&[1, 3, 1, 7, 7, 2])).unwrap(), expected);
        assert_eq!(runs(numbers(&[])).unwrap(), []);
        assert_eq!(runs(numbers(&[1, 3])), None);
        assert_eq!(runs(Value::Okay), None);
    }
}
