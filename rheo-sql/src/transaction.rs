//! [`InTransaction`]: appending and settling within the user's own transaction.

use std::future::Future;

use rheo_core::backend::{Append, Settle};
use rheo_core::{Effect, Error, ErrorKind, Event, Lease, NewEvent, Outcome, Result, Rheo};

use crate::Sql;
use crate::db::Conn;
use crate::operation::Operation;

/// Appends and settles within a transaction that the caller began on the same
/// database, so that they commit or vanish with what else it writes.
///
/// Until that transaction ends, other appends to the partitions that it
/// appended to wait, and so do claims and settles of the group in the partitions in
/// which it settled: end it soon. On SQLite, which has one writer at a time,
/// all writes wait; begin it with `BEGIN IMMEDIATE` there, since a
/// transaction that began by reading may be refused the right to write.
///
/// Nobody is woken, since nothing here knows when the transaction commits:
/// waiting consumers find the events when they look for them next.
///
/// The transaction belongs to the caller: nothing here begins, commits or
/// rolls back, and nothing is tried again. After an error roll it back.
pub trait InTransaction {
    /// Appends an event within the caller's transaction.
    ///
    /// What it returns is the event as it will be stored if the transaction
    /// commits. If it does not, the sequence goes to the next event.
    ///
    /// # Errors
    /// As [`append`](Rheo::append), and `Config` where this instance does not
    /// run on the database of the connection. `Conflict` where the database
    /// asks that the whole transaction be tried again.
    fn append_in<'c>(
        &self,
        transaction: impl Into<Conn<'c>> + Send,
        stream: impl AsRef<str> + Send,
        event: NewEvent,
    ) -> impl Future<Output = Result<Event>> + Send;

    /// Appends events within the caller's transaction, as
    /// [`append_batch`](Rheo::append_batch) does.
    ///
    /// # Errors
    /// As [`append_in`](Self::append_in).
    fn append_batch_in<'c>(
        &self,
        transaction: impl Into<Conn<'c>> + Send,
        stream: impl AsRef<str> + Send,
        events: Vec<NewEvent>,
    ) -> impl Future<Output = Result<Vec<Event>>> + Send;

    /// Ends a lease within the caller's transaction.
    ///
    /// If the transaction does not commit, the lease is what it was.
    ///
    /// # Errors
    /// `StaleLease` or `ReceiptMismatch` where it is not the current lease of
    /// its event: then roll back, as somebody else has the event. Else as
    /// [`append_in`](Self::append_in).
    fn settle_in<'c>(
        &self,
        transaction: impl Into<Conn<'c>> + Send,
        lease: &Lease,
        outcome: Outcome,
    ) -> impl Future<Output = Result<()>> + Send;
}

impl InTransaction for Rheo {
    async fn append_in<'c>(
        &self,
        transaction: impl Into<Conn<'c>> + Send,
        stream: impl AsRef<str> + Send,
        event: NewEvent,
    ) -> Result<Event> {
        let mut events = self.append_batch_in(transaction, stream, vec![event]).await?;
        let missing = || Error::new(ErrorKind::Corrupt, Append::NAME, "no event came back");
        events.pop().ok_or_else(missing)
    }

    async fn append_batch_in<'c>(
        &self,
        transaction: impl Into<Conn<'c>> + Send,
        stream: impl AsRef<str> + Send,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let mut conn = transaction.into();
        let sql = backend(self, Append::NAME, &conn)?;
        let request = self.resolve_append(stream.as_ref(), events.iter().cloned()).await?;
        if request.events.is_empty() {
            return Ok(Vec::new());
        }
        let mut appended = sql.run_in(&request, &mut conn).await;
        if appended.as_ref().is_err_and(|error| error.kind() == ErrorKind::StreamNotFound) {
            // The stream may have been deleted and created anew.
            self.forget_stream(&request.stream.name);
            let request = self.resolve_append(stream.as_ref(), events).await?;
            appended = sql.run_in(&request, &mut conn).await;
        }
        appended
    }

    async fn settle_in<'c>(
        &self,
        transaction: impl Into<Conn<'c>> + Send,
        lease: &Lease,
        outcome: Outcome,
    ) -> Result<()> {
        let mut conn = transaction.into();
        let sql = backend(self, Settle::NAME, &conn)?;
        for request in self.resolve_settle([(lease, outcome)]).await? {
            for answer in sql.run_in(&request, &mut conn).await?.answers {
                answer.map_err(|refusal| {
                    let (stream, group) = (lease.stream(), lease.group());
                    refusal.to_error(Settle::NAME, stream, group, lease.position())
                })?;
            }
        }
        Ok(())
    }
}

impl Sql {
    async fn run_in<O: Operation>(&self, operation: &O, conn: &mut Conn<'_>) -> Result<O::Output> {
        let done = operation.run(&self.store, conn).await;
        done.map_err(|failure| failure.into_error(O::NAME, Effect::NotApplied))
    }
}

/// The SQL backend of an instance, if it speaks to the database of the connection.
fn backend<'r>(rheo: &'r Rheo, operation: &'static str, conn: &Conn<'_>) -> Result<&'r Sql> {
    let wrong = |why: String| Error::new(ErrorKind::Config, operation, why);
    let sql = rheo.backend::<Sql>().ok_or_else(|| {
        wrong("this instance runs on no SQL database, so it cannot join a transaction".into())
    })?;
    let (own, other) = (sql.store.statements.dialect(), conn.dialect());
    if own != other {
        let why = format!("this instance runs on {own:?}, and the transaction is one of {other:?}");
        return Err(wrong(why));
    }
    Ok(sql)
}
