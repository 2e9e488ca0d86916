//! [`ConsumerBuilder`]: how a consumer is set up.

use std::time::Duration;

use super::consumer::Consumer;
use super::engine::Engine;
use super::handler::Handler;
use super::options::{SubscribeOptions, check};
use crate::{Result, Rheo};

/// How many handlers run at once, unless set.
pub const DEFAULT_CONCURRENCY: usize = 8;

/// Sets up a [`Consumer`]; [`Rheo::consumer`] makes one.
#[derive(Clone, Debug)]
#[must_use]
pub struct ConsumerBuilder {
    rheo: Rheo,
    stream: String,
    group: String,
    options: SubscribeOptions,
    concurrency: usize,
    handler_timeout: Option<Duration>,
}

impl Rheo {
    /// Sets up a consumer of a group; [`start`](ConsumerBuilder::start) runs it.
    pub fn consumer(&self, stream: impl Into<String>, group: impl Into<String>) -> ConsumerBuilder {
        ConsumerBuilder {
            rheo: self.clone(),
            stream: stream.into(),
            group: group.into(),
            options: SubscribeOptions::default(),
            concurrency: DEFAULT_CONCURRENCY,
            handler_timeout: None,
        }
    }
}

impl ConsumerBuilder {
    /// How many handlers run at once; default 8.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// How many leases are held at most; by default as the instance is set,
    /// or the concurrency where that is more.
    pub fn max_demand(mut self, max_demand: usize) -> Self {
        self.options = self.options.max_demand(max_demand);
        self
    }

    /// How long a lease lasts between two renewals; by default as the instance
    /// is set. Handlers may take longer, as leases are renewed.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options = self.options.lease(lease);
        self
    }

    /// How long a handler may take before it is cancelled and its event
    /// retried; by default as long as it likes.
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.handler_timeout = Some(timeout);
        self
    }

    /// How long it waits at most, when there was nothing to claim, before it
    /// looks again; default 1 s. With waking off this is the poll period.
    pub fn poll_interval(mut self, poll_interval: Duration) -> Self {
        self.options = self.options.poll_interval(poll_interval);
        self
    }

    /// The name by which the store knows who holds the leases; by default the
    /// instance's own.
    pub fn consumer_id(mut self, consumer: impl Into<String>) -> Self {
        self.options = self.options.consumer_id(consumer);
        self
    }

    /// The partitions to claim from; by default all.
    pub fn partitions(mut self, partitions: impl Into<Vec<u32>>) -> Self {
        self.options = self.options.partitions(partitions);
        self
    }

    /// Runs the consumer.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `AlreadyRunning` where this instance consumes
    /// the group already.
    ///
    /// # Cancellation
    /// Safe: nothing has begun.
    pub async fn start(self, handler: impl Handler) -> Result<Consumer> {
        const OPERATION: &str = "start";
        check(OPERATION, self.concurrency > 0, "the concurrency is at least 1")?;
        let timeout_set = self.handler_timeout.is_none_or(|timeout| !timeout.is_zero());
        check(OPERATION, timeout_set, "the handler timeout is longer than zero")?;
        let names = (self.stream.as_str(), self.group.as_str());
        let engine =
            Engine::start(OPERATION, &self.rheo, names, self.options, self.concurrency).await?;
        Ok(Consumer::run(engine, handler, self.concurrency, self.handler_timeout))
    }
}
