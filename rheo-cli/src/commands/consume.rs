//! Running a command for each event of a group.

mod lines;
mod process;
mod shell;

use std::io;
use std::iter;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use rheo::runtime::{Counts, Drained};
use rheo::{Consumer, Delivery, Handler, Retry, Rheo};
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval};

use self::shell::Shell;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::parse;
use crate::signals::Signals;

/// How often it looks at how the consumer is doing.
const LOOK: Duration = Duration::from_millis(100);

const HELP: &str = "\
The event is one line of JSON on the command's standard input. These variables tell of it: \
RHEO_STREAM, RHEO_GROUP, RHEO_PARTITION, RHEO_SEQUENCE, RHEO_POSITION, RHEO_ID, RHEO_TIMESTAMP, \
RHEO_TYPE, RHEO_KEY (where it has one) and RHEO_ATTEMPT. The command has handled the event when it \
and what it has started have closed their output.

Status 0 acks the event and 75 retries it; --on-failure says what any other does. A command that \
a signal ends is retried. The first line on its standard error is kept as the reason. A command \
whose lease is lost, or whose time is up, is killed with all it has started.

Ctrl-C or SIGTERM lets running commands end and hands back the rest; a second one ends at once.

Example: rheo --url sqlite:rheo.db consume orders billing --exec 'jq -r .payload.total' --until-drained";

/// Run a command for each event of a group
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Consume {
    /// The stream
    stream: String,
    /// The group
    group: String,
    /// The command, run by sh for each event
    #[arg(long, value_name = "COMMAND")]
    exec: String,
    /// What becomes of an event whose command fails
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnFailure::Retry)]
    on_failure: OnFailure,
    /// How long a retry waits, such as 10s; not at all by default
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    retry_after: Option<Duration>,
    /// How long the command may take before it is killed and its event retried
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    timeout: Option<Duration>,
    /// How many commands run at once
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// Take events of this partition only; may be given more than once
    #[arg(long, value_name = "PARTITION")]
    partition: Vec<u32>,
    /// How long others wait for the events of a process that has died
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    lease: Option<Duration>,
    /// End when the command has been run for so many events
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroU64>,
    /// End when the group's lag is 0, in the partitions given if any
    #[arg(long)]
    until_drained: bool,
}

/// What becomes of an event whose command fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnFailure {
    /// It comes again, and is a dead letter once its attempts are used up
    Retry,
    /// It is a dead letter at once
    Reject,
}

/// Why consuming ends.
enum End {
    Asked,
    Limit,
    Drained,
    /// The commands' output can not be passed on.
    Output(io::Error),
}

