//! Natural batching: while one write of a lane is on its way to the store,
//! later ones gather, and go together when it returns.
//!
//! There is no lingering: a lone write goes at once. Each caller gets its own
//! result.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, Either, join_all, select};
use tokio::sync::oneshot;

use crate::{Effect, Error, ErrorKind, Result, Retry};

/// The most items that go together, and the most bytes.
const MAX_GATHERED_ITEMS: usize = 1000;
const MAX_GATHERED_BYTES: usize = 8 << 20;

/// Writes items to the store, and answers for each.
type Write<I, O> = dyn Fn(Vec<I>) -> BoxFuture<'static, Result<Vec<O>>> + Send + Sync;

/// The writes of one kind to one place, one at a time.
pub(super) struct Lane<I, O> {
    state: Mutex<State<I, O>>,
    write: Box<Write<I, O>>,
    bytes: fn(&I) -> usize,
}

struct State<I, O> {
    busy: bool,
    waiting: VecDeque<Waiting<I, O>>,
}

struct Waiting<I, O> {
    items: Vec<I>,
    answer: oneshot::Sender<Result<Vec<O>>>,
}

impl<I, O> Lane<I, O>
where
    I: Clone + Send + 'static,
    O: Send + 'static,
{
    pub(super) fn new(
        bytes: fn(&I) -> usize,
        write: impl Fn(Vec<I>) -> BoxFuture<'static, Result<Vec<O>>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            state: Mutex::new(State { busy: false, waiting: VecDeque::new() }),
            write: Box::new(write),
            bytes,
        }
    }

    /// Writes the items, alone or with others, and returns their answers.
    ///
    /// # Cancellation
    /// Dropped while waiting, the items may or may not be written; the writes
    /// of others are untouched.
    pub(super) async fn submit(self: Arc<Self>, items: Vec<I>) -> Result<Vec<O>> {
        let gathered = {
            let mut state = self.lock();
            if state.busy {
                let (answer, answered) = oneshot::channel();
                state.waiting.push_back(Waiting { items, answer });
                Err(answered)
            } else {
                state.busy = true;
                Ok(items)
            }
        };
        match gathered {
            Ok(items) => {
                let _turn = Turn(Arc::clone(&self));
                (self.write)(items).await
            }
            Err(answered) => answered.await.unwrap_or_else(|_| Err(abandoned())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<I, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next callers to go together.
    fn gather(&self) -> Vec<Waiting<I, O>> {
        let mut state = self.lock();
        let (mut items, mut bytes) = (0, 0);
        let mut together = Vec::new();
        while let Some(next) = state.waiting.front() {
            items += next.items.len();
            bytes += next.items.iter().map(self.bytes).sum::<usize>();
            let full = items > MAX_GATHERED_ITEMS || bytes > MAX_GATHERED_BYTES;
            if full && !together.is_empty() {
                break;
            }
            together.extend(state.waiting.pop_front());
        }
        together
    }

    /// Ends the lane's being busy, unless somebody waits.
    fn rest(&self) -> bool {
        let mut state = self.lock();
        state.busy = !state.waiting.is_empty();
        !state.busy
    }

    async fn write_together(&self, mut together: Vec<Waiting<I, O>>) {
        let sizes: Vec<usize> = together.iter().map(|waiting| waiting.items.len()).collect();
        let alone = together.len() == 1;
        let items = together
            .iter_mut()
            .flat_map(
                |waiting| {
                    if alone { mem::take(&mut waiting.items) } else { waiting.items.clone() }
                },
            )
            .collect::<Vec<_>>();
        if items.is_empty() {
            return;
        }
        let gone = join_all(together.iter_mut().map(|waiting| waiting.answer.closed()));
        let result = match select((self.write)(items), gone).await {
            Either::Left((result, _)) => result,
            // All stopped waiting: it is not tried again behind their backs.
            Either::Right(_) => return,
        };
        match result {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for (waiting, size) in together.into_iter().zip(sizes) {
                    let own = answers.by_ref().take(size).collect();
                    // Whoever stopped waiting does not want the answer.
                    let _ = waiting.answer.send(Ok(own));
                }
            }
            Err(error) if !alone && is_one_callers_fault(&error) => {
                for waiting in together {
                    let result = (self.write)(waiting.items).await;
                    let _ = waiting.answer.send(result);
                }
            }
            Err(error) => {
                for waiting in together {
                    let _ = waiting.answer.send(Err(error.clone()));
                }
            }
        }
    }
}

/// Nothing was written and trying again is no use: something in one caller's
/// items was refused, and must not spoil the others.
fn is_one_callers_fault(error: &Error) -> bool {
    error.effect() == Effect::NotApplied
        && error.retry() == Retry::Never
        && !matches!(error.kind(), ErrorKind::StreamNotFound | ErrorKind::GroupNotFound)
}

pub(super) fn abandoned() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "coalesce",
        "the runtime shut down before the write was done",
    )
    .with_effect(Effect::Unknown)
}

/// The right to write; given on to those who gathered when dropped, be it
/// because the write is done or because its caller is gone.
struct Turn<I: Clone + Send + 'static, O: Send + 'static>(Arc<Lane<I, O>>);

impl<I: Clone + Send + 'static, O: Send + 'static> Drop for Turn<I, O> {
    fn drop(&mut self) {
        if self.0.rest() {
            return;
        }
        let driver = Driver { lane: Arc::clone(&self.0), done: false };
        // Without a runtime the driver is dropped at once.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(driver.run());
        }
    }
}

