//! Joining: from a world id, a game, a room code or nothing to a slot in a running world and a
//! ticket for it. `place.rs` chooses the world, `matchmaker.rs` waits for it, and `pending.rs`
//! stores the joins that clients poll.

pub mod access;
mod companions;
mod matchmaker;
mod pending;
mod place;
mod prefer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use frolic_fleet_api::persist::PlayerState;
use frolic_fleet_api::ticket::{self, TICKET_LIFETIME_S, TicketClaims};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{JoinProgress, JoinRequest, JoinResponse};
use crate::catalog::recorder;
use crate::community::auth::Session;
use crate::community::profiles;
use crate::community::sanctions::{self, ActiveSession};
use crate::core::error::ApiError;
use crate::core::extract::{ApiPath, ApiQuery, OptionalJson};
use crate::core::ids;
use crate::fleet::Placement;
use crate::fleet::address;
use crate::worlds::Worlds;
use crate::worlds::log;

use self::matchmaker::{Matchmaker, WaitPolicy};
pub use self::pending::PendingJoins;
use self::place::Target;
use self::prefer::Preference;

/// Maximum time that one request waits for progress.
const WAIT_S_MAX: u64 = 20;
/// Default waiting time of `GET /join/{id}`.
const WAIT_S: u64 = 10;

/// Routes that are rate-limited per address (`limits.rs`).
pub fn rated_routes() -> OpenApiRouter<Arc<Worlds>> {
    OpenApiRouter::new().routes(routes!(join))
}

/// Routes for polling and cancelling a pending join.
pub fn routes() -> OpenApiRouter<Arc<Worlds>> {
    OpenApiRouter::new().routes(routes!(progress, give_up))
}

/// Joins a world. Waits until its game server has started. A full world is rejected with 409 unless
/// the header `Prefer` says otherwise: `wait=20` waits up to 20 seconds for a free slot;
/// `respond-async` responds immediately with 202 and the state of the join, which is then polled
/// with `GET /join/{id}`.
#[utoipa::path(
    post, path = "/join", tag = "joining", request_body = Option<JoinRequest>,
    params(("prefer" = Option<String>, Header, description = "`respond-async` and `wait=seconds`, RFC 7240")),
    responses(
        (status = 200, description = "joined; contains a ticket for the world", body = JoinResponse),
        (status = 202, description = "the join is pending; only with respond-async", body = JoinProgress),
        (status = 403, description = "the caller may not enter this world"),
        (status = 404, description = "no such world, game or room"),
        (status = 409, description = "the world is full or closing"),
        (status = 413, description = "the body is too large"),
        (status = 429, description = "too many joins from this address"),
        (status = 503, description = "the world's game server cannot run now"),
    ),
    security(("bearer" = []))
)]
async fn join(
    State(worlds): State<Arc<Worlds>>,
    ActiveSession(session): ActiveSession,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<JoinRequest>,
) -> Result<Response, ApiError> {
    let target = Target::of(request)?;
    let target = place::follow(&worlds, &session, target).await?;
    let preference = Preference::of(&headers);
    let wait = preference.wait.min(Duration::from_secs(WAIT_S_MAX));
    if preference.respond_async {
        let pending = worlds.pending_joins.begin(&worlds, &session, target)?;
        return answer(&worlds, session, &headers, &pending, wait, 0).await;
    }
    let policy = if preference.asked_to_wait {
        WaitPolicy::Until(wait)
    } else {
        WaitPolicy::None
    };
    let started = Instant::now();
    let matchmaker = Matchmaker::new(&worlds, &session, target, policy);
    let result = matchmaker.enter(|_| {}).await;
    worlds
        .core
        .metrics
        .join_finished(started.elapsed(), result.is_ok());
    let joined = admit(&worlds, session, &headers, result?).await?;
    Ok(Json(joined).into_response())
}

/// Query of `GET /join/{id}`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ProgressQuery {
    /// The last `step` that the client received; the response waits for a newer one.
    #[serde(default)]
    after: u32,
    /// Seconds to wait for progress, up to 20; 10 by default.
    #[serde(default)]
    wait_s: Option<u64>,
}

