//! [`Subscription`]: a group's events as a stream.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;

use super::engine::{Drained, Engine};
use super::health::Health;
use super::held::Held;
use super::options::SubscribeOptions;
use crate::{Result, Rheo};

/// A group's events as a `futures::Stream`, settled by whoever takes them.
///
/// Everything of `StreamExt` works on it. At most `max_demand` events are
/// unsettled at once, so the rest comes as these are settled; `chunks` must
/// not ask for more than that. In an ordered group a partition's next event
/// comes when the one before is settled, so use `ready_chunks` there.
///
/// The stream ends only when drained. Failures of the store do not end it,
/// they show in [`health`](Self::health); it even outlives its stream or group
/// being deleted, and goes on when they are there again.
///
/// Dropped, it hands back what it has buffered and makes room for another
/// consumer of the group; events that were handed on stay leased until they
/// are settled.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
/// use std::time::Duration;
/// use futures::StreamExt;
/// use rheo_core::runtime::{Held, SubscribeOptions};
/// use rheo_core::{GroupOptions, NewEvent, Outcome, Rheo};
/// use serde_json::json;
///
/// let rheo = Rheo::builder(rheo_ets::Memory::new()).build().await?;
/// rheo.create_stream("orders", 1).await?;
/// rheo.create_group("orders", "billing", GroupOptions::default()).await?;
/// for total in 1..=6 {
///     rheo.append("orders", NewEvent::new("order.placed", json!({"total": total}))).await?;
/// }
///
/// let options = SubscribeOptions::default().max_demand(50);
/// let mut orders = rheo.subscribe("orders", "billing", options).await?;
/// // One by one …
/// let order = orders.next().await.expect("it does not end by itself");
/// println!("{}", order.event().payload());
/// order.ack().await?;
/// // … or by the chunk, until told to stop.
/// let chunk = orders.by_ref().take(5).ready_chunks(5).next().await.unwrap_or_default();
/// for answer in Held::settle_all(chunk, Outcome::Ack).await {
///     answer?;
/// }
/// assert!(orders.drain(Duration::from_secs(5)).await?.left.is_empty());
/// # Ok(()) }
/// ```
#[must_use = "dropped, it takes no events"]
pub struct Subscription {
    engine: Arc<Engine>,
}

impl Rheo {
    /// Begins to take a group's events as a stream.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `AlreadyRunning` where this instance consumes
    /// the group already.
    ///
    /// # Cancellation
    /// Safe: nothing has begun.
    pub async fn subscribe(
        &self,
        stream: &str,
        group: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription> {
        let engine = Engine::start("subscribe", self, (stream, group), options, 1).await?;
        Ok(Subscription { engine })
    }
}

impl Subscription {
    /// How it is doing.
    #[must_use]
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// Ends it: claims no more, hands back what is buffered, and waits until
    /// the events that were handed on are settled. After `timeout` it lets go
    /// of the rest and reports it.
    ///
    /// # Errors
    /// `AlreadyDraining` where another drain is under way.
    ///
    /// # Cancellation
    /// It goes on draining, without a time limit.
    pub async fn drain(&self, timeout: Duration) -> Result<Drained> {
        self.engine.drain(timeout).await
    }
}

impl Stream for Subscription {
    type Item = Held;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Held>> {
        self.engine.poll_next(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.engine.stop();
        self.engine.disown();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("stream", &self.engine.stream)
            .field("group", &self.engine.group)
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}
