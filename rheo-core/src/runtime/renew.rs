//! The renewer: keeps leases from expiring while they are in use.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::Backoff;
use super::engine::Engine;
use super::health::ends_lease;
use crate::{Lease, LeaseId, Result};

/// The longest pause after a renewal that the store did not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Renews each lease at half its time, many in one call.
pub(super) async fn run(engine: Arc<Engine>) {
    let mut after_failure = Backoff::up_to(LONGEST_PAUSE.min(engine.settings.lease / 10));
    loop {
        let due = engine.due().await;
        if engine.renew(&due).await {
            after_failure.reset();
            continue;
        }
        engine.lose_ended(Duration::ZERO);
        tokio::select! {
            () = after_failure.pause() => {}
            () = engine.next_end() => {}
        }
        engine.lose_ended(Duration::ZERO);
    }
}

impl Engine {
    /// The leases to renew, once there are some.
    async fn due(&self) -> Vec<Lease> {
        loop {
            let (due, next) = {
                let ledger = self.ledger();
                (ledger.due(self.time.elapsed()), ledger.next_renewal())
            };
            if !due.is_empty() {
                return due;
            }
            tokio::select! {
                () = self.time.reach_if(next) => {}
                () = self.granted.notified() => {}
            }
        }
    }

    /// Renews the leases, and gives up those that are refused or whose time is
    /// over. Returns whether the store answered.
    async fn renew(&self, due: &[Lease]) -> bool {
        let asked = self.time.elapsed();
        let answers = self.answers_to_renewal(due, asked).await;
        let mut failure = None;
        for (lease, answer) in due.iter().zip(answers) {
            match answer {
                Ok(renewed) => self.ledger().renewed(renewed, asked),
                Err(error) if ends_lease(&error) => self.lose(vec![lease.lease_id()]),
                Err(error) => failure = Some(error),
            }
        }
        match &failure {
            None => self.vitals().answered(),
            Some(error) => self.failed(error),
        }
        self.changed();
        failure.is_none()
    }

    /// Asks the store. Leases whose time runs out while it is silent, asked for
    /// or not, are given up at that moment; those whose time was over before (the process stood
    /// still) have this one chance.
    async fn answers_to_renewal(&self, due: &[Lease], asked: Duration) -> Vec<Result<Lease>> {
        let mut call = pin!(self.rheo.renew_all(due, self.settings.lease));
        loop {
            tokio::select! {
                biased;
                answers = &mut call => return answers,
                () = self.next_end() => self.lose_ended(asked),
            }
        }
    }

    /// Returns when the next of the leases that are still valid ends.
    async fn next_end(&self) {
        let end = self.ledger().next_end(self.time.elapsed());
        self.time.reach_if(end).await;
    }

    fn lose_ended(&self, since: Duration) {
        let ended = self.ledger().ended(since, self.time.elapsed());
        self.lose(ended);
    }

    fn lose(&self, leases: Vec<LeaseId>) {
        let lost = {
            let mut ledger = self.ledger();
            leases.into_iter().filter(|lease| ledger.lose(*lease)).count()
        };
        if lost > 0 {
            tracing::warn!(stream = %self.stream, group = %self.group, lost, "leases were lost");
            self.vitals().counts.stale += lost as u64;
            self.changed();
        }
    }
}
