//! [`Proxy`]: what lies between clients and a store outside the process, for
//! the cases that break it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A TCP proxy in front of one server, or of all nodes of a cluster, that can
/// cut its connections, refuse new ones, and stall.
///
/// It runs in the tokio runtime that started it. Dropped, it cuts everything.
#[derive(Debug)]
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    route: Arc<Route>,
    listening: Vec<AbortHandle>,
}

#[derive(Debug)]
struct Route {
    stalled: watch::Sender<bool>,
    door: Mutex<Door>,
}

#[derive(Debug)]
struct Door {
    shut: bool,
    /// Each connection listens to it until it has ended.
    connections: watch::Sender<()>,
}

impl Proxy {
    /// Starts one on this machine, in front of `server`: a host and a port.
    ///
    /// # Errors
    /// Where the operating system gives it no port.
    pub async fn start(server: impl Into<String>) -> io::Result<Self> {
        Self::start_before([server.into()]).await
    }

    /// Starts one in front of all these servers, each at an address of its own.
    ///
    /// # Errors
    /// Where the operating system gives it no ports.
    pub async fn start_before(servers: impl IntoIterator<Item = String>) -> io::Result<Self> {
        let route = Arc::new(Route {
            stalled: watch::Sender::new(false),
            door: Mutex::new(Door { shut: false, connections: watch::Sender::new(()) }),
        });
        let mut proxy = Self { addresses: Vec::new(), route, listening: Vec::new() };
        for server in servers {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            proxy.addresses.push(listener.local_addr()?);
            let task = tokio::spawn(listen(listener, server, Arc::clone(&proxy.route)));
            proxy.listening.push(task.abort_handle());
        }
        Ok(proxy)
    }

    /// Where clients reach the server through it, or the first of its servers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Where clients reach each of its servers through it.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Resets all connections, and returns when they are gone. New ones can be
    /// made at once.
    pub async fn cut(&self) {
        self.route.cut().closed().await;
    }

    /// While refusing, there is no connection and none can be made, as if the
    /// server were down.
    pub async fn refuse(&self, refuse: bool) {
        self.route.door().shut = refuse;
        if refuse {
            self.cut().await;
        }
    }

    /// While stalled, connections can be made and nothing goes over them. What
    /// was sent meanwhile arrives afterwards.
    pub fn stall(&self, stall: bool) {
        self.route.stalled.send_replace(stall);
    }

    /// Neither refuses nor stalls any longer.
    pub async fn mend(&self) {
        self.refuse(false).await;
        self.stall(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.iter().for_each(AbortHandle::abort);
        self.route.cut();
    }
}

impl Route {
    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells a new connection that it is cut, unless none is let in.
    fn let_in(&self) -> Option<watch::Receiver<()>> {
        let door = self.door();
        (!door.shut).then(|| door.connections.subscribe())
    }

    /// Tells all connections to end; the answer is closed when they have.
    fn cut(&self) -> watch::Sender<()> {
        let connections = &mut self.door().connections;
        let ending = std::mem::replace(connections, watch::Sender::new(()));
        ending.send_replace(());
        ending
    }
}

async fn listen(listener: TcpListener, server: String, route: Arc<Route>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => match route.let_in() {
                Some(cut) => {
                    tokio::spawn(carry(cut, Arc::clone(&route), client, server.clone()));
                }
                None => reset(client),
            },
            // The client has gone already, or there are too many for the moment.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Carries one connection until it ends or is cut. `cut` comes first, so that
/// it is dropped last.
async fn carry(
    mut cut: watch::Receiver<()>,
    route: Arc<Route>,
    mut client: TcpStream,
    server: String,
) {
    let server = tokio::select! {
        server = TcpStream::connect(&server) => server,
        _ = cut.changed() => return reset(client),
    };
    let Ok(mut server) = server else { return reset(client) };
    let ended_well = tokio::select! {
        ended = exchange(&mut client, &mut server, &route.stalled) => ended.is_ok(),
        _ = cut.changed() => false,
    };
    if !ended_well {
        reset(client);
        reset(server);
    }
}

async fn exchange(
    client: &mut TcpStream,
    server: &mut TcpStream,
    stalled: &watch::Sender<bool>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::try_join!(
        pump(from_client, to_server, stalled.subscribe()),
        pump(from_server, to_client, stalled.subscribe()),
    )?;
    Ok(())
}

/// Carries bytes one way until they end, and then the end.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut stalled: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        // It fails only where the proxy is gone, and the connection with it.
        let _ = stalled.wait_for(|stalled| !stalled).await;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}

/// Ends a connection without a farewell.
fn reset(stream: TcpStream) {
    // Where it cannot be set the connection has ended already.
    let _ = stream.set_zero_linger();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server that sends back what it gets: its address.
    async fn bare_echo() -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address.to_string()
    }

