//! [`Engine`]: what consumers and subscriptions have in common.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use metrics::Gauge;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::health::{Health, Vitals};
use super::held::Held;
use super::ledger::{Ledger, Settling};
use super::options::{Settings, SubscribeOptions};
use super::owner::Owner;
use super::stopwatch::Stopwatch;
use super::{feed, renew, settle};
use crate::{Error, ErrorKind, GroupName, Lease, Outcome, Result, Rheo, StreamName};

/// What a drain has done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Leases that ended by the outcome of a handler or user meanwhile.
    pub settled: u64,
    /// Leases handed back unused, their attempts not counted.
    pub released: u64,
    /// Leases that were neither when the time was up. Their events come back
    /// by expiry.
    pub left: Vec<Lease>,
}

/// The leases of one consumer or subscription, and the tasks that claim,
/// renew and settle them.
pub(super) struct Engine {
    pub(super) rheo: Rheo,
    pub(super) stream: StreamName,
    pub(super) group: GroupName,
    pub(super) settings: Settings,
    pub(super) time: Stopwatch,
    ledger: Mutex<Ledger>,
    vitals: Mutex<Vitals>,
    owner: Mutex<Option<Owner>>,
    draining: AtomicBool,
    leases: Gauge,
    /// Tells the feed that it may claim.
    pub(super) room: Notify,
    /// Tells the idle feed that a settle may have made events claimable.
    pub(super) reopened: Notify,
    /// Tells the renewer that there are new leases.
    pub(super) granted: Notify,
    /// Tells the settler that there is something to settle.
    pub(super) outcomes: Notify,
    /// Wakes whoever takes the events.
    taker: AtomicWaker,
    /// No new claims.
    pub(super) stop: CancellationToken,
    /// All is done, or given up.
    pub(super) quit: CancellationToken,
}

impl Engine {
    /// Checks the options, takes the group, and starts the tasks.
    pub(super) async fn start(
        operation: &'static str,
        rheo: &Rheo,
        (stream, group): (&str, &str),
        options: SubscribeOptions,
        concurrency: usize,
    ) -> Result<Arc<Self>> {
        let named = |error: Error| error.in_operation(operation);
        let info = rheo.group_info(stream, group).await.map_err(named)?;
        let settings = options.resolve(operation, rheo, &info, concurrency)?;
        let stream = StreamName::new(stream).map_err(named)?;
        let group = info.name;
        let owner = Owner::acquire(operation, rheo, &stream, &group)?;
        let labels = [("stream", stream.to_string()), ("group", group.to_string())];
        let engine = Arc::new(Self {
            rheo: rheo.clone(),
            stream,
            group,
            time: Stopwatch::start(rheo.clock()),
            ledger: Mutex::new(Ledger::new(settings.ordered, settings.lease)),
            settings,
            vitals: Mutex::default(),
            owner: Mutex::new(Some(owner)),
            draining: AtomicBool::new(false),
            leases: metrics::gauge!("rheo_consumer_leases", &labels),
            room: Notify::new(),
            reopened: Notify::new(),
            granted: Notify::new(),
            outcomes: Notify::new(),
            taker: AtomicWaker::new(),
            stop: CancellationToken::new(),
            quit: CancellationToken::new(),
        });
        engine.spawn(feed::run(Arc::clone(&engine)));
        engine.spawn(renew::run(Arc::clone(&engine)));
        engine.spawn(settle::run(Arc::clone(&engine)));
        Ok(engine)
    }

    /// Runs a task until it ends, or all does.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.quit.clone().run_until_cancelled_owned(task));
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn vitals(&self) -> MutexGuard<'_, Vitals> {
        self.vitals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a failure of the store, which stops nothing.
    pub(super) fn failed(&self, error: &Error) {
        tracing::warn!(stream = %self.stream, group = %self.group, %error, "consuming goes on after");
        self.vitals().failed(error);
    }

    /// The next event to handle; none once no more will come.
    pub(super) fn poll_next(self: &Arc<Self>, context: &Context<'_>) -> Poll<Option<Held>> {
        self.taker.register(context.waker());
        let mut ledger = self.ledger();
        if let Some((delivery, lost)) = ledger.next() {
            drop(ledger);
            self.room.notify_one();
            return Poll::Ready(Some(Held::new(Arc::clone(self), delivery, lost)));
        }
        if ledger.stopping() { Poll::Ready(None) } else { Poll::Pending }
    }

    /// Ends what was handed on; the outcome is on its way when this returns.
    pub(super) fn settle(
        &self,
        lease: &Lease,
        outcome: Outcome,
        answer: Option<oneshot::Sender<Result<()>>>,
    ) {
        let settling = Settling { lease: lease.clone(), outcome, answer };
        let lost = self.ledger().settle(settling);
        if let Some(answer) = lost.and_then(|settling| settling.answer) {
            let context = format!("event {}: the lease was lost before", lease.position());
            // Whoever stopped waiting does not want the answer.
            let _ = answer.send(Err(Error::new(ErrorKind::StaleLease, "settle", context)));
        }
        self.outcomes.notify_one();
        // In an ordered group the partition's next event may be waiting for this.
        self.taker.wake();
    }

    /// After the ledger has changed: tells those who may go on, and ends all
    /// when nothing is left to do.
    pub(super) fn changed(&self) {
        let (unsettled, finished) = {
            let ledger = self.ledger();
            (ledger.unsettled(), ledger.finished())
        };
        self.leases.set(unsettled as f64);
        self.room.notify_one();
        self.outcomes.notify_one();
        self.taker.wake();
        if finished {
            self.finish();
        }
    }

    fn finish(&self) {
        self.disown();
        self.leases.set(0.0);
        self.quit.cancel();
    }

    /// Lets another consume the group in this instance.
    pub(super) fn disown(&self) {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(owner);
    }

    /// No new claims; what is buffered goes back; the rest ends in its time.
    pub(super) fn stop(&self) {
        self.stop.cancel();
        self.ledger().stop();
        self.changed();
    }

    /// Stops, and waits until all leases have ended, but not longer than `timeout`.
    pub(super) async fn drain(&self, timeout: Duration) -> Result<Drained> {
        let _draining = Draining::begin(&self.draining)?;
        let before = self.vitals().counts;
        self.stop();
        let in_time = tokio::select! {
            biased;
            () = self.quit.cancelled() => true,
            () = self.time.pause(timeout) => false,
        };
        let left = if in_time { Vec::new() } else { self.ledger().abandon() };
        self.finish();
        let after = self.vitals().counts;
        Ok(Drained {
            settled: after.ended() - before.ended(),
            released: after.released - before.released,
            left,
        })
    }

    pub(super) fn health(&self) -> Health {
        let (running, buffered, unsettled, draining) = {
            let ledger = self.ledger();
            (ledger.running(), ledger.buffered(), ledger.unsettled(), ledger.stopping())
        };
        let vitals = self.vitals();
        Health {
            running,
            buffered,
            unsettled,
            counts: vitals.counts,
            last_error: vitals.last_error.clone(),
            consecutive_failures: vitals.consecutive_failures,
            draining,
        }
    }
}

/// One drain at a time; a dropped one makes room for another.
struct Draining<'a>(&'a AtomicBool);

impl<'a> Draining<'a> {
    fn begin(flag: &'a AtomicBool) -> Result<Self> {
        if flag.swap(true, Ordering::AcqRel) {
            return Err(Error::new(ErrorKind::AlreadyDraining, "drain", ""));
        }
        Ok(Self(flag))
    }
}

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
