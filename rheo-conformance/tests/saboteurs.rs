//! Every saboteur is caught, by exactly the cases that are named for it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, panic};

use libtest_mimic::{Arguments, Failed, Trial};
use rheo_conformance::saboteurs::{self, Exposure, Saboteur};
use rheo_conformance::{InProcess, report_on};
use rheo_ets::Memory;

/// What the cases draw their choices from; the lists hold for this one.
const SEED: u64 = 20_260_315;

fn main() -> ExitCode {
    // The cases are meant to panic.
    panic::set_hook(Box::new(|_| {}));
    let exposures = Arc::new(Mutex::new(BTreeMap::new()));
    let trial = |(index, &saboteur): (usize, &Saboteur)| {
        let exposures = Arc::clone(&exposures);
        Trial::test(format!("{saboteur:?}"), move || {
            let exposure = expose(saboteur);
            let expected = saboteur.caught_by();
            let verdict = judge(&exposure.caught_by, expected);
            exposures.lock().unwrap_or_else(PoisonError::into_inner).insert(index, exposure);
            verdict
        })
    };
    let trials = Saboteur::ALL.iter().enumerate().map(trial).collect();
    let mut arguments = Arguments::from_args();
    // Much of the time they wait for what does not come.
    arguments.test_threads.get_or_insert(4);
    let conclusion = libtest_mimic::run(&arguments, trials);

    let exposures = exposures.lock().unwrap_or_else(PoisonError::into_inner);
    let exposures: Vec<Exposure> = exposures.values().cloned().collect();
    for Exposure { saboteur, law, caught_by, .. } in &exposures {
        println!("{saboteur} ({law}): {}", caught_by.join(", "));
    }
    if exposures.len() == Saboteur::ALL.len() {
        match saboteurs::save(&exposures) {
            Ok(path) => println!("  report: {}", path.display()),
            Err(error) => {
                eprintln!("the report could not be written: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    conclusion.exit_code()
}

fn expose(saboteur: Saboteur) -> Exposure {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("the operating system gives threads");
    let harness = InProcess::new("memory", move || saboteur.sabotaged(Memory::new()));
    let seed = env::var("RHEO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let report = runtime.block_on(report_on(Arc::new(harness), seed));
    if env::var_os("RHEO_VERBOSE").is_some() {
        println!("{saboteur:?}: {report}");
        for case in report.cases.iter().filter(|case| case.milliseconds > 500) {
            println!("  slow: {} {} ms", case.id, case.milliseconds);
        }
    }
    Exposure::new(saboteur, report.failed())
}

fn judge(found: &[&str], expected: &[&str]) -> Result<(), Failed> {
    if found.is_empty() {
        return Err("no case fails".into());
    }
    let without = |all: &[&str], some: &[&str]| -> Vec<String> {
        all.iter().filter(|id| !some.contains(id)).map(|id| (*id).to_owned()).collect()
    };
    let (missed, surplus) = (without(expected, found), without(found, expected));
    if missed.is_empty() && surplus.is_empty() {
        return Ok(());
    }
    Err(format!("should fail and pass: {missed:?}; should pass and fail: {surplus:?}").into())
}
