//! [`Pair`]: a group of the store beside the group as it should be.

use std::collections::HashSet;
use std::fmt::Debug;
use std::time::Duration;

use rheo_core::backend::{LeaseRefusal, Settlement};
use rheo_core::{
    Confirm, Error, ErrorKind, FetchOptions, GroupOptions, Lease, LeaseId, MAX_BATCH, Outcome,
    Position, Receipt, Replay, ReplayOptions, Rheo, Start, Token,
};

use super::program::{Pick, Program, Step};
use super::spec::{Letter, Spec};
use crate::Trial;
use crate::trial::numbered;

const GROUP: &str = "g";

/// Both groups, and the leases that they gave out.
pub(super) struct Pair<'a> {
    trial: &'a Trial,
    rheo: &'a Rheo,
    stream: &'a str,
    spec: Spec,
    issued: Vec<Issued>,
    seen: HashSet<LeaseId>,
}

/// One lease, as each side knows it.
#[derive(Clone, Debug)]
struct Issued {
    lease: Lease,
    token: Token,
}

impl<'a> Pair<'a> {
    pub(super) async fn new(
        trial: &'a Trial,
        rheo: &'a Rheo,
        stream: &'a str,
        program: &Program,
    ) -> Result<Self, String> {
        let Program { partitions, settings, start, .. } = *program;
        let options = GroupOptions::default()
            .max_attempts(settings.max_attempts)
            .ordered(settings.ordered)
            .start(Start::AfterSequence(start));
        rheo.create_stream(stream, partitions).await.map_err(text)?;
        rheo.create_group(stream, GROUP, options).await.map_err(text)?;
        Ok(Self {
            trial,
            rheo,
            stream,
            spec: Spec::new(settings, partitions, start),
            issued: Vec::new(),
            seen: HashSet::new(),
        })
    }

