//! [`Line`]: the line between a handle and its store, under a case's hand.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rheo_core::backend::{
    Append, Backend, Claim, CreateGroup, DeadLetters, GroupRef, LeaseRefusal, Now, Read, Renew,
    Replay, Reset, Search, Seek, Server, Settle, StreamRef, Wait,
};
use rheo_core::{
    Builder, Capabilities, DeadLetter, Delivery, Effect, Error, ErrorKind, Event, GroupInfo,
    GroupName, Result, StreamName, Timestamp,
};
use tokio::sync::watch;

use crate::Trial;

/// The backend's methods that change the store.
pub(crate) const WRITES: &[&str] = &[
    "create_stream",
    "delete_stream",
    "create_group",
    "delete_group",
    "append",
    "claim",
    "settle",
    "renew",
    "replay",
    "reset",
];

/// What is wrong with the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The store is not reached, and answers with this kind of error.
    Refused(ErrorKind),
    /// The call does not reach the store, and no answer comes.
    Silent,
    /// The call waits, and reaches the store once the line is mended.
    Held,
    /// The call takes effect, and its answer is lost.
    AnswerLost,
    /// A wait ends at once, for nothing.
    WokenInVain,
}

/// Where it is wrong: at these methods of the backend, or at all.
#[derive(Clone, Copy, Debug)]
struct Broken {
    at: Option<&'static [&'static str]>,
    fault: Fault,
}

/// The line between one handle and its store. A case breaks and mends it, and
/// sees what has gone over it.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<State>);

#[derive(Debug)]
struct State {
    broken: watch::Sender<Option<Broken>>,
    calls: Mutex<HashMap<&'static str, usize>>,
    renewals: Mutex<Vec<Renew>>,
    renewed: AtomicUsize,
    settles: Mutex<Vec<Settle>>,
}

impl Trial {
    /// A builder over one more client, with the shared manual clock, and the
    /// line by which it reaches the store.
    pub(crate) async fn builder_on_a_line(&self) -> (Builder, Line) {
        let line = Line(Arc::new(State {
            broken: watch::Sender::new(None),
            calls: Mutex::default(),
            renewals: Mutex::default(),
            renewed: AtomicUsize::default(),
            settles: Mutex::default(),
        }));
        let backend = OnALine { store: self.backend().await, line: line.clone() };
        (rheo_core::Rheo::builder(Arc::new(backend)).clock(self.clock().clone()), line)
    }
}

impl Line {
    /// Breaks it for all calls.
    pub(crate) fn fail(&self, fault: Fault) {
        self.0.broken.send_replace(Some(Broken { at: None, fault }));
    }

