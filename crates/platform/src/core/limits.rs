//! Rate limits, request timeouts and security headers.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use frolic_protocol::token_bucket::{RateLimit, TokenBucket};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::core::Core;
use crate::core::error::{ApiError, DatabaseFault};
use crate::core::settings::LimitSettings;

/// Maximum number of buckets of one kind.
const BUCKETS_MAX: usize = 50_000;
/// Factor on the rate limit of loopback addresses: bots, tests and benchmarks share
/// one.
const LOCAL_FACTOR: f64 = 20.0;

/// The site may run its own scripts and wasm, and connect to game servers at any
/// address. Inline styles are allowed because components set them on elements; they
/// cannot run code.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; \
    style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' blob:; \
    font-src 'self' data:; connect-src 'self' ws: wss: https:; worker-src 'self' blob:; \
    object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'";

/// Token buckets of one kind, by key, which instances of the platform would share.
pub trait Buckets: Send + Sync {
    /// Takes one token of `key`; the limit is multiplied by `factor`. Fails with the time until the
    /// next token is available.
    fn take(&self, key: String, factor: f64, now: Instant) -> BoxFuture<'_, Result<(), Duration>>;

    /// Refills the bucket of `key`.
    fn reset<'a>(&'a self, key: &'a str) -> BoxFuture<'a, ()>;
}

/// A limited number of buckets within one instance.
pub struct LocalBuckets {
    limit: RateLimit,
    since: Instant,
    buckets: Mutex<HashMap<String, TokenBucket>>,
}

impl LocalBuckets {
    pub fn new(limit: RateLimit) -> Self {
        Self {
            limit,
            since: Instant::now(),
            buckets: Mutex::default(),
        }
    }

    fn take_now(&self, key: String, factor: f64, now: Instant) -> Result<(), Duration> {
        let now_s = now.saturating_duration_since(self.since).as_secs_f64();
        let mut buckets = self.lock();
        if buckets.len() >= BUCKETS_MAX {
            // Full buckets hold no information. When all buckets are in use, clear them:
            // refusing every client or growing without bound would be worse.
            buckets.retain(|_, bucket| !bucket.is_full(now_s));
            if buckets.len() >= BUCKETS_MAX {
                buckets.clear();
            }
        }
        let limit = RateLimit {
            burst: self.limit.burst * factor,
            per_s: self.limit.per_s * factor,
        };
        let taken = buckets.entry(key).or_default().take(limit, 1.0, now_s);
        taken.map_err(Duration::from_secs_f64)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, TokenBucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buckets for LocalBuckets {
    fn take(&self, key: String, factor: f64, now: Instant) -> BoxFuture<'_, Result<(), Duration>> {
        Box::pin(std::future::ready(self.take_now(key, factor, now)))
    }

    fn reset<'a>(&'a self, key: &'a str) -> BoxFuture<'a, ()> {
        self.lock().remove(key);
        Box::pin(std::future::ready(()))
    }
}

/// Token buckets per client network.
pub struct RateLimiter(Box<dyn Buckets>);

impl RateLimiter {
    pub fn new(settings: &LimitSettings) -> Self {
        Self(Box::new(LocalBuckets::new(RateLimit {
            burst: f64::from(settings.rate_burst.max(1)),
            per_s: settings.rate_per_s.max(0.001),
        })))
    }

    /// Takes one token of `address`.
    ///
    /// # Errors
    /// The time until the next token is available.
    pub async fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let factor = if address.is_loopback() {
            LOCAL_FACTOR
        } else {
            1.0
        };
        let network = network_of(address).to_string();
        self.0.take(network, factor, now).await
    }
}

/// Maps an IPv6 address to its /64, which one household usually has as a whole.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 => v4,
    }
}