    /// Takes a step on both sides. Fails where the answers differ.
    pub(super) async fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Append { partition, count } => self.append(*partition, *count).await,
            Step::Claim { partition, limit, lease } => self.claim(*partition, *limit, *lease).await,
            Step::Settle(picks) => self.settle(picks).await,
            Step::Renew { pick, lease } => self.renew(*pick, *lease).await,
            Step::Advance(time) => {
                self.trial.clock().advance(*time);
                Ok(())
            }
            Step::ReplayAfter { partition, sequence } => {
                self.spec.replay(*partition, sequence + 1, u64::MAX);
                let options = ReplayOptions::default().partitions([*partition]);
                self.replay(Replay::AfterSequence(*sequence), options).await
            }
            Step::ReplayPositions(positions) => self.replay_positions(positions).await,
            Step::ReplayDeadLetters => {
                for (_, position, ..) in self.spec.dead_letters() {
                    self.replay_one(position);
                }
                self.replay(Replay::DeadLetters, ReplayOptions::default()).await
            }
            Step::Reset { start } => self.reset(*start).await,
        }
    }

    /// Compares what one can see of the two without changing anything.
    pub(super) async fn compare(&self) -> Result<(), String> {
        let info = self.rheo.group_info(self.stream, GROUP).await.map_err(text)?;
        let expected = self.spec.progress(self.trial.clock().now());
        same("the group's progress", &info.partitions, &expected)?;
        let expected = self.spec.dead_letters();
        if expected.is_empty() {
            // Nothing is in the list, as was just compared.
            return Ok(());
        }
        let letters = self.rheo.dead_letters(self.stream, GROUP, MAX_BATCH, None).await;
        let letter = |letter: rheo_core::DeadLetter| -> Letter {
            let position = letter.position();
            (letter.dead_at, position, letter.attempt, letter.reason)
        };
        let letters: Vec<_> = letters.map_err(text)?.into_iter().map(letter).collect();
        same_letters(&letters, &expected)
    }

    async fn append(&mut self, partition: u32, count: u64) -> Result<(), String> {
        let events = numbered(count).into_iter().map(|event| event.partition(partition)).collect();
        self.rheo.append_batch(self.stream, events).await.map_err(text)?;
        self.spec.append(partition, count);
        Ok(())
    }

    async fn claim(&mut self, partition: u32, limit: usize, lease: Duration) -> Result<(), String> {
        let options = FetchOptions::default().partitions([partition]).lease(lease);
        let deliveries = self.rheo.fetch(self.stream, GROUP, limit, options).await;
        let deliveries = deliveries.map_err(text)?;
        let now = self.trial.clock().now();
        let granted = self.spec.claim(partition, limit, now, lease);

        let claimed = deliveries.iter().map(|delivery| {
            let (event, lease) = (&delivery.event, &delivery.lease);
            let times = (lease.leased_at(), lease.expires_at());
            (event.position(), lease.position(), lease.attempt(), times)
        });
        let expected = granted.iter().map(|(token, attempt)| {
            let position = token.lease_id.position();
            (position, position, *attempt, (now, now + lease))
        });
        let (claimed, expected): (Vec<_>, Vec<_>) = (claimed.collect(), expected.collect());
        same("the claim's deliveries", &claimed, &expected)?;

        for (delivery, (token, _)) in deliveries.into_iter().zip(granted) {
            let lease = delivery.lease;
            if !self.seen.insert(lease.lease_id()) {
                return Err(format!("{:?} was given out a second time", lease.lease_id()));
            }
            self.issued.push(Issued { lease, token });
        }
        Ok(())
    }

    async fn settle(&mut self, picks: &[(Pick, Outcome)]) -> Result<(), String> {
        let now = self.trial.clock().now();
        let mut settlements = Vec::new();
        let mut expected = Vec::new();
        for (pick, outcome) in picks {
            let Some(Issued { lease, token }) = self.pick(*pick) else {
                return Ok(());
            };
            settlements.push((lease, outcome.clone()));
            let outcome = outcome.clone();
            let answer = self.spec.settle(&Settlement { token, outcome }, now);
            expected.push(answer.map_err(kind_of_refusal));
        }
        let answers = self.rheo.settle(settlements).await.into_iter();
        let answers: Vec<_> = answers.map(|answer| answer.map_err(|error| error.kind())).collect();
        same("the answers to the settle", &answers, &expected)
    }

    async fn renew(&mut self, pick: Pick, lasting: Duration) -> Result<(), String> {
        let Some(Issued { lease, token }) = self.pick(pick) else {
            return Ok(());
        };
        let expires_at = self.trial.clock().now() + lasting;
        let expected = self.spec.renew(&token, expires_at).map_err(kind_of_refusal);
        let answer = self.rheo.renew(lease, lasting).await;
        let answer = answer.map(|lease| lease.expires_at()).map_err(|error| error.kind());
        same("the answer to the renewal", &answer, &expected)
    }

    async fn replay_positions(&mut self, positions: &[Position]) -> Result<(), String> {
        let existing = positions.iter().filter(|position| self.spec.exists(**position));
        let existing: Vec<_> = existing.copied().collect();
        for &position in &existing {
            self.replay_one(position);
        }
        self.replay(Replay::Positions(existing), ReplayOptions::default()).await
    }

    fn replay_one(&mut self, position: Position) {
        let Position { partition, sequence } = position;
        self.spec.replay(partition, sequence, sequence);
    }

    async fn replay(&self, selection: Replay, options: ReplayOptions) -> Result<(), String> {
        self.rheo.replay(self.stream, GROUP, selection, options).await.map_err(text)
    }

    async fn reset(&mut self, start: u64) -> Result<(), String> {
        self.spec.reset(start);
        let start = Start::AfterSequence(start);
        self.rheo.reset_group(self.stream, GROUP, Confirm::Yes, start).await.map_err(text)
    }

    /// The lease as it is to be shown, where there is any.
    fn pick(&self, pick: Pick) -> Option<Issued> {
        let count = self.issued.len();
        let index = count.checked_sub(1)? - pick.back % count;
        let mut issued = self.issued[index].clone();
        if pick.wrong_receipt {
            let receipt = Receipt::entry("no store's own");
            issued.lease = issued.lease.with_receipt(receipt.clone());
            issued.token.receipt = receipt;
        }
        Some(issued)
    }
}

/// Reasons are compared where a consumer gave them; the words of a store's own are free.
fn same_letters(found: &[Letter], expected: &[Letter]) -> Result<(), String> {
    let plain = |letters: &[Letter]| -> Vec<_> {
        letters.iter().map(|(at, position, attempt, _)| (*at, *position, *attempt)).collect()
    };
    same("the dead letters", &plain(found), &plain(expected))?;
    let given = |reason: &str| matches!(reason, "again" | "never");
    let reasons = found.iter().zip(expected).filter(|(_, expected)| given(&expected.3));
    for ((.., found), (.., expected)) in reasons {
        same("a dead letter's reason", found, expected)?;
    }
    Ok(())
}

fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: found {found:?}, expected {expected:?}"))
}

fn kind_of_refusal(refusal: LeaseRefusal) -> ErrorKind {
    match refusal {
        LeaseRefusal::Stale => ErrorKind::StaleLease,
        LeaseRefusal::ReceiptMismatch => ErrorKind::ReceiptMismatch,
    }
}

fn text(error: Error) -> String {
    format!("it failed: {error}")
}
