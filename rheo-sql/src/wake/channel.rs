//! [`Channel`]: signals between processes, by PostgreSQL's LISTEN and NOTIFY.
//!
//! They are hints. One that is lost costs a poll interval and nothing else.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rheo_core::StreamName;
use rheo_core::adapter::Bells;
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// One for telling and one for hearing.
const CONNECTIONS: u32 = 2;

/// How long signals gather after some were sent, so that a stream of appends
/// does not become a stream of NOTIFYs.
const GATHERING: Duration = Duration::from_millis(2);

/// After so long a silence the listening connection is tried out.
const SILENCE: Duration = Duration::from_secs(30);

/// The first pause before a broken connection is made anew.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The longest name PostgreSQL has for a channel.
const MAX_NAME_BYTES: usize = 63;

/// Tells other processes about streams, and hears what they tell.
#[derive(Debug)]
pub(super) struct Channel {
    line: Arc<Line>,
    /// Hears the others, from the first wait on.
    hearing: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Line {
    /// Apart from the instance's own, which others may fill.
    pool: PgPool,
    name: String,
    bells: Arc<Bells>,
    outbox: Mutex<Outbox>,
}

#[derive(Debug, Default)]
struct Outbox {
    streams: BTreeSet<StreamName>,
    sending: Option<JoinHandle<()>>,
}

impl Channel {
    /// Connects as `pool` does, once there is something to tell or to hear.
    pub(super) fn new(pool: &PgPool, prefix: &str, bells: Arc<Bells>) -> Self {
        let options = PgPoolOptions::new().max_connections(CONNECTIONS).max_lifetime(None);
        let line = Line {
            pool: options.connect_lazy_with((*pool.connect_options()).clone()),
            name: name(prefix),
            bells,
            outbox: Mutex::default(),
        };
        Self { line: Arc::new(line), hearing: Mutex::default() }
    }

    /// Tells others about a stream, soon: one statement is on its way at a
    /// time, and takes along what has gathered meanwhile. It is no part of
    /// anybody's transaction, since NOTIFY makes commits wait for each other.
    pub(super) fn tell(&self, stream: &StreamName) {
        let mut outbox = lock(&self.line.outbox);
        outbox.streams.insert(stream.clone());
        if outbox.sending.as_ref().is_none_or(JoinHandle::is_finished) {
            outbox.sending = Some(tokio::spawn(send(Arc::clone(&self.line))));
        }
    }

    /// Makes sure that this process hears the others.
    pub(super) fn listen(&self) {
        let mut hearing = lock(&self.hearing);
        if hearing.as_ref().is_none_or(JoinHandle::is_finished) {
            *hearing = Some(tokio::spawn(hear_always(Arc::clone(&self.line))));
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Some(hearing) = lock(&self.hearing).take() {
            hearing.abort();
        }
    }
}

/// Two prefixes that begin alike may share a channel, and hear too much.
fn name(prefix: &str) -> String {
    let mut name = format!("{prefix}waking");
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
    name
}

async fn send(line: Arc<Line>) {
    while let Some(streams) = line.gathered() {
        let names: Vec<String> = streams.iter().map(|name| name.as_str().into()).collect();
        let told = sqlx::query("SELECT pg_notify($1, stream) FROM unnest($2::text[]) AS stream")
            .bind(&line.name)
            .bind(names)
            .execute(&line.pool)
            .await;
        if let Err(error) = told {
            tracing::debug!(%error, "others were not told of new work, and will poll");
        }
        sleep(GATHERING).await;
    }
}

async fn hear_always(line: Arc<Line>) {
    let mut pause = FIRST_PAUSE;
    loop {
        if let Err(error) = line.hear(&mut pause).await {
            tracing::debug!(%error, "the listening connection is broken: polling until it is back");
        }
        sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl Line {
    /// What is to be told, if anything; where nothing is, sending has ended.
    fn gathered(&self) -> Option<BTreeSet<StreamName>> {
        let mut outbox = lock(&self.outbox);
        if outbox.streams.is_empty() {
            outbox.sending = None;
            return None;
        }
        Some(take(&mut outbox.streams))
    }

    /// Rings for what others tell, until the connection breaks.
    async fn hear(&self, pause: &mut Duration) -> sqlx::Result<()> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.eager_reconnect(false);
        listener.listen(&self.name).await?;
        *pause = FIRST_PAUSE;
        // What was told before went unheard.
        self.bells.ring_all();
        loop {
            match timeout(SILENCE, listener.try_recv()).await {
                Ok(told) => match told? {
                    Some(told) => self.bells.ring(told.payload()),
                    None => return Ok(()),
                },
                Err(_) => {
                    let answer = timeout(SILENCE, sqlx::query("SELECT 1").execute(&mut listener));
                    answer.await.map_err(|_| sqlx::Error::PoolTimedOut)??;
                }
            }
        }
    }
}

/// What these locks guard is whole after each statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_too_long() {
        assert_eq!(name("rheo_"), "rheo_waking");
        assert_eq!(name(&"é".repeat(40)).len(), 62);
    }
}
