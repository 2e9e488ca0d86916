//! Claiming.

use std::sync::atomic::Ordering;

use rheo_core::backend::{Claim, Partitions};
use rheo_core::progress::{ClaimTurn, Granted};
use rheo_core::{Delivery, Event, Granting, Position, Result};

use crate::Memory;
use crate::partition::Partition;

impl Memory {
    /// Claims from partition after partition, each time beginning with the
    /// next one, so that a busy partition starves no other.
    pub(crate) fn claim_events(&self, request: &Claim) -> Result<Vec<Delivery>> {
        let (stream, group) = self.group("claim", &request.group)?;
        let now = request.now.or_system();
        let granting = Granting::new(request, now);
        let turn = group.turn.fetch_add(1, Ordering::Relaxed);
        let mut deliveries = Vec::new();
        for number in in_turn(&request.partitions, stream.count(), turn) {
            let partition = stream.partition(number);
            let mut progress = group.progress(number);
            let granted = progress.claim(&ClaimTurn {
                limit: request.limit - deliveries.len(),
                // Read under the group's lock, so that it never falls behind the cursor.
                high_watermark: partition.high_watermark(),
                fence: request.fence,
                now,
                expires_at: granting.expires_at(),
                settings: &group.settings,
            });
            drop(progress);
            deliver(&granted, request, number, partition, &granting, &mut deliveries);
            if deliveries.len() >= request.limit {
                break;
            }
        }
        Ok(deliveries)
    }
}

/// The partitions asked for, beginning at another one with each turn.
fn in_turn(partitions: &Partitions, count: u32, turn: usize) -> impl Iterator<Item = u32> {
    let asked = match partitions {
        Partitions::All => count as usize,
        Partitions::Only(only) => only.len(),
    };
    let first = turn % asked.max(1);
    let numbers = |skip, take| partitions.numbers(count).skip(skip).take(take);
    numbers(first, asked).chain(numbers(0, first))
}

/// Makes the deliveries of what was granted in one partition.
fn deliver(
    granted: &[Granted],
    request: &Claim,
    number: u32,
    partition: &Partition,
    granting: &Granting,
    deliveries: &mut Vec<Delivery>,
) {
    if granted.is_empty() {
        return;
    }
    let contents = partition.read();
    for run in granted {
        let events = contents.log.range(run.first, run.last);
        deliveries.extend(events.map(|(sequence, body)| {
            let position = Position::new(number, sequence);
            let event = Event::new(request.group.stream.name.clone(), position, body.clone());
            granting.delivery(event, run.attempt)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_take_turns() {
        let turn =
            |partitions: &Partitions, turn| -> Vec<u32> { in_turn(partitions, 4, turn).collect() };
        assert_eq!(turn(&Partitions::All, 0), [0, 1, 2, 3]);
        assert_eq!(turn(&Partitions::All, 6), [2, 3, 0, 1]);
        let only = Partitions::Only(vec![1, 3]);
        assert_eq!(turn(&only, 0), [1, 3]);
        assert_eq!(turn(&only, 1), [3, 1]);
    }
}
