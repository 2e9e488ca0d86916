//! The laws of the contract, by their numbers; `docs/semantics.md` states them.

use std::fmt;

macro_rules! laws {
    ($($law:ident)+) => {
        /// A law of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[allow(missing_docs, reason = "docs/semantics.md states them")]
        pub enum Law {
            $($law,)+
        }

        impl Law {
            /// All laws, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$law,)+];
        }
    };
}

laws! {
    S1 S2 S3 S4 S5 S6 S7 S8 S9 S10 S11 S12
    G1 G2
    C1 C2 C3 C4 C5 C6 C7 C8
    L1 L2 L3 L4 L5 L6 L7 L8
    R1 R2 R3 R4 R5 R6
    Q1 Q2 Q3 Q4 Q5
    I1
    W1
    E1 E2 E3
    K1 K2 K3 K4 K5 K6 K7
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
