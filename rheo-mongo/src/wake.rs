//! Waiting for work, and being woken when there is some.

mod changes;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mongodb::ClientSession;
use rheo_core::adapter::{Bells, Listener, wait_for_work};
use rheo_core::backend::Wait;
use rheo_core::{Result, StreamName};
use tokio::task::JoinHandle;

use crate::Store;
use crate::collections::Collections;
use crate::error::Failure;
use crate::operation::Operation;
use crate::state::{Beside, Group, Member, NEVER};

/// How an instance learns that there may be work: what changes it itself, it
/// hears as others do.
#[derive(Debug, Default)]
pub(crate) struct Waking {
    bells: Arc<Bells>,
    /// Hears the server, from the first wait on.
    hearing: Mutex<Option<JoinHandle<()>>>,
}

impl Waking {
    fn listen(&self, collections: &Collections, stream: &StreamName) -> Listener {
        let mut hearing = self.hearing.lock().unwrap_or_else(PoisonError::into_inner);
        if hearing.as_ref().is_none_or(JoinHandle::is_finished) {
            let heard = changes::hear_always(collections.clone(), Arc::clone(&self.bells));
            *hearing = Some(tokio::spawn(heard));
        }
        self.bells.tidy();
        self.bells.listen(stream.as_str())
    }

    /// Hears nothing any more. A client shuts down only once nobody uses it.
    pub(crate) async fn end(&self) {
        let hearing = self.hearing.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(hearing) = hearing {
            hearing.abort();
            // It was aborted: that is how it ends.
            let _ = hearing.await;
        }
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

impl Store {
    /// Returns when the group may have work, or after the timeout.
    pub(crate) async fn wait(self: &Arc<Self>, request: &Wait) -> Result<()> {
        let listener = if self.options.wake {
            self.waking.listen(&self.collections, &request.group.stream.name)
        } else {
            Listener::deaf()
        };
        let look = || self.read(FindWork(request.clone()));
        wait_for_work(request, listener, self.options.poll, look).await
    }
}

/// In how long will the group of this request have work, as far as is known now?
struct FindWork(Wait);

impl Operation for FindWork {
    const NAME: &'static str = "wait";
    type Output = Option<Duration>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let Wait { group, now, .. } = &self.0;
        let numbers: Vec<u32> = (0..group.stream.partitions).collect();
        let found = store.find_group(session, Self::NAME, group, &numbers, Beside::Ends, *now);
        let found = found.await?;
        let due = found.members.iter().map(|member| next_work(&found, member)).min();
        let due = due.filter(|&due| due != NEVER);
        let due_in = |due: i64| due.saturating_sub(found.now.as_micros());
        Ok(due.map(|due| Duration::from_micros(u64::try_from(due_in(due)).unwrap_or(0))))
    }
}

/// When there is work in a partition. An ordered group has no new events
/// there as long as others are open.
fn next_work(group: &Group, member: &Member) -> i64 {
    let end = group.ends.get(&member.partition).copied().unwrap_or(0);
    let is_blocked = group.settings.ordered && member.next_due != NEVER;
    if end > member.cursor && !is_blocked { group.now.as_micros() } else { member.next_due }
}
