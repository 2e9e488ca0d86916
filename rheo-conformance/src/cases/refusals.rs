//! The refusal twins: what is not claimed is refused, where it is asked for.

use rheo_core::{
    Confirm, ErrorKind, GroupOptions, Guarantee, Replay, ReplayOptions, Result, Rheo, Start,
};

use crate::Trial;

/// Asserts that each of these guarantees, which the backend does not claim, is
/// refused as `Unsupported`: at the start, and at every operation that needs it.
pub(crate) async fn check(trial: Trial, missing: Vec<Guarantee>) {
    let rheo = trial.rheo().await;
    for guarantee in missing {
        let built = trial.builder().await.require(guarantee).build().await;
        refused(guarantee, built.map(drop));
        at_operations(&rheo, guarantee).await;
    }
}

async fn at_operations(rheo: &Rheo, guarantee: Guarantee) {
    match guarantee {
        Guarantee::Partitions => refused(guarantee, rheo.create_stream("s", 2).await),
        Guarantee::OrderedDelivery => {
            let options = GroupOptions::default().ordered(true);
            refused(guarantee, rheo.create_group("s", "g", options).await);
        }
        Guarantee::Replay => {
            let options = ReplayOptions::default();
            refused(guarantee, rheo.replay("s", "g", Replay::AfterSequence(0), options).await);
            let reset = rheo.reset_group("s", "g", Confirm::Yes, Start::Beginning).await;
            refused(guarantee, reset);
        }
        Guarantee::Durable
        | Guarantee::Distributed
        | Guarantee::ContiguousFrontier
        | Guarantee::AtomicBatch
        | Guarantee::Transactional
        | Guarantee::StoreClock
        | Guarantee::OrderedRangeScan
        | Guarantee::SecondaryIndexes
        | Guarantee::BatchWrites => {}
    }
}

fn refused(guarantee: Guarantee, result: Result<()>) {
    let error = result.expect_err(guarantee.as_str());
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.context().contains(guarantee.as_str()), "{error}");
}
