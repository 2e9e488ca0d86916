//! [`Store`]: the pool, the statements and the settings behind a backend.
//! Runs operations, each in a task of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rheo_core::backend::GroupRef;
use rheo_core::{Effect, Result};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::config::Options;
use crate::connect::version::ServerFacts;
use crate::error::Failure;
use crate::operation::Operation;
use crate::pool::{Pool, Taken, Use};
use crate::statements::{Statement, Statements};
use crate::wake::Waking;

/// How often an operation runs before its conflicts are the caller's.
const TRIES: u32 = 20;

/// Everything that an operation needs beside its connection.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) pool: Pool,
    /// Whether the pool is closed with the store.
    pub(crate) owns_pool: bool,
    pub(crate) statements: Statements,
    pub(crate) options: Options,
    pub(crate) facts: ServerFacts,
    pub(crate) waking: Waking,
    /// How often each group claimed.
    pub(crate) turns: Mutex<HashMap<GroupRef, usize>>,
}

/// How far an attempt has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for a connection.
    Waiting,
    /// Nothing was sent that could change anything.
    Harmless,
    /// What was sent is undone, unless it is committed.
    Uncommitted,
    /// What decides is on its way to the database.
    Deciding,
}

impl Store {
    /// The statement of this name.
    pub(crate) fn sql(&self, name: &'static str) -> Statement {
        self.statements.get(name)
    }

    /// Counts a group's claims, so that each begins with another partition.
    pub(crate) fn next_turn(&self, group: &GroupRef) -> usize {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry(group.clone()).or_default();
        *turn = turn.wrapping_add(1);
        *turn
    }

    /// Runs an operation in a transaction of its own, again where the database
    /// asked for that, and commits it.
    pub(crate) async fn write<O: Operation>(self: &Arc<Self>, operation: O) -> Result<O::Output> {
        self.in_task(operation, Use::Transaction).await
    }

    /// Runs an operation that is a single statement.
    #[cfg_attr(
        not(any(feature = "postgres", all(test, feature = "sqlite"))),
        expect(dead_code, reason = "only PostgreSQL does so much in one")
    )]
    pub(crate) async fn once<O: Operation>(self: &Arc<Self>, operation: O) -> Result<O::Output> {
        // Elsewhere a statement outside a transaction would obey the session's defaults.
        let alone = self.facts.lone_statements;
        self.in_task(operation, if alone { Use::Statement } else { Use::Transaction }).await
    }

    /// Runs an operation that only reads.
    pub(crate) async fn read<O: Operation>(self: &Arc<Self>, operation: O) -> Result<O::Output> {
        // Behind a proxy statements that belong together need a transaction to stay together.
        let proxy = self.options.transaction_pooling;
        self.in_task(operation, if proxy { Use::Transaction } else { Use::Reading }).await
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
    async fn run<O: Operation>(&self, operation: &O, usage: Use) -> Result<O::Output> {
        let deadline = Instant::now() + self.options.statement_timeout;
        let mut tries = 1;
        loop {
            let mut stage = Stage::Waiting;
            let failure = match self.attempt(operation, usage, deadline, &mut stage).await {
                Ok(output) => return Ok(output),
                Err(failure) => failure,
            };
            let stale = stage == Stage::Harmless && failure.is_lost();
            let again = tries < TRIES && Instant::now() < deadline;
            if !(again && (stale || failure.is_conflict())) {
                let unknown = stage == Stage::Deciding && failure.is_lost();
                let effect = if unknown { Effect::Unknown } else { Effect::NotApplied };
                return Err(failure.into_error(O::NAME, effect));
            }
            if !stale {
                tokio::time::sleep(pause(tries)).await;
            }
            tries += 1;
        }
    }

    async fn attempt<O: Operation>(
        &self,
        operation: &O,
        usage: Use,
        deadline: Instant,
        stage: &mut Stage,
    ) -> Result<O::Output, Failure> {
        let taking = timeout_at(deadline, self.pool.take(usage));
        let mut taken = taking.await.unwrap_or(Err(Failure::Late))?;
        let running = timeout_at(deadline, self.run_on(&mut taken, operation, usage, stage));
        let result = running.await.unwrap_or(Err(Failure::Late));
        if let Err(failure) = &result {
            taken.recover(failure.is_lost()).await;
        }
        result
    }

    async fn run_on<O: Operation>(
        &self,
        taken: &mut Taken,
        operation: &O,
        usage: Use,
        stage: &mut Stage,
    ) -> Result<O::Output, Failure> {
        *stage = Stage::Harmless;
        if usage != Use::Transaction {
            if usage == Use::Statement {
                *stage = Stage::Deciding;
            }
            return operation.run(self, &mut taken.conn()).await;
        }
        let mut tx = taken.begin().await?;
        *stage = Stage::Uncommitted;
        match operation.run(self, &mut tx.conn()).await {
            Ok(output) => {
                *stage = Stage::Deciding;
                tx.commit().await?;
                Ok(output)
            }
            Err(failure) if failure.is_lost() => Err(failure),
            Err(failure) => {
                // So that its locks are gone when the caller hears of it.
                tx.roll_back().await;
                Err(failure)
            }
        }
    }
}

