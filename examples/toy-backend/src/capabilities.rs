//! What this backend promises.
//!
//! Every field is written out, so that a guarantee that Rheo adds later does
//! not compile here until somebody has decided. What is `false` costs nothing:
//! the handle refuses it before the backend is asked, and the suite checks that.

use rheo_core::{Capabilities, Guarantees, Limits, Mechanisms};

pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    guarantees: Guarantees {
        // All is gone with the process, and no other process can reach it.
        durable: false,
        distributed: false,
        // One partition for each stream keeps the code short.
        partitions: false,
        // `Progress` keeps the frontier; so it would replay and order, but a
        // toy may promise less than it could.
        contiguous_frontier: true,
        replay: false,
        ordered_delivery: false,
        transactional: false,
        // The one mutex makes any batch all-or-nothing.
        atomic_batch: true,
        // The process's clock is the store's clock: there is nobody else.
        store_clock: true,
        // A vector finds a sequence at once, and anything else by looking at all.
        ordered_range_scan: true,
        secondary_indexes: false,
        batch_writes: true,
    },
    mechanisms: Mechanisms {
        atomic_compare_and_set: true,
        notifications: true,
        change_feed: false,
        native_consumer_groups: false,
        native_pending_list: false,
        native_reclaim: false,
        blocking_reads: false,
        native_group_lag: false,
        // There is no round trip to save here; it shows that the handle then
        // gathers writes, and runs the suite on that path.
        coalesced_writes: true,
    },
    limits: Limits { event_bytes: 16 << 20 },
};
