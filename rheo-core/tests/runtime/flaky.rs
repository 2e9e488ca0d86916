//! A store that fails when told to.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rheo_core::backend::*;
use rheo_core::{
    Capabilities, DeadLetter, Delivery, Effect, Error, ErrorKind, Event, GroupInfo, GroupName,
    Outcome, Result, StreamName, Timestamp,
};
use rheo_ets::Memory;
use tokio::sync::Semaphore;

#[derive(Debug)]
pub(crate) struct Flaky {
    memory: Arc<Memory>,
    claims_fail: AtomicBool,
    renewals_fail: AtomicBool,
    settles_fail: AtomicBool,
    answers_to_lose: AtomicUsize,
    renewals: AtomicUsize,
    /// The outcomes of each settle call, in order.
    settles: Mutex<Vec<Vec<Outcome>>>,
    /// A settle call takes a permit.
    settle_gate: Semaphore,
}

impl Flaky {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            memory: Memory::new(),
            claims_fail: AtomicBool::new(false),
            renewals_fail: AtomicBool::new(false),
            settles_fail: AtomicBool::new(false),
            answers_to_lose: AtomicUsize::new(0),
            renewals: AtomicUsize::new(0),
            settles: Mutex::default(),
            settle_gate: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    pub(crate) fn fail_claims(&self, fail: bool) {
        self.claims_fail.store(fail, SeqCst);
    }

    pub(crate) fn fail_renewals(&self, fail: bool) {
        self.renewals_fail.store(fail, SeqCst);
    }

    pub(crate) fn fail_settles(&self, fail: bool) {
        self.settles_fail.store(fail, SeqCst);
    }

    /// The next settles are done, and their answers lost on the way.
    pub(crate) fn lose_settle_answers(&self, count: usize) {
        self.answers_to_lose.store(count, SeqCst);
    }

    /// Renewals that the store has answered.
    pub(crate) fn renewals(&self) -> usize {
        self.renewals.load(SeqCst)
    }

    pub(crate) fn settles(&self) -> Vec<Vec<Outcome>> {
        self.settles.lock().unwrap().clone()
    }

    pub(crate) fn close_settle_gate(&self) {
        self.settle_gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn open_settle_gate(&self) {
        self.settle_gate.add_permits(1000);
    }
}

fn fail_if(flag: &AtomicBool) -> Result<()> {
    if flag.load(SeqCst) {
        return Err(Error::new(ErrorKind::Unavailable, "flaky", "told to fail"));
    }
    Ok(())
}

#[async_trait]
impl Backend for Flaky {
    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    async fn claim(&self, request: &Claim) -> Result<Vec<Delivery>> {
        fail_if(&self.claims_fail)?;
        self.memory.claim(request).await
    }

    async fn settle(&self, request: &Settle) -> Result<Vec<Result<(), LeaseRefusal>>> {
        let outcomes = request.settlements.iter().map(|one| one.outcome.clone()).collect();
        self.settles.lock().unwrap().push(outcomes);
        fail_if(&self.settles_fail)?;
        self.settle_gate.acquire().await.unwrap().forget();
        let answers = self.memory.settle(request).await;
        let lose = |left: usize| left.checked_sub(1);
        if self.answers_to_lose.fetch_update(SeqCst, SeqCst, lose).is_ok() {
            let lost = Error::new(ErrorKind::Unavailable, "settle", "connection reset");
            return Err(lost.with_effect(Effect::Unknown));
        }
        answers
    }

    async fn renew(&self, request: &Renew) -> Result<Vec<Result<Timestamp, LeaseRefusal>>> {
        fail_if(&self.renewals_fail)?;
        let answers = self.memory.renew(request).await;
        self.renewals.fetch_add(1, SeqCst);
        answers
    }

    async fn prepare(&self) -> Result<()> {
        self.memory.prepare().await
    }

    async fn ping(&self) -> Result<Server> {
        self.memory.ping().await
    }

    async fn create_stream(&self, stream: &StreamRef) -> Result<()> {
        self.memory.create_stream(stream).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.memory.delete_stream(stream).await
    }

    async fn partitions(&self, stream: &StreamName) -> Result<u32> {
        self.memory.partitions(stream).await
    }

    async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        self.memory.list_streams().await
    }

    async fn create_group(&self, request: &CreateGroup) -> Result<()> {
        self.memory.create_group(request).await
    }

    async fn delete_group(&self, group: &GroupRef) -> Result<()> {
        self.memory.delete_group(group).await
    }

    async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>> {
        self.memory.list_groups(stream).await
    }

    async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        self.memory.group_info(group, now).await
    }

    async fn append(&self, request: &Append) -> Result<Vec<Event>> {
        self.memory.append(request).await
    }

    async fn replay(&self, request: &Replay) -> Result<()> {
        self.memory.replay(request).await
    }

    async fn reset(&self, request: &Reset) -> Result<()> {
        self.memory.reset(request).await
    }

    async fn read(&self, request: &Read) -> Result<Vec<Event>> {
        self.memory.read(request).await
    }

    async fn search(&self, request: &Search) -> Result<Vec<Event>> {
        self.memory.search(request).await
    }

    async fn seek(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        self.memory.seek(stream, seek).await
    }

    async fn dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        self.memory.dead_letters(request).await
    }

    async fn wait(&self, request: &Wait) -> Result<()> {
        self.memory.wait(request).await
    }
}
