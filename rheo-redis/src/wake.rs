//! Waiting for work, and being woken when there is some.

mod line;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Client, Cmd, Value};
use rheo_core::adapter::{Bells, Listener, wait_for_work};
use rheo_core::backend::Wait;
use rheo_core::{ErrorKind, Result, StreamName};
use tokio::task::JoinHandle;

use crate::Store;
use crate::call::{About, instant};
use crate::error::corrupt;

const OPERATION: &str = "wait";

/// How an instance learns that there may be work.
pub(crate) struct Waking {
    bells: Arc<Bells>,
    /// Where it can be heard: one server, or any node of a cluster. Nowhere
    /// where waking is off.
    nodes: Vec<Client>,
    /// Hears the server, from the first wait on.
    hearing: Mutex<Option<JoinHandle<()>>>,
}

impl Waking {
    /// Connects once somebody waits, and on a connection of its own.
    pub(crate) fn new(nodes: Vec<Client>) -> Self {
        Self { bells: Arc::default(), nodes, hearing: Mutex::default() }
    }

    fn listen(&self, channel: &str) -> Listener {
        if self.nodes.is_empty() {
            return Listener::deaf();
        }
        let mut hearing = self.hearing.lock().unwrap_or_else(PoisonError::into_inner);
        if hearing.as_ref().is_none_or(JoinHandle::is_finished) {
            let heard = line::hear_always(self.nodes.clone(), Arc::clone(&self.bells));
            *hearing = Some(tokio::spawn(heard));
        }
        self.bells.listen(channel)
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        let hearing = self.hearing.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(hearing) = hearing.take() {
            hearing.abort();
        }
    }
}

impl fmt::Debug for Waking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The nodes know passwords.
        f.debug_struct("Waking").field("bells", &self.bells).finish_non_exhaustive()
    }
}

impl Store {
    /// Where functions make known that there may be work in the stream: empty
    /// where waking is off, and nobody is told.
    pub(crate) fn channel(&self, stream: &StreamName) -> String {
        if self.options.wake { self.keys.channel(stream) } else { String::new() }
    }

    /// Returns when the group may have work, or after the timeout.
    pub(crate) async fn wait(&self, request: &Wait) -> Result<()> {
        let listener = self.waking.listen(&self.keys.channel(&request.group.stream.name));
        let looks = self.looks(request);
        let look = || self.next_work(request, &looks);
        wait_for_work(request, listener, self.options.poll, look).await
    }

    /// The commands that ask each partition when it has work.
    fn looks(&self, request: &Wait) -> Vec<Cmd> {
        let look = |partition| {
            let call = self.look_at(&request.group, partition, "peek");
            call.arg(instant(request.now)).command().clone()
        };
        (0..request.group.stream.partitions).map(look).collect()
    }

    /// In how long the group has work, as far as is known now.
    async fn next_work(&self, request: &Wait, looks: &[Cmd]) -> Result<Option<Duration>> {
        let about = About::from(&request.group);
        let answers = match self.read(OPERATION, &about, looks).await {
            Err(error)
                if error.kind() == ErrorKind::GroupNotFound
                    && self.finish_if_pending(OPERATION, &request.group).await? =>
            {
                self.read(OPERATION, &about, looks).await?
            }
            answers => answers?,
        };
        let times: Vec<_> = answers.into_iter().map(due_in).collect::<Result<_>>()?;
        Ok(times.into_iter().flatten().min())
    }
}

/// What one partition answers: in how many microseconds it has work, or
/// nothing where none comes by itself.
fn due_in(answer: Value) -> Result<Option<Duration>> {
    match answer {
        Value::Nil => Ok(None),
        Value::Int(micros @ 0..) => Ok(Some(Duration::from_micros(micros.cast_unsigned()))),
        _ => Err(corrupt(OPERATION, "when work is due is no number of microseconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_a_time_or_that_there_is_none() {
        assert_eq!(due_in(Value::Nil).unwrap(), None);
        assert_eq!(due_in(Value::Int(0)).unwrap(), Some(Duration::ZERO));
        assert_eq!(due_in(Value::Int(25)).unwrap(), Some(Duration::from_micros(25)));
        for strange in [Value::Int(-1), Value::Okay] {
            assert_eq!(due_in(strange).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
