//! Looking at a group: its progress and its dead letters.

use redis::{Cmd, FromRedisValue, Value, cmd};
use rheo_core::backend::{DeadLetters, GroupRef, Now, Seek};
use rheo_core::{
    DeadLetter, Error, ErrorKind, Event, GroupInfo, MAX_BATCH, PartitionProgress, Position, Result,
    Timestamp,
};

use crate::Store;
use crate::call::{About, Call, instant};
use crate::codec;
use crate::error::corrupt;

const DEAD_LETTERS: &str = "dead_letters";

/// How a group stands in a partition, or a part of the counts of that.
struct Standing {
    max_attempts: u32,
    ordered: bool,
    frontier: u64,
    leased: u64,
    waiting: u64,
    dead_letters: u64,
    /// From where to where the counts do not reach yet.
    rest: Option<(u64, u64)>,
}

impl Standing {
    fn from_answer(operation: &'static str, answer: Value) -> Result<Self> {
        let (max_attempts, ordered, frontier, leased, waiting, dead_letters, next, last) =
            FromRedisValue::from_redis_value(answer)
                .map_err(|_| corrupt(operation, "a group's progress is other than expected"))?;
        let rest = Option::<u64>::map(next, |next| (next, last));
        Ok(Self { max_attempts, ordered, frontier, leased, waiting, dead_letters, rest })
    }
}

/// A dead letter without its event.
struct Dead {
    at: i64,
    position: Position,
    attempt: u32,
    reason: String,
}

impl Dead {
    fn letter_with(self, event: Event) -> DeadLetter {
        let Self { at, attempt, reason, .. } = self;
        DeadLetter { event, attempt, reason, dead_at: Timestamp::from_micros(at) }
    }
}

/// There is nothing to show but a dead letter without its event.
fn without_event(group: &GroupRef, position: Position) -> Error {
    let GroupRef { stream, name } = group;
    let context = format!(
        "the event of dead letter {position} of {name:?} is missing from stream {:?}, or none that Rheo \
         wrote",
        stream.name
    );
    Error::new(ErrorKind::Corrupt, DEAD_LETTERS, context)
}

