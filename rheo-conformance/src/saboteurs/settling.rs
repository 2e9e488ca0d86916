//! Saboteurs at the end of a lease.

use std::time::Duration;

use async_trait::async_trait;
use rheo_core::backend::{Backend, Claim, GroupRef, LeaseRefusal, Renew, Settle, Settlement};
use rheo_core::{Delivery, Outcome, Result, Timestamp, Token};

use super::notebook::Notebook;
use super::sabotaged::Sabotage;

type Answers<T> = Result<Vec<Result<T, LeaseRefusal>>>;

/// The request with each settlement changed.
fn changed(request: &Settle, change: impl Fn(&mut Settlement)) -> Settle {
    let mut request = request.clone();
    request.settlements.iter_mut().for_each(change);
    request
}

fn note_tokens(notes: &Notebook<Token>, group: &GroupRef, deliveries: &[Delivery]) {
    for Delivery { lease, .. } in deliveries {
        notes.note(group, lease.position(), lease.token().clone());
    }
}

#[derive(Debug, Default)]
pub(super) struct AckWithoutToken {
    current: Notebook<Token>,
}

#[async_trait]
impl Sabotage for AckWithoutToken {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = store.claim(request).await?;
        note_tokens(&self.current, &request.group, &deliveries);
        Ok(deliveries)
    }

    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let request = changed(request, |Settlement { token, outcome }| {
            let current = self.current.get(&request.group, token.lease_id.position());
            if let (Outcome::Ack, Some(current)) = (outcome, current) {
                *token = current;
            }
        });
        store.settle(&request).await
    }
}

#[derive(Debug)]
pub(super) struct ReceiptsNotChecked;

#[async_trait]
impl Sabotage for ReceiptsNotChecked {
    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let without = |settlement: &mut Settlement| {
            settlement.token = Token::new(settlement.token.lease_id);
        };
        store.settle(&changed(request, without)).await
    }
}

#[derive(Debug, Default)]
pub(super) struct ExpiryEndsLeases {
    expiries: Notebook<Timestamp>,
}

#[async_trait]
impl Sabotage for ExpiryEndsLeases {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = store.claim(request).await?;
        for Delivery { lease, .. } in &deliveries {
            self.expiries.note(&request.group, lease.position(), lease.expires_at());
        }
        Ok(deliveries)
    }

    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let now = request.now.or_system();
        let expired = |Settlement { token, .. }: &Settlement| {
            let expires_at = self.expiries.get(&request.group, token.lease_id.position());
            expires_at.is_some_and(|expires_at| expires_at <= now)
        };
        // Once: a claim beside this one may note another expiry.
        let late: Vec<bool> = request.settlements.iter().map(expired).collect();
        let in_time = request.settlements.iter().zip(&late).filter(|(_, late)| !**late);
        let settlements: Vec<_> = in_time.map(|(settlement, _)| settlement.clone()).collect();
        let mut answers = match settlements.is_empty() {
            true => Vec::new(),
            false => store.settle(&Settle { settlements, ..request.clone() }).await?,
        }
        .into_iter();
        let answer = |late| match late {
            true => Err(LeaseRefusal::Stale),
            false => answers.next().unwrap_or(Ok(())),
        };
        Ok(late.into_iter().map(answer).collect())
    }

    async fn renew(&self, store: &dyn Backend, request: &Renew) -> Answers<Timestamp> {
        let answers = store.renew(request).await?;
        for (token, answer) in request.tokens.iter().zip(&answers) {
            if let Ok(expires_at) = answer {
                self.expiries.note(&request.group, token.lease_id.position(), *expires_at);
            }
        }
        Ok(answers)
    }
}

#[derive(Debug, Default)]
pub(super) struct SecondSettleSucceeds {
    settled: Notebook<Token>,
}

