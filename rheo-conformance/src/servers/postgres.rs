//! A throwaway PostgreSQL server.

use std::io;
use std::ops::Deref;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::container::Image;
use super::process::{Plan, command};
use super::{Kind, Server, Site, programs};
use crate::NotConfigured;

/// A throwaway PostgreSQL server, with an empty database and a user who may do
/// everything.
#[derive(Debug)]
pub struct Postgres(Server);

impl Postgres {
    /// Starts one, or reaches the one of `RHEO_TEST_POSTGRES_URL`.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn start() -> Result<Self, NotConfigured> {
        Server::start(&KIND).await.map(Self)
    }
}

impl Deref for Postgres {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

const KIND: Kind = Kind {
    label: "postgres",
    variable: "RHEO_TEST_POSTGRES_URL",
    install: "apt-get install -y --no-install-recommends postgresql",
    option: None,
    default_port: 5432,
    nodes: 1,
    url: |address| format!("postgres://postgres@{address}/postgres"),
    plan,
    image: Some(Image {
        name: "postgres:18.4",
        port: 5432,
        environment: &["POSTGRES_HOST_AUTH_METHOD=trust"],
        arguments: &["-c", "max_connections=500"],
    }),
    answers: |stream| Box::pin(answers(stream)),
};

fn plan(site: &Site) -> Option<Plan> {
    let debian = programs::versions_in(Path::new("/usr/lib/postgresql"));
    let server = programs::find("postgres").or_else(|| programs::find_in(debian, "postgres"))?;
    let (data, port) = (site.home.join("data"), site.ports[0].to_string());
    let data = data.to_str()?;
    let trusting = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"];
    let mut init = vec!["--no-sync", "--pgdata", data];
    init.extend(trusting);
    let mut run = vec!["-D", data, "-p", &port];
    let settings =
        ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=500"];
    run.extend(settings.iter().flat_map(|setting| ["-c", setting]));
    Some(Plan {
        user: Some("postgres"),
        container: None,
        make: vec![command(&server.with_file_name("initdb"), &init)],
        run: command(&server, &run),
    })
}

/// Whether it lets someone in, or refuses for another reason than that it is
/// still starting.
async fn answers(mut stream: TcpStream) -> io::Result<bool> {
    const HELLO: &[u8] = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    const STARTING: &[u8] = b"C57P03\0";
    stream.write_u32(4 + HELLO.len() as u32).await?;
    stream.write_all(HELLO).await?;
    let is_error = stream.read_u8().await? == b'E';
    let length = stream.read_u32().await?.clamp(4, 4096) - 4;
    let mut answer = vec![0; length as usize];
    stream.read_exact(&mut answer).await?;
    let starting = answer.windows(STARTING.len()).any(|part| part == STARTING);
    Ok(!(is_error && starting))
}