/// What is known of an operation that ended in the middle.
fn effect(usage: Use) -> Effect {
    if usage == Use::Reading { Effect::NotApplied } else { Effect::Unknown }
}

/// Rivals that wait for different times do not meet again.
fn pause(tries: u32) -> Duration {
    Duration::from_micros(fastrand::u64(..1000 << tries.min(6)))
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use std::future::{pending, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    use rheo_core::{Error, ErrorKind};
    use sqlx::Connection;

    use super::*;
    use crate::Sql;
    use crate::db::Conn;

    /// What becomes of an operation after its statement.
    enum End {
        Well,
        Refused,
        Never,
        /// Well, after these failures.
        After(Mutex<Vec<sqlx::Error>>),
    }

    /// One statement, which answers a number.
    struct Step(&'static str, End);

    impl Operation for Step {
        const NAME: &'static str = "step";
        type Output = i64;

        async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<i64, Failure> {
            let row = conn.row(&store.statements.adapt(self.0), Vec::new()).await?;
            match &self.1 {
                End::Well => {}
                End::Refused => return Err(Error::invalid("test", "refused").into()),
                End::Never => pending().await,
                End::After(failures) => {
                    if let Some(failure) = failures.lock().unwrap().pop() {
                        return Err(failure.into());
                    }
                }
            }
            row.map_or(Ok(0), |row| row.int(0))
        }
    }

    const PUT: &str = "INSERT INTO {p}schema (version) VALUES (9)";
    const FILL: &str = "INSERT INTO {p}streams (name, partitions) VALUES (randomblob(1000000), 1)";
    const COUNT: &str = "SELECT COUNT(*) FROM {p}schema WHERE version = 9";

    async fn store(options: Options) -> Arc<Store> {
        let sql = Sql::connect_with("sqlite::memory:", options).await.unwrap();
        sql.store.prepare().await.unwrap();
        Arc::clone(&sql.store)
    }

    async fn count(store: &Arc<Store>) -> i64 {
        store.read(Step(COUNT, End::Well)).await.unwrap()
    }

    #[tokio::test]
    async fn what_failed_left_nothing_behind() {
        let store = store(Options::default()).await;
        let error = store.write(Step(PUT, End::Refused)).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, "step"));
        assert_eq!(count(&store).await, 0);
        store.write(Step(PUT, End::Well)).await.unwrap();
        assert_eq!(count(&store).await, 1);
    }

    #[tokio::test]
    async fn a_dropped_future_cuts_nothing_short() {
        let store = store(Options::default()).await;
        {
            let mut write = pin!(store.write(Step(PUT, End::Well)));
            poll_fn(|context| Poll::Ready(write.as_mut().poll(context).is_pending())).await;
        }
        // Writers stand in line.
        assert_eq!(store.write(Step(COUNT, End::Well)).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn what_takes_too_long_is_undone() {
        let store = store(Options::default().statement_timeout(Duration::from_millis(50))).await;
        let error = store.write(Step(PUT, End::Never)).await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::NotApplied));
        let error = store.once(Step(COUNT, End::Never)).await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown));
        assert_eq!(count(&store).await, 0);
    }

    #[tokio::test]
    async fn a_full_disk_is_told_and_the_connection_stays_fit() {
        let store = store(Options::default()).await;
        store.write(Step("PRAGMA max_page_count = 100", End::Well)).await.unwrap();
        for _ in 0..2 {
            let error = store.write(Step(FILL, End::Well)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.context().contains("disk is full"), "{error}");
        }
        store.write(Step(PUT, End::Well)).await.unwrap();
        assert_eq!(count(&store).await, 1);
    }

    #[tokio::test]
    async fn conflicts_are_tried_again() {
        let store = store(Options::default()).await;
        let failures = vec![busy().await, busy().await];
        store.write(Step(PUT, End::After(Mutex::new(failures)))).await.unwrap();
        assert_eq!(count(&store).await, 1);
    }

    /// What SQLite says where somebody else writes.
    async fn busy() -> sqlx::Error {
        let file = std::env::temp_dir().join(format!("rheo-busy-{}.db", std::process::id()));
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(&file)
            .create_if_missing(true)
            .busy_timeout(Duration::ZERO);
        let mut first = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        let mut second = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        let _writing = first.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let error = second.begin_with("BEGIN IMMEDIATE").await.unwrap_err();
        let _ = std::fs::remove_file(file);
        error
    }
}
