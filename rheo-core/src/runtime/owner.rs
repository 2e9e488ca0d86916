//! [`Owner`]: the right to be the one consumer of a group in this instance.

use std::sync::PoisonError;

use crate::{Error, ErrorKind, GroupName, Result, Rheo, StreamName};

/// Gives the right back when dropped.
pub(super) struct Owner {
    rheo: Rheo,
    group: (StreamName, GroupName),
}

impl Owner {
    /// # Errors
    /// `AlreadyRunning` where another has it.
    pub(super) fn acquire(
        operation: &'static str,
        rheo: &Rheo,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<Self> {
        let key = (stream.clone(), group.clone());
        let mut running = rheo.running().lock().unwrap_or_else(PoisonError::into_inner);
        if !running.insert(key.clone()) {
            let context = format!(
                "this instance consumes stream {stream:?} for group {group:?} already; \
                 raise its concurrency, or run more processes"
            );
            return Err(Error::new(ErrorKind::AlreadyRunning, operation, context));
        }
        Ok(Self { rheo: rheo.clone(), group: key })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut running = self.rheo.running().lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.group);
    }
}
