//! The model check: random programs of operations run on the store and on the
//! pure state machine of `rheo-core`, and are compared after every step. A
//! program on which they differ is shrunk to a small one.

mod pair;
mod program;
mod spec;

use std::cell::Cell;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tokio::runtime::Handle;

use crate::Trial;
use crate::case::case_table;
use pair::Pair;
use program::{Program, Shape};

/// How many programs a case runs.
const PROGRAMS: u32 = 64;

case_table! {
    "model.unordered" [C2 C3 C4 C5 C6 L1 L2 L3 L4 L5 L6 L8 R1 R2 R3 R4 R5 I1] => unordered;
    "model.ordered" [C2 C3 C4 C5 C6 C7 L1 L2 L3 L4 L5 L6 L8 R1 R2 R3 R4 R5 I1]
        needs [OrderedDelivery] => ordered;
}

/// An unordered group does what the state machine says.
async fn unordered(trial: Trial) {
    check(&trial, false).await;
}

/// An ordered group does what the state machine says.
async fn ordered(trial: Trial) {
    check(&trial, true).await;
}

async fn check(trial: &Trial, ordered: bool) {
    let guarantees = trial.capabilities().await.guarantees;
    let shape = Shape {
        partitions: if guarantees.partitions { 2 } else { 1 },
        replay: guarantees.replay,
        ordered,
    };
    let rheo = trial.rheo().await;
    let runtime = Handle::current();
    // The runner calls what it tests, so it cannot itself be waited for.
    let found = tokio::task::block_in_place(|| {
        let count = Cell::new(0);
        runner(trial.seed()).run(&program::programs(shape), |program| {
            count.set(count.get() + 1);
            let stream = format!("program {}", count.get());
            runtime.block_on(run(trial, &rheo, &stream, &program)).map_err(TestCaseError::fail)
        })
    });
    match found {
        Ok(()) => {}
        Err(TestError::Fail(why, program)) => panic!("{why}, in the program\n{program}"),
        Err(TestError::Abort(why)) => panic!("no programs could be made: {why}"),
    }
}

async fn run(
    trial: &Trial,
    rheo: &rheo_core::Rheo,
    stream: &str,
    program: &Program,
) -> Result<(), String> {
    let mut pair = Pair::new(trial, rheo, stream, program).await?;
    for (number, step) in (1..).zip(&program.steps) {
        let taken = async {
            pair.take(step).await?;
            pair.compare().await
        };
        let at_step = |why| format!("after step {number}, {why}");
        taken.await.map_err(at_step)?;
    }
    Ok(())
}

fn runner(seed: u64) -> TestRunner {
    let config = Config {
        cases: PROGRAMS,
        failure_persistence: None,
        max_shrink_iters: 256,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}
