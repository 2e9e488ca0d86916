//! Replay: making events claimable again without copying them.

use super::fetch::chosen_partitions;
use super::streams::Known;
use super::{MAX_BATCH, Rheo};
use crate::backend::{self, DeadLetters, GroupRef, Partitions, Range, Seek};
use crate::{Error, ErrorKind, Event, Guarantee, Position, Query, Result, Timestamp};

/// Which events become claimable again.
#[derive(Clone, Debug, PartialEq)]
pub enum Replay {
    /// Every event above this sequence.
    AfterSequence(u64),
    /// Every event from the first one at or after this instant, in each
    /// partition by itself.
    From(Timestamp),
    /// Exactly the events that match; the query's limit and order do not count.
    Matching(Query),
    /// The events at these positions, each of which must exist.
    Positions(Vec<Position>),
    /// The group's dead letters.
    DeadLetters,
}

/// How a replay is narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    partitions: Option<Vec<u32>>,
}

impl ReplayOptions {
    /// The partitions to replay in; by default all.
    #[must_use]
    pub fn partitions(mut self, partitions: impl Into<Vec<u32>>) -> Self {
        self.partitions = Some(partitions.into());
        self
    }
}

impl Rheo {
    /// Makes events of a group claimable again, dead letters included: current
    /// leases on them become stale, attempt counts are kept. Nothing is
    /// copied, and other groups notice nothing.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `Unsupported` where the backend has no replay.
    /// A position that is not in the log is `Invalid`.
    ///
    /// # Cancellation
    /// Each event is then either replayed or as it was.
    pub async fn replay(
        &self,
        stream: &str,
        group: &str,
        selection: Replay,
        options: ReplayOptions,
    ) -> Result<()> {
        self.need("replay", Guarantee::Replay)?;
        let mut known = self.known("replay", stream).await?;
        loop {
            let mut result = self.replay_known(&known, group, &selection, &options).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    async fn replay_known(
        &self,
        known: &Known,
        group: &str,
        selection: &Replay,
        options: &ReplayOptions,
    ) -> Result<()> {
        let group = known.group("replay", group)?;
        let count = known.stream.partitions;
        let chosen = chosen_partitions("replay", options.partitions.as_deref(), count)?;
        // The group is looked up first, so that nothing is searched for a group that is missing.
        self.read_call("replay", || self.store().group_info(&group, self.clock().judge())).await?;
        match selection {
            Replay::AfterSequence(after) => {
                let starts = vec![*after; count as usize];
                self.reopen(&group, ranges_after(&chosen, &starts)).await
            }
            Replay::From(instant) => {
                let seek = Seek::At(*instant);
                let starts =
                    self.read_call("replay", || self.store().seek(&group.stream, seek)).await?;
                self.reopen(&group, ranges_after(&chosen, &starts)).await
            }
            Replay::Matching(query) => self.replay_matching(&group, query, &chosen).await,
            Replay::Positions(positions) => {
                self.check_positions(&group, positions).await?;
                let chosen = |position: &&Position| is_chosen(&chosen, position.partition);
                let positions = positions.iter().filter(chosen).copied().collect();
                self.reopen(&group, ranges_of(positions)).await
            }
            Replay::DeadLetters => self.replay_dead_letters(&group, &chosen).await,
        }
    }

    /// Searches up to the log's end as it is now, and reopens in one step.
    async fn replay_matching(
        &self,
        group: &GroupRef,
        query: &Query,
        chosen: &Partitions,
    ) -> Result<()> {
        let stream = &group.stream;
        let query = query.clone().ascending().limit(MAX_BATCH);
        query.validate(stream.partitions).map_err(|error| error.in_operation("replay"))?;
        let ends = self.ends("replay", stream).await?;
        let mut searched = vec![0; ends.len()];
        let mut matching = Vec::new();
        loop {
            let events = self.walk("replay", stream, &query, &mut searched, &ends).await?;
            matching.extend(events.iter().map(Event::position));
            if events.len() < MAX_BATCH {
                break;
            }
        }
        matching.retain(|position| is_chosen(chosen, position.partition));
        self.reopen(group, ranges_of(matching)).await
    }

    /// The list is read to its end before anything is reopened, since reopening shortens it.
    async fn replay_dead_letters(&self, group: &GroupRef, chosen: &Partitions) -> Result<()> {
        let mut positions = Vec::new();
        let mut after = None;
        loop {
            let limit = MAX_BATCH;
            let request = DeadLetters { group: group.clone(), after, limit };
            let page = self.read_call("replay", || self.store().dead_letters(&request)).await;
            let page = match page {
                // Somebody else took that letter off the list: begin again.
                Err(error) if error.kind() == ErrorKind::CursorNotFound => {
                    positions.clear();
                    after = None;
                    continue;
                }
                page => page?,
            };
            positions.extend(page.iter().map(crate::DeadLetter::position));
            if page.len() < limit {
                break;
            }
            after = positions.last().copied();
        }
        positions.retain(|position| is_chosen(chosen, position.partition));
        self.reopen(group, ranges_of(positions)).await
    }

    async fn check_positions(&self, group: &GroupRef, positions: &[Position]) -> Result<()> {
        let stream = &group.stream;
        let ends = self.ends("replay", stream).await?;
        let exists = |position: &Position| {
            let end = ends.get(position.partition as usize).copied().unwrap_or(0);
            (1..=end).contains(&position.sequence)
        };
        match positions.iter().find(|position| !exists(position)) {
            None => Ok(()),
            Some(wrong) => {
                let context = format!(
                    "there is no event {} in partition {} of stream {:?}",
                    wrong.sequence, wrong.partition, stream.name
                );
                Err(Error::invalid("replay", context))
            }
        }
    }

    async fn reopen(&self, group: &GroupRef, ranges: Vec<Range>) -> Result<()> {
        if ranges.is_empty() {
            return Ok(());
        }
        let request = backend::Replay { group: group.clone(), ranges };
        self.write_call("replay", || self.store().replay(&request)).await
    }
}

fn is_chosen(chosen: &Partitions, partition: u32) -> bool {
    match chosen {
        Partitions::All => true,
        Partitions::Only(partitions) => partitions.binary_search(&partition).is_ok(),
    }
}

fn ranges_after(chosen: &Partitions, starts: &[u64]) -> Vec<Range> {
    let range = |(partition, &after): (u32, &u64)| {
        (after < u64::MAX).then(|| Range { partition, first: after + 1, last: u64::MAX })
    };
    (0..)
        .zip(starts)
        .filter(|(partition, _)| is_chosen(chosen, *partition))
        .filter_map(range)
        .collect()
}

/// The positions as disjoint ascending ranges, neighbours joined.
fn ranges_of(mut positions: Vec<Position>) -> Vec<Range> {
    positions.sort_unstable_by_key(|position| (position.partition, position.sequence));
    positions.dedup();
    let mut ranges: Vec<Range> = Vec::new();
    for Position { partition, sequence } in positions {
        match ranges.last_mut() {
            Some(range) if range.partition == partition && range.last + 1 == sequence => {
                range.last = sequence;
            }
            _ => ranges.push(Range { partition, first: sequence, last: sequence }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_become_disjoint_ascending_ranges() {
        let at = Position::new;
        let ranges = ranges_of(vec![at(1, 3), at(0, 2), at(1, 2), at(0, 5), at(0, 2)]);
        let plain: Vec<_> =
            ranges.iter().map(|range| (range.partition, range.first, range.last)).collect();
        assert_eq!(plain, [(0, 2, 2), (0, 5, 5), (1, 2, 3)]);
    }

    #[test]
    fn nothing_lies_after_the_last_sequence() {
        let starts = [u64::MAX, 7, 9];
        let ranges = ranges_after(&Partitions::Only(vec![0, 1]), &starts);
        assert_eq!(ranges.len(), 1);
        assert_eq!((ranges[0].partition, ranges[0].first), (1, 8));
    }
}
