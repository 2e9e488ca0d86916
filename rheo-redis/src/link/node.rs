//! [`Node`]: one server, and the connection to it that all operations share.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Value, cmd};
use tokio::time::{Instant, timeout};

use super::batch::{Answer, Batch, answer};
use crate::config::Options;
use crate::connect::address::Place;
use crate::error::{Failure, is_read_only};
use crate::functions;

/// How long a connection may lie idle before it is asked whether it still lives.
const IDLE: Duration = Duration::from_secs(1);

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    connect: Duration,
    response: Duration,
}

impl Patience {
    pub(super) fn of(options: &Options) -> Self {
        Self { connect: options.connect_timeout, response: options.response_timeout }
    }
}

/// One server.
///
/// All operations share one connection: the server answers in the order in
/// which it was asked, and what nobody waits for any more is answered all the
/// same, so that a dropped future takes nobody else's answer. A connection that
/// broke, or on which an answer is late, serves no further operation; the next
/// one makes another, or fails within its time.
pub(crate) struct Node {
    place: Place,
    client: Client,
    patience: Patience,
    current: Mutex<Option<Arc<Connection>>>,
    /// When and why the last attempt to connect failed. Those who waited for
    /// the attempt share what came of it.
    attempt: tokio::sync::Mutex<Option<(Instant, Failure)>>,
}

struct Connection {
    shared: MultiplexedConnection,
    made: Instant,
    /// When it last answered, in milliseconds after it was made.
    answered: AtomicU64,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client knows the password.
        f.debug_struct("Node").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Connection {
    fn new(shared: MultiplexedConnection) -> Self {
        Self { shared, made: Instant::now(), answered: AtomicU64::new(0) }
    }

    fn age(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn is_idle(&self) -> bool {
        let idle = self.age().saturating_sub(self.answered.load(Ordering::Relaxed));
        Duration::from_millis(idle) >= IDLE
    }

    fn has_answered(&self) {
        self.answered.store(self.age(), Ordering::Relaxed);
    }

    /// Sends a batch. What is handed to a connection in the very moment in
    /// which it breaks can be lost there: neither an answer comes nor an error.
    /// So where an answer is long in coming, the connection is asked for
    /// another: a broken one refuses that at once.
    async fn send(&self, batch: &Batch<'_>) -> Result<Vec<Answer>, Failure> {
        let mut answered = pin!(self.exchange(batch));
        if let Ok(answers) = timeout(IDLE, answered.as_mut()).await {
            return answers;
        }
        let (mut shared, ping) = (self.shared.clone(), cmd("PING"));
        tokio::select! {
            biased;
            answers = answered => answers,
            Err(broken) = shared.send_packed_command(&ping) => Err(Failure::Broken(broken)),
        }
    }

    async fn exchange(&self, batch: &Batch<'_>) -> Result<Vec<Answer>, Failure> {
        let mut shared = self.shared.clone();
        match batch.lone_command() {
            Some(command) => {
                let told = shared.send_packed_command(command).await;
                Ok(vec![answer(told.map_err(Failure::Broken)?)])
            }
            None => {
                let pipeline = batch.pipeline();
                let told = shared.send_packed_commands(&pipeline, 0, pipeline.len()).await;
                batch.answers(told.map_err(Failure::Broken)?)
            }
        }
    }
}

impl Node {
    pub(crate) fn new(client: Client, place: Place, patience: Patience) -> Self {
        Self { place, client, patience, current: Mutex::default(), attempt: Default::default() }
    }

    /// Where it is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Sends a batch. Where it failed for want of the functions, nothing was
    /// done: they are loaded, and it is sent again.
    pub(crate) async fn send(&self, batch: &Batch<'_>) -> Result<Vec<Answer>, Failure> {
        let answers = self.send_once(batch).await?;
        if !batch.is_without_functions(&answers) {
            return Ok(answers);
        }
        self.load_functions().await?;
        self.send_once(batch).await
    }

    /// Gives the server the functions, unless it has them.
    pub(crate) async fn load_functions(&self) -> Result<(), Failure> {
        let mut list = cmd("FUNCTION");
        list.arg("LIST").arg("LIBRARYNAME").arg(functions::library());
        // One that is full, or whose user may not load, can still have them.
        if let Ok(Value::Array(libraries)) = self.ask(&list, false).await?
            && !libraries.is_empty()
        {
            return Ok(());
        }
        let mut load = cmd("FUNCTION");
        load.arg("LOAD").arg(functions::source());
        match self.ask(&load, true).await? {
            // Another was faster: the name is that of this very code.
            Err(error) if error.details().is_some_and(|it| it.contains("already exists")) => Ok(()),
            Err(error) => Err(Failure::Refused(error)),
            Ok(_) => Ok(()),
        }
    }

    async fn ask(&self, command: &Cmd, writes: bool) -> Result<Answer, Failure> {
        let answers = self.send_once(&Batch::step(&[command], writes)).await?;
        answers.into_iter().next().ok_or(Failure::Unserved)
    }

    async fn send_once(&self, batch: &Batch<'_>) -> Result<Vec<Answer>, Failure> {
        let (connection, is_new) = self.connection().await?;
        match self.send_on(&connection, batch).await {
            // It broke earlier, unnoticed, and reading twice does no harm.
            Err(Failure::Broken(_)) if !batch.writes && !is_new => {
                let (connection, _) = self.connection().await?;
                self.send_on(&connection, batch).await
            }
            sent => sent,
        }
    }

    async fn send_on(
        &self,
        connection: &Arc<Connection>,
        batch: &Batch<'_>,
    ) -> Result<Vec<Answer>, Failure> {
        let sent = timeout(self.patience.response, connection.send(batch)).await;
        let sent = sent.unwrap_or(Err(Failure::Late));
        match &sent {
            Err(Failure::Broken(_) | Failure::Late) => self.forget(connection),
            // Its address may lead to another server by now.
            Err(Failure::Refused(answer)) if is_read_only(answer) => self.forget(connection),
            Ok(answers) if answers.iter().flat_map(|it| it.as_ref().err()).any(is_read_only) => {
                self.forget(connection);
            }
            _ => connection.has_answered(),
        }
        sent
    }

    /// The connection that lives, and whether it was made just now.
    async fn connection(&self) -> Result<(Arc<Connection>, bool), Failure> {
        if let Some(connection) = self.current()
            && (!connection.is_idle() || self.lives(&connection).await)
        {
            return Ok((connection, false));
        }
        Ok((self.connect().await?, true))
    }

    async fn lives(&self, connection: &Arc<Connection>) -> bool {
        let ping = cmd("PING");
        let ping = [&ping];
        let batch = Batch::reads(&ping);
        let asked = connection.send(&batch);
        match timeout(self.patience.connect, asked).await {
            Ok(Ok(_)) => {
                connection.has_answered();
                true
            }
            _ => {
                self.forget(connection);
                false
            }
        }
    }

    async fn connect(&self) -> Result<Arc<Connection>, Failure> {
        let asked = Instant::now();
        let mut attempt = self.attempt.lock().await;
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        if let Some((ended, failure)) = &*attempt
            && *ended >= asked
        {
            return Err(failure.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.patience.connect))
            .set_response_timeout(None);
        match self.client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(shared) => {
                let connection = Arc::new(Connection::new(shared));
                *self.lock() = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                let failure = Failure::Unreachable(error);
                *attempt = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    fn forget(&self, connection: &Arc<Connection>) {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            *current = None;
        }
    }

    fn current(&self) -> Option<Arc<Connection>> {
        self.lock().clone()
    }

    /// What this guards is whole after each statement.
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Connection>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
