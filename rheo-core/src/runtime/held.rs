//! [`Held`]: an event of a subscription, until it is settled.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use crate::{Delivery, Effect, Error, ErrorKind, Event, Lease, Outcome, Result};

/// An event that a [`Subscription`](crate::Subscription) has handed on.
///
/// Its lease renews itself until this is settled or dropped. Dropped, it is
/// released, and the attempt is not counted; dropped by a panic, it is a retry,
/// so that an event that makes its reader panic does not come for ever.
#[must_use = "an event that is dropped is released, and comes again"]
pub struct Held {
    engine: Arc<Engine>,
    delivery: Delivery,
    lost: CancellationToken,
    open: bool,
}

impl Held {
    pub(super) fn new(engine: Arc<Engine>, delivery: Delivery, lost: CancellationToken) -> Self {
        Self { engine, delivery, lost, open: true }
    }

    /// The event.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.delivery.event
    }

    /// The lease, as it was granted.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.delivery.lease
    }

    /// Whether the lease is lost: it could not be renewed, and others may
    /// handle the event now.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Returns when the lease is lost, and work on the event should end.
    ///
    /// # Cancellation
    /// Safe: nothing but the waiting is lost.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Acknowledges: the event is done.
    ///
    /// Like every settle here it goes to the store together with others, and
    /// returns when the store has answered. While the store is out of reach it
    /// is tried again under the same token until the lease is known to have
    /// ended; a timeout around the call bounds the waiting, not the trying.
    ///
    /// # Errors
    /// `StaleLease` where the lease was lost, or where this had taken effect
    /// already and only the store's answer was lost; `Unavailable` with an
    /// unknown effect where a drain's time was up first; and what makes trying
    /// again useless, such as `StreamNotFound`.
    ///
    /// # Cancellation
    /// Once polled, the settle is on its way and stays so.
    pub async fn ack(self) -> Result<()> {
        self.settle(Outcome::Ack).await
    }

    /// Hands the event back for another attempt, now or after a delay; a dead
    /// letter where its attempts are used up.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// As for [`ack`](Self::ack).
    pub async fn retry(self, reason: impl Into<String>, after: Duration) -> Result<()> {
        self.settle(Outcome::retry_after(reason, after)).await
    }

    /// Gives the event up: it becomes a dead letter.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// As for [`ack`](Self::ack).
    pub async fn reject(self, reason: impl Into<String>) -> Result<()> {
        self.settle(Outcome::reject(reason)).await
    }

    /// Hands the claim back unused: the attempt is not counted.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// As for [`ack`](Self::ack).
    pub async fn release(self) -> Result<()> {
        self.settle(Outcome::Release).await
    }

    /// Ends the lease with an outcome.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// As for [`ack`](Self::ack).
    pub async fn settle(mut self, outcome: Outcome) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.end(outcome, Some(answer));
        drop(self);
        answered.await.unwrap_or_else(|_| Err(ended_before()))
    }

    /// Ends many leases with one outcome, in one round trip where the store
    /// allows it, and answers for each by itself, in their order.
    ///
    /// # Errors
    /// Each answer as for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// As for [`ack`](Self::ack).
    pub async fn settle_all(
        chunk: impl IntoIterator<Item = Self>,
        outcome: Outcome,
    ) -> Vec<Result<()>> {
        join_all(chunk.into_iter().map(|held| held.settle(outcome.clone()))).await
    }

    pub(super) fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Ends the lease without waiting for the store's answer.
    pub(super) fn settle_in_background(mut self, outcome: Outcome) {
        self.end(outcome, None);
    }

    fn end(&mut self, outcome: Outcome, answer: Option<oneshot::Sender<Result<()>>>) {
        self.open = false;
        self.engine.settle(&self.delivery.lease, outcome, answer);
    }
}

fn ended_before() -> Error {
    let context = "the drain's time was up before the store had answered";
    Error::new(ErrorKind::Unavailable, "settle", context).with_effect(Effect::Unknown)
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let outcome = if std::thread::panicking() {
            Outcome::retry("dropped by a panic")
        } else {
            Outcome::Release
        };
        self.end(outcome, None);
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("delivery", &self.delivery)
            .field("lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}