impl Consume {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        let mut signals = Signals::catch()?;
        let (consumer, mut ends) = self.start(rheo).await?;
        let end = tokio::select! {
            () = signals.next() => Ok(End::Asked),
            Some(end) = ends.recv() => Ok(end),
            end = self.look_after(rheo, &consumer) => end,
        };
        let running = consumer.health().running;
        if matches!(end, Ok(End::Asked)) && running > 0 {
            anstream::eprintln!(
                "rheo: ending once {running} running are done, or at another Ctrl-C"
            );
        }
        let drained = drain(&consumer, &mut signals).await?;
        if !drained.left.is_empty() {
            return Err(Failure::new(format!(
                "ended at once with {} left, to come again when their leases expire",
                drained.left.len()
            )));
        }
        // Commands may have found the output closed since it began to end.
        let mut ends = iter::once(end?).chain(iter::from_fn(|| ends.try_recv().ok()));
        let error = ends.find_map(|end| match end {
            End::Output(error) => Some(error),
            End::Asked | End::Limit | End::Drained => None,
        });
        match error {
            Some(error) => Err(error.into()),
            None => Summary::from(consumer.health().counts).show(output),
        }
    }

    async fn start(&self, rheo: &Rheo) -> Result<(Consumer, UnboundedReceiver<End>), Failure> {
        let concurrency = usize::from(self.concurrency);
        // A few ahead, so that none waits for the store; the rest is for others.
        let ahead = concurrency * 2;
        let limit = self.limit.map(|limit| usize::try_from(limit.get()).unwrap_or(usize::MAX));
        let mut consumer = rheo
            .consumer(&self.stream, &self.group)
            .concurrency(concurrency)
            .max_demand(limit.map_or(ahead, |limit| limit.min(ahead)));
        if let Some(timeout) = self.timeout {
            consumer = consumer.handler_timeout(timeout);
        }
        if let Some(lease) = self.lease {
            consumer = consumer.lease(lease);
        }
        if !self.partition.is_empty() {
            consumer = consumer.partitions(self.partition.clone());
        }
        let retry_after = self.retry_after.unwrap_or_default();
        let shell = Shell::new(&self.exec, self.on_failure, retry_after)?;
        let (ends, ended) = unbounded_channel();
        let limit = self.limit.map_or(u64::MAX, NonZeroU64::get);
        let handling = Handling { shell: Arc::new(shell), limit, begun: AtomicU64::new(0), ends };
        Ok((consumer.start(handling).await?, ended))
    }

    /// Tells of a store that is away, and returns once the group is drained,
    /// where that is asked for.
    async fn look_after(&self, rheo: &Rheo, consumer: &Consumer) -> Result<End, Failure> {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut away = false;
        loop {
            looks.tick().await;
            let health = consumer.health();
            let fails = health.consecutive_failures > 0;
            match (away, fails, health.last_error) {
                (false, true, Some(error)) => anstream::eprintln!("rheo: trying again: {error}"),
                (true, false, _) => anstream::eprintln!("rheo: the store answers again"),
                _ => {}
            }
            away = fails;
            if self.until_drained && health.unsettled == 0 && self.is_drained(rheo).await? {
                return Ok(End::Drained);
            }
        }
    }

    async fn is_drained(&self, rheo: &Rheo) -> Result<bool, Failure> {
        let partitions = match rheo.lag(&self.stream, &self.group).await {
            Ok(lag) => lag.partitions,
            Err(error) if error.retry() == Retry::Never => return Err(error.into()),
            Err(_) => return Ok(false),
        };
        let ours = |number: usize| {
            self.partition.is_empty() || self.partition.iter().any(|&ours| ours as usize == number)
        };
        let mut numbered = partitions.iter().enumerate();
        Ok(numbered.all(|(number, progress)| !ours(number) || progress.lag() == 0))
    }
}

/// Lets running commands end, but kills them at the next signal.
async fn drain(consumer: &Consumer, signals: &mut Signals) -> Result<Drained, Failure> {
    let drained = tokio::select! {
        drained = consumer.drain(Duration::MAX) => Some(drained?),
        () = signals.next() => None,
    };
    match drained {
        Some(drained) => Ok(drained),
        None => Ok(consumer.drain(Duration::ZERO).await?),
    }
}

/// Runs the command for each event, up to the limit.
struct Handling {
    shell: Arc<Shell>,
    limit: u64,
    begun: AtomicU64,
    ends: UnboundedSender<End>,
}

impl Handler for Handling {
    async fn handle(&self, delivery: Delivery) -> rheo::Outcome {
        let before = self.begun.fetch_add(1, Ordering::Relaxed);
        if before >= self.limit {
            return rheo::Outcome::Release;
        }
        if before + 1 == self.limit {
            self.end(End::Limit);
        }
        match self.shell.run(&delivery).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.end(End::Output(error));
                rheo::Outcome::Release
            }
        }
    }
}

impl Handling {
    fn end(&self, end: End) {
        // Nobody listens where it ends already.
        let _ = self.ends.send(end);
    }
}

/// What has been done.
#[derive(Serialize)]
struct Summary {
    acked: u64,
    retried: u64,
    rejected: u64,
    released: u64,
    lost: u64,
}

impl From<Counts> for Summary {
    fn from(counts: Counts) -> Self {
        Self {
            acked: counts.acked,
            retried: counts.retried,
            rejected: counts.rejected,
            released: counts.released,
            lost: counts.stale,
        }
    }
}

impl Summary {
    /// On standard error, as standard output is the commands', or as the last
    /// line of JSON.
    fn show(&self, output: Output) -> Outcome {
        if output.json {
            return output.json_line(self);
        }
        let Self { acked, retried, rejected, released, lost } = self;
        anstream::eprintln!(
            "{acked} acked, {retried} retried, {rejected} rejected, {released} released, {lost} lost"
        );
        Ok(())
    }
}
