//! Rheo in memory: the event log and its groups, within one process.
//!
//! [`Memory`] is a complete backend without a server: for tests, for tools, and
//! for work that may be lost with the process. Everything it promises it keeps
//! as the other backends do, so a program can move to a server later.
//!
//! Each partition has a lock of its own around its log, and each group one
//! around its progress in each partition: work on different partitions, and
//! different groups' work on one, do not wait for each other.

mod append;
mod backend;
mod claim;
mod index;
mod inspect;
mod lock;
mod log;
mod partition;
mod read;
mod replay;
mod search;
mod settle;
mod store;
mod wake;

pub use store::Memory;