    /// The same behind a proxy.
    async fn echo() -> Proxy {
        Proxy::start(bare_echo().await).await.unwrap()
    }

    async fn connect(proxy: &Proxy) -> TcpStream {
        TcpStream::connect(proxy.address()).await.unwrap()
    }

    async fn is_answered(stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(b"?").await?;
        stream.read_exact(&mut [0]).await.map(drop)
    }

    #[tokio::test]
    async fn it_carries_both_ways_and_to_the_end() {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        let sent: Vec<u8> = (0..100_000).map(|n| (n % 251) as u8).collect();
        let (mut read, mut write) = stream.split();
        let mut got = Vec::new();
        let send = async {
            write.write_all(&sent).await.unwrap();
            write.shutdown().await.unwrap();
        };
        tokio::join!(send, async { read.read_to_end(&mut got).await.unwrap() });
        assert_eq!(got, sent);
    }

    #[tokio::test]
    async fn a_cut_resets_what_is_there_and_nothing_else() {
        let proxy = echo().await;
        let mut before = connect(&proxy).await;
        is_answered(&mut before).await.unwrap();
        proxy.cut().await;
        let error = before.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        is_answered(&mut connect(&proxy).await).await.unwrap();
    }

    #[tokio::test]
    async fn a_cut_resets_what_leads_to_any_of_its_servers() {
        let servers = [bare_echo().await, bare_echo().await];
        let proxy = Proxy::start_before(servers).await.unwrap();
        let mut before = Vec::new();
        for address in proxy.addresses() {
            let mut stream = TcpStream::connect(address).await.unwrap();
            is_answered(&mut stream).await.unwrap();
            before.push(stream);
        }
        proxy.cut().await;
        for mut stream in before {
            assert!(stream.read(&mut [0]).await.is_err());
        }
    }

    #[tokio::test]
    async fn while_refusing_nothing_is_answered() {
        let proxy = echo().await;
        let mut before = connect(&proxy).await;
        is_answered(&mut before).await.unwrap();
        proxy.refuse(true).await;
        assert!(is_answered(&mut before).await.is_err());
        assert!(is_answered(&mut connect(&proxy).await).await.is_err());
        proxy.mend().await;
        is_answered(&mut connect(&proxy).await).await.unwrap();
    }

    #[tokio::test]
    async fn what_was_stalled_arrives_afterwards() {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        is_answered(&mut stream).await.unwrap();
        proxy.stall(true);
        let answered = tokio::time::timeout(Duration::from_millis(50), is_answered(&mut stream));
        assert!(answered.await.is_err(), "it was answered");
        proxy.stall(false);
        stream.read_exact(&mut [0]).await.unwrap();
    }

    #[tokio::test]
    async fn without_a_server_connections_are_reset() {
        let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = nobody.local_addr().unwrap();
        drop(nobody);
        let proxy = Proxy::start(address.to_string()).await.unwrap();
        assert!(connect(&proxy).await.read(&mut [0]).await.is_err());
    }
}
