//! The settler: takes outcomes to the store, in batches.

use std::sync::Arc;
use std::time::Duration;

use super::backoff::Backoff;
use super::engine::Engine;
use super::health::ends_lease;
use super::ledger::Settling;
use crate::{Effect, Error, Outcome, Result, Retry};

/// Settles one batch at a time; meanwhile the next gathers.
pub(super) async fn run(engine: Arc<Engine>) {
    let mut after_failure = Backoff::after_failure();
    loop {
        let batch = engine.ledger().take_queue();
        if batch.is_empty() {
            engine.outcomes.notified().await;
        } else if engine.settle_batch(batch).await {
            after_failure.reset();
        } else {
            after_failure.pause().await;
        }
    }
}

impl Engine {
    /// Settles what can be settled, and puts back what the store did not
    /// answer for: the same outcome under the same token, until it does.
    /// Returns whether it answered for all.
    async fn settle_batch(&self, batch: Vec<Settling>) -> bool {
        let settlements: Vec<_> =
            batch.iter().map(|settling| (&settling.lease, settling.outcome.clone())).collect();
        let answers = self.rheo.settle(settlements).await;
        let mut again = Vec::new();
        let mut failure = None;
        let mut reopened = false;
        for (settling, answer) in batch.into_iter().zip(answers) {
            match answer {
                Err(error) if !is_final(&error) => {
                    again.push(settling);
                    failure = Some(error);
                }
                answer => {
                    reopened |= self.settings.ordered || makes_claimable(&settling.outcome);
                    self.settled(settling, answer);
                }
            }
        }
        match &failure {
            Some(error) => self.failed(error),
            None => self.vitals().answered(),
        }
        self.ledger().requeue(again);
        if reopened {
            self.reopened.notify_one();
        }
        self.changed();
        failure.is_none()
    }

    fn settled(&self, settling: Settling, answer: Result<()>) {
        {
            let mut vitals = self.vitals();
            match &answer {
                Ok(()) => vitals.counts.settled(&settling.outcome),
                Err(error) if ends_lease(error) => vitals.counts.stale += 1,
                Err(error) => vitals.failed(error),
            }
        }
        self.ledger().remove(settling.lease.lease_id());
        if let Some(waiting) = settling.answer {
            // Whoever stopped waiting does not want the answer.
            let _ = waiting.send(answer);
        }
    }
}

/// Whether trying again would be no use, or was shown to be none.
fn is_final(error: &Error) -> bool {
    error.retry() == Retry::Never && error.effect() == Effect::NotApplied
}

/// Whether the event can be claimed again at once.
fn makes_claimable(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ack | Outcome::Reject { .. } => false,
        Outcome::Retry { after, .. } => *after == Duration::ZERO,
        Outcome::Release => true,
    }
}
