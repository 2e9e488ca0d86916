//! The [`Backend`] trait, method by method.

use async_trait::async_trait;
use rheo_core::backend::{
    Append, Backend, Claim, CreateGroup, DeadLetters, GroupRef, LeaseRefusal, Now, Read, Renew,
    Replay, Reset, Search, Seek, Server, Settle, StreamRef, Wait,
};
use rheo_core::{
    Capabilities, DeadLetter, Delivery, Event, GroupInfo, GroupName, Guarantees, Limits,
    Mechanisms, Result, StreamName, Timestamp,
};

use crate::Redis;
use crate::config::Index;

#[async_trait]
impl Backend for Redis {
    fn capabilities(&self) -> Capabilities {
        let facts = &self.store.facts;
        Capabilities {
            guarantees: Guarantees {
                durable: facts.durable,
                distributed: true,
                partitions: true,
                contiguous_frontier: true,
                replay: true,
                ordered_delivery: true,
                // The partitions of a cluster's stream lie on several servers.
                atomic_batch: !facts.cluster,
                transactional: !facts.cluster,
                store_clock: true,
                ordered_range_scan: true,
                secondary_indexes: self.store.options.index.len() == Index::ALL.len(),
                batch_writes: true,
            },
            mechanisms: Mechanisms {
                atomic_compare_and_set: true,
                notifications: self.store.options.wake,
                change_feed: false,
                native_consumer_groups: true,
                native_pending_list: true,
                native_reclaim: true,
                blocking_reads: false,
                native_group_lag: true,
                coalesced_writes: true,
            },
            limits: Limits { event_bytes: facts.event_bytes },
        }
    }

    async fn prepare(&self) -> Result<()> {
        self.store.prepare().await
    }

    async fn ping(&self) -> Result<Server> {
        self.store.ping().await
    }

    async fn create_stream(&self, stream: &StreamRef) -> Result<()> {
        self.store.create_stream(stream).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.store.delete_stream(stream).await
    }

    async fn partitions(&self, stream: &StreamName) -> Result<u32> {
        self.store.partitions(stream).await
    }

    async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        self.store.list_streams().await
    }

    async fn create_group(&self, request: &CreateGroup) -> Result<()> {
        self.store.create_group(request).await
    }

    async fn delete_group(&self, group: &GroupRef) -> Result<()> {
        self.store.delete_group(group).await
    }

    async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>> {
        self.store.list_groups(stream).await
    }

    async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        self.store.group_info(group, now).await
    }

    async fn append(&self, request: &Append) -> Result<Vec<Event>> {
        self.store.append(request).await
    }

    async fn claim(&self, request: &Claim) -> Result<Vec<Delivery>> {
        self.store.claim(request).await
    }

    async fn settle(&self, request: &Settle) -> Result<Vec<Result<(), LeaseRefusal>>> {
        self.store.settle(request).await
    }

    async fn renew(&self, request: &Renew) -> Result<Vec<Result<Timestamp, LeaseRefusal>>> {
        self.store.renew(request).await
    }

    async fn replay(&self, request: &Replay) -> Result<()> {
        self.store.replay(request).await
    }

    async fn reset(&self, request: &Reset) -> Result<()> {
        self.store.reset(request).await
    }

    async fn read(&self, request: &Read) -> Result<Vec<Event>> {
        self.store.read_log(request).await
    }

    async fn search(&self, request: &Search) -> Result<Vec<Event>> {
        self.store.search(request).await
    }

    async fn seek(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        self.store.seek(stream, seek).await
    }

    async fn dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        self.store.dead_letters(request).await
    }

    async fn wait(&self, request: &Wait) -> Result<()> {
        self.store.wait(request).await
    }
}