impl Store {
    /// A group's settings and its progress in each partition.
    pub(crate) async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        const OPERATION: &str = "group_info";
        let now = instant(now);
        let look = |partition| self.look_at(group, partition, "progress").arg(&now);
        let look_first = |partition| look(partition).arg(0).arg("");
        let mut standings = Vec::with_capacity(group.stream.partitions as usize);
        for answer in self.look_everywhere(OPERATION, group, look_first).await? {
            standings.push(Standing::from_answer(OPERATION, answer)?);
        }
        for (partition, standing) in (0..).zip(&mut standings) {
            while let Some((next, last)) = standing.rest {
                let answer = self.call(OPERATION, &look(partition).arg(next).arg(last)).await?;
                let part = Standing::from_answer(OPERATION, answer)?;
                standing.leased += part.leased;
                standing.waiting += part.waiting;
                standing.rest = part.rest;
            }
        }
        // The ends of the log are read last, so that no frontier is beyond them.
        let ends = self.seek(&group.stream, Seek::End).await?;
        let mut info = GroupInfo {
            name: group.name.clone(),
            max_attempts: 0,
            ordered: false,
            partitions: Vec::with_capacity(ends.len()),
        };
        for (standing, high_watermark) in standings.into_iter().zip(ends) {
            let Standing { frontier, leased, waiting, dead_letters, .. } = standing;
            info.max_attempts = standing.max_attempts;
            info.ordered = standing.ordered;
            info.partitions.push(PartitionProgress {
                high_watermark,
                frontier,
                leased,
                waiting,
                dead_letters,
            });
        }
        Ok(info)
    }

    /// A page of the dead letters. One whose event is lost is left out, and
    /// told as `Corrupt` where there is nothing else to show.
    pub(crate) async fn dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        let DeadLetters { group, after, limit } = request;
        let mut after = match after {
            Some(position) => Some((self.died_at(group, *position).await?, *position)),
            None => None,
        };
        let (mut letters, mut lost, mut wanted) = (Vec::new(), None, *limit);
        loop {
            let page = self.oldest_dead(group, after, wanted).await?;
            let is_last = page.len() < wanted;
            let before = letters.len();
            after = page.last().map(|dead| (dead.at, dead.position)).or(after);
            let positions: Vec<_> = page.iter().map(|dead| dead.position).collect();
            let entries = self.entries_at(group, &positions).await?;
            for (dead, entry) in page.into_iter().zip(entries) {
                match entry {
                    Some(Ok(event)) => letters.push(dead.letter_with(event)),
                    _ => lost = lost.or(Some(dead.position)),
                }
            }
            if is_last || letters.len() >= *limit {
                break;
            }
            // A long stretch of lost ones is passed in great steps.
            let all_lost = letters.len() == before;
            wanted = if all_lost { MAX_BATCH.min(2 * wanted) } else { limit - letters.len() };
        }
        letters.truncate(*limit);
        match lost {
            Some(position) if letters.is_empty() => Err(without_event(group, position)),
            _ => Ok(letters),
        }
    }

    /// What died after this, oldest first.
    async fn oldest_dead(
        &self,
        group: &GroupRef,
        after: Option<(i64, Position)>,
        limit: usize,
    ) -> Result<Vec<Dead>> {
        let look = |partition| {
            // Of those that died at the same time, partitions up to that of the
            // one before are through with its sequence, and the others are not.
            let (at, next) = after.map_or((Timestamp::MIN.as_micros(), 0), |(at, position)| {
                (at, position.sequence + u64::from(partition <= position.partition))
            });
            self.look_at(group, partition, "dead_letters").arg(at).arg(next).arg(limit)
        };
        let answers = self.look_everywhere(DEAD_LETTERS, group, look).await?;
        let mut page = Vec::new();
        for (partition, answer) in (0..).zip(answers) {
            let found = Vec::<(u64, u32, i64, String)>::from_redis_value(answer)
                .map_err(|_| corrupt(DEAD_LETTERS, "dead letters are other than expected"))?;
            page.extend(found.into_iter().map(|(sequence, attempt, at, reason)| Dead {
                at,
                position: Position::new(partition, sequence),
                attempt,
                reason,
            }));
        }
        page.sort_unstable_by_key(|dead| (dead.at, dead.position));
        page.truncate(limit);
        Ok(page)
    }

    /// The entries at these positions, as far as they are there.
    async fn entries_at(
        &self,
        group: &GroupRef,
        positions: &[Position],
    ) -> Result<Vec<Option<Result<Event>>>> {
        let stream = &group.stream.name;
        let read = |position: &Position| {
            let id = codec::entry_id(position.sequence);
            let mut read = cmd("XRANGE");
            read.arg(self.keys.log(stream, position.partition)).arg(&id).arg(&id);
            read
        };
        let reads: Vec<Cmd> = positions.iter().map(read).collect();
        let answers = self.read(DEAD_LETTERS, &About::from(group), &reads).await?;
        let entry = |(position, answer): (&Position, Value)| {
            let mut entries = codec::entries(answer, stream, position.partition)?;
            Ok(entries.pop().map(|(_, event)| event))
        };
        positions.iter().zip(answers).map(entry).collect()
    }

    /// When the event at `position` was given up.
    async fn died_at(&self, group: &GroupRef, position: Position) -> Result<i64> {
        let not_found = || {
            let context = format!("{position} is not in the dead-letter list");
            Error::new(ErrorKind::CursorNotFound, DEAD_LETTERS, context)
        };
        if position.partition >= group.stream.partitions {
            return Err(not_found());
        }
        let look = self.look_at(group, position.partition, "died").arg(position.sequence);
        match self.call(DEAD_LETTERS, &look).await? {
            Value::Int(at) => Ok(at),
            _ => Err(not_found()),
        }
    }

    /// Makes the same call in all partitions.
    async fn look_everywhere(
        &self,
        operation: &'static str,
        group: &GroupRef,
        look: impl Fn(u32) -> Call,
    ) -> Result<Vec<Value>> {
        let looks: Vec<Call> = (0..group.stream.partitions).map(look).collect();
        let answers = self.call_each(operation, &looks).await?;
        let answers: Result<Vec<Value>> = answers.into_iter().collect();
        match answers {
            Err(error)
                if error.kind() == ErrorKind::GroupNotFound
                    && self.finish_if_pending(operation, group).await? =>
            {
                self.call_each(operation, &looks).await?.into_iter().collect()
            }
            answers => answers,
        }
    }
}
