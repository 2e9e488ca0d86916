//! Redis and Valkey by redis-rs, over one connection: `XADD` in a pipeline,
//! `XREADGROUP` and `XACK`.

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, cmd, pipe};

use super::{Raw, told};
use crate::commands::bench::events::Plain;
use crate::failure::{Failure, Outcome};

/// A stream of the server's for each partition.
#[derive(Clone)]
pub(super) struct Log {
    connection: MultiplexedConnection,
    name: String,
    partition: u32,
}

/// An entry: its id, and fields and values in turn.
type Entry = (String, Vec<String>);

const GROUP: &str = "bench";

impl Log {
    pub(super) async fn open(url: &str, name: &str) -> Result<Self, Failure> {
        let client = Client::open(url).map_err(told)?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        Ok(Self { connection: connection.map_err(told)?, name: name.into(), partition: 0 })
    }

    fn key(&self) -> String {
        format!("{}:{}", self.name, self.partition)
    }

    async fn run<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Failure> {
        command.query_async(&mut self.connection).await.map_err(told)
    }
}

#[async_trait]
impl Raw for Log {
    async fn create(&mut self) -> Outcome {
        let key = self.key();
        self.run(cmd("XGROUP").arg(&["CREATE", &key, GROUP, "0", "MKSTREAM"])).await
    }

    async fn another(&mut self, partition: u32) -> Result<Box<dyn Raw>, Failure> {
        Ok(Box::new(Self { partition, ..self.clone() }))
    }

    async fn append(&mut self, events: &[Plain]) -> Outcome {
        let (key, mut pipeline) = (self.key(), pipe());
        for event in events {
            pipeline.cmd("XADD").arg(&key).arg("*");
            pipeline.arg("id").arg(event.id.to_string()).arg("at").arg(event.at);
            pipeline.arg("type").arg(&event.event_type).arg("key").arg(&event.key);
            pipeline.arg("metadata").arg("{}").arg("payload").arg(&event.payload);
        }
        let ids: Vec<String> = pipeline.query_async(&mut self.connection).await.map_err(told)?;
        match ids.len() == events.len() {
            true => Ok(()),
            false => Err(told("an event has no id")),
        }
    }

    async fn consume(&mut self, size: u64) -> Result<u64, Failure> {
        let key = self.key();
        let mut claim = cmd("XREADGROUP");
        claim.arg(&["GROUP", GROUP, "consumer", "COUNT"]).arg(size);
        claim.arg(&["STREAMS", &key, ">"]);
        let claimed: Option<Vec<(String, Vec<Entry>)>> = self.run(&claim).await?;
        let entries: Vec<_> = claimed.into_iter().flatten().flat_map(|(_, it)| it).collect();
        if entries.is_empty() {
            return Ok(0);
        }
        let mut ack = cmd("XACK");
        ack.arg(&key).arg(GROUP);
        for (id, _) in &entries {
            ack.arg(id);
        }
        self.run(&ack).await
    }

    async fn rewind(&mut self) -> Outcome {
        let key = self.key();
        self.run(cmd("XGROUP").arg(&["SETID", &key, GROUP, "0"])).await
    }

    async fn delete(&mut self) -> Outcome {
        let keys: Vec<String> = self.run(cmd("KEYS").arg(format!("{}:*", self.name))).await?;
        if keys.is_empty() { Ok(()) } else { self.run(cmd("DEL").arg(keys)).await }
    }

    async fn bytes(&mut self) -> Result<Option<u64>, Failure> {
        let info: String = self.run(cmd("INFO").arg("memory")).await?;
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        Ok(line.and_then(|bytes| bytes.trim().parse().ok()))
    }
}
