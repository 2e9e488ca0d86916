//! Running the suite: as a test binary, or for its report alone.

use std::future::Future;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{any::Any, env, process};

use futures::future::Either;
use futures::{FutureExt, StreamExt};
use libtest_mimic::{Arguments, Failed};
use rheo_core::backend::Backend;
use rheo_core::{Capabilities, Guarantee};
use tokio::runtime::Runtime;
use tokio::sync::RwLock;

use crate::cases::refusals;
use crate::{
    Case, CaseReport, Harness, InProcess, NotConfigured, Report, Trial, Verdict, registry,
};

/// How long a case may take before it counts as stuck.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// The same for [`report_on`], whose stores are broken and near.
const REPORT_TIMEOUT: Duration = Duration::from_secs(12);

/// How many cases [`report_on`] runs at a time.
const CASES_AT_A_TIME: usize = 8;

/// Runs the suite on a backend that lives in this process, as a test binary.
pub fn run_in_process<B: Backend>(
    store: &str,
    make: impl Fn() -> Arc<B> + Send + Sync + 'static,
) -> ExitCode {
    let harness = InProcess::new(store, make);
    run(store, async move { Ok(harness) })
}

/// Runs the suite on a store, as a test binary: filters and flags are those of
/// `cargo test`, and a run without a filter leaves its report as JSON.
///
/// `start` makes the store ready once, in the suite's own tokio runtime, or
/// tells what is missing.
pub fn run<H: Harness>(
    store: &str,
    start: impl Future<Output = Result<H, NotConfigured>>,
) -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Arc::new(runtime());
    let suite = match runtime.block_on(start) {
        Ok(harness) => {
            runtime.block_on(Suite::begin(Arc::new(harness))).expect("the store answers")
        }
        Err(missing) => Suite::without_store(store, missing),
    };
    let suite = Arc::new(suite);
    let trials = registry().into_iter().map(|case| suite.trial(&runtime, case)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if arguments.list {
        return conclusion.exit_code();
    }
    let report = suite.report();
    println!("{report}");
    let whole = arguments.filter.is_none() && arguments.skip.is_empty();
    if whole {
        match report.save() {
            Ok(path) => println!("  report: {}", path.display()),
            Err(error) => {
                eprintln!("the report could not be written: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    if let Some(problem) = suite.required_but_missing().or_else(|| nothing_ran(&report, whole)) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Runs the whole suite on a store for its report, some cases at a time, with
/// random choices drawn from `seed`. It needs a multi-thread tokio runtime.
pub async fn report_on(harness: Arc<dyn Harness>, seed: u64) -> Report {
    let mut suite = Suite::begin(harness).await.expect("the store answers");
    (suite.seed, suite.patience) = (seed, REPORT_TIMEOUT);
    let suite = Arc::new(suite);
    let started = registry().into_iter().map(|case| {
        let suite = Arc::clone(&suite);
        async move { tokio::spawn(async move { suite.run_case(case).await }).await }
    });
    let ended = futures::stream::iter(started).buffer_unordered(CASES_AT_A_TIME);
    ended.for_each(|case| async { drop(case.expect("a case ends")) }).await;
    suite.report()
}

/// Runs the cases whose id contains `filter` on a store, one after the other,
/// and tells of each as it ends, until that answers with a break. It needs a
/// multi-thread tokio runtime.
///
/// # Errors
/// Those of the harness, where it opens no client; `Unavailable` where the
/// store does not answer.
///
/// # Cancellation
/// The case that runs is dropped. What the cases have made is left to the
/// caller, as it is after a run to the end.
pub async fn check(
    harness: Arc<dyn Harness>,
    filter: &str,
    mut tell: impl FnMut(&CaseReport) -> ControlFlow<()>,
) -> rheo_core::Result<Report> {
    let suite = Suite::begin(harness).await?;
    for case in registry().into_iter().filter(|case| case.id.contains(filter)) {
        if tell(&suite.run_case(case).await).is_break() {
            break;
        }
    }
    Ok(suite.report())
}

fn nothing_ran(report: &Report, whole: bool) -> Option<String> {
    (whole && report.cases.is_empty()).then(|| "no case ran".into())
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("the operating system gives threads")
}

/// One run of the cases on one store.
struct Suite {
    store: String,
    harness: Result<Arc<dyn Harness>, NotConfigured>,
    server: Option<String>,
    capabilities: Option<Capabilities>,
    seed: u64,
    patience: Duration,
    /// Held for reading by each case, and for writing by one that runs alone.
    stage: RwLock<()>,
    reports: Mutex<Vec<CaseReport>>,
}

impl Suite {
    async fn begin(harness: Arc<dyn Harness>) -> rheo_core::Result<Self> {
        let backend = harness.open("suite").await?;
        let server = backend.ping().await?;
        Ok(Self {
            store: harness.store().into(),
            harness: Ok(harness),
            server: Some(format!("{} {}", server.product, server.version)),
            capabilities: Some(backend.capabilities()),
            seed: seed(),
            patience: CASE_TIMEOUT,
            stage: RwLock::default(),
            reports: Mutex::default(),
        })
    }

    fn without_store(store: &str, missing: NotConfigured) -> Self {
        Self {
            store: store.into(),
            harness: Err(missing),
            server: None,
            capabilities: None,
            seed: seed(),
            patience: CASE_TIMEOUT,
            stage: RwLock::default(),
            reports: Mutex::default(),
        }
    }

    fn trial(self: &Arc<Self>, runtime: &Arc<Runtime>, case: Case) -> libtest_mimic::Trial {
        let (suite, runtime) = (Arc::clone(self), Arc::clone(runtime));
        let ignored = self.harness.is_err();
        if ignored {
            self.record(case, Verdict::NotConfigured, None, Duration::ZERO);
        }
        let test = move || {
            let report = runtime.block_on(suite.run_case(case));
            match report.verdict {
                Verdict::Fail => Err(Failed::from(report.reason.unwrap_or_default())),
                _ => Ok(()),
            }
        };
        libtest_mimic::Trial::test(case.id, test).with_ignored_flag(ignored)
    }

    /// Runs a case, or its refusal twin where the backend does not claim what
    /// the case needs.
    async fn run_case(&self, case: Case) -> CaseReport {
        let (Ok(harness), Some(capabilities)) = (&self.harness, self.capabilities) else {
            return self.record(case, Verdict::NotConfigured, None, Duration::ZERO);
        };
        if case.alone && !harness.is_own() {
            let reason = Some("it breaks what others use".into());
            return self.record(case, Verdict::NotConfigured, reason, Duration::ZERO);
        }
        let space = format!("{}-{}-{}", case.id, process::id(), self.seed);
        let trial = Trial::new(Arc::clone(harness), space, self.seed, case.alone);
        let claimed = |guarantee: &&Guarantee| !capabilities.guarantees.get(**guarantee);
        let missing: Vec<Guarantee> = case.needs.iter().filter(claimed).copied().collect();
        let _turn = match case.alone {
            true => Either::Left(self.stage.write().await),
            false => Either::Right(self.stage.read().await),
        };
        let begun = Instant::now();
        let (verdict, reason) = if missing.is_empty() {
            match shielded(self.patience, (case.run)(trial)).await {
                Ok(()) => (Verdict::Pass, None),
                Err(reason) => (Verdict::Fail, Some(reason)),
            }
        } else {
            match shielded(self.patience, refusals::check(trial, missing.clone())).await {
                Ok(()) => (Verdict::RefusedAsDeclared, Some(not_claimed(&missing))),
                Err(reason) => (Verdict::Fail, Some(reason)),
            }
        };
        if let Some(proxy) = harness.proxy().filter(|_| case.alone) {
            proxy.mend().await;
        }
        self.record(case, verdict, reason, begun.elapsed())
    }

    fn record(
        &self,
        case: Case,
        verdict: Verdict,
        reason: Option<String>,
        took: Duration,
    ) -> CaseReport {
        let report = CaseReport {
            id: case.id,
            laws: case.laws,
            verdict,
            reason,
            seed: self.seed,
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.push(report.clone());
        report
    }

    fn report(&self) -> Report {
        let mut cases = self.reports.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let order: Vec<_> = registry().iter().map(|case| case.id).collect();
        cases.sort_by_key(|case| order.iter().position(|id| *id == case.id));
        Report::new(self.store.clone(), self.server.clone(), self.capabilities, cases)
    }

    /// What to say where `RHEO_REQUIRE` names a store that cannot be had.
    fn required_but_missing(&self) -> Option<String> {
        let missing = self.harness.as_ref().err()?;
        println!("{} is not configured: {}", self.store, missing.fix);
        is_required(&self.store)
            .then(|| format!("RHEO_REQUIRE names {}, which is not configured", self.store))
    }
}

fn not_claimed(missing: &[Guarantee]) -> String {
    let names: Vec<_> = missing.iter().map(|guarantee| guarantee.as_str()).collect();
    format!("not claimed: {}", names.join(", "))
}

/// Whether `RHEO_REQUIRE` names the store, so that it must not be missing.
#[must_use]
pub fn is_required(store: &str) -> bool {
    let required = env::var("RHEO_REQUIRE").unwrap_or_default();
    required.split([',', ' ']).any(|name| name == store)
}

/// The seed of the run: `RHEO_SEED`, or a new one.
pub(crate) fn seed() -> u64 {
    let given = env::var("RHEO_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| fastrand::u64(..))
}

/// Runs a case to its end, its panic or its timeout.
async fn shielded(patience: Duration, case: impl Future<Output = ()>) -> Result<(), String> {
    let case = AssertUnwindSafe(tokio::time::timeout(patience, case)).catch_unwind();
    match case.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(format!("it did not end within {patience:?}")),
        Err(panic) => Err(panic_message(&*panic)),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked without a message").into()
}
