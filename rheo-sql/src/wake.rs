//! Waiting for work, and waking those who wait.

#[cfg(feature = "postgres")]
mod channel;

use std::sync::Arc;
use std::time::Duration;

use rheo_core::adapter::{Bells, Listener, wait_for_work};
use rheo_core::backend::{GroupRef, Wait};
use rheo_core::{Result, StreamName};

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
        // Those whom it woke before may wait for other streams now.
        self.bells.tidy();
        self.bells.listen(stream.as_str())
    }
}

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

    /// Returns when the group may have work, or after the timeout.
    pub(crate) async fn wait(self: &Arc<Self>, request: &Wait) -> Result<()> {
        let listener = self.waking.listen(&request.group.stream.name);
        let look = || self.read(FindWork(request.clone()));
        wait_for_work(request, listener, self.waking.poll, look).await
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
