//! Creating, listing and deleting streams and groups.

use super::{MAX_PARTITIONS, Rheo};
use crate::backend::{CreateGroup, Reset, Seek, StreamRef};
use crate::{
    Error, ErrorKind, GroupName, GroupOptions, GroupSettings, Guarantee, Result, Start, StreamName,
};

/// Whether an operation that destroys something is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confirm {
    /// It is not confirmed, and is refused.
    #[default]
    No,
    /// It is meant.
    Yes,
}

impl Rheo {
    /// Creates a stream of 1 to 1024 partitions.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `AlreadyExists` where the name is taken,
    /// `Unsupported` where the backend has streams of one partition only.
    pub async fn create_stream(&self, stream: &str, partitions: u32) -> Result<()> {
        const OPERATION: &str = "create_stream";
        if partitions == 0 || partitions > MAX_PARTITIONS {
            let context =
                format!("a stream has 1 to {MAX_PARTITIONS} partitions, not {partitions}");
            return Err(Error::invalid(OPERATION, context));
        }
        if partitions > 1 {
            self.need(OPERATION, Guarantee::Partitions)?;
        }
        let name = StreamName::new(stream).map_err(|error| error.in_operation(OPERATION))?;
        let stream = StreamRef { name, partitions };
        self.write_call(OPERATION, || self.store().create_stream(&stream)).await?;
        self.remember(&stream);
        Ok(())
    }

    /// Deletes a stream with all its events and groups. Their leases are stale
    /// from then on.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `ConfirmRequired` where it is not confirmed.
    pub async fn delete_stream(&self, stream: &str, confirm: Confirm) -> Result<()> {
        const OPERATION: &str = "delete_stream";
        let name = StreamName::new(stream).map_err(|error| error.in_operation(OPERATION))?;
        confirmed(OPERATION, confirm)?;
        let result = self.write_call(OPERATION, || self.store().delete_stream(&name)).await;
        self.forget_stream(&name);
        result
    }

    /// How many partitions a stream has.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn partitions(&self, stream: &str) -> Result<u32> {
        const OPERATION: &str = "partitions";
        let name = StreamName::new(stream).map_err(|error| error.in_operation(OPERATION))?;
        self.read_call(OPERATION, || self.store().partitions(&name)).await
    }

    /// All streams, by name.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        self.read_call("list_streams", || self.store().list_streams()).await
    }

    /// Creates a group on a stream.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `AlreadyExists` where the name is taken,
    /// `Unsupported` where it is to be ordered and the backend cannot.
    pub async fn create_group(
        &self,
        stream: &str,
        group: &str,
        options: GroupOptions,
    ) -> Result<()> {
        const OPERATION: &str = "create_group";
        let max_attempts = options.max_attempts.unwrap_or(self.settings().max_attempts);
        if max_attempts == 0 {
            return Err(Error::invalid(OPERATION, "max_attempts is at least 1"));
        }
        if options.ordered {
            self.need(OPERATION, Guarantee::OrderedDelivery)?;
        }
        let settings = GroupSettings { max_attempts, ordered: options.ordered };
        let mut known = self.known(OPERATION, stream).await?;
        loop {
            let group = known.group(OPERATION, group)?;
            let mut result = match self.resolve(OPERATION, &known.stream, &options.start).await {
                Ok(start) => {
                    let request = CreateGroup { group, settings, start };
                    self.write_call(OPERATION, || self.store().create_group(&request)).await
                }
                Err(error) => Err(error),
            };
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// Deletes a group. Its leases are stale from then on.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `ConfirmRequired` where it is not confirmed.
    pub async fn delete_group(&self, stream: &str, group: &str, confirm: Confirm) -> Result<()> {
        const OPERATION: &str = "delete_group";
        confirmed(OPERATION, confirm)?;
        let mut known = self.known(OPERATION, stream).await?;
        loop {
            let group = known.group(OPERATION, group)?;
            let mut result = self.write_call(OPERATION, || self.store().delete_group(&group)).await;
            self.inner.settles.remove_group(&group);
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// All groups of a stream, by name.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn list_groups(&self, stream: &str) -> Result<Vec<GroupName>> {
        const OPERATION: &str = "list_groups";
        let mut known = self.known(OPERATION, stream).await?;
        loop {
            let stream = &known.stream;
            let mut result = self.read_call(OPERATION, || self.store().list_groups(stream)).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// Starts a group anew: forgets its leases, attempts, dead letters and
    /// progress, and keeps its settings. The log is untouched.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `ConfirmRequired` where it is not confirmed,
    /// `Unsupported` where the backend has no replay.
    pub async fn reset_group(
        &self,
        stream: &str,
        group: &str,
        confirm: Confirm,
        start: Start,
    ) -> Result<()> {
        const OPERATION: &str = "reset_group";
        confirmed(OPERATION, confirm)?;
        self.need(OPERATION, Guarantee::Replay)?;
        let mut known = self.known(OPERATION, stream).await?;
        loop {
            let group = known.group(OPERATION, group)?;
            let mut result = match self.resolve(OPERATION, &known.stream, &start).await {
                Ok(start) => {
                    let request = Reset { group, start };
                    self.write_call(OPERATION, || self.store().reset(&request)).await
                }
                Err(error) => Err(error),
            };
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    /// For each partition, the sequence after which to begin.
    async fn resolve(
        &self,
        operation: &'static str,
        stream: &StreamRef,
        start: &Start,
    ) -> Result<Vec<u64>> {
        let count = stream.partitions as usize;
        let seek = |place| self.read_call(operation, move || self.store().seek(stream, place));
        match start {
            Start::Beginning => Ok(vec![0; count]),
            Start::AfterSequence(sequence) => Ok(vec![*sequence; count]),
            Start::AfterSequences(sequences) if sequences.len() == count => Ok(sequences.clone()),
            Start::AfterSequences(sequences) => {
                let given = sequences.len();
                let context =
                    format!("give one sequence for each of {count} partitions, not {given}");
                Err(Error::invalid(operation, context))
            }
            Start::End => seek(Seek::End).await,
            Start::At(instant) => seek(Seek::At(*instant)).await,
        }
    }

    /// Refuses what the backend does not claim.
    pub(super) fn need(&self, operation: &'static str, guarantee: Guarantee) -> Result<()> {
        if self.inner.capabilities.guarantees.get(guarantee) {
            return Ok(());
        }
        let context = format!("this backend does not promise {guarantee}");
        Err(Error::new(ErrorKind::Unsupported, operation, context))
    }
}

fn confirmed(operation: &'static str, confirm: Confirm) -> Result<()> {
    match confirm {
        Confirm::Yes => Ok(()),
        Confirm::No => {
            let context = "it cannot be undone: pass Confirm::Yes if it is meant";
            Err(Error::new(ErrorKind::ConfirmRequired, operation, context))
        }
    }
}
