//! What the instance remembers of streams: how many partitions they have.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Rheo;
use crate::backend::{GroupRef, StreamRef};
use crate::{ErrorKind, GroupName, Result, StreamName};

#[derive(Debug, Default)]
pub(super) struct KnownStreams(Mutex<HashMap<StreamName, u32>>);

impl KnownStreams {
    fn get(&self, name: &str) -> Option<StreamRef> {
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, &partitions) = streams.get_key_value(name)?;
        let name = name.clone();
        Some(StreamRef { name, partitions })
    }

    fn insert(&self, stream: &StreamRef) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.insert(stream.name.clone(), stream.partitions);
    }

    fn remove(&self, name: &StreamName) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.remove(name);
    }
}

/// A stream as an operation begins to use it.
pub(super) struct Known {
    pub(super) stream: StreamRef,
    /// Whether it comes from memory, and may have been deleted or created anew since.
    remembered: bool,
}

impl Known {
    pub(super) fn group(&self, operation: &'static str, group: &str) -> Result<GroupRef> {
        let name = GroupName::new(group).map_err(|error| error.in_operation(operation))?;
        let stream = self.stream.clone();
        Ok(GroupRef { stream, name })
    }
}

impl Rheo {
    /// Finds a stream, in memory or in the store.
    pub(super) async fn known(&self, operation: &'static str, name: &str) -> Result<Known> {
        if let Some(stream) = self.inner.streams.get(name) {
            return Ok(Known { stream, remembered: true });
        }
        let name = StreamName::new(name).map_err(|error| error.in_operation(operation))?;
        self.look_up(operation, name).await
    }

    async fn look_up(&self, operation: &'static str, name: StreamName) -> Result<Known> {
        let partitions = self.read_call(operation, || self.store().partitions(&name)).await?;
        let stream = StreamRef { name, partitions };
        self.inner.streams.insert(&stream);
        Ok(Known { stream, remembered: false })
    }

    /// Whether `result` is only due to a stream that was created anew since it
    /// was remembered. Then `known` is the stream as it is now, and the
    /// operation is to be tried once more. Where the store does not answer
    /// that, nobody knows whether the stream is missing, and `result` says so.
    pub(super) async fn outdated<T>(&self, known: &mut Known, result: &mut Result<T>) -> bool {
        let missing = matches!(result, Err(error) if error.kind() == ErrorKind::StreamNotFound);
        if !missing {
            return false;
        }
        self.forget_stream(&known.stream.name);
        if !known.remembered {
            return false;
        }
        match self.look_up("partitions", known.stream.name.clone()).await {
            Ok(found) => {
                *known = found;
                true
            }
            Err(error) => {
                if error.kind() != ErrorKind::StreamNotFound {
                    *result = Err(error);
                }
                false
            }
        }
    }

    pub(super) fn remember(&self, stream: &StreamRef) {
        self.inner.streams.insert(stream);
    }

    /// Forgets how many partitions a stream has, so that the next use asks the
    /// store again.
    ///
    /// Operations see to that themselves. It is for those who take a resolved
    /// request to the store: they call it where the store answers
    /// `StreamNotFound`, since the stream may have been created anew with
    /// another number of partitions.
    pub fn forget_stream(&self, stream: &StreamName) {
        self.inner.streams.remove(stream);
        self.inner.appends.remove(stream);
        self.inner.settles.remove(stream);
    }
}
