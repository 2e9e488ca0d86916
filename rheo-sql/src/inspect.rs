//! Looking at a group: its progress and its dead letters.

use rheo_core::backend::{DeadLetters, GroupRef, Now};
use rheo_core::{
    DeadLetter, Error, ErrorKind, GroupInfo, PartitionProgress, Position, Result, Timestamp,
};

use crate::Store;
use crate::codec;
use crate::db::{Conn, Row, args};
use crate::error::{Failure, corrupt, group_not_found, stream_not_found};
use crate::operation::Operation;
use crate::state::Group;

/// How far has this group come?
pub(crate) struct InspectGroup {
    pub(crate) group: GroupRef,
    pub(crate) now: Now,
}

impl Operation for InspectGroup {
    const NAME: &'static str = "group_info";
    type Output = GroupInfo;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<GroupInfo, Failure> {
        let GroupRef { stream, name } = &self.group;
        let now = store.now(self.now);
        let group = args![stream.name.as_str(), stream.partitions, name.as_str(), now];
        let rows = conn.rows(&store.sql("group_info"), group).await?;
        let first = rows.first().ok_or_else(|| stream_not_found(Self::NAME, &stream.name))?;
        if first.opt_int(0)?.is_none() {
            return Err(group_not_found(Self::NAME, &self.group).into());
        }
        Ok(GroupInfo {
            name: name.clone(),
            max_attempts: first.u32(1)?,
            ordered: first.int(2)? != 0,
            partitions: rows.iter().map(progress).collect::<Result<_, _>>()?,
        })
    }
}

fn progress(row: &Row) -> Result<PartitionProgress, Failure> {
    Ok(PartitionProgress {
        high_watermark: row.u64(3)?,
        frontier: row.u64(4)?,
        leased: sum(row, 5)?,
        waiting: sum(row, 6)?,
        dead_letters: row.u64(7)?,
    })
}

/// Sums come as text: as numbers they are of another type in each database.
fn sum(row: &Row, index: usize) -> Result<u64, Failure> {
    row.text(index)?.trim_end().parse().map_err(|error| corrupt(index, error))
}

/// The place of a dead letter in the list.
#[derive(Clone, Copy)]
struct Age {
    dead_at: i64,
    position: Position,
}

impl Age {
    /// Before every dead letter.
    const OLDEST: Self = Self { dead_at: i64::MIN, position: Position::new(0, 0) };
}

impl Operation for DeadLetters {
    const NAME: &'static str = "dead_letters";
    type Output = Vec<DeadLetter>;

    /// A letter whose event has vanished from the store cannot be shown. It is
    /// passed over, so that it hides no other, and told in the log; where there
    /// is nothing else to show, the answer is `Corrupt` and names it.
    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Self::Output, Failure> {
        let group = store.find_group(conn, Self::NAME, &self.group, Now::Store).await?;
        let mut after = match self.after {
            Some(position) => age_of(store, conn, &group, position).await?,
            None => Age::OLDEST,
        };
        let (mut letters, mut vanished) = (Vec::new(), None);
        loop {
            let wanted = self.limit - letters.len();
            let rows = page(store, conn, &group, after, wanted).await?;
            for row in &rows {
                after = age(row)?;
                match letter(self, row)? {
                    Some(letter) => letters.push(letter),
                    None => vanished = vanished.or(Some(after.position)),
                }
            }
            if rows.len() < wanted || letters.len() == self.limit {
                break;
            }
        }
        match vanished {
            Some(position) if letters.is_empty() => Err(missing(self, position).into()),
            _ => Ok(letters),
        }
    }
}

/// The dead letter of a row, if its event is there.
fn letter(request: &DeadLetters, row: &Row) -> Result<Option<DeadLetter>, Failure> {
    let GroupRef { stream, name: group } = &request.group;
    if row.opt_int(FIRST_OF_EVENT)?.is_none() {
        let (stream, position) = (&stream.name, age(row)?.position);
        tracing::error!(%stream, %group, %position, "the event of a dead letter is missing");
        return Ok(None);
    }
    Ok(Some(DeadLetter {
        event: codec::event(row, FIRST_OF_EVENT, &stream.name)?,
        attempt: row.u32(3)?,
        reason: row.text(4)?,
        dead_at: Timestamp::from_micros(row.int(0)?),
    }))
}

/// There is nothing to show but a dead letter without its event.
fn missing(request: &DeadLetters, position: Position) -> Error {
    let GroupRef { stream, name } = &request.group;
    let stream = &stream.name;
    let context = format!(
        "the event of dead letter {position} of {name:?} is missing from stream {stream:?}"
    );
    Error::new(ErrorKind::Corrupt, DeadLetters::NAME, context)
}

/// Where a dead letter's event begins among the columns of its row.
const FIRST_OF_EVENT: usize = 5;

async fn page(
    store: &Store,
    conn: &mut Conn<'_>,
    group: &Group,
    after: Age,
    limit: usize,
) -> Result<Vec<Row>, Failure> {
    let Age { dead_at, position: Position { partition, sequence } } = after;
    let args = args![group.stream_id, group.id, dead_at, sequence, partition, limit];
    conn.rows(&store.sql("dead_letters"), args).await
}

fn age(row: &Row) -> Result<Age, Failure> {
    Ok(Age { dead_at: row.int(0)?, position: Position::new(row.u32(2)?, row.u64(1)?) })
}

async fn age_of(
    store: &Store,
    conn: &mut Conn<'_>,
    group: &Group,
    position: Position,
) -> Result<Age, Failure> {
    let args = args![group.id, position.partition, position.sequence];
    let found = conn.row(&store.sql("find_dead"), args).await?;
    let found = found.ok_or_else(|| {
        let context = format!("{position} is not in the dead-letter list");
        Error::new(ErrorKind::CursorNotFound, DeadLetters::NAME, context)
    })?;
    Ok(Age { dead_at: found.int(0)?, position })
}
