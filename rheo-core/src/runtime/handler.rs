//! [`Handler`]: what an application does with an event.

use std::fmt::Display;
use std::future::Future;

use crate::{Delivery, Outcome};

/// What a [`Consumer`](crate::Consumer) does with each event.
///
/// Closures that return a future are handlers, where what the future yields
/// can be read as an outcome ([`IntoOutcome`]): `()` is an ack, an error is a
/// retry with its text as the reason, an [`Outcome`] is itself. State is
/// shared by capture. A type of one's own is a handler like this:
///
/// ```
/// use rheo_core::{Delivery, Handler, Outcome};
///
/// struct Billing {
///     currency: String,
/// }
///
/// impl Handler for Billing {
///     async fn handle(&self, delivery: Delivery) -> Outcome {
///         match delivery.event.payload()["currency"].as_str() {
///             Some(currency) if currency == self.currency => Outcome::Ack,
///             _ => Outcome::reject("not our currency"),
///         }
///     }
/// }
/// ```
///
/// # Cancellation
/// A handler is dropped at an await when its lease is lost, its timeout is
/// over, or a drain's time is up. Its event is handed out again.
pub trait Handler: Send + Sync + 'static {
    /// Handles one event, and says how its lease ends.
    ///
    /// A panic is a retry too, with the panic's text as the reason. The lease
    /// renews itself meanwhile; the handler does not settle it.
    fn handle(&self, delivery: Delivery) -> impl Future<Output = Outcome> + Send;
}

impl<F, Fut> Handler for F
where
    F: Fn(Delivery) -> Fut + Send + Sync + 'static,
    Fut: Future + Send,
    Fut::Output: IntoOutcome,
{
    async fn handle(&self, delivery: Delivery) -> Outcome {
        self(delivery).await.into_outcome()
    }
}

/// What a closure may yield for an outcome.
pub trait IntoOutcome {
    /// How the lease ends.
    fn into_outcome(self) -> Outcome;
}

/// Done: an ack.
impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Ack
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

/// An error is a retry at once, with its text as the reason.
impl<T: IntoOutcome, E: Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => Outcome::retry(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_as_outcomes() {
        assert_eq!(().into_outcome(), Outcome::Ack);
        assert_eq!(Ok::<(), String>(()).into_outcome(), Outcome::Ack);
        assert_eq!(Err::<(), _>("no stock").into_outcome(), Outcome::retry("no stock"));
        let rejected = Outcome::reject("never");
        assert_eq!(Ok::<_, String>(rejected.clone()).into_outcome(), rejected);
    }
}