/// The address of the client. `X-Forwarded-For` is trusted only from a proxy on this
/// machine (its last hop); other peers could forge it.
pub fn client_address(peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let forwarded = || {
        let last = headers.get_all("x-forwarded-for").iter().next_back()?;
        last.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
    };
    let peer = peer.to_canonical();
    if peer.is_loopback() {
        forwarded().unwrap_or(peer)
    } else {
        peer
    }
}

/// The address of the client; `None` only when the request did not come over a
/// socket.
pub struct ClientAddress(pub Option<IpAddr>);

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(peer.map(|ConnectInfo(peer)| {
            client_address(peer.ip(), &parts.headers)
        })))
    }
}

/// Whether the peer of a request is on this machine. A reverse proxy counts as well, so this does
/// not authenticate the client.
#[derive(Clone, Copy, Debug)]
pub struct FromThisMachine(pub bool);

/// Middleware that limits the rate of logins and joins.
///
/// # Errors
/// 429 with `Retry-After`.
pub async fn limit_rate(
    State(core): State<Arc<Core>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    if let Some(ConnectInfo(peer)) = peer {
        let address = client_address(peer.ip(), request.headers());
        if let Err(wait) = core.rates.take(address, Instant::now()).await {
            core.metrics.rate_limited.add(1);
            return Err(ApiError::rate_limited(wait.as_secs() + 1));
        }
    }
    Ok(next.run(request).await)
}

/// Middleware that ends requests that take too long, including those with slow
/// bodies.
///
/// # Errors
/// 408.
pub async fn limit_time(
    State(limit): State<Duration>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    tokio::time::timeout(limit, next.run(request))
        .await
        .map_err(|_| {
            ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "timeout",
                "the request took too long; try again",
            )
        })
}

/// Outermost middleware: adds security headers and counts responses.
pub async fn finish(State(core): State<Arc<Core>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    // axum's own 405 has no JSON body.
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allow = response.headers().get(header::ALLOW).cloned();
        response = ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this URL does not support this method",
        )
        .into_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    core.metrics.response_sent(response.status());
    if let Some(DatabaseFault(reason)) = response.extensions().get() {
        core.write_health.note_fault(reason);
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter() -> RateLimiter {
        RateLimiter::new(&LimitSettings {
            rate_burst: 2,
            rate_per_s: 1.0,
            ..LimitSettings::default()
        })
    }

    #[tokio::test]
    async fn a_bucket_empties_and_refills() {
        let (limiter, now) = (limiter(), Instant::now());
        let address = IpAddr::from([10, 0, 0, 1]);
        assert!(limiter.take(address, now).await.is_ok());
        assert!(limiter.take(address, now).await.is_ok());
        assert_eq!(
            limiter.take(address, now).await,
            Err(Duration::from_secs(1))
        );
        assert!(limiter.take(IpAddr::from([10, 0, 0, 2]), now).await.is_ok());
        assert!(
            limiter
                .take(address, now + Duration::from_secs(1))
                .await
                .is_ok()
        );
    }

    #[tokio::test]
    async fn a_network_counts_as_one_and_this_machine_as_many() {
        let (limiter, now) = (limiter(), Instant::now());
        for (address, expected) in [("fd00::1", true), ("fd00::2", true), ("fd00::3", false)] {
            let taken = limiter.take(address.parse().unwrap(), now).await;
            assert_eq!(taken.is_ok(), expected, "{address}");
        }
        let local = IpAddr::from([127, 0, 0, 1]);
        let mut count = 0;
        for _ in 0..100 {
            count += u32::from(limiter.take(local, now).await.is_ok());
        }
        assert_eq!(count, 40);
    }

    #[test]
    fn only_a_local_proxy_is_believed() {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "1.1.1.1, 2.2.2.2".parse().unwrap());
        let (proxy, stranger) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([9, 9, 9, 9]));
        assert_eq!(client_address(proxy, &headers), IpAddr::from([2, 2, 2, 2]));
        assert_eq!(client_address(stranger, &headers), stranger);
        assert_eq!(client_address(proxy, &HeaderMap::new()), proxy);
    }
}
