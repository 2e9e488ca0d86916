//! Throwaway servers of Redis or Valkey.

use std::io;
use std::ops::Deref;
use std::path::PathBuf;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::container::Image;
use super::process::{Plan, command};
use super::{Kind, Server, Site, programs};
use crate::NotConfigured;

/// A throwaway Redis server, without a password.
#[derive(Debug)]
pub struct Redis(Server);

impl Redis {
    /// Starts one that keeps nothing on disk, or reaches the one of
    /// `RHEO_TEST_REDIS_URL`.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn start() -> Result<Self, NotConfigured> {
        Server::start(&FLEETING).await.map(Self)
    }

    /// Starts one that has its data back after a crash, or reaches the one of
    /// `RHEO_TEST_REDIS_PERSISTENT_URL`.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn persistent() -> Result<Self, NotConfigured> {
        Server::start(&PERSISTENT).await.map(Self)
    }

    /// Starts one that keeps nothing on disk, whatever a variable says: for
    /// tests that empty or reconfigure a server.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn private() -> Result<Self, NotConfigured> {
        Server::start_private(&FLEETING).await.map(Self)
    }
}

impl Deref for Redis {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

const FLEETING: Kind = Kind {
    label: "redis",
    variable: "RHEO_TEST_REDIS_URL",
    install: INSTALL,
    option: None,
    default_port: PORT,
    nodes: 1,
    url: |address| format!("redis://{address}"),
    plan: |site| plan(site, &IN_MEMORY),
    image: image(&IN_MEMORY),
    answers: |stream| Box::pin(answers(stream)),
};

const PERSISTENT: Kind = Kind {
    label: "redis-aof",
    variable: "RHEO_TEST_REDIS_PERSISTENT_URL",
    plan: |site| plan(site, &ON_DISK),
    image: image(&ON_DISK),
    ..FLEETING
};

/// The line that installs the server.
pub(super) const INSTALL: &str = "apt-get install -y --no-install-recommends redis-server";
/// Where it listens unless it is told otherwise.
pub(super) const PORT: u16 = 6379;

const IN_MEMORY: [&str; 4] = ["--save", "", "--appendonly", "no"];

/// What has been answered survives `kill -9`. With `everysec` that would not be
/// sure: while the disk is busy, the server answers before it writes to the file.
const ON_DISK: [&str; 6] = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];

const fn image(arguments: &'static [&'static str]) -> Option<Image> {
    Some(Image { name: "redis:8.4.0", port: PORT, environment: &[], arguments })
}

/// The server's program, be it Redis or Valkey.
pub(super) fn program() -> Option<PathBuf> {
    programs::find_named("redis-server").or_else(|| programs::find_named("valkey-server"))
}

fn plan(site: &Site, settings: &[&str]) -> Option<Plan> {
    let port = site.ports[0].to_string();
    let mut run = vec!["--port", &port, "--bind", "127.0.0.1"];
    run.extend(settings);
    Some(Plan { user: None, container: None, make: Vec::new(), run: command(&program()?, &run) })
}

/// Whether it has read its data, and answers anything else: it may ask for a
/// password.
async fn answers(stream: TcpStream) -> io::Result<bool> {
    let answer = first_line(stream, "PING").await?;
    Ok(!answer.is_empty() && !answer.starts_with("-LOADING"))
}

/// What it answers to a command, up to the end of a line.
async fn first_line(mut stream: TcpStream, command: &str) -> io::Result<String> {
    stream.write_all(format!("{command}\r\n").as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await?;
    Ok(line)
}
