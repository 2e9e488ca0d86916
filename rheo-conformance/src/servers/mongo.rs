//! Throwaway servers of MongoDB, or of what is compatible with it.

use std::env;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::container::Image;
use super::process::{Plan, command};
use super::{Kind, Server, Site, programs};
use crate::NotConfigured;

/// A throwaway MongoDB server, without a password, which has its data back
/// after a crash. Where the machine has no `mongod`, it is SecantusDB, which is
/// compatible with it: the server itself says which, when it is asked for its
/// build.
///
/// Its URLs have a database, and `directConnection=true`: a client that followed
/// the addresses of the replica set would leave the [proxy](Server::proxy).
#[derive(Debug)]
pub struct Mongo(Server);

impl Mongo {
    /// Starts a replica set of one member, or reaches the one server that
    /// `RHEO_TEST_MONGO_URL` names.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn start() -> Result<Self, NotConfigured> {
        Server::start(&REPLICA_SET).await.map(Self)
    }

    /// Starts a replica set of one member, whatever a variable says: for tests
    /// that reconfigure a server.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn private() -> Result<Self, NotConfigured> {
        Server::start_private(&REPLICA_SET).await.map(Self)
    }

    /// Starts a server that is no replica set, whatever a variable says.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn standalone() -> Result<Self, NotConfigured> {
        Server::start_private(&STANDALONE).await.map(Self)
    }
}

impl Deref for Mongo {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

const REPLICA_SET: Kind = Kind {
    label: "mongo",
    variable: "RHEO_TEST_MONGO_URL",
    install: "scripts/test mongo",
    option: Some("directConnection=true"),
    default_port: PORT,
    nodes: 1,
    url: |address| format!("mongodb://{address}/rheo"),
    plan: |site| mongod(site, &IN_A_SET).or_else(|| secantus(site, &[])),
    image: image(&IN_A_SET),
    answers: |stream| Box::pin(answers(stream)),
};

const STANDALONE: Kind = Kind {
    label: "mongo-alone",
    plan: |site| mongod(site, &[]).or_else(|| secantus(site, &["--standalone"])),
    image: image(&[]),
    ..REPLICA_SET
};

/// Where it listens unless it is told otherwise.
const PORT: u16 = 27017;

/// MongoDB is a member of a set of this name, once it is told to begin one.
const IN_A_SET: [&str; 2] = ["--replSet", "rheo"];

const fn image(arguments: &'static [&'static str]) -> Option<Image> {
    Some(Image { name: "mongo:8.0.17", port: PORT, environment: &[], arguments })
}

fn mongod(site: &Site, settings: &[&str]) -> Option<Plan> {
    let server = programs::find("mongod")?;
    let (data, port) = (site.home.join("data"), site.ports[0].to_string());
    let data = data.to_str()?;
    let mut run = vec!["--dbpath", data, "--port", &port, "--bind_ip", "127.0.0.1"];
    run.push("--nounixsocket");
    run.extend(settings);
    Some(Plan {
        user: None,
        container: None,
        make: vec![command(Path::new("mkdir"), &[data])],
        run: command(&server, &run),
    })
}

/// SecantusDB is a replica set of one member from its beginning. What it has
/// acknowledged survives `kill -9` only where it waits for the disk.
fn secantus(site: &Site, settings: &[&str]) -> Option<Plan> {
    let program = "secantusd-rs";
    let server =
        programs::find(program).or_else(|| programs::find_in(built_by_script(), program))?;
    let (data, port) = (site.home.join("data"), site.ports[0].to_string());
    let mut run = vec!["--host", "127.0.0.1", "--port", &port, "--storage-path", data.to_str()?];
    run.push("--sync-on-commit");
    run.extend(settings);
    Some(Plan { user: None, container: None, make: Vec::new(), run: command(&server, &run) })
}

/// Where `scripts/test` puts the server that it builds.
fn built_by_script() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let tools = set("RHEO_TOOLS_DIR").or_else(|| Some(caches()?.join("rheo")))?;
    Some(tools.join("secantus/bin"))
}

/// Whether it takes writes, or answers anything else than that it does not: it
/// may ask for a password. One that waits to be a replica set is told to begin
/// one, of itself alone.
async fn answers(mut stream: TcpStream) -> io::Result<bool> {
    const WAITS: &[u8] = b"isreplicaset\0";
    const TAKES_NO_WRITES: &[u8] = b"\x08isWritablePrimary\0\0";
    let says = |answer: &[u8], what: &[u8]| answer.windows(what.len()).any(|part| part == what);
    let answer = ask(&mut stream, "hello").await?;
    if says(&answer, WAITS) {
        // Refused where it has begun since, which the next answer tells.
        ask(&mut stream, "replSetInitiate").await?;
    }
    Ok(!says(&answer, TAKES_NO_WRITES))
}

/// What it answers to the command `{NAME: 1, $db: "admin"}`: a header and BSON.
async fn ask(stream: &mut TcpStream, name: &str) -> io::Result<Vec<u8>> {
    const OP_MSG: i32 = 2013;
    const HEADER: usize = 16;
    let rest = b"\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";
    let document = [b"\x10", name.as_bytes(), rest].concat();
    // No flags, and one section: the document after its length.
    let length = (HEADER + 9 + document.len()) as i32;
    let mut request = Vec::new();
    for number in [length, 1, 0, OP_MSG, 0] {
        request.extend(number.to_le_bytes());
    }
    request.push(0);
    request.extend((document.len() as i32 + 4).to_le_bytes());
    request.extend(document);
    stream.write_all(&request).await?;
    let length = stream.read_i32_le().await?.clamp(4, 1 << 16) - 4;
    let mut answer = vec![0; length as usize];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What MongoDB says of itself before it is a replica set, while it elects
    /// itself, and after.
    const WAITING: &[u8] = b"\x08isWritablePrimary\0\0\x08isreplicaset\0\x01";
    const ELECTING: &[u8] = b"\x02setName\0\x05\0\0\0rheo\0\x08isWritablePrimary\0\0";
    const PRIMARY: &[u8] = b"\x02setName\0\x05\0\0\0rheo\0\x08isWritablePrimary\0\x01";

    /// Whether a server that answers so takes requests, and how often it was asked.
    async fn asked(answer: &'static [u8]) -> (bool, usize) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("someone comes");
            let mut requests = 0;
            while let Ok(length) = stream.read_i32_le().await {
                let mut request = vec![0; length as usize - 4];
                stream.read_exact(&mut request).await.expect("it is whole");
                requests += 1;
                stream.write_i32_le(answer.len() as i32 + 4).await.expect("it listens");
                stream.write_all(answer).await.expect("it listens");
            }
            requests
        });
        let stream = TcpStream::connect(address).await.expect("it listens");
        let ready = answers(stream).await.expect("it answers");
        (ready, server.await.expect("it ends"))
    }

    #[tokio::test]
    async fn a_server_that_waits_to_be_a_replica_set_is_told_to_be_one() {
        assert_eq!(asked(WAITING).await, (false, 2));
        assert_eq!(asked(ELECTING).await, (false, 1));
        assert_eq!(asked(PRIMARY).await, (true, 1));
    }
}