    /// Breaks it for calls of these methods of the backend.
    pub(crate) fn fail_at(&self, methods: &'static [&'static str], fault: Fault) {
        let at = Some(methods);
        self.0.broken.send_replace(Some(Broken { at, fault }));
    }

    pub(crate) fn mend(&self) {
        self.0.broken.send_replace(None);
    }

    /// How often a method of the backend was called.
    pub(crate) fn calls(&self, method: &str) -> usize {
        lock(&self.0.calls).get(method).copied().unwrap_or(0)
    }

    /// All calls to renew that have ended, failed ones included.
    pub(crate) fn renewals(&self) -> Vec<Renew> {
        lock(&self.0.renewals).clone()
    }

    /// How many calls to renew the store has carried out, and answered.
    pub(crate) fn renewed(&self) -> usize {
        self.0.renewed.load(Ordering::SeqCst)
    }

    /// All calls to settle, failed ones included.
    pub(crate) fn settles(&self) -> Vec<Settle> {
        lock(&self.0.settles).clone()
    }

    fn fault_at(&self, method: &str) -> Option<Fault> {
        let broken = (*self.0.broken.borrow())?;
        let here = broken.at.is_none_or(|methods| methods.contains(&method));
        here.then_some(broken.fault)
    }

    /// Carries one call to the store and its answer back, or fails to.
    async fn carry<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        *lock(&self.0.calls).entry(method).or_default() += 1;
        match self.fault_at(method) {
            None | Some(Fault::WokenInVain) => call.await,
            Some(Fault::Refused(kind)) => Err(Error::new(kind, method, "the line is broken")),
            Some(Fault::Silent) => pending().await,
            Some(Fault::Held) => {
                let mut changes = self.0.broken.subscribe();
                // The sender lives as long as `self`.
                let _ = changes.wait_for(Option::is_none).await;
                call.await
            }
            Some(Fault::AnswerLost) => {
                call.await?;
                let error = Error::new(ErrorKind::Unavailable, method, "the answer was lost");
                Err(error.with_effect(Effect::Unknown))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store at the end of a line.
#[derive(Debug)]
struct OnALine {
    store: Arc<dyn Backend>,
    line: Line,
}

#[async_trait]
impl Backend for OnALine {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    async fn prepare(&self) -> Result<()> {
        self.line.carry("prepare", self.store.prepare()).await
    }

    async fn ping(&self) -> Result<Server> {
        self.line.carry("ping", self.store.ping()).await
    }

    async fn create_stream(&self, stream: &StreamRef) -> Result<()> {
        self.line.carry("create_stream", self.store.create_stream(stream)).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.line.carry("delete_stream", self.store.delete_stream(stream)).await
    }

    async fn partitions(&self, stream: &StreamName) -> Result<u32> {
        self.line.carry("partitions", self.store.partitions(stream)).await
    }

    async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        self.line.carry("list_streams", self.store.list_streams()).await
    }

    async fn create_group(&self, request: &CreateGroup) -> Result<()> {
        self.line.carry("create_group", self.store.create_group(request)).await
    }

    async fn delete_group(&self, group: &GroupRef) -> Result<()> {
        self.line.carry("delete_group", self.store.delete_group(group)).await
    }

    async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>> {
        self.line.carry("list_groups", self.store.list_groups(stream)).await
    }

    async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        self.line.carry("group_info", self.store.group_info(group, now)).await
    }

    async fn append(&self, request: &Append) -> Result<Vec<Event>> {
        self.line.carry("append", self.store.append(request)).await
    }

    async fn claim(&self, request: &Claim) -> Result<Vec<Delivery>> {
        self.line.carry("claim", self.store.claim(request)).await
    }

    async fn settle(&self, request: &Settle) -> Result<Vec<Result<(), LeaseRefusal>>> {
        lock(&self.line.0.settles).push(request.clone());
        self.line.carry("settle", self.store.settle(request)).await
    }

    async fn renew(&self, request: &Renew) -> Result<Vec<Result<Timestamp, LeaseRefusal>>> {
        let renewal = request.clone();
        let answers = self.line.carry("renew", self.store.renew(request)).await;
        lock(&self.line.0.renewals).push(renewal);
        self.line.0.renewed.fetch_add(answers.is_ok().into(), Ordering::SeqCst);
        answers
    }

    async fn replay(&self, request: &Replay) -> Result<()> {
        self.line.carry("replay", self.store.replay(request)).await
    }

    async fn reset(&self, request: &Reset) -> Result<()> {
        self.line.carry("reset", self.store.reset(request)).await
    }

    async fn read(&self, request: &Read) -> Result<Vec<Event>> {
        self.line.carry("read", self.store.read(request)).await
    }

    async fn search(&self, request: &Search) -> Result<Vec<Event>> {
        self.line.carry("search", self.store.search(request)).await
    }

    async fn seek(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        self.line.carry("seek", self.store.seek(stream, seek)).await
    }

    async fn dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        self.line.carry("dead_letters", self.store.dead_letters(request)).await
    }

    async fn wait(&self, request: &Wait) -> Result<()> {
        if self.line.fault_at("wait") == Some(Fault::WokenInVain) {
            return Ok(());
        }
        self.line.carry("wait", self.store.wait(request)).await
    }
}
