//! Creating, deleting, listing and resetting groups. The steps, and how anyone
//! can finish them, are told in `lua/group.lua`.

use redis::{FromRedisValue, Value};
use rheo_core::backend::{CreateGroup, GroupRef, Reset, StreamRef};
use rheo_core::{Effect, ErrorKind, GroupName, Result};

use crate::Store;
use crate::call::{Call, MOST};
use crate::error::{corrupt, group_not_found};

/// A group as partition 0 knows it.
struct Found {
    made_of_stream: String,
    made: String,
    max_attempts: String,
    ordered: String,
    /// Where it begins in each partition, while it is not made in all of them.
    pending: String,
}

impl Store {
    /// Creates a group.
    pub(crate) async fn create_group(&self, request: &CreateGroup) -> Result<()> {
        const OPERATION: &str = "create_group";
        let CreateGroup { group, settings, start } = request;
        let starts: Vec<String> = start.iter().map(|&start| begin(start)).collect();
        let enter = self
            .write_to(group, 0, "enter_group")
            .arg(settings.max_attempts)
            .arg(u8::from(settings.ordered))
            .arg(starts.first())
            .arg(starts.join(" "));
        match self.call(OPERATION, &enter).await {
            Ok(_) if group.stream.partitions == 1 => Ok(()),
            Ok(_) => match self.finish_if_pending(OPERATION, group).await {
                Ok(_) => Ok(()),
                Err(error) => Err(error.with_effect(Effect::Unknown)),
            },
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.finish_if_pending(OPERATION, group).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Finishes the creation of a group where that was cut off, and tells
    /// whether it was. For whoever misses the group in a partition other than 0:
    /// they then try again.
    pub(crate) async fn finish_if_pending(
        &self,
        operation: &'static str,
        group: &GroupRef,
    ) -> Result<bool> {
        let found = match self.find_group(operation, group).await {
            Err(error) if error.kind() == ErrorKind::GroupNotFound => return Ok(false),
            found => found?,
        };
        if found.pending.is_empty() {
            return Ok(false);
        }
        let others = (1..group.stream.partitions).zip(found.pending.split(' ').skip(1));
        let make = |(partition, start)| {
            self.write_to(group, partition, "make_group")
                .arg(&found.made_of_stream)
                .arg(&found.made)
                .arg(&found.max_attempts)
                .arg(&found.ordered)
                .arg(start)
        };
        let finish = self.write_to(group, 0, "finish_group").arg(&found.made);
        let stages = vec![others.map(make).collect(), vec![finish]];
        match self.in_stages(operation, stages).await {
            Ok(_) => Ok(true),
            // To finish what others began is no effect of this operation.
            Err(error) => Err(error.with_effect(Effect::NotApplied)),
        }
    }

    /// Deletes a group: in partition 0 last, so that it can be deleted once
    /// more where that was cut off.
    pub(crate) async fn delete_group(&self, group: &GroupRef) -> Result<()> {
        const OPERATION: &str = "delete_group";
        let found = self.find_group(OPERATION, group).await?;
        let drop = |partition| {
            let name = &group.stream.name;
            self.write_to(group, partition, "drop_group")
                .arg(&found.made_of_stream)
                .arg(&found.made)
                .arg(if partition == 0 { self.channel(name) } else { String::new() })
                .even_when_full()
        };
        let others = (1..group.stream.partitions).map(drop).collect();
        let answers = self.in_stages(OPERATION, self.joined(others, vec![drop(0)])).await?;
        match answers.last() {
            Some(Value::Int(1)) => Ok(()),
            // Somebody else deleted it meanwhile.
            _ => Err(group_not_found(OPERATION, group)),
        }
    }

    /// All groups of a stream, by name.
    pub(crate) async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>> {
        const OPERATION: &str = "list_groups";
        let keys = self.partition_keys(&stream.name, 0);
        let call = Call::read("list_groups", stream, &keys).arg(stream.partitions);
        let names = Vec::<String>::from_redis_value(self.call(OPERATION, &call).await?)
            .map_err(|_| corrupt(OPERATION, "the groups are no list of names"))?;
        let group = |name: String| {
            GroupName::new(&name)
                .map_err(|_| corrupt(OPERATION, format!("a group cannot be called {name:?}")))
        };
        let mut groups: Vec<GroupName> = names.into_iter().map(group).collect::<Result<_>>()?;
        groups.sort();
        Ok(groups)
    }

    /// Starts a group anew.
    pub(crate) async fn reset(&self, request: &Reset) -> Result<()> {
        const OPERATION: &str = "reset_group";
        let done = self.reset_all(OPERATION, request).await;
        match done {
            Err(error)
                if error.kind() == ErrorKind::GroupNotFound
                    && self.finish_if_pending(OPERATION, &request.group).await? =>
            {
                self.reset_all(OPERATION, request).await
            }
            done => done,
        }
    }

    async fn reset_all(&self, operation: &'static str, request: &Reset) -> Result<()> {
        let Reset { group, start } = request;
        let reset = |(partition, &start): (u32, &u64)| {
            let name = &group.stream.name;
            self.write_to(group, partition, "reset_group")
                .arg(begin(start))
                .arg(if partition == 0 { self.channel(name) } else { String::new() })
        };
        let calls: Vec<Call> = (0..).zip(start).map(reset).collect();
        self.call_all(operation, &calls).await.map(drop)
    }

    /// The group, as partition 0 knows it.
    async fn find_group(&self, operation: &'static str, group: &GroupRef) -> Result<Found> {
        let answer = self.call(operation, &self.look_at(group, 0, "find_group")).await?;
        let (made_of_stream, made, max_attempts, ordered, pending) =
            FromRedisValue::from_redis_value(answer)
                .map_err(|_| corrupt(operation, format!("what is group {:?}?", group.name)))?;
        Ok(Found { made_of_stream, made, max_attempts, ordered, pending })
    }
}

/// Where a group begins, as the functions take it. No log is so long that to
/// begin after the greatest number they keep were not to begin after all of it.
fn begin(start: u64) -> String {
    start.min(MOST).to_string()
}
