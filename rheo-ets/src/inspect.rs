//! Inspecting a group.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::MutexGuard;

use rheo_core::backend::{DeadLetters, GroupRef, Now};
use rheo_core::progress::{Dead, Progress};
use rheo_core::{DeadLetter, Error, ErrorKind, Event, GroupInfo, Position, Result, Timestamp};

use crate::Memory;

/// The order of the dead-letter list.
type Age = (Timestamp, Position);

impl Memory {
    pub(crate) fn inspect_group(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        let (stream, found) = self.group("group_info", group)?;
        let now = now.or_system();
        let all = found.all_progress();
        let partitions = all.iter().zip(&stream.partitions);
        Ok(GroupInfo {
            name: group.name.clone(),
            max_attempts: found.settings.max_attempts,
            ordered: found.settings.ordered,
            partitions: partitions
                .map(|(progress, partition)| progress.progress(partition.high_watermark(), now))
                .collect(),
        })
    }

    pub(crate) fn list_dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        let (stream, group) = self.group("dead_letters", &request.group)?;
        let all = group.all_progress();
        let after = request.after.map(|position| age_of(&all, position)).transpose()?;
        let page = page(&all, after, request.limit);
        drop(all);
        let letter = |(position, dead): (Position, Dead)| {
            let contents = stream.partition(position.partition).read();
            let body = contents.log.get(position.sequence)?.clone();
            Some(DeadLetter {
                event: Event::new(request.group.stream.name.clone(), position, body),
                attempt: dead.attempt,
                reason: dead.reason.as_ref().into(),
                dead_at: dead.at,
            })
        };
        Ok(page.into_iter().filter_map(letter).collect())
    }
}

fn age_of(all: &[MutexGuard<'_, Progress>], position: Position) -> Result<Age> {
    let progress = all.get(position.partition as usize);
    let dead = progress.and_then(|progress| progress.dead_letter(position.sequence));
    let dead = dead.ok_or_else(|| {
        let context = format!("{position} is not in the dead-letter list");
        Error::new(ErrorKind::CursorNotFound, "dead_letters", context)
    })?;
    Ok((dead.at, position))
}

/// Merges the partitions' lists, each of which is in order.
fn page(
    all: &[MutexGuard<'_, Progress>],
    after: Option<Age>,
    limit: usize,
) -> Vec<(Position, Dead)> {
    let (at, sequence) = after.map_or((Timestamp::MIN, 0), |(at, after)| (at, after.sequence));
    let mut lists: Vec<_> = (0..)
        .zip(all)
        .map(|(partition, progress)| {
            let letters = progress.dead_letters_from(at, sequence);
            letters
                .map(move |(sequence, dead)| (dead.at, Position::new(partition, sequence)))
                .skip_while(move |&age| Some(age) <= after)
        })
        .collect();
    let mut oldest: BinaryHeap<Reverse<Age>> =
        lists.iter_mut().filter_map(Iterator::next).map(Reverse).collect();
    let mut page = Vec::new();
    while page.len() < limit
        && let Some(Reverse((_, position))) = oldest.pop()
    {
        let partition = position.partition as usize;
        oldest.extend(lists[partition].next().map(Reverse));
        let dead = all[partition].dead_letter(position.sequence);
        page.extend(dead.map(|dead| (position, dead.clone())));
    }
    page
}
