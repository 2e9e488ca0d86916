//! [`Gated`]: a handler that a case holds back and looks into.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rheo_core::{Delivery, Handler, Outcome};
use tokio::sync::Semaphore;

/// A handler whose runs wait at a gate before they end, and which keeps a
/// record. Clones are one.
#[derive(Clone)]
pub(crate) struct Gated(Arc<State>);

struct State {
    gate: Semaphore,
    outcome: Box<dyn Fn(&Delivery) -> Outcome + Send + Sync>,
    begun: Mutex<Vec<(u64, u32)>>,
    running: AtomicUsize,
    most: AtomicUsize,
    cancelled: AtomicUsize,
}

impl Gated {
    /// With its gate shut.
    pub(crate) fn shut(outcome: impl Fn(&Delivery) -> Outcome + Send + Sync + 'static) -> Self {
        Self(Arc::new(State {
            gate: Semaphore::new(0),
            outcome: Box::new(outcome),
            begun: Mutex::default(),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
        }))
    }

    /// With its gate open.
    pub(crate) fn open(outcome: impl Fn(&Delivery) -> Outcome + Send + Sync + 'static) -> Self {
        let gated = Self::shut(outcome);
        gated.let_through(Semaphore::MAX_PERMITS);
        gated
    }

    /// Lets so many runs through the gate, now or when they come.
    pub(crate) fn let_through(&self, runs: usize) {
        self.0.gate.add_permits(runs);
    }

    /// Sequence and attempt of every run that has begun, in their order.
    pub(crate) fn begun(&self) -> Vec<(u64, u32)> {
        self.0.begun.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, by sequence and attempt.
    pub(crate) fn begun_sorted(&self) -> Vec<(u64, u32)> {
        let mut begun = self.begun();
        begun.sort_unstable();
        begun
    }

    pub(crate) fn running(&self) -> usize {
        self.0.running.load(Ordering::SeqCst)
    }

    /// The most runs there were at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }

    /// How many runs were dropped at the gate.
    pub(crate) fn cancelled(&self) -> usize {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    fn begin(&self, delivery: &Delivery) -> Run<'_> {
        let running = self.0.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(running, Ordering::SeqCst);
        let mut begun = self.0.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.push((delivery.event.sequence(), delivery.lease.attempt()));
        Run { state: &self.0, at_gate: true }
    }
}

impl Handler for Gated {
    async fn handle(&self, delivery: Delivery) -> Outcome {
        let mut run = self.begin(&delivery);
        if let Ok(permit) = self.0.gate.acquire().await {
            permit.forget();
        }
        run.at_gate = false;
        (self.0.outcome)(&delivery)
    }
}

impl fmt::Debug for Gated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gated").field("begun", &self.begun()).finish_non_exhaustive()
    }
}

struct Run<'a> {
    state: &'a State,
    at_gate: bool,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.state.running.fetch_sub(1, Ordering::SeqCst);
        if self.at_gate {
            self.state.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A panic that leaves no message on the terminal.
pub(crate) fn panic_quietly(text: &str) -> ! {
    std::panic::resume_unwind(Box::new(text.to_owned()))
}
