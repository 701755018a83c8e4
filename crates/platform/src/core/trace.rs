//! Logs one line per request. Queries are omitted, because they can contain tickets.

use std::time::Instant;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;

/// Middleware that logs method, path, status and time.
pub async fn trace(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    tracing::debug!(
        %method,
        path,
        status = response.status().as_u16(),
        ms = started.elapsed().as_millis(),
        "request"
    );
    response
}
