//! Searching by reading everything.

use rheo_core::backend::Range;
use rheo_core::{Order, Result};

use super::Finder;

impl Finder<'_> {
    /// Goes through these ranges together, window after window, until enough
    /// is found.
    pub(super) async fn walk(&mut self, mut rest: Vec<Range>) -> Result<()> {
        while !rest.is_empty() && !self.has_enough() {
            let length = (self.page / rest.len()).max(1);
            let window = take(self.request.order, &mut rest, length as u64);
            let together = (self.page / length).max(1);
            for ranges in window.chunks(together) {
                self.look_into(ranges).await?;
            }
        }
        Ok(())
    }
}

/// Takes off what a search comes to first: a window of so many sequences.
fn take(order: Order, ranges: &mut Vec<Range>, length: u64) -> Vec<Range> {
    let mut window = Vec::with_capacity(ranges.len());
    match order {
        Order::Ascending => {
            let first = ranges.iter().map(|range| range.first).min().unwrap_or(1);
            let end = first.saturating_add(length);
            for range in &mut *ranges {
                window.push(Range { last: range.last.min(end - 1), ..*range });
                range.first = range.first.max(end);
            }
        }
        Order::Descending => {
            let last = ranges.iter().map(|range| range.last).max().unwrap_or(0);
            let end = last.saturating_sub(length);
            for range in &mut *ranges {
                window.push(Range { first: range.first.max(end + 1), ..*range });
                range.last = range.last.min(end);
            }
        }
    }
    for part in [&mut window, ranges] {
        part.retain(|range| range.first <= range.last);
    }
    window
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(partition: u32, first: u64, last: u64) -> Range {
        Range { partition, first, last }
    }

    #[test]
    fn windows_go_by_sequence_and_leave_nothing_out() {
        let all = vec![range(0, 1, 4), range(1, 3, 9), range(3, 8, 8)];
        let windows = |order| {
            let mut rest = all.clone();
            let mut windows = Vec::new();
            while !rest.is_empty() {
                windows.push(take(order, &mut rest, 3));
            }
            windows
        };
        let ascending = [
            vec![range(0, 1, 3), range(1, 3, 3)],
            vec![range(0, 4, 4), range(1, 4, 6)],
            vec![range(1, 7, 9), range(3, 8, 8)],
        ];
        assert_eq!(windows(Order::Ascending), ascending);
        let descending = [
            vec![range(1, 7, 9), range(3, 8, 8)],
            vec![range(0, 4, 4), range(1, 4, 6)],
            vec![range(0, 1, 3), range(1, 3, 3)],
        ];
        assert_eq!(windows(Order::Descending), descending);
    }

    #[test]
    fn windows_skip_what_no_range_holds() {
        let mut rest = vec![range(0, 1, 1), range(1, 500, 500)];
        assert_eq!(take(Order::Ascending, &mut rest, 10), [range(0, 1, 1)]);
        assert_eq!(take(Order::Ascending, &mut rest, 10), [range(1, 500, 500)]);
        assert_eq!(rest, []);
    }
}
