//! The saboteurs: stores that each break one law, to show that the suite
//! catches them. A case that no saboteur can make fail proves nothing.

mod claiming;
mod groups;
mod log;
mod notebook;
mod sabotaged;
mod settling;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rheo_core::backend::Backend;
use serde::Serialize;

use crate::{Law, report};
use sabotaged::Sabotage;
pub use sabotaged::Sabotaged;

macro_rules! saboteurs {
    ($($doc:literal $name:ident breaks $law:ident by $sabotage:expr, caught by [$($case:literal)*];)+) => {
        /// Someone who breaks one law of a store, and nothing else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Saboteur {
            $(#[doc = $doc] $name,)+
        }

        impl Saboteur {
            /// All of them, by the parts of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// What the store does.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$name => $doc,)+
                }
            }

            /// The law that it breaks.
            #[must_use]
            pub const fn law(self) -> Law {
                match self {
                    $(Self::$name => Law::$law,)+
                }
            }

            /// Exactly the cases that fail, in the registry's order.
            #[must_use]
            pub const fn caught_by(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$($case),*],)+
                }
            }

            fn sabotage(self) -> Box<dyn Sabotage> {
                match self {
                    $(Self::$name => Box::new($sabotage),)+
                }
            }
        }
    };
}

saboteurs! {
    "Timestamps are cut to milliseconds."
    TimestampsCut breaks S8 by log::TimestampsCut, caught by [];
    "A whole float becomes an integer."
    WholeFloatsBecomeIntegers breaks S9 by log::WholeFloatsBecomeIntegers, caught by [];
    "A given id is no idempotency key."
    IdsIgnored breaks S7 by log::IdsIgnored, caught by [];
    "A batch over several partitions is stored last to first."
    BatchReversed breaks S4 by log::BatchReversed, caught by [];
    "An event becomes readable after a later one."
    CommitsLate breaks S5 by log::CommitsLate::default(), caught by [];
    "An acked event is no longer read."
    AckedEventsVanish breaks S11 by log::AckedEventsVanish::default(), caught by [];
    "Names that differ in case alone are taken for one."
    NamesFolded breaks S12 by log::NamesFolded, caught by [];
    "On a stream that is gone, the group is said to be missing."
    GroupBeforeStream breaks S2 by groups::GroupBeforeStream, caught by [];
    "A start at an instant leaves out the event of that instant."
    StartsAfterInstant breaks G1 by log::StartsAfterInstant, caught by [];
    "Leases of a deleted group can still be settled."
    LeasesOutliveGroup breaks G2 by settling::LeasesOutliveGroup::default(), caught by [];
    "A fetch claims as many events as asked for from each partition."
    LimitPerPartition breaks C1 by claiming::LimitPerPartition, caught by [];
    "Every claim has the same fence."
    ReusesLeaseIds breaks C2 by claiming::ReusesLeaseIds, caught by [];
    "A fetch that finds nothing gets what another consumer holds."
    TwoLeasesOnOneEvent breaks C3 by claiming::TwoLeasesOnOneEvent::default(), caught by [];
    "The first partition is always served first."
    PartitionStarved breaks C4 by claiming::PartitionStarved, caught by [];
    "An expired lease is claimable one microsecond late."
    ExpiryIsLate breaks C5 by claiming::ExpiryIsLate, caught by [];
    "An event is handed out once more than its group allows."
    OneAttemptTooMany breaks C6 by claiming::OneAttemptTooMany, caught by [];
    "An ordered group is served as any other."
    OrderIgnored breaks C7 by claiming::OrderIgnored::default(), caught by [];
    "An ack ends the current lease, whatever token it shows."
    AckWithoutToken breaks L1 by settling::AckWithoutToken::default(), caught by [];
    "A settle succeeds with any receipt."
    ReceiptsNotChecked breaks L1 by settling::ReceiptsNotChecked, caught by [];
    "A lease ends when it expires, though nobody else has claimed the event."
    ExpiryEndsLeases breaks L2 by settling::ExpiryEndsLeases::default(), caught by [];
    "A second settle of the same lease succeeds."
    SecondSettleSucceeds breaks L3 by settling::SecondSettleSucceeds::default(), caught by [];
    "A released claim counts as an attempt."
    ReleaseCounts breaks L4 by settling::ReleaseCounts, caught by [];
    "A retry is claimable at once, whatever its delay."
    DelaysIgnored breaks L4 by settling::DelaysIgnored, caught by [];
    "A rejected event is acked."
    DeadLettersLost breaks L4 by settling::DeadLettersLost, caught by [];
    "A renewal lasts half as long as it says."
    RenewsForHalf breaks L5 by settling::RenewsForHalf, caught by [];
    "A stale lease has all of its batch refused."
    StaleSpoilsBatch breaks L6 by settling::StaleSpoilsBatch::default(), caught by [];
    "The frontier is the highest acked event, holes or not."
    FrontierPastHole breaks L8 by groups::FrontierPastHole::default(), caught by [];
    "A replay reopens everything from its first event on."
    ReplayReopensTheRest breaks R2 by groups::ReplayReopensTheRest, caught by [];
    "A replay starts the attempts anew."
    ReplayForgetsAttempts breaks R3 by groups::ReplayForgetsAttempts::default(), caught by [];
    "A replay passes over what is leased."
    ReplayLeavesLeases breaks R3 by groups::ReplayLeavesLeases::default(), caught by [];
    "A reset keeps the attempts."
    ResetKeepsAttempts breaks R5 by groups::ResetKeepsAttempts::default(), caught by [];
    "A reset keeps the dead-letter list."
    ResetKeepsDeadLetters breaks R5 by groups::ResetKeepsDeadLetters::default(), caught by [];
    "A replay from a point on appends a copy of its first event."
    ReplayCopies breaks R6 by groups::ReplayCopies, caught by [];
    "A descending query takes its limit from the start of the log."
    LimitBeforeOrder breaks Q2 by log::LimitBeforeOrder, caught by [];
    "An array equals each of its members."
    ArraysEqualMembers breaks Q3 by log::ArraysEqualMembers, caught by [];
    "Null equals a field that is missing."
    NullEqualsMissing breaks Q3 by log::NullEqualsMissing, caught by [];
    "A query goes through one partition after the other."
    PartitionAfterPartition breaks Q4 by log::PartitionAfterPartition, caught by [];
    "A drained group is as far behind as its stream is long, from 10 000 events on."
    LongHistoryIsLag breaks I1 by groups::LongHistoryIsLag, caught by [];
    "Expired leases are counted as leased."
    ExpiredCountAsLeased breaks I1 by groups::ExpiredCountAsLeased, caught by [];
    "The dead-letter list goes on after any position, in it or not."
    UnknownLetterAccepted breaks I1 by groups::UnknownLetterAccepted, caught by [];
}

impl Saboteur {
    /// The store, sabotaged. All clients that are to see one another share it.
    #[must_use]
    pub fn sabotaged(self, store: Arc<dyn Backend>) -> Arc<Sabotaged> {
        Arc::new(Sabotaged::new(store, self.sabotage()))
    }
}

/// A saboteur and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Exposure {
    /// The saboteur's name.
    pub saboteur: String,
    /// What the store did.
    pub description: &'static str,
    /// The law that it broke.
    pub law: Law,
    /// The cases that failed.
    pub caught_by: Vec<&'static str>,
}

impl Exposure {
    /// What became of `saboteur`, on which these cases failed.
    #[must_use]
    pub fn new(saboteur: Saboteur, caught_by: Vec<&'static str>) -> Self {
        Self {
            saboteur: format!("{saboteur:?}"),
            description: saboteur.description(),
            law: saboteur.law(),
            caught_by,
        }
    }
}

/// Writes the list as JSON to `conformance/saboteurs.json` in the target directory.
///
/// # Errors
/// Where the file cannot be written.
pub fn save(exposures: &[Exposure]) -> io::Result<PathBuf> {
    report::save_as("saboteurs", &exposures)
}
