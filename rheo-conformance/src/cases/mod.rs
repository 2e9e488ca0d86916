//! The cases, one file for each part of the contract.

pub(crate) mod refusals;

use crate::Case;

/// All tables, in the order of the contract.
pub(crate) const ALL: &[&[Case]] = &[
    crate::model::CASES,
];
