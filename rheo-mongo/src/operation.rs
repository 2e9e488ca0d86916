//! [`Operation`]: one step of the store, as data.

use mongodb::ClientSession;
use rheo_core::Result;

use crate::Store;
use crate::error::Failure;

/// One step of the store: a request and how it is carried out in a session.
///
/// The same steps run in transactions of Rheo's own and in the user's.
pub(crate) trait Operation: Send + Sync + 'static {
    /// What it is called in errors: the method of the handle.
    const NAME: &'static str;

    /// What it answers.
    type Output: Send + 'static;

    /// Carries it out. It may run more than once, after what it did was undone.
    fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}
