//! Looking at a group: its progress and its dead letters.

use std::collections::{BTreeMap, HashMap};

use mongodb::ClientSession;
use mongodb::bson::{Document, doc};
use rheo_core::backend::{DeadLetters, GroupRef, Now};
use rheo_core::{
    DeadLetter, Error, ErrorKind, Event, GroupInfo, PartitionProgress, Position, Result, Timestamp,
};
use serde::Deserialize;

use crate::Store;
use crate::codec;
use crate::collections::all;
use crate::error::Failure;
use crate::operation::Operation;
use crate::state::{Beside, Member, long, of_group, of_partition};

/// How far has this group come?
pub(crate) struct InspectGroup {
    pub(crate) group: GroupRef,
    pub(crate) now: Now,
}

/// The open events of a partition.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Open {
    #[serde(rename = "_id")]
    partition: u32,
    lowest: u64,
    count: u64,
    leased: u64,
}

/// The dead letters of a partition.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Dead {
    #[serde(rename = "_id")]
    partition: u32,
    count: u64,
}

impl Operation for InspectGroup {
    const NAME: &'static str = "group_info";
    type Output = GroupInfo;

    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<GroupInfo, Failure> {
        let Self { group: name, now } = self;
        let numbers: Vec<u32> = (0..name.stream.partitions).collect();
        let group = store.find_group(session, Self::NAME, name, &numbers, Beside::Ends, *now);
        let group = group.await?;

        let counting = store.collections.runs.aggregate(count_open(name, group.now));
        let cursor = counting.with_type::<Open>().session(&mut *session).await?;
        let open = all(cursor, session).await?;
        let open = open.into_iter().map(|open| (open.partition, open)).collect();

        let counting = store.collections.dead_letters.aggregate(count_dead(name));
        let cursor = counting.with_type::<Dead>().session(&mut *session).await?;
        let dead = all(cursor, session).await?;
        let dead = dead.into_iter().map(|dead| (dead.partition, dead.count)).collect();

        let progress = |member: &Member| progress(member, &group.ends, &open, &dead);
        Ok(GroupInfo {
            name: name.name.clone(),
            max_attempts: group.settings.max_attempts,
            ordered: group.settings.ordered,
            partitions: group.members.iter().map(progress).collect(),
        })
    }
}

fn count_open(group: &GroupRef, now: Timestamp) -> [Document; 2] {
    let has_fence = doc! { "$ne": ["$fence", null] };
    let lasts = doc! { "$gt": ["$due", now.as_micros()] };
    let length = doc! { "$add": [{ "$subtract": ["$last", "$first"] }, 1_i64] };
    let leased = doc! { "$cond": [{ "$and": [has_fence, lasts] }, &length, 0_i64] };
    let counts = doc! {
        "_id": "$partition",
        "lowest": { "$min": "$first" },
        "count": { "$sum": length },
        "leased": { "$sum": leased },
    };
    [doc! { "$match": of_group(group) }, doc! { "$group": counts }]
}

fn count_dead(group: &GroupRef) -> [Document; 2] {
    let counts = doc! { "_id": "$partition", "count": { "$sum": 1_i64 } };
    [doc! { "$match": of_group(group) }, doc! { "$group": counts }]
}

fn progress(
    member: &Member,
    ends: &BTreeMap<u32, u64>,
    open: &BTreeMap<u32, Open>,
    dead: &BTreeMap<u32, u64>,
) -> PartitionProgress {
    let number = &member.partition;
    let open = open.get(number);
    let leased = open.map_or(0, |open| open.leased);
    PartitionProgress {
        high_watermark: ends.get(number).copied().unwrap_or(0),
        frontier: open.map_or(member.cursor, |open| open.lowest.saturating_sub(1)),
        leased,
        waiting: open.map_or(0, |open| open.count.saturating_sub(leased)),
        dead_letters: dead.get(number).copied().unwrap_or(0),
    }
}

/// A dead letter as it is stored, without its event.
#[derive(Debug, Deserialize)]
struct Letter {
    partition: u32,
    sequence: u64,
    attempt: u32,
    reason: String,
    at: i64,
}

impl Letter {
    fn position(&self) -> Position {
        Position::new(self.partition, self.sequence)
    }

    /// Its place in the list.
    fn age(&self) -> Age {
        Age { at: self.at, position: self.position() }
    }
}

/// The place of a dead letter in the list.
#[derive(Clone, Copy)]
struct Age {
    at: i64,
    position: Position,
}

