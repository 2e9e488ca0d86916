//! [`Store`]: streams, their groups, and how a request finds them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rheo_core::backend::{CreateGroup, GroupRef, StreamRef};
use rheo_core::{Error, ErrorKind, GroupName, Result, StreamName};

use crate::group::Group;
use crate::log::Log;

/// How many partitions every stream has.
pub(crate) const PARTITIONS: u32 = 1;

/// Everything there is; the backend's mutex guards it.
#[derive(Debug, Default)]
pub(crate) struct Store {
    streams: BTreeMap<StreamName, Stream>,
}

/// A stream: its log, and the groups that read it.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) log: Log,
    groups: BTreeMap<GroupName, Group>,
}

impl Store {
    pub(crate) fn create_stream(&mut self, stream: &StreamRef) -> Result<()> {
        vacant(self.streams.entry(stream.name.clone()), "create_stream", &stream.name)?
            .insert(Stream::default());
        Ok(())
    }

    pub(crate) fn delete_stream(&mut self, name: &StreamName) -> Result<()> {
        let removed = self.streams.remove(name);
        removed.map(drop).ok_or_else(|| stream_not_found(name))
    }

    pub(crate) fn has_stream(&self, name: &StreamName) -> Result<()> {
        let found = self.streams.contains_key(name);
        found.then_some(()).ok_or_else(|| stream_not_found(name))
    }

    pub(crate) fn stream_refs(&self) -> Vec<StreamRef> {
        let of_name = |name: &StreamName| StreamRef { name: name.clone(), partitions: PARTITIONS };
        self.streams.keys().map(of_name).collect()
    }

    /// The stream that the handle means. It remembers how many partitions a
    /// stream has; with another number it means a stream that is no more.
    pub(crate) fn stream(&mut self, stream: &StreamRef) -> Result<&mut Stream> {
        let found = self.streams.get_mut(&stream.name);
        let found = found.filter(|_| stream.partitions == PARTITIONS);
        found.ok_or_else(|| stream_not_found(&stream.name))
    }

    /// The stream's log and one of its groups; a missing stream is told before
    /// a missing group.
    pub(crate) fn group(&mut self, group: &GroupRef) -> Result<(&Log, &mut Group)> {
        let Stream { log, groups } = self.stream(&group.stream)?;
        let found = groups.get_mut(&group.name);
        let found = found.ok_or_else(|| group_not_found(&group.name))?;
        Ok((log, found))
    }
}

impl Stream {
    pub(crate) fn create_group(&mut self, request: &CreateGroup) -> Result<()> {
        let name = &request.group.name;
        vacant(self.groups.entry(name.clone()), "create_group", name)?.insert(Group::new(request));
        Ok(())
    }

    pub(crate) fn delete_group(&mut self, name: &GroupName) -> Result<()> {
        let removed = self.groups.remove(name);
        removed.map(drop).ok_or_else(|| group_not_found(name))
    }

    pub(crate) fn group_names(&self) -> Vec<GroupName> {
        self.groups.keys().cloned().collect()
    }
}

type Vacancy<'a, K, V> = std::collections::btree_map::VacantEntry<'a, K, V>;

/// The place for something new, or `AlreadyExists`.
fn vacant<'a, K: Ord, V>(
    entry: Entry<'a, K, V>,
    operation: &'static str,
    name: impl std::fmt::Debug,
) -> Result<Vacancy<'a, K, V>> {
    match entry {
        Entry::Vacant(place) => Ok(place),
        Entry::Occupied(_) => {
            Err(Error::new(ErrorKind::AlreadyExists, operation, format!("{name:?}")))
        }
    }
}

/// The handle puts in the name of the operation that the user called.
fn stream_not_found(name: &StreamName) -> Error {
    Error::new(ErrorKind::StreamNotFound, "toy", format!("{name:?}"))
}

fn group_not_found(name: &GroupName) -> Error {
    Error::new(ErrorKind::GroupNotFound, "toy", format!("{name:?}"))
}
