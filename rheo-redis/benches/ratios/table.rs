//! The table of results.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often both sides of a row take turns, after a round that does not count.
pub(crate) const ROUNDS: usize = 7;

/// What is compared with what.
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    /// What both numbers count.
    pub(crate) unit: &'a str,
    pub(crate) target: &'a str,
}

pub(crate) fn begin(version: &str) {
    println!("\n{version}\n");
    println!("| row | bare, or before | Rheo, or after | unit | ratio | target |");
    println!("|---|---:|---:|---|---:|---|");
}

impl Row<'_> {
    /// Prints pairs: the side that is compared with, and the side that is
    /// measured.
    pub(crate) fn print(&self, pairs: &[(f64, f64)]) {
        let mut ratios: Vec<f64> = pairs.iter().map(|(base, ours)| ours / base).collect();
        ratios.sort_by(f64::total_cmp);
        let base = median(pairs.iter().map(|pair| pair.0).collect());
        let ours = median(pairs.iter().map(|pair| pair.1).collect());
        let (least, greatest) = (ratios[0], ratios[ratios.len() - 1]);
        println!(
            "| {} | {base:.0} | {ours:.0} | {} | **{:.2}** ({least:.2} to {greatest:.2}) | {} |",
            self.name,
            self.unit,
            median(ratios),
            self.target
        );
    }
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len().is_multiple_of(2) {
        (numbers[middle - 1] + numbers[middle]) / 2.0
    } else {
        numbers[middle]
    }
}

/// How many go by in a second.
pub(crate) fn rate(count: u64, spent: Duration) -> f64 {
    count as f64 / spent.as_secs_f64()
}

/// How many microseconds something takes.
pub(crate) async fn micros(work: impl Future<Output = ()>) -> f64 {
    let begun = Instant::now();
    work.await;
    begun.elapsed().as_secs_f64() * 1e6
}

/// Runs all at once, and returns how long that took.
pub(crate) async fn side_by_side<F>(tasks: impl IntoIterator<Item = F>) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let begun = Instant::now();
    let mut running: JoinSet<()> = tasks.into_iter().collect();
    while let Some(ended) = running.join_next().await {
        ended.expect("it ends well");
    }
    begun.elapsed()
}