/// Writes for those who gathered, until nobody waits. Dropped before that (the
/// runtime is gone, or a write panicked), it turns away whoever waits, so that
/// the lane is not busy for ever.
struct Driver<I: Clone + Send + 'static, O: Send + 'static> {
    lane: Arc<Lane<I, O>>,
    done: bool,
}

impl<I: Clone + Send + 'static, O: Send + 'static> Driver<I, O> {
    async fn run(mut self) {
        while !self.lane.rest() {
            let mut together = self.lane.gather();
            // Nobody waits for the answer any more: then nothing need be written.
            together.retain(|waiting| !waiting.answer.is_closed());
            self.lane.write_together(together).await;
            // Those who have their answers may come again at once: they are to
            // go together, and not all but the first behind the first.
            tokio::task::yield_now().await;
        }
        self.done = true;
    }
}

impl<I: Clone + Send + 'static, O: Send + 'static> Drop for Driver<I, O> {
    fn drop(&mut self) {
        if !self.done {
            let mut state = self.lane.lock();
            state.waiting.clear();
            state.busy = false;
        }
    }
}

impl<I, O> fmt::Debug for Lane<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use tokio::sync::Semaphore;

    use super::*;

    type Sizes = Arc<Mutex<Vec<usize>>>;

    /// A lane whose writes wait at a gate, answer each item by itself, and
    /// refuse a batch with a 13 in it.
    fn gated() -> (Arc<Lane<u32, u32>>, Arc<Semaphore>, Sizes) {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Sizes::default());
        let (at_gate, seen) = (Arc::clone(&gate), Arc::clone(&sizes));
        let lane = Lane::new(
            |_| 1,
            move |items: Vec<u32>| {
                let (gate, seen) = (Arc::clone(&at_gate), Arc::clone(&seen));
                async move {
                    gate.acquire().await.unwrap().forget();
                    seen.lock().unwrap().push(items.len());
                    if items.contains(&13) {
                        return Err(Error::invalid("write", "13"));
                    }
                    Ok(items)
                }
                .boxed()
            },
        );
        (Arc::new(lane), gate, sizes)
    }

    #[tokio::test]
    async fn those_who_come_again_go_together_again() {
        let (lane, gate, sizes) = gated();
        let callers: Vec<_> = (0..4)
            .map(|number| {
                let lane = Arc::clone(&lane);
                tokio::spawn(async move {
                    for _ in 0..3 {
                        Arc::clone(&lane).submit(vec![number]).await.unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..4 {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            gate.add_permits(1);
        }
        gate.add_permits(100);
        for caller in callers {
            caller.await.unwrap();
        }
        assert_eq!(*sizes.lock().unwrap(), [1, 4, 4, 3]);
    }

    #[tokio::test]
    async fn what_comes_while_one_is_under_way_goes_together() {
        let (lane, gate, sizes) = gated();
        let calls: Vec<_> =
            (0..5).map(|n| tokio::spawn(Arc::clone(&lane).submit(vec![n, n]))).collect();
        tokio::task::yield_now().await;
        gate.add_permits(2);
        for (n, call) in (0..).zip(calls) {
            assert_eq!(call.await.unwrap().unwrap(), [n, n]);
        }
        assert_eq!(*sizes.lock().unwrap(), [2, 8]);
        while lane.lock().busy {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn one_callers_fault_does_not_spoil_the_others() {
        let (lane, gate, _) = gated();
        let calls: Vec<_> =
            [1, 13, 3].map(|n| tokio::spawn(Arc::clone(&lane).submit(vec![n]))).into();
        let fourth = tokio::spawn(Arc::clone(&lane).submit(vec![4]));
        tokio::task::yield_now().await;
        gate.add_permits(10);
        let faults = AtomicUsize::new(0);
        for call in calls {
            if call.await.unwrap().is_err() {
                faults.fetch_add(1, Ordering::Relaxed);
            }
        }
        assert_eq!(faults.into_inner(), 1);
        assert_eq!(fourth.await.unwrap().unwrap(), [4]);
    }

    #[tokio::test]
    async fn a_dropped_caller_gives_its_turn_on() {
        let (lane, gate, _) = gated();
        let mut first = Arc::clone(&lane).submit(vec![1]).boxed();
        assert!(first.as_mut().now_or_never().is_none());
        let second = tokio::spawn(Arc::clone(&lane).submit(vec![2]));
        tokio::task::yield_now().await;
        drop(first);
        gate.add_permits(1);
        assert_eq!(second.await.unwrap().unwrap(), [2]);
    }

    #[test]
    fn a_lane_outlives_the_runtime_that_drove_it() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (lane, gate, _) = gated();
        let first = runtime();
        let calls = [1, 2].map(|n| first.spawn(Arc::clone(&lane).submit(vec![n])));
        first.block_on(async {
            tokio::task::yield_now().await;
            gate.add_permits(1);
            calls.into_iter().next().unwrap().await.unwrap().unwrap();
            // Lets the second begin its write, which ends with its runtime.
            tokio::task::yield_now().await;
        });
        drop(first);
        gate.add_permits(1);
        let later = runtime().block_on(async { lane.submit(vec![3]).now_or_never() });
        assert_eq!(later.unwrap().unwrap(), [3]);
    }
}
