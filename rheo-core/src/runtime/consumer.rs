//! [`Consumer`]: calls a handler for each event of a group.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use metrics::{counter, histogram};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use super::engine::{Drained, Engine};
use super::handler::Handler;
use super::health::Health;
use super::held::Held;
use crate::{Delivery, Outcome, Result};

/// A running consumer of a group.
///
/// It claims ahead, calls its [`Handler`] for up to `concurrency` events at
/// once, renews their leases meanwhile, and settles by the outcome. A handler
/// that fails, panics or takes longer than its timeout is a retry with that
/// reason, kept with the group and, for a panic, logged: no place for payloads; one whose lease could not be renewed is cancelled, as others may
/// have its event. Failures of the store stop nothing: it tries again, and
/// they show in [`health`](Self::health). It even outlives its stream or group
/// being deleted, and goes on when they are there again.
///
/// In an ordered group each partition is handled one event at a time, in order.
///
/// Dropped, it ends in the background: it claims no more, hands back what is
/// buffered, and lets running handlers finish. [`drain`](Self::drain) does the
/// same and waits for it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
/// use std::time::Duration;
/// use rheo_core::{Delivery, GroupOptions, NewEvent, Outcome, Rheo};
/// use serde_json::json;
///
/// let rheo = Rheo::builder(rheo_ets::Memory::new()).build().await?;
/// rheo.create_stream("orders", 4).await?;
/// rheo.create_group("orders", "billing", GroupOptions::default()).await?;
///
/// let (totals, mut received) = tokio::sync::mpsc::unbounded_channel();
/// let consumer = rheo
///     .consumer("orders", "billing")
///     .concurrency(16)
///     .handler_timeout(Duration::from_secs(30))
///     .start(move |delivery: Delivery| {
///         let totals = totals.clone();
///         async move {
///             match delivery.event.payload()["total"].as_f64() {
///                 Some(total) => totals.send(total).map(|()| Outcome::Ack),
///                 None => Ok(Outcome::reject("no total")),
///             }
///         }
///     })
///     .await?;
///
/// rheo.append("orders", NewEvent::new("order.placed", json!({"total": 12.5}))).await?;
/// assert_eq!(received.recv().await, Some(12.5));
///
/// let drained = consumer.drain(Duration::from_secs(10)).await?;
/// assert!(drained.left.is_empty());
/// # Ok(()) }
/// ```
#[must_use = "dropped, it ends"]
pub struct Consumer {
    engine: Arc<Engine>,
}

impl Consumer {
    pub(super) fn run(
        engine: Arc<Engine>,
        handler: impl Handler,
        concurrency: usize,
        timeout: Option<Duration>,
    ) -> Self {
        let dispatch = dispatch(Arc::clone(&engine), Arc::new(handler), concurrency, timeout);
        engine.spawn(dispatch);
        Self { engine }
    }

    /// How it is doing.
    #[must_use]
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// Ends it: claims no more, hands back what is buffered, lets running
    /// handlers finish, and settles. After `timeout` it cancels the handlers
    /// that still run and reports their leases, which end by expiry.
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

impl Drop for Consumer {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("stream", &self.engine.stream)
            .field("group", &self.engine.group)
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}

/// Runs a handler for each event, until no more come and the last has ended.
async fn dispatch<H: Handler>(
    engine: Arc<Engine>,
    handler: Arc<H>,
    concurrency: usize,
    timeout: Option<Duration>,
) {
    // Dropped with this task, which cancels what still runs.
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        if running.len() >= concurrency {
            running.join_next().await;
            continue;
        }
        match poll_fn(|context| engine.poll_next(context)).await {
            Some(held) => {
                running.spawn(handle(Arc::clone(&engine), Arc::clone(&handler), held, timeout))
            }
            None => break,
        };
    }
    while running.join_next().await.is_some() {}
}

/// Handles one event, and settles by the outcome.
async fn handle<H: Handler>(
    engine: Arc<Engine>,
    handler: Arc<H>,
    held: Held,
    timeout: Option<Duration>,
) {
    let span = tracing::info_span!(
        "handle",
        stream = %engine.stream,
        group = %engine.group,
        position = %held.event().position(),
        attempt = held.lease().attempt(),
    );
    let begun = Instant::now();
    let delivery = held.delivery().clone();
    // Begun before the handler, so that no time passes uncounted.
    let timer = timeout.map(|timeout| engine.rheo.clock().sleep(timeout));
    let too_long = async {
        match timer {
            Some(timer) => timer.await,
            None => std::future::pending().await,
        }
        Outcome::retry(format!("the handler took longer than {:?}", timeout.unwrap_or_default()))
    };
    let outcome = tokio::select! {
        biased;
        () = held.lost() => None,
        outcome = outcome_of(&*handler, delivery).instrument(span) => Some(outcome),
        outcome = too_long => Some(outcome),
    };
    let name = outcome.as_ref().map_or("lost", Outcome::as_str);
    counter!("rheo_handler_outcomes_total", "outcome" => name).increment(1);
    histogram!("rheo_handler_seconds").record(begun.elapsed());
    if let Some(outcome) = outcome {
        held.settle_in_background(outcome);
    }
}

/// What the handler yields; a panic is a retry.
async fn outcome_of(handler: &impl Handler, delivery: Delivery) -> Outcome {
    // Whatever the panic left half done is the handler's own, and it is called
    // again for the next event, as a thread's or task's panic would have it.
    let handling = AssertUnwindSafe(async { handler.handle(delivery).await });
    handling.catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        tracing::warn!(panic = text, "the handler panicked");
        Outcome::retry(format!("handler panicked: {text}"))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "no text"
    }
}
