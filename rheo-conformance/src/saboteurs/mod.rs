//! Saboteurs.