impl Age {
    /// Before every dead letter.
    const OLDEST: Self = Self { at: i64::MIN, position: Position::new(0, 0) };
}

impl Operation for DeadLetters {
    const NAME: &'static str = "dead_letters";
    type Output = Vec<DeadLetter>;

    /// A letter whose event has vanished from the store cannot be shown. It is
    /// passed over, so that it hides no other, and told in the log; where there
    /// is nothing else to show, the answer is `Corrupt` and names it.
    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let looking =
            store.find_group(session, Self::NAME, &self.group, &[0], Beside::Nothing, Now::Store);
        looking.await?;
        let mut after = match self.after {
            Some(position) => age_of(self, store, session, position).await?,
            None => Age::OLDEST,
        };
        let (mut letters, mut vanished) = (Vec::new(), None);
        loop {
            let wanted = self.limit - letters.len();
            let page = page(self, store, session, after, wanted).await?;
            let mut events = events_of(self, store, session, &page).await?;
            let is_last = page.len() < wanted;
            for letter in page {
                after = letter.age();
                match events.remove(&after.position) {
                    Some(event) => letters.push(with_event(letter, event)),
                    None => {
                        tell_missing(self, after.position);
                        vanished = vanished.or(Some(after.position));
                    }
                }
            }
            if is_last || letters.len() == self.limit {
                break;
            }
        }
        match vanished {
            Some(position) if letters.is_empty() => Err(missing(self, position).into()),
            _ => Ok(letters),
        }
    }
}

fn with_event(letter: Letter, event: Event) -> DeadLetter {
    DeadLetter {
        event,
        attempt: letter.attempt,
        reason: letter.reason,
        dead_at: Timestamp::from_micros(letter.at),
    }
}

fn tell_missing(request: &DeadLetters, position: Position) {
    let GroupRef { stream, name: group } = &request.group;
    let stream = &stream.name;
    tracing::error!(%stream, %group, %position, "the event of a dead letter is missing");
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

/// The letters after one in the list.
async fn page(
    request: &DeadLetters,
    store: &Store,
    session: &mut ClientSession,
    after: Age,
    limit: usize,
) -> Result<Vec<Letter>, Failure> {
    let Age { at, position } = after;
    let sequence = long(position.sequence);
    let mut younger = of_group(&request.group);
    younger.extend(doc! {
        "at": { "$gte": at },
        "$or": [
            { "at": { "$gt": at } },
            { "sequence": { "$gt": sequence } },
            { "sequence": sequence, "partition": { "$gt": position.partition } },
        ],
    });
    let letters = store.collections.dead_letters.clone_with_type::<Letter>();
    let finding = letters.find(younger).sort(doc! { "at": 1, "sequence": 1, "partition": 1 });
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let cursor = finding.limit(limit).session(&mut *session).await?;
    all(cursor, session).await
}

/// The events of these letters, as far as they are there.
async fn events_of(
    request: &DeadLetters,
    store: &Store,
    session: &mut ClientSession,
    letters: &[Letter],
) -> Result<HashMap<Position, Event>, Failure> {
    let stream = &request.group.stream.name;
    let mut sequences: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for letter in letters {
        sequences.entry(letter.partition).or_default().push(long(letter.sequence));
    }
    let mut found = HashMap::new();
    if sequences.is_empty() {
        return Ok(found);
    }
    let in_partition = |(partition, sequences)| {
        doc! { "stream": stream.as_str(), "partition": partition, "sequence": { "$in": sequences } }
    };
    let wanted: Vec<Document> = sequences.into_iter().map(in_partition).collect();
    let finding = store.collections.events.find(doc! { "$or": wanted });
    let cursor = finding.session(&mut *session).await?;
    for document in all(cursor, session).await? {
        let event = codec::event(&document, stream)?;
        found.insert(event.position(), event);
    }
    Ok(found)
}

/// The place of the letter at this position: `CursorNotFound`.
async fn age_of(
    request: &DeadLetters,
    store: &Store,
    session: &mut ClientSession,
    position: Position,
) -> Result<Age, Failure> {
    let mut letter = of_partition(&request.group, position.partition);
    letter.insert("sequence", long(position.sequence));
    let letters = store.collections.dead_letters.clone_with_type::<Letter>();
    let found = letters.find_one(letter).session(session).await?;
    let found = found.ok_or_else(|| {
        let context = format!("{position} is not in the dead-letter list");
        Error::new(ErrorKind::CursorNotFound, DeadLetters::NAME, context)
    })?;
    Ok(found.age())
}
