//! The cases, one file for each part of the contract.

pub(crate) mod appending;
pub(crate) mod claiming;
pub(crate) mod consuming;
pub(crate) mod content;
pub(crate) mod cutting;
pub(crate) mod draining;
pub(crate) mod dropping;
pub(crate) mod expiring;
pub(crate) mod failing;
pub(crate) mod fencing;
pub(crate) mod finding;
pub(crate) mod frontier;
pub(crate) mod groups;
pub(crate) mod guarantees;
pub(crate) mod identity;
pub(crate) mod inspecting;
pub(crate) mod matching;
pub(crate) mod names;
pub(crate) mod ordering;
pub(crate) mod outages;
pub(crate) mod paging;
pub(crate) mod poison;
pub(crate) mod races;
pub(crate) mod reading;
pub(crate) mod refusals;
pub(crate) mod replaying;
pub(crate) mod resetting;
pub(crate) mod settling;
pub(crate) mod store_clock;
pub(crate) mod streams;
pub(crate) mod subscribing;
pub(crate) mod values;
pub(crate) mod waking;

use crate::Case;

/// All tables, in the order of the contract.
pub(crate) const ALL: &[&[Case]] = &[
    streams::CASES,
    names::CASES,
    appending::CASES,
    identity::CASES,
    content::CASES,
    values::CASES,
    groups::CASES,
    claiming::CASES,
    expiring::CASES,
    poison::CASES,
    ordering::CASES,
    settling::CASES,
    fencing::CASES,
    frontier::CASES,
    replaying::CASES,
    resetting::CASES,
    races::CASES,
    dropping::CASES,
    store_clock::CASES,
    reading::CASES,
    finding::CASES,
    matching::CASES,
    paging::CASES,
    inspecting::CASES,
    guarantees::CASES,
    waking::CASES,
    failing::CASES,
    outages::CASES,
    cutting::CASES,
    consuming::CASES,
    draining::CASES,
    subscribing::CASES,
    crate::model::CASES,
];
