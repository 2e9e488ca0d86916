//! [`Call`]: one call of a function inside the server.

use std::time::Duration;

use redis::{Cmd, ToRedisArgs, cmd};
use rheo_core::backend::{GroupRef, Now, StreamRef};
use rheo_core::{Fence, GroupName, StreamName};

use crate::{Store, functions};

/// What a call is about, for the errors that name it.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) stream: StreamName,
    pub(crate) group: Option<GroupName>,
}

impl From<&StreamRef> for About {
    fn from(stream: &StreamRef) -> Self {
        Self { stream: stream.name.clone(), group: None }
    }
}

impl From<&StreamName> for About {
    fn from(stream: &StreamName) -> Self {
        Self { stream: stream.clone(), group: None }
    }
}

impl From<&GroupRef> for About {
    fn from(group: &GroupRef) -> Self {
        Self { stream: group.stream.name.clone(), group: Some(group.name.clone()) }
    }
}

/// One call of a function of the library in `src/lua`.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) about: About,
    /// Whether it may change something, so that it matters whether it ran.
    pub(crate) writes: bool,
    /// Whether it runs also where the server's memory is used up, and by itself
    /// means the same as beside the others.
    pub(crate) even_when_full: bool,
    command: Cmd,
}

impl Call {
    /// A call that may change something. All keys share a slot.
    pub(crate) fn write(function: &str, about: impl Into<About>, keys: &[String]) -> Self {
        Self::new("FCALL", true, function, about.into(), keys)
    }

    /// A call that only looks.
    pub(crate) fn read(function: &str, about: impl Into<About>, keys: &[String]) -> Self {
        Self::new("FCALL_RO", false, function, about.into(), keys)
    }

    fn new(verb: &str, writes: bool, function: &str, about: About, keys: &[String]) -> Self {
        let mut command = cmd(verb);
        command.arg(functions::full_name(function)).arg(keys.len()).arg(keys);
        Self { about, writes, even_when_full: false, command }
    }

    /// With one more argument.
    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.command.arg(arg);
        self
    }

    /// One that may run by itself where memory is used up: the server takes no
    /// transactions then.
    pub(crate) fn even_when_full(mut self) -> Self {
        self.even_when_full = true;
        self
    }

    /// The command that makes the call.
    pub(crate) fn command(&self) -> &Cmd {
        &self.command
    }
}

impl Store {
    /// A call on a group in a partition that may change something.
    pub(crate) fn write_to(&self, group: &GroupRef, partition: u32, function: &str) -> Call {
        Call::write(function, group, &self.group_keys(group, partition)).on(group)
    }

    /// A call on a group in a partition that only looks.
    pub(crate) fn look_at(&self, group: &GroupRef, partition: u32, function: &str) -> Call {
        Call::read(function, group, &self.group_keys(group, partition)).on(group)
    }

    fn group_keys(&self, group: &GroupRef, partition: u32) -> Vec<String> {
        self.keys.group(&group.stream.name, partition, &group.name)
    }
}

impl Call {
    /// With the arguments that come first in all calls on groups.
    fn on(self, group: &GroupRef) -> Self {
        self.arg(group.stream.partitions).arg(group.name.as_str())
    }
}

/// The instant that judges, as functions take it: none for the server's own time.
pub(crate) fn instant(now: Now) -> String {
    match now {
        Now::Store => String::new(),
        Now::At(instant) => instant.as_micros().to_string(),
    }
}

/// A duration as functions take it, in microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    // Longer than from the first instant there is to the last. In so great
    // numbers a microsecond may be lost, but nothing overflows.
    const LONGEST: u64 = 1 << 60;
    u64::try_from(duration.as_micros()).unwrap_or(LONGEST).min(LONGEST)
}

/// The greatest sequence that functions keep exactly.
pub(crate) const MOST: u64 = 1 << 53;

/// A fence as functions take it.
pub(crate) fn fence_word(fence: Fence) -> String {
    format!("{:032x}", fence.as_u128())
}
