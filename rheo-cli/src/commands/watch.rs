//! Watching lag, rates and dead letters.

mod look;
mod screen;

use std::time::Duration;

use clap::Args;
use rheo::{Error, Retry, Rheo};
use tokio::time::{MissedTickBehavior, interval};

use self::look::Look;
use self::screen::Screen;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::parse;
use crate::signals::Signals;

const HELP: &str = "\
On a terminal the table is redrawn in place until Ctrl-C; elsewhere there is one for each interval. \
Rates are of the last interval: SETTLED/S is how fast everything up to an event is acked or \
dead-lettered.

Example: rheo --url sqlite:rheo.db watch orders --interval 5s";

/// Watch lag, rates and dead letters, redrawn in place
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Watch {
    /// The stream; all by default
    stream: Option<String>,
    /// How often to look
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse::duration)]
    interval: Duration,
    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

impl Watch {
    pub(crate) async fn run(&self, rheo: &Rheo, output: Output) -> Outcome {
        if self.interval.is_zero() {
            return Err(Failure::usage("the interval is longer than zero"));
        }
        let mut signals = Signals::catch()?;
        // Dropped by the signal, the screen is as it was before.
        tokio::select! {
            outcome = self.watch(rheo, output) => outcome,
            () = signals.next() => Ok(()),
        }
    }

    async fn watch(&self, rheo: &Rheo, output: Output) -> Outcome {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        let mut last = Look::take(rheo, self.stream.as_deref()).await?;
        let mut view = View::new(output)?;
        view.show(&last)?;
        let mut left = self.count.map(|count| count - 1);
        while left != Some(0) {
            ticks.tick().await;
            match Look::take(rheo, self.stream.as_deref()).await {
                Ok(look) => {
                    last = look.since(&last);
                    view.show(&last)?;
                }
                Err(error) if error.retry() == Retry::Never => return Err(error.into()),
                Err(error) => view.trouble(&error)?,
            }
            left = left.map(|left| left - 1);
        }
        Ok(())
    }
}

/// Where the looks are shown.
enum View {
    Json(Output),
    Plain { output: Output, begun: bool },
    Redrawn { screen: Screen, table: String },
}

impl View {
    fn new(output: Output) -> Result<Self, Failure> {
        let redraws = output.is_terminal() && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        Ok(match (output.json, redraws) {
            (true, _) => Self::Json(output),
            (false, false) => Self::Plain { output, begun: false },
            (false, true) => Self::Redrawn { screen: Screen::begin()?, table: String::new() },
        })
    }

    fn show(&mut self, look: &Look) -> Outcome {
        match self {
            Self::Json(output) => output.json_line(look),
            Self::Plain { output, begun } => {
                if std::mem::replace(begun, true) {
                    output.line("")?;
                }
                output.table(&look.table())
            }
            Self::Redrawn { screen, table } => {
                *table = look.table().text();
                Ok(screen.draw(table)?)
            }
        }
    }

    /// Tells that a look failed; what was seen before stays.
    fn trouble(&mut self, error: &Error) -> Outcome {
        match self {
            Self::Json(_) | Self::Plain { .. } => {
                anstream::eprintln!("rheo: trying again: {error}");
                Ok(())
            }
            Self::Redrawn { screen, table } => {
                Ok(screen.draw(&format!("trying again: {error}\n{table}"))?)
            }
        }
    }
}
