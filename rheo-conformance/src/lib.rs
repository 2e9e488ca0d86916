//! The conformance suite of Rheo: every law of the contract as cases that run
//! on any backend, and that can fail.
//!
//! The author of an adapter adds one test file, with `harness = false`, and
//! cannot choose cases:
//!
//! ```no_run
//! # use rheo_ets::Memory;
//! fn main() -> std::process::ExitCode {
//!     rheo_conformance::run_in_process("memory", Memory::new)
//! }
//! ```
//!
//! A store outside the process implements [`Harness`] and calls
//! [`run`] instead; [`servers`] has throwaway servers for it. What a store
//! finds is tried out further by [`finding`]. A store that is in use already is
//! [checked](check) without breaking anything.
//!
//! - Where a backend does not claim a guarantee, the cases that need it turn
//!   into their twin, which asserts the refusal. Nothing is skipped.
//! - Time is a manual clock that all clients of a store share; nothing sleeps.
//! - Cases that crash the store, or break its connections, run alone.
//! - Races run on several clients, from a seed that the report tells;
//!   `RHEO_SEED` sets it.
//! - Each run of the whole suite leaves `target/conformance/<store>.json`.
//! - A store that cannot be had is reported as not configured; where
//!   `RHEO_REQUIRE` names it, that is a failure.

mod case;
mod cases;
pub mod finding;
mod handling;
mod harness;
mod laws;
mod model;
mod operations;
mod outage;
mod proxy;
mod report;
mod run;
pub mod saboteurs;
#[cfg(unix)]
pub mod servers;
mod trial;

pub use case::{Case, registry};
pub use harness::{Harness, InProcess, NotConfigured};
pub use laws::Law;
pub use proxy::Proxy;
pub use report::{CaseReport, Report, Totals, Verdict};
pub use run::{check, report_on, run, run_in_process};
pub use trial::Trial;
