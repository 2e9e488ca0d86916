//! Searching by reading everything.

use rheo_core::Result;
use rheo_core::adapter::Spans;
use rheo_core::backend::Range;

use super::Finder;

impl Finder<'_> {
    /// Goes through these ranges together, window after window, until enough
    /// is found.
    pub(super) async fn walk(&mut self, ranges: Vec<Range>) -> Result<()> {
        let mut spans = Spans::new(self.request.order, ranges);
        while !spans.is_empty() && !self.has_enough() {
            let length = (self.page / spans.len()).max(1);
            let mut window = spans.take(length as u64);
            let together = (self.page / length).max(1);
            for ranges in window.next(usize::MAX).chunks(together) {
                self.look_into(ranges).await?;
            }
        }
        Ok(())
    }
}
