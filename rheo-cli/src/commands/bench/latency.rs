//! From the call of append to the handler of a consumer, one event at a time.

use std::time::{Duration, Instant};

use rheo::{Delivery, GroupOptions, Start};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::events::events;
use super::measuring::{Spread, Turn};
use super::report::{Row, Subject};
use super::setting::{Log, Setting};
use crate::failure::Failure;

/// How many events a run has at most, of all events of a log one in so many.
const MOST: u64 = 1000;
const ONE_IN: u64 = 10;
/// How long a run takes at most.
const RUN: Duration = Duration::from_secs(5);
/// How long an event may take.
const PATIENCE: Duration = Duration::from_secs(30);

const SHARES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)];

pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Vec<Row>, Failure> {
    let work = async |log: &Log| {
        let mut runs = SHARES.map(|_| Vec::new());
        for run in 0..=setting.runs {
            let spent = run_once(setting, log, &format!("{run}")).await?;
            if run > 0 {
                for (numbers, (_, share)) in runs.iter_mut().zip(SHARES) {
                    numbers.push(at_share(&spent, share));
                }
            }
        }
        let row = |((name, _), numbers): ((&str, f64), Vec<f64>)| {
            let measure = format!("from append to the handler, {name}");
            Some(Row::new(Subject::Latency, measure, "µs", Spread::of(numbers)?))
        };
        Ok(SHARES.into_iter().zip(runs).filter_map(row).collect())
    };
    setting.on_log("latency", 1, 0, work).await
}

/// How many microseconds each event took, sorted.
async fn run_once(setting: &Setting<'_>, log: &Log, group: &str) -> Result<Vec<f64>, Failure> {
    let rheo = setting.rheo();
    let from_here = GroupOptions::default().start(Start::End);
    rheo.create_group(&log.stream, group, from_here).await?;
    let (sender, mut handled) = unbounded_channel();
    let handler = move |delivery: Delivery| {
        // Nobody listens any more once the run is over.
        let _ = sender.send((delivery.event.sequence(), Instant::now()));
        async {}
    };
    let consumer = rheo.consumer(&log.stream, group).start(handler).await?;
    let count = (setting.events / ONE_IN).clamp(1, MOST);
    let (turn, mut spent) = (Turn::lasting(RUN), Vec::new());
    for event in events(0, count, 0) {
        if turn.is_over() {
            break;
        }
        let begun = Instant::now();
        let sequence = rheo.append(&log.stream, event).await?.sequence();
        let at = handled_at(&mut handled, sequence).await?;
        spent.push((at - begun).as_secs_f64() * 1e6);
    }
    consumer.drain(PATIENCE).await?;
    spent.sort_by(f64::total_cmp);
    Ok(spent)
}

async fn handled_at(
    handled: &mut UnboundedReceiver<(u64, Instant)>,
    sequence: u64,
) -> Result<Instant, Failure> {
    let search = async {
        loop {
            match handled.recv().await {
                Some((found, at)) if found == sequence => return Some(at),
                Some(_) => {}
                None => return None,
            }
        }
    };
    let found = timeout(PATIENCE, search).await.ok().flatten();
    found.ok_or_else(|| Failure::new("an event has not come to its handler"))
}

/// The time that this share of the events did not exceed.
fn at_share(sorted: &[f64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_from_what_is_sorted() {
        let times: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(at_share(&times, 0.5), 500.0);
        assert_eq!(at_share(&times, 0.99), 990.0);
        assert_eq!(at_share(&times, 0.999), 999.0);
        assert_eq!(at_share(&[7.0], 0.999), 7.0);
    }
}
