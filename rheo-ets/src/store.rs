//! [`Memory`]: its streams and their groups, and how they are found.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use rheo_core::backend::{CreateGroup, GroupRef, StreamRef};
use rheo_core::progress::Progress;
use rheo_core::{Error, ErrorKind, GroupName, GroupSettings, Result, StreamName};

use crate::index::Vocabulary;
use crate::lock;
use crate::partition::Partition;
use crate::wake::Bell;

/// The store: streams and groups in the memory of this process.
///
/// Instances that are built over clones of one `Arc` share the store.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
/// use rheo_core::{NewEvent, Rheo};
///
/// let store = rheo_ets::Memory::new();
/// let writer = Rheo::builder(store.clone()).build().await?;
/// let reader = Rheo::builder(store).build().await?;
///
/// writer.create_stream("orders", 1).await?;
/// let event = writer.append("orders", NewEvent::new("order.placed", 7)).await?;
/// assert_eq!(reader.read("orders", 0, 0, 10).await?, [event]);
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct Memory {
    streams: RwLock<BTreeMap<StreamName, Arc<Stream>>>,
}

/// A stream. Calls that found it before it was deleted end as if they had
/// come before.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) partitions: Box<[Partition]>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) bell: Bell,
    groups: RwLock<BTreeMap<GroupName, Arc<Group>>>,
}

/// A group and its progress in each partition.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) settings: GroupSettings,
    /// By partition. Whoever takes several locks takes them in ascending order.
    pub(crate) progress: Box<[Mutex<Progress>]>,
    /// Counts the claims, so that each begins with another partition.
    pub(crate) turn: AtomicUsize,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn add_stream(&self, stream: &StreamRef) -> Result<()> {
        match lock::write(&self.streams).entry(stream.name.clone()) {
            Entry::Occupied(_) => {
                let context = format!("stream {:?}", stream.name);
                Err(Error::new(ErrorKind::AlreadyExists, "create_stream", context))
            }
            Entry::Vacant(place) => {
                place.insert(Arc::new(Stream::new(stream.partitions)));
                Ok(())
            }
        }
    }

    pub(crate) fn remove_stream(&self, name: &StreamName) -> Result<()> {
        let removed = lock::write(&self.streams).remove(name);
        let stream = removed.ok_or_else(|| stream_not_found("delete_stream", name))?;
        stream.bell.ring();
        Ok(())
    }

    pub(crate) fn stream_refs(&self) -> Vec<StreamRef> {
        let streams = lock::read(&self.streams);
        streams
            .iter()
            .map(|(name, stream)| StreamRef { name: name.clone(), partitions: stream.count() })
            .collect()
    }

    pub(crate) fn find_stream(
        &self,
        operation: &'static str,
        name: &StreamName,
    ) -> Result<Arc<Stream>> {
        let stream = lock::read(&self.streams).get(name).cloned();
        stream.ok_or_else(|| stream_not_found(operation, name))
    }

    /// The stream as the caller knows it.
    pub(crate) fn stream(
        &self,
        operation: &'static str,
        stream: &StreamRef,
    ) -> Result<Arc<Stream>> {
        let found = self.find_stream(operation, &stream.name)?;
        if found.count() != stream.partitions {
            return Err(stream_not_found(operation, &stream.name));
        }
        Ok(found)
    }

    /// The stream, then the group.
    pub(crate) fn group(
        &self,
        operation: &'static str,
        group: &GroupRef,
    ) -> Result<(Arc<Stream>, Arc<Group>)> {
        let stream = self.stream(operation, &group.stream)?;
        let found = lock::read(&stream.groups).get(&group.name).cloned();
        let found = found.ok_or_else(|| group_not_found(operation, group))?;
        Ok((stream, found))
    }

    pub(crate) fn add_group(&self, request: &CreateGroup) -> Result<()> {
        let stream = self.stream("create_group", &request.group.stream)?;
        match lock::write(&stream.groups).entry(request.group.name.clone()) {
            Entry::Occupied(_) => {
                let GroupRef { stream, name } = &request.group;
                let context = format!("group {name:?} of stream {:?}", stream.name);
                Err(Error::new(ErrorKind::AlreadyExists, "create_group", context))
            }
            Entry::Vacant(place) => {
                place.insert(Arc::new(Group::new(request.settings, &request.start)));
                Ok(())
            }
        }
    }

    pub(crate) fn remove_group(&self, group: &GroupRef) -> Result<()> {
        let stream = self.stream("delete_group", &group.stream)?;
        let removed = lock::write(&stream.groups).remove(&group.name);
        removed.ok_or_else(|| group_not_found("delete_group", group))?;
        stream.bell.ring();
        Ok(())
    }
}

impl Stream {
    fn new(partitions: u32) -> Self {
        Self {
            partitions: (0..partitions).map(|_| Partition::default()).collect(),
            vocabulary: Vocabulary::default(),
            bell: Bell::default(),
            groups: RwLock::default(),
        }
    }

    /// How many partitions it has.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.partitions.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn partition(&self, partition: u32) -> &Partition {
        &self.partitions[partition as usize]
    }

    pub(crate) fn group_names(&self) -> Vec<GroupName> {
        lock::read(&self.groups).keys().cloned().collect()
    }
}

impl Group {
    fn new(settings: GroupSettings, start: &[u64]) -> Self {
        let progress = |&start: &u64| Mutex::new(Progress::starting_after(start));
        Self { settings, progress: start.iter().map(progress).collect(), turn: AtomicUsize::new(0) }
    }

    pub(crate) fn progress(&self, partition: u32) -> MutexGuard<'_, Progress> {
        lock::lock(&self.progress[partition as usize])
    }

    /// The progress in all partitions, with nobody at work in between.
    pub(crate) fn all_progress(&self) -> Vec<MutexGuard<'_, Progress>> {
        self.progress.iter().map(lock::lock).collect()
    }
}

fn stream_not_found(operation: &'static str, name: &StreamName) -> Error {
    Error::new(ErrorKind::StreamNotFound, operation, format!("{name:?}"))
}

fn group_not_found(operation: &'static str, group: &GroupRef) -> Error {
    let context = format!("{:?} of stream {:?}", group.name, group.stream.name);
    Error::new(ErrorKind::GroupNotFound, operation, context)
}
