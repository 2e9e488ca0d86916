//! Measuring a store through the handle that applications use, and beside its
//! bare driver. A file for each subject.

mod append;
mod bytes;
mod consume;
mod crowd;
mod events;
mod latency;
mod length;
mod measuring;
mod place;
mod raw;
mod report;
mod setting;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use place::{Place, STORES};
use report::{NotMeasured, Report, StoreReport, Subject};
use setting::Setting;

/// Measure a store, also against its bare driver
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo bench --url sqlite:rheo.db --raw --only append consume")]
pub(crate) struct Bench {
    /// Let the bare driver do the least that could be called the same work, in turns with Rheo
    #[arg(long)]
    raw: bool,

    /// Measure every store that can be started here
    #[arg(long)]
    all: bool,

    /// Measure these subjects only
    #[arg(long, value_enum, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    only: Vec<Subject>,

    /// How many events a log has; the long one has ten times as many
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..))]
    events: u64,

    /// How many runs there are, after a warm-up
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Print one table in Markdown, for a document
    #[arg(long)]
    markdown: bool,
}

impl Bench {
    pub(crate) async fn run(&self, url: Option<&str>, output: Output) -> Outcome {
        if self.markdown && output.json {
            return Err(Failure::usage("either --json or --markdown"));
        }
        let mut report = Report::new(self.runs);
        let failed = match (self.all, url) {
            (true, _) => self.measure_all(&mut report).await,
            (false, Some(url)) => {
                report.stores.push(self.measure(&Place::at(url).await?).await?);
                Vec::new()
            }
            (false, None) => {
                return Err(Failure::usage(
                    "which store? --url sqlite:rheo.db says so, or --all of them",
                ));
            }
        };
        self.show(&report, output)?;
        match &failed[..] {
            [] => Ok(()),
            failed => Err(Failure::new(format!("the bench failed on {}", failed.join(", ")))),
        }
    }

    /// Measures what can be started; the stores that failed meanwhile.
    async fn measure_all(&self, report: &mut Report) -> Vec<&'static str> {
        let mut failed = Vec::new();
        for store in STORES {
            let place = match Place::start(store).await {
                Ok(place) => place,
                Err(reason) => {
                    report.not_measured.push(reason);
                    continue;
                }
            };
            match self.measure(&place).await {
                Ok(measured) => report.stores.push(measured),
                Err(failure) => {
                    report.not_measured.push(NotMeasured { store, why: sentence(failure) });
                    failed.push(store);
                }
            }
        }
        failed
    }

    async fn measure(&self, place: &Place) -> Result<StoreReport, Failure> {
        let events = place.bearable(self.events);
        let raw = self.raw && raw::is_there(&place.url);
        let setting = Setting { place, runs: self.runs, events, raw };
        let mut report = place.report(events);
        if self.raw && !raw {
            report.notes.push(format!("raw: there is no bare driver of {}", place.store));
        }
        if events < self.events {
            report.notes.push(format!("events: it is too slow for more than {events}"));
        }
        let progress = ProgressBar::new_spinner();
        for &subject in Subject::value_variants() {
            if self.only.is_empty() || self.only.contains(&subject) {
                progress.set_message(format!("{}: {subject:?}", place.store));
                progress.tick();
                measure(subject, &setting, &mut report).await?;
            }
        }
        progress.finish_and_clear();
        Ok(report)
    }

    fn show(&self, report: &Report, output: Output) -> Outcome {
        if output.json {
            return output.document(report);
        }
        if self.markdown {
            return output.line(report.markdown().trim_end());
        }
        for store in &report.stores {
            output.line(store.title())?;
            output.table(&store.table())?;
            for note in &store.notes {
                output.line(note)?;
            }
            output.line("")?;
        }
        for NotMeasured { store, why } in &report.not_measured {
            output.line(format!("{store}: {why}"))?;
        }
        Ok(())
    }
}

/// A failure as it is told.
fn sentence(failure: Failure) -> String {
    match failure {
        Failure::Told(sentence) | Failure::Usage(sentence) => sentence,
        Failure::Closed => "nobody listens".into(),
    }
}

async fn measure(subject: Subject, setting: &Setting<'_>, report: &mut StoreReport) -> Outcome {
    let rows = match subject {
        Subject::Bytes => match bytes::measure(setting).await? {
            Ok(row) => vec![row],
            Err(note) => {
                report.notes.push(note);
                Vec::new()
            }
        },
        Subject::Append => append::measure(setting).await?,
        Subject::Consume => consume::measure(setting).await?,
        Subject::Latency => latency::measure(setting).await?,
        Subject::Groups => crowd::groups(setting).await?,
        Subject::Workers => crowd::workers(setting).await?,
        Subject::Length => length::measure(setting).await?,
    };
    report.rows.extend(rows);
    Ok(())
}
