//! What a backend guarantees, and by which means.

use std::fmt;

use serde::Serialize;

macro_rules! flags {
    (
        $(#[$set_doc:meta])* $set:ident,
        $(#[$flag_doc:meta])* $flag:ident:
        $($(#[$doc:meta])* $field:ident $variant:ident,)+
    ) => {
        $(#[$set_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub struct $set {
            $($(#[$doc])* pub $field: bool,)+
        }

        impl $set {
            /// Whether `flag` is claimed.
            #[must_use]
            pub const fn get(&self, flag: $flag) -> bool {
                match flag {
                    $($flag::$variant => self.$field,)+
                }
            }
        }

        $(#[$flag_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $flag {
            $($(#[$doc])* $variant,)+
        }

        impl $flag {
            /// All of them, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name, as the field is called.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($field),)+
                }
            }
        }

        impl fmt::Display for $flag {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

flags! {
    /// What a backend promises. Whatever is claimed here, the conformance
    /// suite has exercised; whatever is not, is refused as `Unsupported`.
    ///
    /// At-least-once delivery and fenced settling are no fields: every backend has them.
    Guarantees,
    /// One of the [`Guarantees`], to ask for with
    /// [`require`](crate::Builder::require).
    Guarantee:
    /// What was acknowledged survives a crash of the store.
    durable Durable,
    /// Several processes can share one store.
    distributed Distributed,
    /// A stream can have more than one partition.
    partitions Partitions,
    /// Progress is a frontier that never passes an event that is not settled.
    contiguous_frontier ContiguousFrontier,
    /// Settled events can be made claimable again, without copying them.
    replay Replay,
    /// A group can be `ordered`: one run of a partition at a time, in order, through retries.
    ordered_delivery OrderedDelivery,
    /// A batch is written wholly or not at all, also across partitions.
    atomic_batch AtomicBatch,
    /// Replay and reset take effect wholly or not at all, also across
    /// partitions, wherever they are cut off.
    transactional Transactional,
    /// The store's own clock judges leases, whatever its clients' clocks say.
    store_clock StoreClock,
    /// A range of sequences is found without reading what lies before it.
    ordered_range_scan OrderedRangeScan,
    /// Events of one type, key or lineage value are found without reading the others.
    secondary_indexes SecondaryIndexes,
    /// A batch of writes costs one round trip.
    batch_writes BatchWrites,
}

flags! {
    /// The means by which a backend does its work: facts for operators and
    /// for the handle, nothing to rely on.
    Mechanisms,
    /// One of the [`Mechanisms`].
    Mechanism:
    /// A settle is a compare-and-set inside the store.
    atomic_compare_and_set AtomicCompareAndSet,
    /// The store tells waiting consumers that work has arrived.
    notifications Notifications,
    /// Waiting rides on the store's change feed.
    change_feed ChangeFeed,
    /// Groups are the store's own consumer groups.
    native_consumer_groups NativeConsumerGroups,
    /// Open leases stand in the store's own pending list.
    native_pending_list NativePendingList,
    /// Expired leases are taken over by the store's own command.
    native_reclaim NativeReclaim,
    /// A read can block inside the store until something arrives.
    blocking_reads BlockingReads,
    /// The store itself counts a group's lag.
    native_group_lag NativeGroupLag,
    /// Each call costs a round trip or a flush to disk, so the handle gathers
    /// concurrent small writes into one.
    coalesced_writes CoalescedWrites,
}

/// Bounds that the store itself sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// The largest event that fits, in encoded bytes.
    pub event_bytes: usize,
}

/// What one backend, as connected, promises and how it works.
///
/// Adapters write every field out, so a new one does not compile until each
/// has taken a stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// What is promised.
    pub guarantees: Guarantees,
    /// By which means.
    pub mechanisms: Mechanisms,
    /// Within which bounds.
    pub limits: Limits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_fields_names() {
        assert_eq!(Guarantee::ALL.len(), 12);
        assert_eq!(Guarantee::OrderedRangeScan.to_string(), "ordered_range_scan");
        assert_eq!(Mechanism::ALL.len(), 9);
    }
}
