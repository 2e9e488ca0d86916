//! Measuring: turns that end, rates, and what several runs come to.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;

use crate::failure::Failure;

/// How long one turn of one side may take.
const TURN: Duration = Duration::from_secs(1);

/// A turn of one side, which ends when its time is up.
pub(crate) struct Turn {
    begun: Instant,
    lasts: Duration,
}

impl Turn {
    pub(crate) fn begin() -> Self {
        Self::lasting(TURN)
    }

    pub(crate) fn lasting(lasts: Duration) -> Self {
        Self { begun: Instant::now(), lasts }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.lasts
    }
}

/// What several runs came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// None of no numbers.
    pub(crate) fn of(mut numbers: Vec<f64>) -> Option<Self> {
        numbers.sort_by(f64::total_cmp);
        let (least, greatest) = (*numbers.first()?, *numbers.last()?);
        let middle = numbers.len() / 2;
        let median = match numbers.len() % 2 {
            0 => (numbers[middle - 1] + numbers[middle]) / 2.0,
            _ => numbers[middle],
        };
        Some(Self { median, least, greatest })
    }
}

/// Lets the bare driver and Rheo take turns, with a number each: first in a
/// warm-up that does not count, then in so many runs. A bare driver that is not
/// asked for answers none.
pub(crate) async fn take_turns(
    runs: u32,
    mut raw: impl AsyncFnMut(u32) -> Result<Option<f64>, Failure>,
    mut ours: impl AsyncFnMut(u32) -> Result<f64, Failure>,
) -> Result<Turns, Failure> {
    let mut turns = Turns { raw: Vec::new(), ours: Vec::new() };
    for run in 0..=runs {
        let (theirs, mine) = (raw(run).await?, ours(run).await?);
        if run > 0 {
            turns.raw.extend(theirs);
            turns.ours.push(mine);
        }
    }
    Ok(turns)
}

/// What both sides came to, run by run.
pub(crate) struct Turns {
    pub(crate) raw: Vec<f64>,
    pub(crate) ours: Vec<f64>,
}

/// Runs tasks side by side that answer how many events they did; how many that
/// is in a second.
pub(crate) async fn at_once<F>(tasks: Vec<F>) -> Result<f64, Failure>
where
    F: Future<Output = Result<u64, Failure>> + Send + 'static,
{
    let begun = Instant::now();
    let mut running: JoinSet<_> = tasks.into_iter().collect();
    let mut events = 0;
    while let Some(ended) = running.join_next().await {
        events += ended.map_err(|error| Failure::new(error.to_string()))??;
    }
    Ok(events as f64 / begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        let spread = Spread::of(vec![4.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.least, spread.median, spread.greatest), (1.0, 2.0, 4.0));
        assert_eq!(Spread::of(vec![1.0, 4.0]).unwrap().median, 2.5);
        assert!(Spread::of(Vec::new()).is_none());
    }
}
