//! Looking at groups: lag, counts, dead letters, and waiting for work.

use std::time::Duration;

use super::{MAX_BATCH, Rheo};
use crate::backend::{DeadLetters, Wait};
use crate::{DeadLetter, Effect, Error, GroupInfo, PartitionProgress, Position, Result};

/// How far a group is behind.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Lag {
    /// The progress in each partition, by its number.
    pub partitions: Vec<PartitionProgress>,
}

impl Lag {
    /// The events that the group is behind, over all partitions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.partitions.iter().map(PartitionProgress::lag).sum()
    }
}

impl Rheo {
    /// How far a group is behind: the distance from its frontier to the last
    /// sequence, in each partition.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn lag(&self, stream: &str, group: &str) -> Result<Lag> {
        let info = self.info("lag", stream, group).await?;
        Ok(Lag { partitions: info.partitions })
    }

    /// A group's settings and progress. Looking settles nothing.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn group_info(&self, stream: &str, group: &str) -> Result<GroupInfo> {
        self.info("group_info", stream, group).await
    }

    async fn info(&self, operation: &'static str, stream: &str, group: &str) -> Result<GroupInfo> {
        let mut known = self.known(operation, stream).await?;
        loop {
            let group = known.group(operation, group)?;
            let now = self.clock().judge();
            let mut result =
                self.read_call(operation, || self.store().group_info(&group, now)).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// At most `limit` (1 to 10 000) dead letters, the oldest first, from the
    /// one after `after`.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `CursorNotFound` where `after` is not, or no
    /// longer, in the list.
    pub async fn dead_letters(
        &self,
        stream: &str,
        group: &str,
        limit: usize,
        after: Option<Position>,
    ) -> Result<Vec<DeadLetter>> {
        const OPERATION: &str = "dead_letters";
        check_limit(OPERATION, limit)?;
        let mut known = self.known(OPERATION, stream).await?;
        loop {
            let group = known.group(OPERATION, group)?;
            let request = DeadLetters { group, after, limit };
            let mut result =
                self.read_call(OPERATION, || self.store().dead_letters(&request)).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// Returns when there may be work for the group, or after `timeout` of
    /// real time. A hint: it can come early or late, and a lost one does no harm.
    ///
    /// # Errors
    /// See [`Rheo`].
    ///
    /// # Cancellation
    /// Safe: nothing but the waiting is lost.
    pub async fn wait(&self, stream: &str, group: &str, timeout: Duration) -> Result<()> {
        let mut known = self.known("wait", stream).await?;
        loop {
            let request =
                Wait { group: known.group("wait", group)?, timeout, now: self.clock().judge() };
            let mut result = self.wait_now(&request).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// A wait lasts as long as it was asked to; a store that is silent for the
    /// operation timeout beyond that is out of reach.
    async fn wait_now(&self, request: &Wait) -> Result<()> {
        let silent_after = request.timeout.saturating_add(self.settings().timeout);
        let waiting = tokio::time::timeout(silent_after, self.store().wait(request));
        let answer = async {
            waiting.await.unwrap_or_else(|_| Err(self.silence("wait", Effect::NotApplied)))
        };
        self.observed("wait", answer).await
    }
}

pub(crate) fn check_limit(operation: &'static str, limit: usize) -> Result<()> {
    if (1..=MAX_BATCH).contains(&limit) {
        return Ok(());
    }
    let context = format!("the limit is 1 to {MAX_BATCH}, not {limit}");
    Err(Error::invalid(operation, context))
}
