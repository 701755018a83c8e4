//! The TCP port: takes connections with bounds on their number, by address and
//! together, and on the time that their requests may take. What becomes a
//! WebSocket leaves for the world's thread, and is counted there.
//!
//! `platform` has a loop like this one; its connections end with the platform,
//! and these with the process.

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

use crate::metrics::Metrics;
use crate::transport::{Slot, Slots};

/// How long a request's head may take to come, and the next one of the same
/// connection to begin.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection that asks one thing after the other may go on: one
/// that does not read its answers would stay for ever.
const LIFETIME: Duration = Duration::from_secs(300);
/// How long the request that it is at may still take then.
const LAST_ANSWER: Duration = Duration::from_secs(15);
/// Rest after an accept that failed, most likely for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers requests until the process ends.
pub async fn serve(listener: TcpListener, routes: Router, connections_max: u32) {
    // Counted apart: these are not connections of the world yet.
    let slots = Slots::new(connections_max, Arc::new(Metrics::default()));
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match slots.take(peer.ip()) {
                Ok(slot) => {
                    tokio::spawn(answer(stream, peer, slot, routes.clone()));
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

async fn answer(stream: TcpStream, peer: SocketAddr, slot: Slot, routes: Router) {
    // Small messages leave at once: waiting for the last one's acknowledgement
    // would bunch snapshots up on a slow line.
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
    drop(slot);
}
