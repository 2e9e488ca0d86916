//! [`InTransaction`]: appending and settling within the user's own transaction.

use std::future::Future;

use mongodb::ClientSession;
use mongodb::error::ErrorKind as DriverKind;
use rheo_core::backend::{Append, Settle};
use rheo_core::{Effect, Error, ErrorKind, Event, Lease, NewEvent, Outcome, Result, Rheo};

use crate::Mongo;
use crate::error::Failure;
use crate::operation::Operation;

/// Appends and settles within a transaction that the caller began on the same
/// client, so that they commit or vanish with what else it writes.
///
/// The session must come from the client that the instance runs on: give that
/// client to [`Mongo::on_client`]. A session that has no transaction is refused.
///
/// Until the transaction ends, other appends to the partitions that it appended
/// to are in conflict with it, and so are claims and settles of the group in the
/// partitions in which it settled. They are tried again for a while, and then
/// fail as `Conflict`: end it soon. The other way round, a
/// transaction that meets what another has just written is in conflict itself.
///
/// The transaction belongs to the caller: nothing here begins, commits or
/// aborts it, and nothing is tried again. After any error abort it. After
/// `Conflict` do the whole of it again, from its beginning.
///
/// Consumers that wait are woken when it commits.
///
/// Where the process is killed in the middle, nobody ends the transaction but
/// the server, which waits a minute before it does
/// (`transactionLifetimeLimitSeconds`); until then those conflicts stay.
pub trait InTransaction {
    /// Appends an event within the caller's transaction.
    ///
    /// What it returns is the event as it will be stored if the transaction
    /// commits. If it does not, the sequence goes to the next event.
    ///
    /// # Errors
    /// As [`append`](Rheo::append), and `Config` where the session has no
    /// transaction or is of another client. `Conflict` where the whole
    /// transaction is to be tried again.
    fn append_in(
        &self,
        session: &mut ClientSession,
        stream: impl AsRef<str> + Send,
        event: NewEvent,
    ) -> impl Future<Output = Result<Event>> + Send;

    /// Appends events within the caller's transaction, as
    /// [`append_batch`](Rheo::append_batch) does.
    ///
    /// # Errors
    /// As [`append_in`](Self::append_in).
    fn append_batch_in(
        &self,
        session: &mut ClientSession,
        stream: impl AsRef<str> + Send,
        events: Vec<NewEvent>,
    ) -> impl Future<Output = Result<Vec<Event>>> + Send;

    /// Ends a lease within the caller's transaction.
    ///
    /// If the transaction does not commit, the lease is what it was.
    ///
    /// # Errors
    /// `StaleLease` or `ReceiptMismatch` where it is not the current lease of
    /// its event: then abort, as somebody else has the event. Else as
    /// [`append_in`](Self::append_in).
    fn settle_in(
        &self,
        session: &mut ClientSession,
        lease: &Lease,
        outcome: Outcome,
    ) -> impl Future<Output = Result<()>> + Send;
}

impl InTransaction for Rheo {
    async fn append_in(
        &self,
        session: &mut ClientSession,
        stream: impl AsRef<str> + Send,
        event: NewEvent,
    ) -> Result<Event> {
        let mut events = self.append_batch_in(session, stream, vec![event]).await?;
        let missing = || Error::new(ErrorKind::Corrupt, Append::NAME, "no event came back");
        events.pop().ok_or_else(missing)
    }

    async fn append_batch_in(
        &self,
        session: &mut ClientSession,
        stream: impl AsRef<str> + Send,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mongo = joining(self, Append::NAME, session).await?;
        let request = self.resolve_append(stream.as_ref(), events.iter().cloned()).await?;
        if request.events.is_empty() {
            return Ok(Vec::new());
        }
        let mut appended = mongo.run_in(&request, session).await;
        if appended.as_ref().is_err_and(|error| error.kind() == ErrorKind::StreamNotFound) {
            // The stream may have been deleted and created anew.
            self.forget_stream(&request.stream.name);
            let request = self.resolve_append(stream.as_ref(), events).await?;
            appended = mongo.run_in(&request, session).await;
        }
        appended
    }

    async fn settle_in(
        &self,
        session: &mut ClientSession,
        lease: &Lease,
        outcome: Outcome,
    ) -> Result<()> {
        let mongo = joining(self, Settle::NAME, session).await?;
        for request in self.resolve_settle([(lease, outcome)]).await? {
            for answer in mongo.run_in(&request, session).await? {
                answer.map_err(|refusal| {
                    let (stream, group) = (lease.stream(), lease.group());
                    refusal.to_error(Settle::NAME, stream, group, lease.position())
                })?;
            }
        }
        Ok(())
    }
}

impl Mongo {
    async fn run_in<O: Operation>(
        &self,
        operation: &O,
        session: &mut ClientSession,
    ) -> Result<O::Output> {
        let failure = match operation.run(&self.store, session).await {
            Ok(output) => return Ok(output),
            Err(failure) => failure,
        };
        if is_of_another_client(&failure) {
            let sentence = "the session is of another client: begin it with the one that this \
                instance was given by Mongo::on_client";
            return Err(config(O::NAME, sentence));
        }
        Err(failure.into_error(O::NAME, Effect::NotApplied))
    }
}

/// The MongoDB backend of an instance, for a session that has a transaction.
async fn joining<'r>(
    rheo: &'r Rheo,
    operation: &'static str,
    session: &mut ClientSession,
) -> Result<&'r Mongo> {
    let mongo = rheo.backend::<Mongo>().ok_or_else(|| {
        config(operation, "this instance does not run on MongoDB, so it cannot join a transaction")
    })?;
    // That is how the driver tells: it refuses to begin one within another.
    // Nothing is sent to the server.
    if session.start_transaction().await.is_ok() {
        // Nor is for one that is ended before anything was done.
        let _ = session.abort_transaction().await;
        let sentence = "the session has no transaction: begin it with start_transaction()";
        return Err(config(operation, sentence));
    }
    Ok(mongo)
}

/// The driver refuses such a session before it sends anything. Of what is sent
/// here nothing else is a wrong argument to it.
fn is_of_another_client(failure: &Failure) -> bool {
    let Failure::Driver(error) = failure else { return false };
    matches!(*error.kind, DriverKind::InvalidArgument { .. })
}

fn config(operation: &'static str, sentence: &str) -> Error {
    Error::new(ErrorKind::Config, operation, sentence)
}
