//! The connection on which an instance hears of work: by SUBSCRIBE, to the
//! channels of those streams on which somebody waits.
//!
//! What is heard are hints. One that is lost costs a poll interval and nothing
//! else.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use redis::aio::PubSubSink;
use redis::{Client, RedisResult, Value};
use rheo_core::adapter::Bells;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

/// How often the connection is tried out, and forgets the channels to which
/// nobody listens any more.
const ROUND: Duration = Duration::from_secs(30);

/// How long the server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The first pause before a broken connection is made anew.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Rings for what the server tells, on one node or, where that breaks, on the
/// next: each tells what is published on any.
pub(super) async fn hear_always(nodes: Vec<Client>, bells: Arc<Bells>) {
    let mut pause = FIRST_PAUSE;
    for node in nodes.iter().cycle() {
        if let Err(error) = hear(node, &bells, &mut pause).await {
            tracing::debug!(%error, "the waking connection is broken: polling until it is back");
        }
        sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Rings until the connection breaks.
async fn hear(node: &Client, bells: &Bells, pause: &mut Duration) -> RedisResult<()> {
    let (sink, mut told) = patiently(node.get_async_pubsub()).await?.split();
    let mut hearing = Hearing { sink, bells, channels: BTreeSet::new() };
    let mut round = interval_at(Instant::now() + ROUND, ROUND);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    hearing.follow().await?;
    *pause = FIRST_PAUSE;
    loop {
        tokio::select! {
            message = told.next() => match message {
                Some(message) => bells.ring(message.get_channel_name()),
                None => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
            },
            () = bells.another() => hearing.follow().await?,
            _ = round.tick() => {
                bells.tidy();
                hearing.follow().await?;
                patiently(hearing.sink.ping::<Value>()).await?;
            }
        }
    }
}

/// A connection, and the channels that are heard on it.
struct Hearing<'a> {
    sink: PubSubSink,
    bells: &'a Bells,
    channels: BTreeSet<String>,
}

impl Hearing<'_> {
    /// Hears the channels that have a bell, and no others.
    async fn follow(&mut self) -> RedisResult<()> {
        let wanted = self.bells.names();
        let unheard: Vec<_> = wanted.difference(&self.channels).collect();
        if !unheard.is_empty() {
            patiently(self.sink.subscribe(&unheard)).await?;
        }
        let unwanted: Vec<_> = self.channels.difference(&wanted).collect();
        if !unwanted.is_empty() {
            patiently(self.sink.unsubscribe(&unwanted)).await?;
        }
        for channel in unheard {
            // What was told there before went unheard.
            self.bells.ring(channel);
        }
        self.channels = wanted;
        Ok(())
    }
}

async fn patiently<T>(answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    match timeout(PATIENCE, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}
