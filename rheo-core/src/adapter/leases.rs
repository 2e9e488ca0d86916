//! [`Leases`]: settlements or tokens, by where their events lie.

use crate::Token;
use crate::backend::Range;

/// Items about leases, by partition and sequence.
#[derive(Debug)]
pub struct Leases<'a, T> {
    items: &'a [T],
    /// Their places, by partition, and by sequence inside it.
    order: Vec<usize>,
    token: fn(&T) -> &Token,
}

impl<'a, T> Leases<'a, T> {
    /// These items, whose tokens `token` knows.
    #[must_use]
    pub fn of(items: &'a [T], token: fn(&T) -> &Token) -> Self {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|&at| {
            let position = token(&items[at]).lease_id.position();
            (position.partition, position.sequence)
        });
        Self { items, order, token }
    }

    /// The items, in the order given.
    #[must_use]
    pub fn items(&self) -> &'a [T] {
        self.items
    }

    fn token(&self, at: usize) -> &'a Token {
        (self.token)(&self.items[at])
    }

    fn partition(&self, at: usize) -> u32 {
        self.token(at).lease_id.position().partition
    }

    /// Each partition that has some, ascending, and the places of its items.
    pub fn by_partition(&self) -> impl Iterator<Item = (u32, &[usize])> {
        let places = self.order.chunk_by(|&a, &b| self.partition(a) == self.partition(b));
        places.map(|places| (self.partition(places[0]), places))
    }

    /// Where they lie, neighbours together.
    #[must_use]
    pub fn ranges(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for &at in &self.order {
            let position = self.token(at).lease_id.position();
            match ranges.last_mut() {
                Some(range)
                    if range.partition == position.partition
                        && position.sequence <= range.last.saturating_add(1) =>
                {
                    range.last = position.sequence;
                }
                _ => ranges.push(Range {
                    partition: position.partition,
                    first: position.sequence,
                    last: position.sequence,
                }),
            }
        }
        ranges
    }
}

/// The ranges with their neighbours, so that kept attempts join.
#[must_use]
pub fn widened(ranges: &[Range]) -> Vec<Range> {
    let widen = |range: &Range| Range {
        first: range.first.saturating_sub(1),
        last: range.last.saturating_add(1),
        ..*range
    };
    ranges.iter().map(widen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fence, LeaseId, Position};

    fn range(partition: u32, first: u64, last: u64) -> Range {
        Range { partition, first, last }
    }

    #[test]
    fn leases_are_found_where_their_events_lie() {
        let token = |&(partition, sequence): &(u32, u64)| {
            let position = Position::new(partition, sequence);
            Token::new(LeaseId::new(Fence::from_u128(1), position))
        };
        let tokens: Vec<_> = [(1, 7), (0, 5), (1, 6), (1, 6), (1, 9)].iter().map(token).collect();
        let leases = Leases::of(&tokens, |token| token);
        let places: Vec<_> = leases.by_partition().collect();
        assert_eq!(places, [(0, &[1][..]), (1, &[2, 3, 0, 4][..])]);
        let ranges = [range(0, 5, 5), range(1, 6, 7), range(1, 9, 9)];
        assert_eq!(leases.ranges(), ranges);
        assert_eq!(widened(&ranges[..1]), [range(0, 4, 6)]);
    }
}
