//! Waiting for work, and waking those who wait.

mod bell;
#[cfg(feature = "postgres")]
mod channel;

use std::sync::Arc;
use std::time::Duration;

use rheo_core::backend::{GroupRef, Now, Wait};
use rheo_core::{Result, StreamName};
use tokio::time::{Instant, timeout};

pub(crate) use bell::Bells;
use bell::Listener;
#[cfg(feature = "postgres")]
use channel::Channel;

use crate::Store;
use crate::db::{Conn, args};
use crate::error::{Failure, group_not_found, stream_not_found};
use crate::operation::Operation;
use crate::state::NEVER;

/// How an instance tells, and learns, that there may be work.
#[derive(Debug)]
pub(crate) struct Waking {
    bells: Arc<Bells>,
    /// How long a look at the store is trusted where nobody rings.
    poll: Duration,
    #[cfg(feature = "postgres")]
    channel: Option<Channel>,
}

impl Waking {
    /// Rings these bells, and looks again after each `poll`.
    pub(crate) fn new(bells: Arc<Bells>, poll: Duration) -> Self {
        Self {
            bells,
            poll,
            #[cfg(feature = "postgres")]
            channel: None,
        }
    }

    /// The same, and other processes are told and heard through the database.
    #[cfg(feature = "postgres")]
    pub(crate) fn with_channel(mut self, pool: &sqlx::PgPool, prefix: &str) -> Self {
        self.channel = Some(Channel::new(pool, prefix, Arc::clone(&self.bells)));
        self
    }

    fn ring(&self, stream: &StreamName) {
        self.bells.ring(stream.as_str());
        #[cfg(feature = "postgres")]
        if let Some(channel) = &self.channel {
            channel.tell(stream);
        }
    }

    fn listen(&self, stream: &StreamName) -> Listener {
        #[cfg(feature = "postgres")]
        if let Some(channel) = &self.channel {
            channel.listen();
        }
        self.bells.listen(stream)
    }
}

/// How long a wait lets pass before it looks at the store. A consumer claims
/// while it begins to wait: where that finds something, the look is saved.
const BREATH: Duration = Duration::from_millis(10);

impl Store {
    /// Tells those who wait on a stream that there may be work. To be called
    /// once what changed is committed.
    pub(crate) fn ring(&self, stream: &StreamName) {
        self.waking.ring(stream);
    }

    /// Runs an operation after which those who wait on the stream look again.
    pub(crate) async fn write_and_ring<O: Operation>(
        self: &Arc<Self>,
        operation: O,
        stream: &StreamName,
    ) -> Result<O::Output> {
        let output = self.write(operation).await?;
        self.ring(stream);
        Ok(output)
    }

    /// Returns when the group may have work, or after the timeout. It looks at
    /// least once, so that a missing stream or group is always told.
    pub(crate) async fn wait(self: &Arc<Self>, request: &Wait) -> Result<()> {
        let begun = Instant::now();
        let mut listener = self.waking.listen(&request.group.stream.name);
        let mut pause = BREATH.min(request.timeout);
        loop {
            // Whether it was rung or not: only the store knows.
            let _ = timeout(pause, listener.rung()).await;
            let next = self.read(FindWork(request.clone())).await?;
            let left = request.timeout.saturating_sub(begun.elapsed());
            match next {
                Some(due_in) if due_in.is_zero() => return Ok(()),
                _ if left.is_zero() => return Ok(()),
                // Only the store's own time passes by itself.
                Some(due_in) if request.now == Now::Store => {
                    pause = due_in.min(self.waking.poll).min(left);
                }
                _ => pause = self.waking.poll.min(left),
            }
        }
    }
}

/// In how long will the group of this request have work, as far as is known now?
struct FindWork(Wait);

impl Operation for FindWork {
    const NAME: &'static str = "wait";
    type Output = Option<Duration>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Self::Output, Failure> {
        let Wait { group, now, .. } = &self.0;
        let GroupRef { stream, name } = group;
        let args = args![stream.name.as_str(), stream.partitions, name.as_str(), store.now(*now)];
        let found = conn.row(&store.sql("next_work"), args).await?;
        let found = found.ok_or_else(|| stream_not_found(Self::NAME, &stream.name))?;
        if found.opt_int(0)?.is_none() {
            return Err(group_not_found(Self::NAME, group).into());
        }
        let (now, due) = (found.int(1)?, found.int(2)?);
        let due_in = || Duration::from_micros(u64::try_from(due.saturating_sub(now)).unwrap_or(0));
        Ok((due != NEVER).then(due_in))
    }
}
