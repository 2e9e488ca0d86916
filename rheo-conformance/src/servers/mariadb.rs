//! A throwaway MariaDB server.

use std::io;
use std::ops::Deref;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::container::Image;
use super::process::{Plan, command};
use super::{Kind, Server, Site, programs};
use crate::NotConfigured;

/// A throwaway MariaDB server, with an empty database and a user who may do
/// everything. `RHEO_TEST_MYSQL_URL` can name a server of MySQL as well.
#[derive(Debug)]
pub struct MariaDb(Server);

impl MariaDb {
    /// Starts one, or reaches the one of `RHEO_TEST_MYSQL_URL`.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn start() -> Result<Self, NotConfigured> {
        Server::start(&KIND).await.map(Self)
    }
}

impl Deref for MariaDb {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

const KIND: Kind = Kind {
    label: "mariadb",
    variable: "RHEO_TEST_MYSQL_URL",
    install: "apt-get install -y --no-install-recommends mariadb-server",
    option: None,
    default_port: 3306,
    nodes: 1,
    url: |address| format!("mysql://root@{address}/test"),
    plan,
    image: Some(Image {
        name: "mariadb:12.3.3",
        port: 3306,
        environment: &["MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=1", "MARIADB_DATABASE=test"],
        arguments: &["--max-connections=500"],
    }),
    answers: |stream| Box::pin(answers(stream)),
};

fn plan(site: &Site) -> Option<Plan> {
    let (server, install) = (programs::find("mariadbd")?, programs::find("mariadb-install-db")?);
    let inside =
        |option: &str, name: &str| format!("--{option}={}", site.home.join(name).display());
    let data = inside("datadir", "data");
    let mut run = vec!["--no-defaults".into(), data.clone(), format!("--port={}", site.ports[0])];
    run.extend(["--bind-address=127.0.0.1".into(), "--max-connections=500".into()]);
    run.extend([inside("socket", "socket"), inside("pid-file", "pid")]);
    let trusting = "--auth-root-authentication-method=normal";
    Some(Plan {
        user: Some("mysql"),
        container: None,
        make: vec![command(&install, &["--no-defaults", &data, trusting])],
        run: command(&server, &run.iter().map(String::as_str).collect::<Vec<_>>()),
    })
}

/// Whether it greets: with the version of its protocol, where it takes requests.
async fn answers(mut stream: TcpStream) -> io::Result<bool> {
    let mut greeting = [0; 5];
    stream.read_exact(&mut greeting).await?;
    Ok(greeting[4] == 10)
}
