//! [`Case`]: one behaviour, the laws it proves and the guarantees it needs.

use futures::future::BoxFuture;
use rheo_core::Guarantee;

use crate::cases;
use crate::{Law, Trial};

/// One behaviour that every backend must show. It fails by panicking.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its stable name, in dotted words.
    pub id: &'static str,
    /// The laws it proves.
    pub laws: &'static [Law],
    /// The guarantees without which it turns into its refusal twin.
    pub needs: &'static [Guarantee],
    /// Whether it breaks what others use, so that no other case may run meanwhile.
    pub alone: bool,
    pub(crate) run: fn(Trial) -> BoxFuture<'static, ()>,
}

/// A table of cases: `"id" [laws] needs [guarantees] runs alone => function;`,
/// where what stands between the laws and the arrow may be left out.
macro_rules! case_table {
    ($(
        $id:literal [$($law:ident)+] $(needs [$($guarantee:ident)+])? $(runs $alone:ident)?
            => $function:path;
    )+) => {
        pub(crate) const CASES: &[$crate::Case] = &[$($crate::Case {
            id: $id,
            laws: &[$($crate::Law::$law,)+],
            needs: &[$($(rheo_core::Guarantee::$guarantee,)+)?],
            alone: $crate::case::runs!($($alone)?),
            run: |trial| Box::pin($function(trial)),
        },)+];
    };
}

macro_rules! runs {
    () => {
        false
    };
    (alone) => {
        true
    };
}

pub(crate) use {case_table, runs};

/// All cases, in the order of the contract.
#[must_use]
pub fn registry() -> Vec<Case> {
    cases::ALL.concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_dotted() {
        let mut seen = HashSet::new();
        for case in registry() {
            assert!(seen.insert(case.id), "{} stands twice", case.id);
            assert!(case.id.contains('.'), "{}", case.id);
            assert!(!case.laws.is_empty(), "{} proves no law", case.id);
        }
    }

    #[test]
    fn every_law_has_a_case() {
        let proved: HashSet<Law> =
            registry().iter().flat_map(|case| case.laws.iter().copied()).collect();
        let missing: Vec<_> = Law::ALL.iter().filter(|law| !proved.contains(law)).collect();
        assert!(missing.is_empty(), "no case proves {missing:?}");
    }

    #[test]
    fn every_guarantee_has_a_case_that_exercises_it() {
        let exercised: HashSet<Guarantee> =
            registry().iter().flat_map(|case| case.needs.iter().copied()).collect();
        let missing: Vec<_> =
            Guarantee::ALL.iter().filter(|guarantee| !exercised.contains(guarantee)).collect();
        assert!(missing.is_empty(), "no case exercises {missing:?}");
    }
}
