//! [`Builder`]: how an instance is set up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use uuid::Uuid;

use super::{Inner, Rheo};
use crate::backend::Backend;
use crate::{Clock, ConsumerId, DEFAULT_MAX_ATTEMPTS, Error, ErrorKind, Guarantee, Result};

/// How long a lease lasts, unless set.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// How long an operation may take, unless set.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many leases a consumer holds at most, unless set.
pub const DEFAULT_MAX_DEMAND: usize = 100;
/// How large an event may be, in encoded bytes, unless set: 1 MiB.
pub const DEFAULT_EVENT_BYTES: usize = 1 << 20;

/// What an instance runs with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) lease: Duration,
    pub(crate) timeout: Duration,
    pub(crate) max_attempts: u32,
    pub(crate) max_demand: usize,
    pub(crate) event_bytes: usize,
    pub(crate) consumer: ConsumerId,
    pub(crate) waking: bool,
}

/// Sets up a [`Rheo`] instance.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
/// use std::time::Duration;
/// use rheo_core::{Guarantee, Rheo};
///
/// let rheo = Rheo::builder(rheo_ets::Memory::new())
///     .lease(Duration::from_secs(10))
///     .require(Guarantee::Replay)
///     .build()
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Builder {
    backend: Arc<dyn Backend>,
    clock: Clock,
    lease: Duration,
    timeout: Duration,
    max_attempts: u32,
    max_demand: usize,
    event_bytes: Option<usize>,
    consumer: Option<String>,
    waking: bool,
    required: Vec<Guarantee>,
}

impl Builder {
    pub(super) fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            clock: Clock::system(),
            lease: DEFAULT_LEASE,
            timeout: DEFAULT_TIMEOUT,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            max_demand: DEFAULT_MAX_DEMAND,
            event_bytes: None,
            consumer: None,
            waking: true,
            required: Vec::new(),
        }
    }

    /// The clock of the instance: the system's, or a
    /// [`ManualClock`](crate::ManualClock), which then judges leases on every backend.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// How long leases last where a fetch or consumer does not say; default 30 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long an operation may take, retries included; default 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often an event is handed out at most, in groups whose
    /// [`GroupOptions`](crate::GroupOptions) do not say; default 5.
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// How many leases a consumer or subscription holds at most where it does
    /// not say; default 100.
    pub fn max_demand(mut self, max_demand: usize) -> Self {
        self.max_demand = max_demand;
        self
    }

    /// How large an event may be, in encoded bytes (type, key, metadata and
    /// payload), up to the store's own limit; default 1 MiB, or that limit
    /// where it is lower.
    pub fn event_bytes(mut self, event_bytes: usize) -> Self {
        self.event_bytes = Some(event_bytes);
        self
    }

    /// The name by which the store knows who holds this instance's leases;
    /// by default one of its own.
    pub fn consumer(mut self, consumer: impl Into<String>) -> Self {
        self.consumer = Some(consumer.into());
        self
    }

    /// Whether consumers let the store wake them; default yes. Without it
    /// they poll.
    pub fn waking(mut self, waking: bool) -> Self {
        self.waking = waking;
        self
    }

    /// Refuses to start on a backend that does not promise this.
    pub fn require(mut self, guarantee: Guarantee) -> Self {
        self.required.push(guarantee);
        self
    }

    /// Makes the store ready and starts the instance.
    ///
    /// # Errors
    /// - `Unsupported`, where the backend does not promise what is required;
    /// - `Config`, where a setting is out of range;
    /// - `Invalid`, where the consumer's name is none;
    /// - `Unavailable`, where the store is out of reach.
    pub async fn build(self) -> Result<Rheo> {
        let capabilities = self.backend.capabilities();
        for guarantee in self.required {
            if !capabilities.guarantees.get(guarantee) {
                let context = format!("this backend does not promise {guarantee}");
                return Err(Error::new(ErrorKind::Unsupported, "build", context));
            }
        }
        let limit = capabilities.limits.event_bytes;
        let event_bytes = self.event_bytes.unwrap_or(DEFAULT_EVENT_BYTES.min(limit));
        check("the lease", self.lease.as_micros() > 0, "longer than zero")?;
        check("the timeout", !self.timeout.is_zero(), "longer than zero")?;
        check("max_attempts", self.max_attempts > 0, "at least 1")?;
        check("max_demand", self.max_demand > 0, "at least 1")?;
        check("event_bytes", event_bytes <= limit, format!("at most {limit} on this store"))?;
        let consumer = self.consumer.unwrap_or_else(|| format!("rheo-{}", Uuid::new_v4().simple()));
        let settings = Settings {
            lease: self.lease,
            timeout: self.timeout,
            max_attempts: self.max_attempts,
            max_demand: self.max_demand,
            event_bytes,
            consumer: ConsumerId::new(consumer).map_err(|error| error.in_operation("build"))?,
            waking: self.waking,
        };
        let rheo = Rheo {
            inner: Arc::new(Inner {
                backend: self.backend,
                capabilities,
                clock: self.clock,
                settings,
                streams: super::streams::KnownStreams::default(),
                appends: super::append::AppendLanes::default(),
                settles: super::settle::SettleLanes::default(),
                running: Mutex::default(),
            }),
        };
        rheo.repeatable_call("prepare", || rheo.store().prepare()).await?;
        Ok(rheo)
    }
}

fn check(what: &str, holds: bool, rule: impl AsRef<str>) -> Result<()> {
    if holds {
        return Ok(());
    }
    let context = format!("{what} must be {}", rule.as_ref());
    Err(Error::new(ErrorKind::Config, "build", context))
}
