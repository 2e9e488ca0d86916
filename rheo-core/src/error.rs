//! [`Error`]: the one error type of every operation and every backend.

use std::fmt;
use std::sync::Arc;

/// The result of every operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Arc<dyn std::error::Error + Send + Sync + 'static>;

/// What went wrong, in which operation, whether trying again helps, and
/// whether the operation may have taken effect.
///
/// The message names streams, groups and limits, never payloads or secrets.
/// A driver's error is reachable through [`source`](std::error::Error::source)
/// for logging, and is no part of the interface.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
/// use rheo_core::{Effect, ErrorKind, Retry};
/// # let rheo = rheo_core::Rheo::builder(rheo_ets::Memory::new()).build().await?;
///
/// let error = rheo.read("nowhere", 0, 0, 10).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::StreamNotFound);
/// assert_eq!(error.retry(), Retry::Never);
/// assert_eq!(error.effect(), Effect::NotApplied);
/// assert_eq!(error.to_string(), "read: stream not found: \"nowhere\"");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    retry: Retry,
    effect: Effect,
    operation: &'static str,
    context: String,
    source: Option<Source>,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such stream; nothing creates one by itself.
    StreamNotFound,
    /// The stream is there, the group is not.
    GroupNotFound,
    /// A stream or group of that name is there already.
    AlreadyExists,
    /// The lease is no longer the current one for its event.
    StaleLease,
    /// The lease id is current, and the receipt given with it is not its own.
    ReceiptMismatch,
    /// The position to go on from is not, or no longer, in the list.
    CursorNotFound,
    /// The operation destroys something and was not confirmed.
    ConfirmRequired,
    /// An argument breaks a rule; the message says which.
    Invalid,
    /// An event is over the size limit.
    EventTooLarge,
    /// The backend does not claim the guarantee that this needs.
    Unsupported,
    /// This instance already runs a consumer of that group.
    AlreadyRunning,
    /// The consumer is being drained already.
    AlreadyDraining,
    /// The store cannot be reached, or did not answer in time.
    Unavailable,
    /// Others kept changing the same state, through all retries.
    Conflict,
    /// The store holds something that Rheo did not write, or lost something it did.
    Corrupt,
    /// The URL, an option or the server's setup is wrong.
    Config,
}

impl ErrorKind {
    /// The words that begin a message of this kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StreamNotFound => "stream not found",
            Self::GroupNotFound => "group not found",
            Self::AlreadyExists => "already exists",
            Self::StaleLease => "stale lease",
            Self::ReceiptMismatch => "receipt mismatch",
            Self::CursorNotFound => "cursor not found",
            Self::ConfirmRequired => "confirmation required",
            Self::Invalid => "invalid",
            Self::EventTooLarge => "event too large",
            Self::Unsupported => "unsupported",
            Self::AlreadyRunning => "already running",
            Self::AlreadyDraining => "already draining",
            Self::Unavailable => "unavailable",
            Self::Conflict => "conflict",
            Self::Corrupt => "corrupt",
            Self::Config => "configuration",
        }
    }

    const fn default_retry(self) -> Retry {
        match self {
            Self::Unavailable => Retry::After,
            Self::Conflict => Retry::Now,
            _ => Retry::Never,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether trying the same operation again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The answer will be the same.
    Never,
    /// At once.
    Now,
    /// After a pause, once the store has recovered.
    After,
}

/// Whether the failed operation may have changed the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing was changed.
    NotApplied,
    /// The answer was lost on the way: it may or may not have been applied.
    Unknown,
}

impl Error {
    /// An error of `kind` in `operation`. The kind sets whether to retry
    /// (`Unavailable`: after a pause; `Conflict`: now; else never); nothing
    /// was applied unless [`with_effect`](Self::with_effect) says otherwise.
    #[must_use]
    pub fn new(kind: ErrorKind, operation: &'static str, context: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            retry: kind.default_retry(),
            effect: Effect::NotApplied,
            operation,
            context: context.into(),
            source: None,
        }))
    }

    /// An argument of `operation` breaks a rule.
    #[must_use]
    pub fn invalid(operation: &'static str, context: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, operation, context)
    }

    /// The same error, to be retried as given.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// The same error, with this effect.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.0.effect = effect;
        self
    }

    /// The same error, as seen from `operation`.
    #[must_use]
    pub fn in_operation(mut self, operation: &'static str) -> Self {
        self.0.operation = operation;
        self
    }

    /// The same error, caused by `source`.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether trying again can help.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// Whether the store may have been changed.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// The operation that failed, by its method's name.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The short text that says what exactly was wrong, and what would be right.
    #[must_use]
    pub fn context(&self) -> &str {
        &self.0.context
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.operation, self.0.kind)?;
        if !self.0.context.is_empty() {
            write!(f, ": {}", self.0.context)?;
        }
        if self.0.effect == Effect::Unknown {
            f.write_str(" (it may have taken effect)")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("retry", &self.0.retry)
            .field("effect", &self.0.effect)
            .field("operation", &self.0.operation)
            .field("context", &self.0.context)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source.as_ref() as _)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn kinds_set_whether_to_retry() {
        let retry = |kind| Error::new(kind, "append", "").retry();
        assert_eq!(retry(ErrorKind::Invalid), Retry::Never);
        assert_eq!(retry(ErrorKind::Conflict), Retry::Now);
        assert_eq!(retry(ErrorKind::Unavailable), Retry::After);
    }

    #[test]
    fn a_lost_answer_is_told_and_its_cause_kept() {
        let error = Error::new(ErrorKind::Unavailable, "append", "no answer within 10 s")
            .with_effect(Effect::Unknown)
            .with_source(std::io::Error::other("connection reset"));
        assert_eq!(
            error.to_string(),
            "append: unavailable: no answer within 10 s (it may have taken effect)"
        );
        assert_eq!(error.source().unwrap().to_string(), "connection reset");
    }
}
