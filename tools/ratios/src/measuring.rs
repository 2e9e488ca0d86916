//! Measuring: both sides in turns, and what they took.

use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often both sides take turns, after a round that does not count.
pub const ROUNDS: usize = 7;

/// The number in the middle.
#[must_use]
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len().is_multiple_of(2) {
        (numbers[middle - 1] + numbers[middle]) / 2.0
    } else {
        numbers[middle]
    }
}

/// How many microseconds something takes, and what it answers.
pub async fn micros<T>(work: impl Future<Output = T>) -> (f64, T) {
    let begun = Instant::now();
    let done = work.await;
    (begun.elapsed().as_secs_f64() * 1e6, done)
}

/// [`ROUNDS`] in which both sides take turns, as [`one_round`] has it.
pub async fn take_turns(
    calls: usize,
    mut base: impl AsyncFnMut() -> f64,
    mut ours: impl AsyncFnMut() -> f64,
) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        pairs.push(one_round(calls, &mut base, &mut ours).await);
    }
    pairs.split_off(1)
}

/// A round in which both sides take turns, call by call. A call answers how
/// long it took; the pair has the medians.
pub async fn one_round(
    calls: usize,
    mut base: impl AsyncFnMut() -> f64,
    mut ours: impl AsyncFnMut() -> f64,
) -> (f64, f64) {
    let mut spent = (Vec::new(), Vec::new());
    for _ in 0..calls {
        spent.0.push(base().await);
        spent.1.push(ours().await);
    }
    (median(spent.0), median(spent.1))
}

/// How many go by in a second, where so many go by in these microseconds.
#[must_use]
pub fn rate(count: u64, micros: f64) -> f64 {
    count as f64 / micros * 1e6
}

/// Pairs of times in microseconds as rates, where so many go by in that time.
#[must_use]
pub fn rates(count: u64, pairs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    pairs.iter().map(|&(base, ours)| (rate(count, base), rate(count, ours))).collect()
}

/// Runs all at once, and returns how many microseconds that took.
pub async fn side_by_side<F>(tasks: impl IntoIterator<Item = F>) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let at_once = async {
        let mut running: JoinSet<()> = tasks.into_iter().collect();
        while let Some(ended) = running.join_next().await {
            ended.expect("it ends well");
        }
    };
    micros(at_once).await.0
}
