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

use crate::Mongo;
use crate::codec;
use crate::group::{DeleteGroup, ListGroups};
use crate::inspect::InspectGroup;
use crate::seek::FindPlaces;
use crate::stream::{FindPartitions, ListStreams};

#[async_trait]
impl Backend for Mongo {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            guarantees: Guarantees {
                durable: true,
                distributed: true,
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
                notifications: false,
                change_feed: self.store.options.wake,
                native_consumer_groups: false,
                native_pending_list: false,
                native_reclaim: false,
                blocking_reads: false,
                native_group_lag: false,
                coalesced_writes: true,
            },
            limits: Limits { event_bytes: codec::MOST_BYTES },
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
        self.store.read(FindPartitions(stream.clone())).await
    }

    async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        self.store.read(ListStreams).await
    }

    async fn create_group(&self, request: &CreateGroup) -> Result<()> {
        self.store.write(request.clone()).await
    }

    async fn delete_group(&self, group: &GroupRef) -> Result<()> {
        self.store.write(DeleteGroup(group.clone())).await
    }

    async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>> {
        self.store.read(ListGroups(stream.clone())).await
    }

    async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        self.store.read(InspectGroup { group: group.clone(), now }).await
    }

    async fn append(&self, request: &Append) -> Result<Vec<Event>> {
        self.store.write(request.clone()).await
    }

    async fn claim(&self, request: &Claim) -> Result<Vec<Delivery>> {
        self.store.claim(request).await
    }

    async fn settle(&self, request: &Settle) -> Result<Vec<Result<(), LeaseRefusal>>> {
        self.store.write(request.clone()).await
    }

    async fn renew(&self, request: &Renew) -> Result<Vec<Result<Timestamp, LeaseRefusal>>> {
        self.store.write(request.clone()).await
    }

    async fn replay(&self, request: &Replay) -> Result<()> {
        self.store.write(request.clone()).await
    }

    async fn reset(&self, request: &Reset) -> Result<()> {
        self.store.write(request.clone()).await
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
