//! The TCP port: accepts connections with limits on their number, by address and in
//! total, and on the duration of requests. Upgraded WebSockets move to the world's
//! thread, and are counted there.
//!
//! `platform` has a similar loop; its connections end with the platform, and these
//! with the process.

use std::convert::Infallible;
use std::net::SocketAddr;
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
use tower::ServiceExt as _;

use crate::connection::{ConnectionPermit, ConnectionPermits};
use crate::metrics::Metrics;

/// How long a request's head may take to arrive, and the next one of the same
/// connection to begin.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The lifetime of a connection with consecutive requests: one that does not read
/// its responses would stay for ever.
const LIFETIME: Duration = Duration::from_secs(300);
/// How long the current request may still take then.
const LAST_ANSWER: Duration = Duration::from_secs(15);
/// Pause after a failed accept, most likely for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers requests until the process ends.
pub async fn serve(listener: TcpListener, routes: Router, connections_max: u32) {
    // Counted separately: these are not connections of the world yet.
    let permits = ConnectionPermits::new(connections_max, Arc::new(Metrics::default()));
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match permits.take(peer.ip()) {
                Ok(permit) => {
                    tokio::spawn(answer(stream, peer, permit, routes.clone()));
                }
                Err(cause) => tracing::debug!(%peer, %cause, "a connection was refused"),
            },
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, peer: SocketAddr, permit: ConnectionPermit, routes: Router) {
    // Disables Nagle's algorithm: waiting for acknowledgements would bunch up
    // snapshots on a slow connection.
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let routes = routes.clone();
        async move {
            let answered = routes.oneshot(request).await;
            Ok::<_, Infallible>(answered.unwrap_or_else(|never| match never {}))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    if tokio::time::timeout(LIFETIME, connection.as_mut())
        .await
        .is_err()
    {
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(LAST_ANSWER, connection).await;
    }
    drop(permit);
}
