//! Creating, deleting and listing groups.

use rheo_core::backend::{CreateGroup, GroupRef, StreamRef};
use rheo_core::{Error, ErrorKind, GroupName, Result};
use serde_json::json;

use crate::Store;
use crate::db::{Conn, Row, args};
use crate::error::{Failure, corrupt, group_not_found, stream_not_found};
use crate::operation::Operation;
use crate::state::{int, list};
use crate::stream::lock_stream;

impl Operation for CreateGroup {
    const NAME: &'static str = "create_group";
    type Output = ();

    /// The stream's lock keeps its deletion from passing by unseen.
    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
        let GroupRef { stream, name } = &self.group;
        let stream_id = lock_known(store, conn, Self::NAME, stream).await?;
        let ordered = i64::from(self.settings.ordered);
        let group = args![stream_id, name.as_str(), self.settings.max_attempts, ordered];
        if conn.execute(&store.sql("put_group"), group).await? == 0 {
            let context = format!("group {name:?} of stream {:?}", stream.name);
            return Err(Error::new(ErrorKind::AlreadyExists, Self::NAME, context).into());
        }
        let starts = (0..).zip(&self.start).map(
            |(partition, &start): (u32, _)| json!({"partition": partition, "start": int(start)}),
        );
        let cursors = args![stream_id, name.as_str(), list(starts)];
        conn.execute(&store.sql("put_cursors"), cursors).await?;
        Ok(())
    }
}

/// Delete this group.
pub(crate) struct DeleteGroup(pub(crate) GroupRef);

impl Operation for DeleteGroup {
    const NAME: &'static str = "delete_group";
    type Output = ();

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
        let GroupRef { stream, name } = &self.0;
        let stream_id = lock_known(store, conn, Self::NAME, stream).await?;
        let group = args![stream_id, name.as_str()];
        let locked = conn.row(&store.sql("lock_group"), group).await?;
        let id = locked.ok_or_else(|| group_not_found(Self::NAME, &self.0))?.int(0)?;
        forget_group(store, conn, id).await?;
        conn.execute(&store.sql("remove_group"), args![id]).await?;
        Ok(())
    }
}

/// Which groups has this stream?
pub(crate) struct ListGroups(pub(crate) StreamRef);

impl Operation for ListGroups {
    const NAME: &'static str = "list_groups";
    type Output = Vec<GroupName>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Self::Output, Failure> {
        let StreamRef { name, partitions } = &self.0;
        let rows = conn.rows(&store.sql("list_groups"), args![name.as_str(), *partitions]).await?;
        if rows.is_empty() {
            return Err(stream_not_found(Self::NAME, name).into());
        }
        let group = |row: &Row| {
            let name = row.opt_text(0)?;
            name.map(|name| GroupName::new(name).map_err(|error| corrupt(0, error))).transpose()
        };
        // A stream without groups is one row without a name.
        rows.iter().filter_map(|row| group(row).transpose()).collect()
    }
}

/// Locks a stream as the caller knows it, and returns its id.
async fn lock_known(
    store: &Store,
    conn: &mut Conn<'_>,
    operation: &'static str,
    stream: &StreamRef,
) -> Result<i64, Failure> {
    let locked = lock_stream(store, conn, operation, &stream.name).await?;
    if locked.partitions != stream.partitions {
        return Err(stream_not_found(operation, &stream.name).into());
    }
    Ok(locked.id)
}

/// Deletes where a group stands. Its cursors go first: from then on nobody
/// else can change anything of it.
pub(crate) async fn forget_group(
    store: &Store,
    conn: &mut Conn<'_>,
    id: i64,
) -> Result<(), Failure> {
    conn.rows(&store.sql("lock_all_cursors"), args![id]).await?;
    conn.execute(&store.sql("remove_cursors"), args![id]).await?;
    forget_work(store, conn, id).await
}

/// Deletes a group's leases, attempts and dead letters, under the locks of its cursors.
pub(crate) async fn forget_work(
    store: &Store,
    conn: &mut Conn<'_>,
    id: i64,
) -> Result<(), Failure> {
    for statement in ["remove_all_runs", "remove_all_attempts", "remove_all_dead"] {
        conn.execute(&store.sql(statement), args![id]).await?;
    }
    Ok(())
}