/// State of a pending join. Waits for progress. A join that is not polled for 20 seconds is
/// cancelled.
#[utoipa::path(
    get, path = "/join/{id}", tag = "joining",
    params(ProgressQuery),
    responses(
        (status = 200, description = "joined; contains a ticket for the world", body = JoinResponse),
        (status = 202, description = "the join is still pending", body = JoinProgress),
        (status = 403, description = "the caller may not enter this world"),
        (status = 404, description = "unknown or expired join, or the world or game no longer exists"),
        (status = 409, description = "the world's queue is full"),
        (status = 503, description = "the world's game server cannot run"),
    ),
    security(("bearer" = []))
)]
async fn progress(
    State(worlds): State<Arc<Worlds>>,
    session: Session,
    headers: HeaderMap,
    ApiPath(join_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<ProgressQuery>,
) -> Result<Response, ApiError> {
    let pending = worlds.pending_joins.find(&join_id, &session.user_id)?;
    let wait = Duration::from_secs(query.wait_s.unwrap_or(WAIT_S).min(WAIT_S_MAX));
    answer(&worlds, session, &headers, &pending, wait, query.after).await
}

/// Cancels a pending join; the slot is released.
#[utoipa::path(
    delete, path = "/join/{id}", tag = "joining",
    responses(
        (status = 204, description = "the join is cancelled"),
        (status = 404, description = "unknown or expired join"),
    ),
    security(("bearer" = []))
)]
async fn give_up(
    State(worlds): State<Arc<Worlds>>,
    session: Session,
    ApiPath(join_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    let pending = worlds.pending_joins.find(&join_id, &session.user_id)?;
    pending.cancel();
    Ok(StatusCode::NO_CONTENT)
}

/// Response for a pending join, after progress beyond the step `seen` or after `wait`.
async fn answer(
    worlds: &Worlds,
    session: Session,
    headers: &HeaderMap,
    pending: &pending::PendingJoin,
    wait: Duration,
    seen: u32,
) -> Result<Response, ApiError> {
    match pending.poll(wait, seen).await {
        pending::JoinUpdate::Waiting(progress) => {
            let location = format!("/join/{}", progress.join_id);
            let mut response = (StatusCode::ACCEPTED, Json(progress)).into_response();
            let headers = response.headers_mut();
            if let Ok(location) = HeaderValue::from_str(&location) {
                headers.insert(header::LOCATION, location);
            }
            headers.insert(
                HeaderName::from_static("preference-applied"),
                HeaderValue::from_static("respond-async"),
            );
            Ok(response)
        }
        pending::JoinUpdate::Placed(placement) => {
            let joined = admit(worlds, session, headers, *placement).await?;
            Ok(Json(joined).into_response())
        }
        pending::JoinUpdate::Failed(error) => Err(error),
    }
}

/// Joins the room with this code for a client without a ticket. Does not wait for a free slot.
///
/// # Errors
/// The errors of `POST /join`.
pub async fn into_room(
    worlds: &Worlds,
    session: Session,
    headers: &HeaderMap,
    code: &str,
) -> Result<JoinResponse, ApiError> {
    let now = worlds.core.clock.now_ms();
    sanctions::refuse_suspended(&worlds.core.db, &session.user_id, now).await?;
    let target = Target::Room(code.to_owned());
    let matchmaker = Matchmaker::new(worlds, &session, target, WaitPolicy::None);
    let placement = matchmaker.enter(|_| {}).await?;
    admit(worlds, session, headers, placement).await
}

/// Records the visit and signs a ticket.
async fn admit(
    worlds: &Worlds,
    session: Session,
    headers: &HeaderMap,
    placement: Placement,
) -> Result<JoinResponse, ApiError> {
    let (spec, beside) = (placement.spec, placement.beside);
    let (db, now) = (&worlds.core.db, worlds.core.clock.now_ms());
    recorder::record_play(&worlds.catalog, &spec.game_id, &session.user_id);
    if let Some(host) = &beside {
        companions::met(db, host, &session.user_id, now).await?;
    }
    let character = profiles::active(db, &session.user_id, &session.username, now).await?;
    let left = if spec.persistent {
        log::last_state(db, &spec.world_id, &session.user_id).await?
    } else {
        None
    };
    let claims = TicketClaims {
        world_id: spec.world_id.clone(),
        player_id: session.user_id.clone(),
        name: session.username,
        nonce: hex::encode(ids::random_bytes::<16>()),
        session: String::new(),
        expires_at: worlds.core.clock.now_s() + TICKET_LIFETIME_S,
        epoch: placement.epoch,
        character: Some(character),
        left: left.map(PlayerState::for_ticket),
        beside,
    };
    let key = ticket::world_key(&worlds.core.settings.secret_key, &spec.world_id);
    let listens = address::Listens {
        ip: worlds.fleet.host(),
        port: worlds.port,
        tls: worlds.tls,
        single_port: worlds.core.settings.single_port,
    };
    let reach = address::reach(headers, listens);
    let transports = address::transports(&reach, &placement.endpoints, &spec.room_code);
    Ok(JoinResponse {
        server_address: transports.websocket.url.clone(),
        session_token: session.token,
        client_id: session.user_id,
        world_id: spec.world_id,
        game_id: spec.game_id,
        room_code: spec.room_code,
        ticket: ticket::sign(&key, &claims),
        script_key: hex::encode(worlds.signer.public_key()),
        transports,
    })
}
