//! [`Group`]: a command and all it has started.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The process group of a command that has not been waited for. Dropped, it is
/// killed.
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that `child` was started as the leader of.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// The command has ended by itself, and its number may be another's now.
    pub(super) fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It fails where none of the group is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
