//! [`Spans`]: where a search has not yet looked.

use crate::backend::Range;
use crate::{Order, Position};

/// Parts of the log, at most one of each partition, to be gone through in the
/// order of a search.
#[derive(Clone, Debug)]
pub struct Spans {
    order: Order,
    ranges: Vec<Range>,
}

impl Spans {
    /// These ranges, without those that are empty.
    #[must_use]
    pub fn new(order: Order, ranges: Vec<Range>) -> Self {
        let mut spans = Self { order, ranges };
        spans.drop_empty();
        spans
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// In how many partitions something is left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// At most `count` of them, those that begin first.
    pub fn next(&mut self, count: usize) -> &[Range] {
        match self.order {
            Order::Ascending => self.ranges.sort_by_key(|range| (range.first, range.partition)),
            Order::Descending => {
                let key = |range: &Range| std::cmp::Reverse((range.last, range.partition));
                self.ranges.sort_by_key(key);
            }
        }
        &self.ranges[..count.min(self.ranges.len())]
    }

    /// Leaves out a partition.
    pub fn remove(&mut self, partition: u32) {
        self.ranges.retain(|range| range.partition != partition);
    }

    /// Leaves out what comes up to `end` in this partition.
    pub fn pass_in_partition(&mut self, end: Position) {
        let order = self.order;
        let of_partition = |range: &&mut Range| range.partition == end.partition;
        self.ranges.iter_mut().filter(of_partition).for_each(|range| pass(order, range, end));
        self.drop_empty();
    }

    /// Leaves out what comes up to `end`, itself included.
    pub fn pass(&mut self, end: Position) {
        let order = self.order;
        self.ranges.iter_mut().for_each(|range| pass(order, range, end));
        self.drop_empty();
    }

    /// Leaves out what comes after `end`.
    pub fn stop_at(&mut self, end: Position) {
        let order = self.order;
        self.ranges.iter_mut().for_each(|range| stop_at(order, range, end));
        self.drop_empty();
    }

    /// Takes off the part that is gone through first, `length` sequences of it;
    /// at least 1.
    #[must_use]
    pub fn take(&mut self, length: u64) -> Self {
        let more = length.saturating_sub(1);
        let first = self.ranges.iter().map(|range| range.first).min().unwrap_or(1);
        let last = self.ranges.iter().map(|range| range.last).max().unwrap_or(0);
        let end = match self.order {
            Order::Ascending => Position::new(u32::MAX, first.saturating_add(more)),
            Order::Descending => Position::new(0, last.saturating_sub(more)),
        };
        let mut taken = self.clone();
        taken.stop_at(end);
        self.pass(end);
        taken
    }

    fn drop_empty(&mut self) {
        self.ranges.retain(|range| range.first <= range.last);
    }
}

fn pass(order: Order, range: &mut Range, end: Position) {
    match order {
        Order::Ascending => {
            let after = end.sequence.saturating_add((range.partition <= end.partition).into());
            range.first = range.first.max(after);
        }
        Order::Descending => {
            let before = end.sequence.saturating_sub((range.partition >= end.partition).into());
            range.last = range.last.min(before);
        }
    }
}

fn stop_at(order: Order, range: &mut Range, end: Position) {
    match order {
        Order::Ascending => {
            let last = end.sequence.saturating_sub((range.partition > end.partition).into());
            range.last = range.last.min(last);
        }
        Order::Descending => {
            let first = end.sequence.saturating_add((range.partition < end.partition).into());
            range.first = range.first.max(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use Order::{Ascending, Descending};

    use super::*;

    const ORDERS: [Order; 2] = [Ascending, Descending];

    fn spans(order: Order) -> Spans {
        let range = |partition, first, last| Range { partition, first, last };
        Spans::new(order, vec![range(0, 1, 4), range(1, 3, 9), range(3, 2, 2), range(4, 2, 1)])
    }

    /// All positions in the order of the search.
    fn positions(spans: &Spans) -> Vec<Position> {
        let of_range = |range: &Range| {
            let partition = range.partition;
            (range.first..=range.last).map(move |sequence| Position::new(partition, sequence))
        };
        let mut all: Vec<_> = spans.ranges.iter().flat_map(of_range).collect();
        all.sort_unstable();
        if spans.order == Descending {
            all.reverse();
        }
        all
    }

    #[test]
    fn stopping_and_passing_split_at_a_position() {
        for order in ORDERS {
            let all = positions(&spans(order));
            for at in 0..all.len() {
                let (mut before, mut after) = (spans(order), spans(order));
                before.stop_at(all[at]);
                after.pass(all[at]);
                assert_eq!(
                    (positions(&before), positions(&after)),
                    (all[..=at].into(), all[at + 1..].into())
                );
            }
        }
    }

    #[test]
    fn taking_goes_by_sequence_and_leaves_nothing_out() {
        for order in ORDERS {
            let (mut rest, all) = (spans(order), positions(&spans(order)));
            let mut taken = Vec::new();
            while !rest.is_empty() {
                taken.extend(positions(&rest.take(2)));
            }
            assert_eq!(taken, all);
        }
        assert_eq!(positions(&spans(Ascending).take(0)), [Position::new(0, 1)]);
    }

    #[test]
    fn taking_skips_what_no_range_holds() {
        let range = |partition, at| Range { partition, first: at, last: at };
        let mut rest = Spans::new(Ascending, vec![range(0, 1), range(1, 500)]);
        assert_eq!(positions(&rest.take(10)), [Position::new(0, 1)]);
        assert_eq!(positions(&rest.take(10)), [Position::new(1, 500)]);
        assert!(rest.is_empty());
    }

    #[test]
    fn the_next_begin_first() {
        let mut spans = spans(Ascending);
        let next: Vec<_> = spans.next(2).iter().map(|range| range.partition).collect();
        assert_eq!(next, [0, 3]);
        spans.order = Descending;
        assert_eq!(spans.next(1)[0].partition, 1);
        spans.pass_in_partition(Position::new(1, 3));
        spans.remove(0);
        assert_eq!(positions(&spans), [Position::new(3, 2)]);
    }
}
