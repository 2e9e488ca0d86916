//! Settling and renewing leases.

use std::collections::BTreeMap;

use redis::{FromRedisValue, Value};
use rheo_core::backend::{GroupRef, LeaseRefusal, Renew, Settle, Settlement};
use rheo_core::{Fence, Outcome, Receipt, Result, Timestamp, Token};

use crate::Store;
use crate::call::{Call, MOST, fence_word, instant, micros};
use crate::codec;
use crate::error::corrupt;

type Answer<T> = Result<T, LeaseRefusal>;

impl Store {
    /// Ends leases: those of a partition in one call.
    pub(crate) async fn settle(&self, request: &Settle) -> Result<Vec<Answer<()>>> {
        let Settle { group, settlements, now } = request;
        let alike = |one: &Settlement, other: &Settlement| one.outcome == other.outcome;
        let leases = Leases::of(group, settlements, |settlement| &settlement.token, alike);
        let (now, channel) = (instant(*now), self.channel(&group.stream.name));
        let calls = leases.calls(|partition, stretches| {
            let mut call =
                self.write_to(group, partition, "settle").arg(&now).arg(&channel).even_when_full();
            for stretch in stretches {
                let (word, after, reason) = outcome_words(&settlements[stretch.places[0]].outcome);
                call = stretch.add_to(call).arg(word).arg(after).arg(reason);
            }
            call
        });
        let answers = self.call_all("settle", &calls).await?;
        let mut settled = vec![Err(LeaseRefusal::Stale); settlements.len()];
        leases.spread(
            "settle",
            answers.into_iter().map(|answer| Ok(((), answer))),
            &mut settled,
        )?;
        Ok(settled)
    }

    /// Renews leases: those of a partition in one call.
    pub(crate) async fn renew(&self, request: &Renew) -> Result<Vec<Answer<Timestamp>>> {
        let Renew { group, tokens, lease, now } = request;
        let leases = Leases::of(group, tokens, |token| token, |_, _| true);
        let (now, lease) = (instant(*now), micros(*lease));
        let calls = leases.calls(|partition, stretches| {
            let call =
                self.write_to(group, partition, "renew").arg(&now).arg(lease).even_when_full();
            stretches.iter().fold(call, |call, stretch| stretch.add_to(call))
        });
        let answers = self.call_all("renew", &calls).await?;
        let mut renewed = vec![Err(LeaseRefusal::Stale); tokens.len()];
        leases.spread("renew", answers.into_iter().map(with_expiry), &mut renewed)?;
        Ok(renewed)
    }
}

/// An outcome as the function takes it: its word, how long to wait, and why.
fn outcome_words(outcome: &Outcome) -> (&'static str, u64, &str) {
    match outcome {
        Outcome::Ack => ("ack", 0, ""),
        Outcome::Reject { reason } => ("reject", 0, reason),
        Outcome::Retry { reason, after } => ("retry", micros(*after), reason),
        Outcome::Release => ("release", 0, ""),
    }
}

/// The answer to a renewal begins with the new expiry.
fn with_expiry(answer: Value) -> Result<(Timestamp, Value)> {
    let Value::Array(mut parts) = answer else {
        return Err(corrupt("renew", "the answer to a renewal is no list"));
    };
    match parts.first() {
        Some(&Value::Int(expires_at)) => {
            parts.remove(0);
            Ok((Timestamp::from_micros(expires_at), Value::Array(parts)))
        }
        _ => Err(corrupt("renew", "the answer to a renewal has no expiry")),
    }
}

/// Leases of one claim on neighbouring events, to be treated alike.
#[derive(Debug)]
struct Stretch {
    first: u64,
    fence: Fence,
    /// Whether the receipts shown are the events' own.
    own_receipts: bool,
    /// Where in the request each of them stands.
    places: Vec<usize>,
}

impl Stretch {
    fn last(&self) -> u64 {
        self.first + self.places.len() as u64 - 1
    }

    fn add_to(&self, call: Call) -> Call {
        call.arg(self.first)
            .arg(self.last())
            .arg(fence_word(self.fence))
            .arg(u8::from(self.own_receipts))
    }
}

/// The leases of a request, by partition.
#[derive(Debug, Default)]
struct Leases(BTreeMap<u32, Vec<Stretch>>);

impl Leases {
    /// In ascending order, so that neighbours are found whatever the order
    /// given; of two leases of one event, the first given comes first. What
    /// cannot be a lease of this stream is left out, and so is stale.
    fn of<T>(
        group: &GroupRef,
        items: &[T],
        token: impl Fn(&T) -> &Token,
        alike: impl Fn(&T, &T) -> bool,
    ) -> Self {
        let mut leases = Self::default();
        let mut places: Vec<usize> = (0..items.len()).collect();
        places.sort_by_key(|&place| token(&items[place]).lease_id.position());
        for place in places {
            let Token { lease_id, receipt } = token(&items[place]);
            let position = lease_id.position();
            if position.partition >= group.stream.partitions
                || !(1..MOST).contains(&position.sequence)
            {
                continue;
            }
            let own_receipts = *receipt == Receipt::entry(codec::entry_id(position.sequence));
            let stretches = leases.0.entry(position.partition).or_default();
            match stretches.last_mut() {
                Some(stretch)
                    if stretch.last() + 1 == position.sequence
                        && stretch.fence == lease_id.fence()
                        && stretch.own_receipts == own_receipts
                        && alike(&items[stretch.places[0]], &items[place]) =>
                {
                    stretch.places.push(place);
                }
                _ => stretches.push(Stretch {
                    first: position.sequence,
                    fence: lease_id.fence(),
                    own_receipts,
                    places: vec![place],
                }),
            }
        }
        leases
    }

    /// One call for each partition.
    fn calls(&self, call: impl Fn(u32, &[Stretch]) -> Call) -> Vec<Call> {
        self.0.iter().map(|(&partition, stretches)| call(partition, stretches)).collect()
    }

    /// Spreads the answers, one for each partition, over the places of the
    /// request. An answer lists what is refused; the rest is done.
    fn spread<T: Copy>(
        &self,
        operation: &'static str,
        answers: impl Iterator<Item = Result<(T, Value)>>,
        places: &mut [Answer<T>],
    ) -> Result<()> {
        for (stretches, answer) in self.0.values().zip(answers) {
            let (done, refused) = answer?;
            for &place in stretches.iter().flat_map(|stretch| &stretch.places) {
                places[place] = Ok(done);
            }
            let refusals = Vec::<(usize, u64, u64, u8)>::from_redis_value(refused)
                .map_err(|_| corrupt(operation, "refusals are other than expected"))?;
            for (number, first, last, code) in refusals {
                let stretch = stretches
                    .get(number)
                    .filter(|stretch| stretch.first <= first && last <= stretch.last())
                    .ok_or_else(|| corrupt(operation, "a refusal is of no lease"))?;
                let refusal =
                    if code == 2 { LeaseRefusal::ReceiptMismatch } else { LeaseRefusal::Stale };
                let within = (first - stretch.first) as usize..=(last - stretch.first) as usize;
                for &place in &stretch.places[within] {
                    places[place] = Err(refusal);
                }
            }
        }
        Ok(())
    }
}
