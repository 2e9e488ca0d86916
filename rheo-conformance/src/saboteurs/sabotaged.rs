//! [`Sabotaged`]: a store behind a saboteur who has a hand in every call.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use rheo_core::backend::{
    Append, Backend, Claim, CreateGroup, DeadLetters, GroupRef, LeaseRefusal, Now, Read, Renew,
    Replay, Reset, Search, Seek, Server, Settle, StreamRef, Wait,
};
use rheo_core::{
    Capabilities, DeadLetter, Delivery, Event, GroupInfo, GroupName, Result, StreamName, Timestamp,
};

/// A store that breaks one law.
#[derive(Debug)]
pub struct Sabotaged {
    store: Arc<dyn Backend>,
    sabotage: Box<dyn Sabotage>,
}

impl Sabotaged {
    pub(super) fn new(store: Arc<dyn Backend>, sabotage: Box<dyn Sabotage>) -> Self {
        Self { store, sabotage }
    }
}

/// A trait with a hook for each call, which by default is left as it is; and
/// the backend whose calls go through the hooks.
macro_rules! hooks {
    ($($call:ident($($argument:ident: $kind:ty),*) -> $result:ty;)+) => {
        /// What a saboteur does to the calls of a store.
        #[async_trait]
        pub(super) trait Sabotage: Debug + Send + Sync + 'static {
            $(
                async fn $call(&self, store: &dyn Backend, $($argument: $kind),*) -> $result {
                    store.$call($($argument),*).await
                }
            )+
        }

        #[async_trait]
        impl Backend for Sabotaged {
            fn capabilities(&self) -> Capabilities {
                self.store.capabilities()
            }

            async fn prepare(&self) -> Result<()> {
                self.store.prepare().await
            }

            async fn ping(&self) -> Result<Server> {
                self.store.ping().await
            }

            $(
                async fn $call(&self, $($argument: $kind),*) -> $result {
                    // A case that goes round and round on a broken law can then time out.
                    tokio::task::coop::consume_budget().await;
                    self.sabotage.$call(&*self.store, $($argument),*).await
                }
            )+
        }
    };
}

hooks! {
    create_stream(stream: &StreamRef) -> Result<()>;
    delete_stream(stream: &StreamName) -> Result<()>;
    partitions(stream: &StreamName) -> Result<u32>;
    list_streams() -> Result<Vec<StreamRef>>;
    create_group(request: &CreateGroup) -> Result<()>;
    delete_group(group: &GroupRef) -> Result<()>;
    list_groups(stream: &StreamRef) -> Result<Vec<GroupName>>;
    group_info(group: &GroupRef, now: Now) -> Result<GroupInfo>;
    append(request: &Append) -> Result<Vec<Event>>;
    claim(request: &Claim) -> Result<Vec<Delivery>>;
    settle(request: &Settle) -> Result<Vec<Result<(), LeaseRefusal>>>;
    renew(request: &Renew) -> Result<Vec<Result<Timestamp, LeaseRefusal>>>;
    replay(request: &Replay) -> Result<()>;
    reset(request: &Reset) -> Result<()>;
    read(request: &Read) -> Result<Vec<Event>>;
    search(request: &Search) -> Result<Vec<Event>>;
    seek(stream: &StreamRef, seek: Seek) -> Result<Vec<u64>>;
    dead_letters(request: &DeadLetters) -> Result<Vec<DeadLetter>>;
    wait(request: &Wait) -> Result<()>;
}
