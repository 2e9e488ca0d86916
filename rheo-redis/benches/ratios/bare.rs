//! The bare driver: one multiplexed connection, and the least that could be
//! called the same work.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, cmd, pipe};

use crate::events::BareEvent;

/// A connection of the bare driver. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bare {
    connection: MultiplexedConnection,
}

/// An entry as owned strings: its id, and fields and values in turn.
type Entry = (String, Vec<String>);

pub(crate) const GROUP: &str = "bare";

impl Bare {
    pub(crate) async fn connect(url: &str) -> Self {
        let client = Client::open(url).expect("a URL");
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        Self { connection: connection.expect("connected") }
    }

    pub(crate) async fn run<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        command.query_async(&mut self.connection).await.expect("an answer")
    }

    /// Appends events in one pipeline, and returns their ids.
    pub(crate) async fn append(&mut self, log: &str, events: &[BareEvent]) -> Vec<String> {
        let mut pipeline = pipe();
        for event in events {
            pipeline.add_command(xadd(log, event));
        }
        pipeline.query_async(&mut self.connection).await.expect("appended")
    }

    /// Appends one event, and returns its id.
    pub(crate) async fn append_one(&mut self, log: &str, event: &BareEvent) -> String {
        self.run(&xadd(log, event)).await
    }

    /// Makes a log with a consumer group.
    pub(crate) async fn create(&mut self, log: &str) {
        self.run::<()>(cmd("XGROUP").arg(&["CREATE", log, GROUP, "0", "MKSTREAM"])).await;
    }

    pub(crate) async fn claim(&mut self, log: &str, count: u64) -> Vec<Entry> {
        let mut command = cmd("XREADGROUP");
        command.arg(&["GROUP", GROUP, "consumer", "COUNT"]).arg(count);
        let answer: Option<Vec<(String, Vec<Entry>)>> =
            self.run(command.arg(&["STREAMS", log, ">"])).await;
        answer.into_iter().flatten().flat_map(|(_, entries)| entries).collect()
    }

    pub(crate) async fn ack(&mut self, log: &str, entries: &[Entry]) -> u64 {
        let mut command = cmd("XACK");
        command.arg(log).arg(GROUP);
        for (id, _) in entries {
            command.arg(id);
        }
        self.run(&command).await
    }

    /// How many bytes a key takes, by a full count.
    pub(crate) async fn bytes_of(&mut self, key: &str) -> u64 {
        let bytes: Option<u64> = self.run(cmd("MEMORY").arg(&["USAGE", key, "SAMPLES", "0"])).await;
        bytes.unwrap_or_default()
    }

    /// A part of what the server tells of itself.
    pub(crate) async fn info(&mut self, section: &str) -> String {
        self.run(cmd("INFO").arg(section)).await
    }
}

fn xadd(log: &str, event: &BareEvent) -> Cmd {
    let mut command = cmd("XADD");
    command.arg(log).arg("*");
    for (field, value) in event {
        command.arg(field).arg(value);
    }
    command
}
