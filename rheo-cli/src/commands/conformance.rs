//! Running the conformance suite on a store that others may use.

mod live;
mod removal;

use std::ops::ControlFlow;
use std::panic;
use std::sync::Arc;

use clap::Args;
use rheo_conformance::{CaseReport, Law, Report, Verdict};

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use live::Live;

/// Run the conformance suite on a store, under a prefix of its own
#[derive(Debug, Args)]
#[command(
    after_help = "Cases that crash a store or cut its connections are not configured: others may \
        use it.\nWhat the rest has made is removed; on a cluster of Redis, small keys are left.\n\
        The variable RHEO_SEED sets what they draw their choices from.\n\n\
        Example: rheo --url postgres://user@host/database conformance --filter append"
)]
pub(crate) struct Conformance {
    /// Only the cases whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
}

impl Conformance {
    pub(crate) async fn run(&self, url: &str, output: Output) -> Outcome {
        let live = Arc::new(Live::new(url));
        // A case fails by panicking, and the report says so.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let checked = self.check(&live, output).await;
        panic::set_hook(hook);
        let removed = live.remove().await;
        let report = checked?;
        if report.cases.is_empty() {
            return Err(Failure::new(format!("no case has a name with {:?}", self.filter)));
        }
        if output.json {
            output.document(&report)?;
        } else {
            output.line(totals(&report))?;
        }
        removed?;
        verdict(&report)
    }

    /// Runs the cases, and tells people how each ended.
    async fn check(&self, live: &Arc<Live>, output: Output) -> Result<Report, Failure> {
        let mut told = Ok(());
        let harness = Arc::clone(live);
        let tell = |case: &CaseReport| {
            if !output.json {
                told = output.line(line(case));
            }
            if told.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let report = tokio::select! {
            report = rheo_conformance::check(harness, &self.filter, tell) => report?,
            _ = tokio::signal::ctrl_c() => return Err(Failure::new("it was interrupted")),
        };
        told?;
        Ok(report)
    }
}

fn verdict(report: &Report) -> Outcome {
    match report.totals.fail {
        0 => Ok(()),
        failed => Err(Failure::new(format!("{failed} of {} cases failed", report.cases.len()))),
    }
}

fn line(case: &CaseReport) -> String {
    let verdict = match case.verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::RefusedAsDeclared => "refused as declared",
        Verdict::NotConfigured => "not configured",
    };
    let laws: Vec<_> = case.laws.iter().map(Law::to_string).collect();
    let mut line = format!("{verdict}: {} [{}]", case.id, laws.join(" "));
    match case.verdict {
        Verdict::NotConfigured => {}
        Verdict::Fail => line.push_str(&format!(" seed {}", case.seed)),
        _ => line.push_str(&format!(" {} ms", case.milliseconds)),
    }
    if let Some(reason) = &case.reason {
        line.push_str(": ");
        line.push_str(&reason.replace('\n', "\n    "));
    }
    line
}

fn totals(report: &Report) -> String {
    let totals = report.totals;
    format!(
        "{} ({}): {} passed, {} failed, {} refused as declared, {} not configured",
        report.store,
        report.server.as_deref().unwrap_or("unknown"),
        totals.pass,
        totals.fail,
        totals.refused_as_declared,
        totals.not_configured
    )
}
