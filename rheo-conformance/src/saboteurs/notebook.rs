//! [`Notebook`]: what a saboteur remembers of a group's events.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rheo_core::Position;
use rheo_core::backend::GroupRef;

/// A note on each event of each group.
#[derive(Debug)]
pub(super) struct Notebook<T>(Mutex<HashMap<GroupRef, HashMap<Position, T>>>);

impl<T> Default for Notebook<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Notebook<T> {
    pub(super) fn note(&self, group: &GroupRef, position: Position, note: T) {
        self.of(group, |notes| notes.insert(position, note));
    }

    pub(super) fn get(&self, group: &GroupRef, position: Position) -> Option<T> {
        self.of(group, |notes| notes.get(&position).cloned())
    }

    pub(super) fn forget_all(&self, group: &GroupRef) {
        self.of(group, HashMap::clear);
    }

    pub(super) fn of<R>(
        &self,
        group: &GroupRef,
        look: impl FnOnce(&mut HashMap<Position, T>) -> R,
    ) -> R {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(groups.entry(group.clone()).or_default())
    }
}
