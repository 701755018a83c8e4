//! The HTTP listener: accepts a limited number of connections, limits the time for request headers,
//! and shuts down in order.
//!
//! With a certificate the port serves TLS. Two kinds of plain HTTP are still handled: requests of
//! game servers on this machine, which do not know the certificate, and browsers, which are
//! redirected to `https`.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::uri::Authority;
use axum::http::{Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::catalog::recorder;
use crate::core::limits::FromThisMachine;
use crate::core::tls::Certificate;
use crate::core::write_health;
use crate::{Platform, cleanup, routes};

/// Time that open requests have to finish after the fleet has stopped.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// First byte of every TLS connection: the type of a handshake record.
const TLS_HANDSHAKE_BYTE: u8 = 0x16;
/// Pause after a failed accept, most likely because file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Reason why the platform cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program uses the port.
    #[error("port {port} on {host} is in use; stop the program that uses it, or choose another with --port {} (or PORT)", if *port == u16::MAX { 5001 } else { port + 1 })]
    PortInUse {
        /// Address.
        host: IpAddr,
        /// Port.
        port: u16,
    },
    /// Any other error of the system.
    #[error("could not listen on {host} port {port}: {source}")]
    Other {
        /// Address.
        host: IpAddr,
        /// Port.
        port: u16,
        /// Error of the system.
        source: io::Error,
    },
}

/// Opens the platform's port. Called before expensive startup work, so that a used port is reported
/// early.
///
/// # Errors
/// [`BindError`] when the port cannot be opened.
pub async fn bind(host: IpAddr, port: u16) -> Result<TcpListener, BindError> {
    TcpListener::bind(SocketAddr::new(host, port))
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::PortInUse { host, port },
            _ => BindError::Other { host, port, source },
        })
}

impl Platform {
    /// Serves until `shutdown` completes, then stops the game servers, which can still reach
    /// `/internal` meanwhile, and closes open connections.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept(self.clone(), listener, stopped));
        let cleaning = tokio::spawn(cleanup::run_forever(self.clone()));
        let recording = tokio::spawn(recorder::record_forever(self.catalog.clone()));
        let building = tokio::spawn(crate::spells::worker::run(self.spells.clone()));
        let watching = tokio::spawn(write_health::watch(self.core.clone()));
        let certificate = self.certificate.clone();
        let renewing = tokio::spawn(async move {
            if let Some(certificate) = certificate {
                certificate.follow().await;
            }
        });
        shutdown.await;
        cleaning.abort();
        building.abort();
        renewing.abort();
        watching.abort();
        self.worlds.fleet.shut_down().await;
        self.sockets.close().await;
        stop.send_replace(true);
        if let Err(error) = accepting.await {
            tracing::error!(%error, "the listener failed");
        }
        recording.abort();
        if let Err(error) = self.catalog.recorder.flush(&self.core.db).await {
            tracing::warn!(%error, "could not write the last play and error counts of games");
        }
        self.core.db.close().await;
    }
}

async fn accept(platform: Platform, listener: TcpListener, mut stopped: watch::Receiver<bool>) {
    let limits = platform.core.settings.limits.clone();
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let app = routes::router(platform.clone());
    let mut connections = JoinSet::new();
    loop {
        // Finished connections are removed, because the set would otherwise only grow.
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = wait_for_stop(&mut stopped) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Ok(permit) = permits.clone().try_acquire_owned() else {
                    tracing::warn!(%peer, "too many connections; refused one");
                    continue;
                };
                let connection = Connection {
                    stream,
                    peer,
                    permit,
                    tls: platform.certificate.as_deref().map(Certificate::acceptor),
                    header_timeout: limits.header_timeout,
                    stopped: stopped.clone(),
                };
                connections.spawn(connection.serve(app.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let _ = timeout(SHUTDOWN_GRACE, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    permit: OwnedSemaphorePermit,
    /// Set if the platform serves TLS.
    tls: Option<TlsAcceptor>,
    header_timeout: Duration,
    stopped: watch::Receiver<bool>,
}

impl Connection {
    async fn serve(self, app: Router) {
        let Self {
            stream,
            peer,
            permit,
            tls,
            header_timeout,
            stopped,
        } = self;
        let _ = stream.set_nodelay(true);
        let from_here = is_local(&stream, peer);
        let http = HttpConnection {
            peer,
            from_here,
            header_timeout,
            stopped,
        };
        match tls {
            None => http.serve(stream, Scheme::AsConfigured, app).await,
            Some(tls) => match timeout(header_timeout, secure(stream, tls)).await {
                Ok(Ok(Secured::Tls(stream))) => {
                    http.serve(*stream, Scheme::AsConfigured, app).await;
                }
                Ok(Ok(Secured::Plain(stream))) => {
                    http.serve(stream, Scheme::Plain, app).await;
                }
                Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
            },
        }
        drop(permit);
    }
}

/// Protocol that a client of a TLS port turned out to use.
enum Secured {
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
    Plain(TcpStream),
}

async fn secure(stream: TcpStream, tls: TlsAcceptor) -> io::Result<Secured> {
    let mut first = [0];
    let read = stream.peek(&mut first).await?;
    if read == 1 && first[0] != TLS_HANDSHAKE_BYTE {
        return Ok(Secured::Plain(stream));
    }
    let stream = tls.accept(stream).await?;
    Ok(Secured::Tls(Box::new(stream)))
}

/// Whether the peer is on this machine.
fn is_local(stream: &TcpStream, peer: SocketAddr) -> bool {
    let peer = peer.ip().to_canonical();
    let same = |own: SocketAddr| own.ip().to_canonical() == peer;
    peer.is_loopback() || stream.local_addr().is_ok_and(same)
}

/// Whether a connection uses TLS as configured.
#[derive(Clone, Copy)]
enum Scheme {
    /// As configured by the operator.
    AsConfigured,
    /// Plain HTTP although TLS is configured.
    Plain,
}

/// A connection that carries HTTP, after TLS.
struct HttpConnection {
    peer: SocketAddr,
    /// Whether the client is on this machine.
    from_here: bool,
    header_timeout: Duration,
    stopped: watch::Receiver<bool>,
}

impl HttpConnection {
    async fn serve<S>(mut self, stream: S, scheme: Scheme, app: Router)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (peer, from_here) = (self.peer, self.from_here);
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(FromThisMachine(from_here));
            let app = app.clone();
            async move {
                if matches!(scheme, Scheme::Plain)
                    && !(from_here && request.uri().path().starts_with("/internal/"))
                {
                    return Ok(to_https(&request));
                }
                let answered = app.oneshot(request).await;
                Ok::<_, Infallible>(answered.unwrap_or_else(|never| match never {}))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = wait_for_stop(&mut self.stopped) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!(%peer, %error, "connection ended early");
        }
    }
}

/// Redirects a plain HTTP request to `https`. The redirect is temporary, because browsers would
/// remember a permanent one after TLS is disabled again.
fn to_https<B>(request: &Request<B>) -> Response<Body> {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let message = "this port requires https\n";
    match host.filter(|host| !host.as_str().contains('@')) {
        Some(host) => {
            let location = format!("https://{host}{path}");
            let headers = [
                (header::LOCATION, location),
                (header::CONNECTION, "close".to_owned()),
            ];
            (StatusCode::TEMPORARY_REDIRECT, headers, message).into_response()
        }
        None => (StatusCode::BAD_REQUEST, message).into_response(),
    }
}

async fn wait_for_stop(stopped: &mut watch::Receiver<bool>) {
    // A dropped sender means stop as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
