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

use crate::Sql;
use crate::group::{DeleteGroup, ListGroups};
use crate::inspect::InspectGroup;
use crate::seek::FindPlaces;
use crate::stream::{CreateStream, DeleteStream, FindPartitions, ListStreams};

#[async_trait]
impl Backend for Sql {
    fn capabilities(&self) -> Capabilities {
        let facts = &self.store.facts;
        Capabilities {
            guarantees: Guarantees {
                durable: facts.durable,
                // A database in memory is that of one instance.
                distributed: !facts.is_in_memory(),
                partitions: true,
                contiguous_frontier: true,
                replay: true,
                ordered_delivery: true,
                atomic_batch: true,
                transactional: true,
                store_clock: true,
                ordered_range_scan: true,
                secondary_indexes: self.store.statements.dialect().indexes_documents(),
                batch_writes: true,
            },
            mechanisms: Mechanisms {
                atomic_compare_and_set: true,
                notifications: self.store.options.wake
                    && self.store.statements.dialect().notifies(),
                change_feed: false,
                native_consumer_groups: false,
                native_pending_list: false,
                native_reclaim: false,
                blocking_reads: false,
                native_group_lag: false,
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
        self.store.write(CreateStream(stream.clone())).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.store.write_and_ring(DeleteStream(stream.clone()), stream).await
    }

    async fn partitions(&self, stream: &StreamName) -> Result<u32> {
        self.store.read(FindPartitions(stream.clone())).await
    }

    async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        self.store.read(ListStreams).await
    }

    async fn create_group(&self, request: &CreateGroup) -> Result<()> {
        self.store.write(request.clone()).await
    }

    async fn delete_group(&self, group: &GroupRef) -> Result<()> {
        self.store.write_and_ring(DeleteGroup(group.clone()), &group.stream.name).await
    }

    async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>> {
        self.store.read(ListGroups(stream.clone())).await
    }

    async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        self.store.read(InspectGroup { group: group.clone(), now }).await
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
        self.store.write(request.clone()).await
    }

    async fn replay(&self, request: &Replay) -> Result<()> {
        self.store.write_and_ring(request.clone(), &request.group.stream.name).await
    }

    async fn reset(&self, request: &Reset) -> Result<()> {
        self.store.write_and_ring(request.clone(), &request.group.stream.name).await
    }

    async fn read(&self, request: &Read) -> Result<Vec<Event>> {
        self.store.read(request.clone()).await
    }

    async fn search(&self, request: &Search) -> Result<Vec<Event>> {
        self.store.read(request.clone()).await
    }

    async fn seek(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        self.store.read(FindPlaces { stream: stream.clone(), seek }).await
    }

    async fn dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        self.store.read(request.clone()).await
    }

    async fn wait(&self, request: &Wait) -> Result<()> {
        self.store.wait(request).await
    }
}
