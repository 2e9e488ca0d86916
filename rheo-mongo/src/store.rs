//! [`Store`]: the client, the collections and the settings behind a backend.
//! Runs operations, each in a task of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mongodb::options::{Acknowledgment, ReadConcern, ReadPreference, WriteConcern};
use mongodb::{Client, ClientSession};
use rheo_core::backend::GroupRef;
use rheo_core::{Effect, Result};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::collections::Collections;
use crate::config::Options;
use crate::connect::ServerFacts;
use crate::error::Failure;
use crate::operation::Operation;
use crate::trouble::is_unknown_transaction;
use crate::wake::Waking;

/// How often an operation runs before its conflicts are the caller's.
const TRIES: u32 = 50;

/// Everything that an operation needs beside its session.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) client: Client,
    /// Whether the client is shut down with the store.
    pub(crate) owns_client: bool,
    pub(crate) collections: Collections,
    pub(crate) options: Options,
    pub(crate) facts: ServerFacts,
    pub(crate) waking: Waking,
    /// How often each group claimed.
    pub(crate) turns: Mutex<HashMap<GroupRef, usize>>,
}

/// What a session is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Reads that see the store as it was at one moment.
    Snapshot,
    /// A transaction, committed at the end.
    Transaction,
}

/// How far an attempt has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// What was sent is undone, unless it is committed.
    Uncommitted,
    /// The commit is on its way to the server.
    Committing,
}

impl Store {
    /// Counts a group's claims, so that each begins with another partition; from
    /// anywhere on, so that instances do not go in step.
    pub(crate) fn next_turn(&self, group: &GroupRef) -> usize {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry(group.clone()).or_insert_with(|| fastrand::usize(..));
        *turn = turn.wrapping_add(1);
        *turn
    }

    /// Runs an operation in a transaction of its own, again where others were
    /// faster, and commits it.
    pub(crate) async fn write<O: Operation>(self: &Arc<Self>, operation: O) -> Result<O::Output> {
        self.in_task(operation, Use::Transaction).await
    }

    /// Runs an operation that only reads.
    pub(crate) async fn read<O: Operation>(self: &Arc<Self>, operation: O) -> Result<O::Output> {
        self.in_task(operation, Use::Snapshot).await
    }

    /// In a task, so that a dropped future cuts nothing short.
    async fn in_task<O: Operation>(
        self: &Arc<Self>,
        operation: O,
        usage: Use,
    ) -> Result<O::Output> {
        let store = Arc::clone(self);
        let run = async move { store.run(&operation, usage).await };
        match tokio::spawn(run.in_current_span()).await {
            Ok(result) => result,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Err(_) => Err(Failure::Stopped.into_error(O::NAME, effect(usage))),
        }
    }

    /// Attempts an operation until it succeeds, fails for good, or time is up.
    /// A broken connection is worth one more attempt as long as nothing was
    /// committed: others of the pool may live.
    async fn run<O: Operation>(&self, operation: &O, usage: Use) -> Result<O::Output> {
        let deadline = Instant::now() + self.options.operation_timeout;
        let (mut tries, mut reconnected) = (1, false);
        loop {
            let mut stage = Stage::Uncommitted;
            let attempt = timeout_at(deadline, self.attempt(operation, usage, &mut stage));
            let failure = match attempt.await.unwrap_or(Err(Failure::Late)) {
                Ok(output) => return Ok(output),
                Err(failure) => failure,
            };
            let lost = failure.is_lost();
            let unknown = lost && stage == Stage::Committing;
            let again = if lost { !reconnected && !unknown } else { failure.is_conflict() };
            if !again || tries == TRIES || Instant::now() >= deadline {
                let effect = if unknown { Effect::Unknown } else { Effect::NotApplied };
                return Err(failure.into_error(O::NAME, effect));
            }
            reconnected |= lost;
            tokio::time::sleep(pause(tries)).await;
            tries += 1;
        }
    }

    async fn attempt<O: Operation>(
        &self,
        operation: &O,
        usage: Use,
        stage: &mut Stage,
    ) -> Result<O::Output, Failure> {
        match usage {
            Use::Snapshot => {
                let mut session = self.client.start_session().snapshot(true).await?;
                operation.run(self, &mut session).await
            }
            Use::Transaction => {
                let mut session = self.client.start_session().await?;
                self.transact(&mut session, operation, stage).await
            }
        }
    }

    async fn transact<O: Operation>(
        &self,
        session: &mut ClientSession,
        operation: &O,
        stage: &mut Stage,
    ) -> Result<O::Output, Failure> {
        let mut durably = WriteConcern::from(Acknowledgment::Majority);
        durably.journal = Some(true);
        let begun = session.start_transaction().read_concern(ReadConcern::snapshot());
        begun.write_concern(durably).selection_criteria(ReadPreference::Primary.into()).await?;
        match operation.run(self, session).await {
            Ok(output) => {
                *stage = Stage::Committing;
                self.commit(session).await?;
                Ok(output)
            }
            Err(failure) => {
                // So that what it holds is free when the caller hears of it. Where
                // it cannot be told, the server ends it in its own time.
                let _ = session.abort_transaction().await;
                Err(failure)
            }
        }
    }

    /// Commits. Where the connection breaks on the way, the server may not have
    /// heard of it and hold what the transaction wrote against everyone: it is
    /// told again, for as long as a connection may take to come about.
    async fn commit(&self, session: &mut ClientSession) -> Result<(), Failure> {
        let patience = Instant::now() + self.options.connect_timeout;
        let mut tries = 1;
        loop {
            let failure = match session.commit_transaction().await {
                Ok(()) => return Ok(()),
                Err(error) if is_unknown_transaction(&error) => Failure::Forgotten,
                Err(error) => Failure::Driver(error),
            };
            let is_heard = matches!(failure, Failure::Forgotten) || !failure.is_lost();
            if is_heard || Instant::now() >= patience {
                return Err(failure);
            }
            tokio::time::sleep(pause(tries)).await;
            tries += 1;
        }
    }
}

/// What is known of an operation that ended in the middle.
fn effect(usage: Use) -> Effect {
    if usage == Use::Snapshot { Effect::NotApplied } else { Effect::Unknown }
}

/// Rivals that wait for different times do not meet again.
fn pause(tries: u32) -> Duration {
    Duration::from_micros(fastrand::u64(..1000 << tries.min(6)))
}
