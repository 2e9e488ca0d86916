//! [`Server`]: a server for tests, and how it is reached, killed and started.

use std::net::SocketAddr;
use std::time::Duration;
use std::{env, fmt, io};

use rheo_core::{Error, ErrorKind, Result};
use tokio::net::TcpStream;

use super::process::{PATIENCE, Process, home_for};
use super::programs::free_ports;
use super::{Kind, Site};
use crate::{NotConfigured, Proxy};

/// How long one attempt to reach a server may take, and how long to wait for
/// the next one.
const ATTEMPT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// A server for tests.
pub struct Server {
    kind: &'static Kind,
    url: String,
    /// Where it listens, or each of its nodes.
    addresses: Vec<String>,
    proxy: Proxy,
    /// None where no client of it would go through the proxy.
    proxied_url: Option<String>,
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
                "{}, or set {} to a server that may be filled ({problem})",
                kind.install, kind.variable
            ),
        })
    }

    /// Starts one of its own, whatever a variable says.
    pub(super) async fn start_private(kind: &'static Kind) -> Result<Self, NotConfigured> {
        let fix = |problem| format!("{} ({problem})", kind.install);
        Self::private(kind).await.map_err(|problem| NotConfigured { fix: fix(problem) })
    }

    /// Its URL. Its password, if it has one, is in it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its URL through the [proxy](Self::proxy), where there is one.
    #[must_use]
    pub fn proxied_url(&self) -> &str {
        self.proxied_url.as_deref().unwrap_or(&self.url)
    }

    /// What lies between it and the clients that use its
    /// [proxied URL](Self::proxied_url). There is none before a cluster that
    /// someone else runs: it sends its clients to addresses of its own.
    #[must_use]
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxied_url.is_some().then_some(&self.proxy)
    }

    /// Kills it with `kill -9` and starts it again, with its data and at its
    /// address; returns when it answers. A server that someone else runs only
    /// loses its connections through the proxy, if there is one.
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
        let url = with_option(url, kind.option);
        let parts = Parts::of(&url, kind.default_port).ok_or_else(|| {
            io::Error::other(format!("{} is not a URL with a host", kind.variable))
        })?;
        let addresses = parts.addresses.clone();
        let proxy = Proxy::start_before(addresses.clone()).await?;
        let proxied_url = (kind.nodes == 1)
            .then(|| format!("{}{}{}", parts.before, proxy.address(), parts.after));
        let server = Self { kind, url, addresses, proxy, proxied_url, process: None };
        match tokio::time::timeout(PATIENCE, server.answers()).await {
            Ok(()) => Ok(server),
            Err(_) => {
                Err(io::Error::other(format!("{} does not answer", server.addresses.join(","))))
            }
        }
    }

    async fn private(kind: &'static Kind) -> io::Result<Self> {
        let (home, ports) = (home_for(kind.label), free_ports(kind.nodes)?);
        let addresses: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let proxy = Proxy::start_before(addresses.clone()).await?;
        let proxied = proxy.addresses().iter().map(SocketAddr::port).collect();
        let site = Site { home, ports, proxied };
        let image = || kind.image.as_ref()?.plan(&site);
        let plan = (kind.plan)(&site).or_else(image);
        let plan = plan.ok_or_else(|| io::Error::other("it is not installed"))?;
        let process = Process::make(site.home, plan).await?;
        let url_of = |address: &str| with_option((kind.url)(address), kind.option);
        let url = url_of(&addresses[0]);
        let proxied_url = Some(url_of(&proxy.address().to_string()));
        let server = Self { kind, url, addresses, proxy, proxied_url, process: Some(process) };
        if let Some(process) = &server.process {
            process.start(server.answers()).await?;
        }
        Ok(server)
    }

    /// Waits until it takes requests, at all of its addresses.
    async fn answers(&self) {
        for address in &self.addresses {
            let attempt = || async {
                let stream = TcpStream::connect(address).await?;
                (self.kind.answers)(stream).await
            };
            while !matches!(tokio::time::timeout(ATTEMPT, attempt()).await, Ok(Ok(true))) {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A URL with the option that must be in it.
fn with_option(url: String, option: Option<&str>) -> String {
    match option {
        Some(option) if !url.contains(option) => {
            let separator = if url.contains('?') { '&' } else { '?' };
            format!("{url}{separator}{option}")
        }
        _ => url,
    }
}

fn failed(operation: &'static str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, operation, error.to_string())
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("kind", &self.kind.label)
            .field("addresses", &self.addresses)
            .field("proxy", &self.proxy.addresses())
            .finish_non_exhaustive()
    }
}

/// A URL around the hosts and ports in it.
struct Parts<'a> {
    before: &'a str,
    addresses: Vec<String>,
    after: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str, default_port: u16) -> Option<Self> {
        let begin = url.find("://")? + 3;
        let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |at| begin + at);
        let begin = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
        let hosts = url[begin..end].split(',');
        let addresses: Option<_> = hosts.map(|host| address(host, default_port)).collect();
        Some(Self { before: &url[..begin], addresses: addresses?, after: &url[end..] })
    }
}

/// A host with its port, or with the default one where it has none.
fn address(host: &str, default_port: u16) -> Option<String> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match host {
        "" => None,
        _ if has_port => Some(host.into()),
        _ => Some(format!("{host}:{default_port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_around_its_addresses() {
        let parts = |url| Parts::of(url, 7).map(|it| (it.before, it.addresses.join(" "), it.after));
        let expected = |before, addresses: &str, after| Some((before, addresses.into(), after));
        assert_eq!(parts("pg://u:p@h:1/db?x=y"), expected("pg://u:p@", "h:1", "/db?x=y"));
        assert_eq!(parts("pg://u:p%40@h/db"), expected("pg://u:p%40@", "h:7", "/db"));
        assert_eq!(parts("pg://[::1]:5"), expected("pg://", "[::1]:5", ""));
        assert_eq!(parts("pg://[::1]/a@b"), expected("pg://", "[::1]:7", "/a@b"));
        assert_eq!(parts("r+c://u@h:1,i,j:3?x=y"), expected("r+c://u@", "h:1 i:7 j:3", "?x=y"));
        assert_eq!(parts("pg:///db?host=/run"), None);
        assert_eq!(parts("h:1"), None);
    }

    #[test]
    fn a_url_has_its_option_once() {
        let completed = |url: &str| with_option(url.into(), Some("x=y"));
        assert_eq!(completed("m://h/db"), "m://h/db?x=y");
        assert_eq!(completed("m://h/db?a=b"), "m://h/db?a=b&x=y");
        assert_eq!(completed("m://h/db?x=y&a=b"), "m://h/db?x=y&a=b");
        assert_eq!(with_option("m://h".into(), None), "m://h");
    }
}
