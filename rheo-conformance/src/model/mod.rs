//! The model check.
