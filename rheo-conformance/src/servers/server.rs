//! [`Server`]: a server for tests, and how it is reached, killed and started.

use std::time::Duration;
use std::{env, fmt, io};

use rheo_core::{Error, ErrorKind, Result};
use tokio::net::TcpStream;

use super::Kind;
use super::process::{PATIENCE, Process, home_for};
use super::programs::free_port;
use crate::{NotConfigured, Proxy};

/// How long one attempt to reach a server may take, and how long to wait for
/// the next one.
const ATTEMPT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// A server for tests.
pub struct Server {
    kind: &'static Kind,
    url: String,
    address: String,
    proxy: Proxy,
    proxied_url: String,
    /// The server itself, unless someone else runs it.
    process: Option<Process>,
}

impl Server {
    pub(super) async fn start(kind: &'static Kind) -> Result<Self, NotConfigured> {
        let started = match env::var(kind.variable) {
            Ok(url) => Self::given(kind, url).await,
            Err(_) => Self::private(kind).await,
        };
        started.map_err(|problem| NotConfigured {
            fix: format!(
                "apt-get install -y --no-install-recommends {}, or set {} to a server that may be \
                 filled ({problem})",
                kind.package, kind.variable
            ),
        })
    }

    /// Its URL. Its password, if it has one, is in it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its URL through the [proxy](Self::proxy).
    #[must_use]
    pub fn proxied_url(&self) -> &str {
        &self.proxied_url
    }

    /// What lies between it and the clients that use its
    /// [proxied URL](Self::proxied_url).
    #[must_use]
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Kills it with `kill -9` and starts it again, with its data and at its
    /// address; returns when it answers. A server that someone else runs only
    /// loses its connections through the proxy.
    ///
    /// # Errors
    /// `Unavailable` where it does not start again.
    pub async fn crash(&self) -> Result<()> {
        self.stop().await?;
        self.start_again().await
    }

    /// Kills it with `kill -9`. A server that someone else runs is only out of
    /// reach through the proxy.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be told.
    pub async fn stop(&self) -> Result<()> {
        match &self.process {
            Some(process) => process.kill().await.map_err(|error| failed("stop", &error)),
            None => {
                self.proxy.refuse(true).await;
                Ok(())
            }
        }
    }

    /// Starts it after a [stop](Self::stop), and returns when it answers.
    ///
    /// # Errors
    /// `Unavailable` where it does not start.
    pub async fn start_again(&self) -> Result<()> {
        match &self.process {
            Some(process) => {
                let started = process.start(self.answers()).await;
                started.map_err(|error| failed("start_again", &error))
            }
            None => {
                self.proxy.refuse(false).await;
                Ok(())
            }
        }
    }

    async fn given(kind: &'static Kind, url: String) -> io::Result<Self> {
        let server = Self::at(kind, url, None).await?;
        match tokio::time::timeout(PATIENCE, server.answers()).await {
            Ok(()) => Ok(server),
            Err(_) => Err(io::Error::other(format!("{} does not answer", server.address))),
        }
    }

    async fn private(kind: &'static Kind) -> io::Result<Self> {
        let (home, port) = (home_for(kind.label), free_port()?);
        let plan = (kind.plan)(&home, port).or_else(|| kind.image.plan(&home, port));
        let plan = plan.ok_or_else(|| io::Error::other("it is not installed"))?;
        let process = Process::make(home, plan).await?;
        let url = (kind.url)(&format!("127.0.0.1:{port}"));
        let server = Self::at(kind, url, Some(process)).await?;
        if let Some(process) = &server.process {
            process.start(server.answers()).await?;
        }
        Ok(server)
    }

    async fn at(kind: &'static Kind, url: String, process: Option<Process>) -> io::Result<Self> {
        let parts = Parts::of(&url, kind.default_port).ok_or_else(|| {
            io::Error::other(format!("{} is not a URL with a host", kind.variable))
        })?;
        let address = parts.address.clone();
        let proxy = Proxy::start(&*address).await?;
        let proxied_url = format!("{}{}{}", parts.before, proxy.address(), parts.after);
        Ok(Self { kind, url, address, proxy, proxied_url, process })
    }

    /// Waits until it takes requests.
    async fn answers(&self) {
        let attempt = || async {
            let stream = TcpStream::connect(&self.address).await?;
            (self.kind.answers)(stream).await
        };
        while !matches!(tokio::time::timeout(ATTEMPT, attempt()).await, Ok(Ok(true))) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn failed(operation: &'static str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, operation, error.to_string())
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("kind", &self.kind.label)
            .field("address", &self.address)
            .field("proxy", &self.proxy.address())
            .finish_non_exhaustive()
    }
}

/// A URL around the host and port in it.
struct Parts<'a> {
    before: &'a str,
    address: String,
    after: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str, default_port: u16) -> Option<Self> {
        let begin = url.find("://")? + 3;
        let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |at| begin + at);
        let begin = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
        let host = &url[begin..end];
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = match host {
            "" => return None,
            _ if has_port => host.into(),
            _ => format!("{host}:{default_port}"),
        };
        Some(Self { before: &url[..begin], address, after: &url[end..] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_around_its_address() {
        let parts = |url| Parts::of(url, 7).map(|it| (it.before, it.address, it.after));
        let expected = |before, address: &str, after| Some((before, address.into(), after));
        assert_eq!(parts("pg://u:p@h:1/db?x=y"), expected("pg://u:p@", "h:1", "/db?x=y"));
        assert_eq!(parts("pg://u:p%40@h/db"), expected("pg://u:p%40@", "h:7", "/db"));
        assert_eq!(parts("pg://[::1]:5"), expected("pg://", "[::1]:5", ""));
        assert_eq!(parts("pg://[::1]/a@b"), expected("pg://", "[::1]:7", "/a@b"));
        assert_eq!(parts("pg:///db?host=/run"), None);
        assert_eq!(parts("h:1"), None);
    }
}
