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

use crate::Memory;

const CAPABILITIES: Capabilities = Capabilities {
    guarantees: Guarantees {
        durable: false,
        distributed: false,
        partitions: true,
        contiguous_frontier: true,
        replay: true,
        ordered_delivery: true,
        atomic_batch: true,
        transactional: true,
        store_clock: true,
        ordered_range_scan: true,
        secondary_indexes: true,
        batch_writes: true,
    },
    mechanisms: Mechanisms {
        atomic_compare_and_set: true,
        notifications: true,
        change_feed: false,
        native_consumer_groups: false,
        native_pending_list: false,
        native_reclaim: false,
        blocking_reads: false,
        native_group_lag: false,
        coalesced_writes: false,
    },
    limits: Limits { event_bytes: 1 << 30 },
};

/// No method holds a lock across an await, and all but `search` and `wait`
/// end without one.
#[async_trait]
impl Backend for Memory {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn prepare(&self) -> Result<()> {
        Ok(())
    }

    async fn ping(&self) -> Result<Server> {
        Ok(Server { product: "memory".into(), version: env!("CARGO_PKG_VERSION").into() })
    }

    async fn create_stream(&self, stream: &StreamRef) -> Result<()> {
        self.add_stream(stream)
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.remove_stream(stream)
    }

    async fn partitions(&self, stream: &StreamName) -> Result<u32> {
        Ok(self.find_stream("partitions", stream)?.count())
    }

    async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        Ok(self.stream_refs())
    }

    async fn create_group(&self, request: &CreateGroup) -> Result<()> {
        self.add_group(request)
    }

    async fn delete_group(&self, group: &GroupRef) -> Result<()> {
        self.remove_group(group)
    }

    async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>> {
        Ok(self.stream("list_groups", stream)?.group_names())
    }

    async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        self.inspect_group(group, now)
    }

    async fn append(&self, request: &Append) -> Result<Vec<Event>> {
        self.append_events(request)
    }

    async fn claim(&self, request: &Claim) -> Result<Vec<Delivery>> {
        self.claim_events(request)
    }

    async fn settle(&self, request: &Settle) -> Result<Vec<Result<(), LeaseRefusal>>> {
        self.settle_leases(request)
    }

    async fn renew(&self, request: &Renew) -> Result<Vec<Result<Timestamp, LeaseRefusal>>> {
        self.renew_leases(request)
    }

    async fn replay(&self, request: &Replay) -> Result<()> {
        self.reopen(request)
    }

    async fn reset(&self, request: &Reset) -> Result<()> {
        self.start_anew(request)
    }

    async fn read(&self, request: &Read) -> Result<Vec<Event>> {
        self.read_events(request)
    }

    async fn search(&self, request: &Search) -> Result<Vec<Event>> {
        self.search_events(request).await
    }

    async fn seek(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        self.find_places(stream, seek)
    }

    async fn dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        self.list_dead_letters(request)
    }

    async fn wait(&self, request: &Wait) -> Result<()> {
        self.wait_for_work(request).await
    }
}