#[async_trait]
impl Sabotage for SecondSettleSucceeds {
    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let mut answers = store.settle(request).await?;
        for (Settlement { token, .. }, answer) in request.settlements.iter().zip(&mut answers) {
            let position = token.lease_id.position();
            if answer.is_ok() {
                self.settled.note(&request.group, position, token.clone());
            } else if self.settled.get(&request.group, position).as_ref() == Some(token) {
                *answer = Ok(());
            }
        }
        Ok(answers)
    }
}

#[derive(Debug)]
pub(super) struct ReleaseCounts;

#[async_trait]
impl Sabotage for ReleaseCounts {
    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let request = changed(request, |Settlement { outcome, .. }| {
            if *outcome == Outcome::Release {
                *outcome = Outcome::retry("released");
            }
        });
        store.settle(&request).await
    }
}

#[derive(Debug)]
pub(super) struct DelaysCut;

#[async_trait]
impl Sabotage for DelaysCut {
    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let request = changed(request, |Settlement { outcome, .. }| {
            if let Outcome::Retry { after, .. } = outcome {
                *after = Duration::from_secs(1).min(*after);
            }
        });
        store.settle(&request).await
    }
}

#[derive(Debug)]
pub(super) struct DeadLettersLost;

#[async_trait]
impl Sabotage for DeadLettersLost {
    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let request = changed(request, |Settlement { outcome, .. }| {
            if matches!(outcome, Outcome::Reject { .. }) {
                *outcome = Outcome::Ack;
            }
        });
        store.settle(&request).await
    }
}

#[derive(Debug, Default)]
pub(super) struct StaleSpoilsBatch {
    current: Notebook<Token>,
}

#[async_trait]
impl Sabotage for StaleSpoilsBatch {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = store.claim(request).await?;
        note_tokens(&self.current, &request.group, &deliveries);
        Ok(deliveries)
    }

    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let is_current = |Settlement { token, .. }: &Settlement| {
            let current = self.current.get(&request.group, token.lease_id.position());
            current.is_some_and(|current| current.lease_id == token.lease_id)
        };
        if request.settlements.len() > 1 && !request.settlements.iter().all(is_current) {
            return Ok(vec![Err(LeaseRefusal::Stale); request.settlements.len()]);
        }
        let answers = store.settle(request).await?;
        self.current.of(&request.group, |current| {
            for (Settlement { token, .. }, answer) in request.settlements.iter().zip(&answers) {
                if answer.is_ok() {
                    current.remove(&token.lease_id.position());
                }
            }
        });
        Ok(answers)
    }
}

#[derive(Debug)]
pub(super) struct RenewsForHalf;

#[async_trait]
impl Sabotage for RenewsForHalf {
    async fn renew(&self, store: &dyn Backend, request: &Renew) -> Answers<Timestamp> {
        let half = Renew { lease: request.lease / 2, ..request.clone() };
        let promised = request.now.or_system() + request.lease;
        let answers = store.renew(&half).await?.into_iter();
        Ok(answers.map(|answer| answer.map(|_| promised)).collect())
    }
}

#[derive(Debug, Default)]
pub(super) struct LeasesOutliveGroup {
    tokens: Notebook<Token>,
    orphans: Notebook<Token>,
}

#[async_trait]
impl Sabotage for LeasesOutliveGroup {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = store.claim(request).await?;
        note_tokens(&self.tokens, &request.group, &deliveries);
        Ok(deliveries)
    }

    async fn delete_group(&self, store: &dyn Backend, group: &GroupRef) -> Result<()> {
        store.delete_group(group).await?;
        let tokens = self.tokens.of(group, std::mem::take);
        self.orphans.of(group, |orphans| orphans.extend(tokens));
        Ok(())
    }

    async fn settle(&self, store: &dyn Backend, request: &Settle) -> Answers<()> {
        let is_orphan = |token: &Token| {
            let orphan = self.orphans.get(&request.group, token.lease_id.position());
            orphan.as_ref() == Some(token)
        };
        let mut answers = store.settle(request).await?;
        for (settlement, answer) in request.settlements.iter().zip(&mut answers) {
            if is_orphan(&settlement.token) {
                *answer = Ok(());
            }
        }
        Ok(answers)
    }
}
