//! One call to the backend: its timeout, its retries, its span and its metrics.

use std::future::Future;
use std::time::Duration;

use metrics::{counter, histogram};
use tokio::time::Instant;
use tracing::Instrument;

use super::Rheo;
use crate::{Effect, Error, ErrorKind, Result, Retry};

/// How often a call is tried in all.
const MAX_TRIES: u32 = 4;
/// The longest pause before the second try; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// What a call does to the store, which decides whether it may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// Nothing: it may be made again whatever became of it.
    Read,
    /// A change: it may be made again only where it surely did nothing.
    Write,
    /// A change that is the same however often it is made.
    RepeatableWrite,
}

impl Nature {
    fn effect_of_silence(self) -> Effect {
        match self {
            Self::Read => Effect::NotApplied,
            Self::Write | Self::RepeatableWrite => Effect::Unknown,
        }
    }
}

impl Rheo {
    /// A call that changes nothing.
    pub(super) async fn read_call<T, F: Future<Output = Result<T>>>(
        &self,
        operation: &'static str,
        attempt: impl FnMut() -> F,
    ) -> Result<T> {
        self.call(operation, Nature::Read, attempt).await
    }

    /// A call that changes the store.
    pub(super) async fn write_call<T, F: Future<Output = Result<T>>>(
        &self,
        operation: &'static str,
        attempt: impl FnMut() -> F,
    ) -> Result<T> {
        self.call(operation, Nature::Write, attempt).await
    }

    /// A call that changes the store in the same way however often it is made.
    pub(super) async fn repeatable_call<T, F: Future<Output = Result<T>>>(
        &self,
        operation: &'static str,
        attempt: impl FnMut() -> F,
    ) -> Result<T> {
        self.call(operation, Nature::RepeatableWrite, attempt).await
    }

    async fn call<T, F: Future<Output = Result<T>>>(
        &self,
        operation: &'static str,
        nature: Nature,
        attempt: impl FnMut() -> F,
    ) -> Result<T> {
        self.observed(operation, self.try_until_deadline(operation, nature, attempt)).await
    }

    /// A call as operators see it: in its span, counted and timed.
    pub(super) async fn observed<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let begun = Instant::now();
        let result = call
            .instrument(tracing::debug_span!("rheo", operation))
            .await
            .map_err(|error| error.in_operation(operation));
        let outcome = match &result {
            Ok(_) => "ok",
            Err(error) => {
                tracing::debug!(operation, %error, "operation failed");
                error.kind().as_str()
            }
        };
        counter!("rheo_operations_total", "operation" => operation, "result" => outcome)
            .increment(1);
        histogram!("rheo_operation_seconds", "operation" => operation).record(begun.elapsed());
        result
    }

    async fn try_until_deadline<T, F: Future<Output = Result<T>>>(
        &self,
        operation: &'static str,
        nature: Nature,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T> {
        let (begun, timeout) = (Instant::now(), self.inner.settings.timeout);
        let mut tries = 1;
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            let error = match tokio::time::timeout(left, attempt()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => error,
                Err(_) => return Err(self.silence(operation, nature.effect_of_silence())),
            };
            let pause = pause_before_retry(&error, tries);
            let harmless = nature != Nature::Write || error.effect() == Effect::NotApplied;
            if !harmless
                || error.retry() == Retry::Never
                || tries == MAX_TRIES
                || begun.elapsed() + pause >= timeout
            {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            tries += 1;
        }
    }

    /// A write that first waits for others: that counts against its timeout as well.
    pub(super) async fn in_time<T>(
        &self,
        operation: &'static str,
        write: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let timeout = tokio::time::timeout(self.inner.settings.timeout, write);
        timeout.await.unwrap_or_else(|_| Err(self.silence(operation, Effect::Unknown)))
    }

    /// The answers of a backend that owes one for each of `asked` items. Where
    /// it does not give as many, nobody can tell which belongs to which.
    pub(super) fn one_for_each<T>(
        operation: &'static str,
        asked: usize,
        answers: Vec<T>,
    ) -> Result<Vec<T>> {
        if answers.len() == asked {
            return Ok(answers);
        }
        let context = format!("the backend gave {} answers for {asked} items", answers.len());
        Err(Error::new(ErrorKind::Corrupt, operation, context).with_effect(Effect::Unknown))
    }

    pub(super) fn silence(&self, operation: &'static str, effect: Effect) -> Error {
        let context = format!("no answer within {:?}", self.inner.settings.timeout);
        Error::new(ErrorKind::Unavailable, operation, context).with_effect(effect)
    }
}

/// A random share of a pause that doubles with every try, so that clients that
/// failed together do not come back together.
fn pause_before_retry(error: &Error, tries: u32) -> Duration {
    match error.retry() {
        Retry::After => jittered(FIRST_PAUSE * 2u32.pow(tries - 1)),
        Retry::Now | Retry::Never => Duration::ZERO,
    }
}

/// Between half of `pause` and all of it.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let random = uuid::Uuid::new_v4().as_bytes()[0];
    pause / 2 + pause.mul_f64(f64::from(random) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_too_few_or_too_many_are_no_answers() {
        assert_eq!(Rheo::one_for_each("settle", 2, vec![1, 2]).unwrap(), [1, 2]);
        for answers in [vec![], vec![1], vec![1, 2, 3]] {
            let error = Rheo::one_for_each("settle", 2, answers).unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Corrupt, Effect::Unknown));
        }
    }

    #[test]
    fn pauses_grow_and_stay_within_bounds() {
        let error = Error::new(ErrorKind::Unavailable, "read", "");
        for tries in 1..MAX_TRIES {
            let most = FIRST_PAUSE * 2u32.pow(tries - 1);
            let pause = pause_before_retry(&error, tries);
            assert!(pause >= most / 2 && pause <= most, "{pause:?}");
        }
        let conflict = Error::new(ErrorKind::Conflict, "read", "");
        assert_eq!(pause_before_retry(&conflict, 3), Duration::ZERO);
    }
}
