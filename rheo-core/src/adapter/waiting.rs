//! Waiting for work.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Listener;
use crate::Result;
use crate::backend::{Now, Wait};

/// How long a wait lets pass before it looks at the store. A consumer claims
/// while it begins to wait: where that finds something, the look is saved.
const BREATH: Duration = Duration::from_millis(10);

/// Returns when the group may have work, or after the request's timeout.
///
/// `look` asks the store in how long the group has work, as far as is known
/// now: not at all is `None`, and at once is zero. It is asked at least once, so
/// that a missing stream or group is always told; then whenever the listener
/// hears its bell, when work falls due, and after each `poll`.
///
/// # Errors
/// As `look`.
///
/// # Cancellation
/// Safe, where that of `look` is.
pub async fn wait_for_work<Look>(
    request: &Wait,
    mut listener: Listener,
    poll: Duration,
    mut look: impl FnMut() -> Look,
) -> Result<()>
where
    Look: Future<Output = Result<Option<Duration>>> + Send,
{
    let begun = Instant::now();
    let mut pause = BREATH.min(request.timeout);
    loop {
        // Whether it was rung or not: only the store knows.
        let _ = timeout(pause, listener.rung()).await;
        let next = look().await?;
        let left = request.timeout.saturating_sub(begun.elapsed());
        match next {
            Some(due_in) if due_in.is_zero() => return Ok(()),
            _ if left.is_zero() => return Ok(()),
            // Only the store's own time passes by itself.
            Some(due_in) if request.now == Now::Store => pause = due_in.min(poll).min(left),
            _ => pause = poll.min(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::ready;

    use super::*;
    use crate::adapter::Bells;
    use crate::backend::{GroupRef, StreamRef};
    use crate::{Error, ErrorKind, GroupName, StreamName, Timestamp};

    const POLL: Duration = Duration::from_millis(200);

    fn request(now: Now) -> Wait {
        let stream = StreamRef { name: StreamName::new("s").unwrap(), partitions: 1 };
        let group = GroupRef { stream, name: GroupName::new("g").unwrap() };
        Wait { group, timeout: Duration::from_secs(1), now }
    }

    /// Waits while the store answers so, the last for ever: after how many
    /// milliseconds it looked.
    async fn looks(now: Now, listener: Listener, answers: &[Option<u64>]) -> Vec<u128> {
        let (begun, looks) = (Instant::now(), RefCell::new(Vec::new()));
        let look = || {
            let answer = answers[looks.borrow().len().min(answers.len() - 1)];
            looks.borrow_mut().push(begun.elapsed().as_millis());
            ready(Ok(answer.map(Duration::from_millis)))
        };
        wait_for_work(&request(now), listener, POLL, look).await.unwrap();
        looks.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_first_look_that_finds_work() {
        let found = looks(Now::Store, Listener::deaf(), &[None, Some(50), Some(0)]).await;
        assert_eq!(found, [10, 210, 260]);
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_is_given_does_not_pass_by_itself() {
        let given = Now::At(Timestamp::from_micros(0));
        let found = looks(given, Listener::deaf(), &[Some(50), Some(0)]).await;
        assert_eq!(found, [10, 210]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_after_the_timeout() {
        let found = looks(Now::Store, Listener::deaf(), &[None]).await;
        assert!(found.len() > 4 && found.last() >= Some(&1000), "{found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bell_makes_it_look_at_once() {
        let bells = Bells::default();
        let listener = bells.listen("s");
        bells.ring("s");
        assert_eq!(looks(Now::Store, listener, &[Some(0)]).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_look_says_is_told() {
        let missing = || ready(Err(Error::new(ErrorKind::GroupNotFound, "wait", "missing")));
        let waited = wait_for_work(&request(Now::Store), Listener::deaf(), POLL, missing).await;
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::GroupNotFound);
    }
}
