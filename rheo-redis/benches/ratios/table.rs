//! The table of results.

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

/// How many microseconds something takes.
pub(crate) async fn micros<T>(work: impl Future<Output = T>) -> (f64, T) {
    let begun = Instant::now();
    let done = work.await;
    (begun.elapsed().as_secs_f64() * 1e6, done)
}

/// Rounds in which both sides take turns, call by call. A call answers how
/// long it took; a pair has the medians of a round.
pub(crate) async fn take_turns(
    calls: usize,
    mut base: impl AsyncFnMut() -> f64,
    mut ours: impl AsyncFnMut() -> f64,
) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        let mut spent = (Vec::new(), Vec::new());
        for _ in 0..calls {
            spent.0.push(base().await);
            spent.1.push(ours().await);
        }
        pairs.push((median(spent.0), median(spent.1)));
    }
    pairs.split_off(1)
}

/// Pairs of times in microseconds as rates, where so many go by in that time.
pub(crate) fn rates(count: u64, pairs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let rate = |spent: f64| count as f64 / spent * 1e6;
    pairs.iter().map(|&(base, ours)| (rate(base), rate(ours))).collect()
}

/// Runs all at once, and returns how many microseconds that took.
pub(crate) async fn side_by_side<F>(tasks: impl IntoIterator<Item = F>) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let begun = Instant::now();
    let mut running: JoinSet<()> = tasks.into_iter().collect();
    while let Some(ended) = running.join_next().await {
        ended.expect("it ends well");
    }
    begun.elapsed().as_secs_f64() * 1e6
}
