//! Listening: takes connections with bounds on their number and on the time
//! that their request heads may take, and winds down in order.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::store::recorder;
use crate::{Platform, cleanup, routes};

/// How long open requests get to finish once the fleet is down.
const WIND_DOWN: Duration = Duration::from_secs(2);
/// Rest after an accept that failed, most likely for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the platform cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else has the port.
    #[error("port {port} on {host} is in use; stop the program that uses it, or choose another with --port {} (or PORT)", if *port == u16::MAX { 5001 } else { port + 1 })]
    PortInUse {
        /// Address.
        host: IpAddr,
        /// Port.
        port: u16,
    },
    /// Anything else.
    #[error("could not listen on {host} port {port}: {source}")]
    Other {
        /// Address.
        host: IpAddr,
        /// Port.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
}

/// Binds the platform's port, before anything costly is done.
///
/// # Errors
/// [`BindError`].
pub async fn bind(host: IpAddr, port: u16) -> Result<TcpListener, BindError> {
    TcpListener::bind(SocketAddr::new(host, port))
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::PortInUse { host, port },
            _ => BindError::Other { host, port, source },
        })
}

impl Platform {
    /// Serves until `shutdown` completes, then stops the game servers (they
    /// still reach `/internal` meanwhile) and closes what is open.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept(self.clone(), listener, stopped));
        let sweeping = tokio::spawn(cleanup::sweep_forever(self.clone()));
        let recording = tokio::spawn(recorder::record_forever(self.clone()));
        let building = tokio::spawn(crate::spells::worker::run(self.clone()));
        shutdown.await;
        sweeping.abort();
        building.abort();
        self.fleet().shut_down().await;
        self.sockets().close().await;
        stop.send_replace(true);
        if let Err(error) = accepting.await {
            tracing::error!(%error, "the listener failed");
        }
        recording.abort();
        if let Err(error) = self.recorder().flush(self.db()).await {
            tracing::warn!(%error, "the last plays and errors of games were not written");
        }
        self.db().close().await;
    }
}

async fn accept(platform: Platform, listener: TcpListener, mut stopped: watch::Receiver<bool>) {
    let limits = platform.settings().limits.clone();
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let app = routes::router(platform);
    let mut connections = JoinSet::new();
    loop {
        // Finished connections leave the set, else it would only grow.
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = wait_for_stop(&mut stopped) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Ok(place) = places.clone().try_acquire_owned() else {
                    tracing::warn!(%peer, "too many connections; one was refused");
                    continue;
                };
                let connection = Connection {
                    stream,
                    peer,
                    place,
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
    let _ = tokio::time::timeout(WIND_DOWN, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
    header_timeout: Duration,
    stopped: watch::Receiver<bool>,
}

impl Connection {
    async fn serve(mut self, app: Router) {
        let _ = self.stream.set_nodelay(true);
        let peer = self.peer;
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let app = app.clone();
            async move {
                Ok::<_, Infallible>(
                    app.oneshot(request)
                        .await
                        .unwrap_or_else(|never| match never {}),
                )
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(self.stream), service)
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
        drop(self.place);
    }
}

async fn wait_for_stop(stopped: &mut watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
