//! Joining: from an id, a game, a room code or nothing to a
//! place in a running world and a ticket for it. `place.rs` chooses the world,
//! `matchmaker.rs` waits for it, `pending.rs` has the joins that clients poll.

pub mod access;
mod companions;
mod matchmaker;
mod pending;
mod place;
mod prefer;

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use frolic_protocol::keep::PlayerState;
use frolic_protocol::ticket::{self, TICKET_LIFETIME_S, TicketClaims};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::api::{ErrorBody, JoinProgress, JoinRequest, JoinResponse};
use crate::auth::Session;
use crate::error::ApiError;
use crate::extract::{ApiPath, ApiQuery, OptionalJson};
use crate::fleet::Placement;
use crate::moderation::{self, Member};
use crate::store::recorder;
use crate::{address, ids, profiles, world_log};

use self::matchmaker::{Matchmaker, WaitPolicy};
pub use self::pending::PendingJoins;
use self::place::Target;
use self::prefer::Preference;

/// Longest that one request waits for news.
const WAIT_S_MAX: u64 = 20;
/// How long `GET /join/{id}` waits when it is not said.
const WAIT_S: u64 = 10;

/// Joins, which every address may make so often (`limits.rs`).
pub fn rated_routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new().routes(routes!(join))
}

/// Asking after a join that waits.
pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new().routes(routes!(progress, give_up))
}

/// A place in a world. PendingJoins through the start of its server. A world that is
/// full is refused with 409, unless the header `Prefer` says otherwise:
/// `wait=20` waits so many seconds for a place, and `respond-async` answers at
/// once with 202 and what the join waits for; ask `GET /join/{id}` then.
#[utoipa::path(
    post, path = "/join", tag = "joining", request_body = Option<JoinRequest>,
    params(("prefer" = Option<String>, Header, description = "`respond-async` and `wait=seconds`, RFC 7240")),
    responses(
        (status = 200, description = "a place and a ticket for it", body = JoinResponse),
        (status = 202, description = "it waits; only with respond-async", body = JoinProgress),
        (status = 400, description = "the body means nothing", body = ErrorBody),
        (status = 401, description = "no session", body = ErrorBody),
        (status = 403, description = "this world is not for you", body = ErrorBody),
        (status = 404, description = "no such world, game or room", body = ErrorBody),
        (status = 409, description = "the world is full or closes", body = ErrorBody),
        (status = 413, description = "the body is too large", body = ErrorBody),
        (status = 429, description = "too many joins from here", body = ErrorBody),
        (status = 503, description = "its server cannot run now", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn join(
    State(platform): State<Platform>,
    Member(session): Member,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<JoinRequest>,
) -> Result<Response, ApiError> {
    let target = Target::of(request)?;
    let target = place::follow(&platform, &session, target).await?;
    let preference = Preference::of(&headers);
    let wait = preference.wait.min(Duration::from_secs(WAIT_S_MAX));
    if preference.respond_async {
        let begun = platform.waits().begin(&platform, &session, target)?;
        return answer(&platform, session, &headers, &begun, wait, 0).await;
    }
    let patience = if preference.asked_to_wait {
        WaitPolicy::Until(wait)
    } else {
        WaitPolicy::None
    };
    let started = Instant::now();
    let seeker = Matchmaker::new(&platform, &session, target, patience);
    let result = seeker.enter(|_| {}).await;
    platform
        .metrics()
        .join_finished(started.elapsed(), result.is_ok());
    let joined = admit(&platform, session, &headers, result?).await?;
    Ok(Json(joined).into_response())
}

/// Query of `GET /join/{id}`.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ProgressQuery {
    /// The last `step` that was heard; the answer waits for the next one.
    #[serde(default)]
    after: u32,
    /// Seconds to wait for news, up to 20; 10 when it is not said.
    #[serde(default)]
    wait_s: Option<u64>,
}

/// How far a join is that was answered with 202. PendingJoins for news. Whoever does
/// not ask for 20 seconds has given up.
#[utoipa::path(
    get, path = "/join/{id}", tag = "joining",
    params(("id" = String, Path, description = "id of the join"), ProgressQuery),
    responses(
        (status = 200, description = "a place and a ticket for it", body = JoinResponse),
        (status = 202, description = "it still waits", body = JoinProgress),
        (status = 400, description = "the query means nothing", body = ErrorBody),
        (status = 401, description = "no session", body = ErrorBody),
        (status = 403, description = "this world is not for you", body = ErrorBody),
        (status = 404, description = "no such join (any more), or what it was for is gone", body = ErrorBody),
        (status = 409, description = "the world's queue is full", body = ErrorBody),
        (status = 503, description = "the world's server cannot run", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn progress(
    State(platform): State<Platform>,
    session: Session,
    headers: HeaderMap,
    ApiPath(join_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<ProgressQuery>,
) -> Result<Response, ApiError> {
    let wait = platform.waits().find(&join_id, &session.user_id)?;
    let patience = Duration::from_secs(query.wait_s.unwrap_or(WAIT_S).min(WAIT_S_MAX));
    answer(&platform, session, &headers, &wait, patience, query.after).await
}

/// Gives a join up; its place goes to the next one.
#[utoipa::path(
    delete, path = "/join/{id}", tag = "joining",
    params(("id" = String, Path, description = "id of the join")),
    responses(
        (status = 204, description = "it is given up"),
        (status = 400, description = "the path means nothing", body = ErrorBody),
        (status = 401, description = "no session", body = ErrorBody),
        (status = 404, description = "no such join (any more)", body = ErrorBody),
    ),
    security(("bearer" = []))
)]
async fn give_up(
    State(platform): State<Platform>,
    session: Session,
    ApiPath(join_id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    let wait = platform.waits().find(&join_id, &session.user_id)?;
    wait.give_up();
    Ok(StatusCode::NO_CONTENT)
}

/// What came of a join that waits, once there is news after `seen` or
/// `patience` is over.
async fn answer(
    platform: &Platform,
    session: Session,
    headers: &HeaderMap,
    wait: &pending::Wait,
    patience: Duration,
    seen: u32,
) -> Result<Response, ApiError> {
    match wait.news(patience, seen).await {
        pending::News::Waiting(progress) => {
            let place = format!("/join/{}", progress.join_id);
            let mut response = (StatusCode::ACCEPTED, Json(progress)).into_response();
            let headers = response.headers_mut();
            if let Ok(place) = HeaderValue::from_str(&place) {
                headers.insert(header::LOCATION, place);
            }
            headers.insert(
                HeaderName::from_static("preference-applied"),
                HeaderValue::from_static("respond-async"),
            );
            Ok(response)
        }
        pending::News::Placed(placement) => {
            let joined = admit(platform, session, headers, *placement).await?;
            Ok(Json(joined).into_response())
        }
        pending::News::Failed(error) => Err(error),
    }
}

/// Joins the room with this code for somebody who has no ticket; does not wait for a place.
///
/// # Errors
/// As `POST /join`.
pub async fn into_room(
    platform: &Platform,
    session: Session,
    headers: &HeaderMap,
    code: &str,
) -> Result<JoinResponse, ApiError> {
    let now = platform.clock().now_ms();
    moderation::refuse_suspended(platform.db(), &session.user_id, now).await?;
    let target = Target::Room(code.to_owned());
    let seeker = Matchmaker::new(platform, &session, target, WaitPolicy::None);
    let placement = seeker.enter(|_| {}).await?;
    admit(platform, session, headers, placement).await
}

/// Counts the play and signs a ticket.
async fn admit(
    platform: &Platform,
    session: Session,
    headers: &HeaderMap,
    placement: Placement,
) -> Result<JoinResponse, ApiError> {
    let (spec, beside) = (placement.spec, placement.beside);
    let (db, now) = (platform.db(), platform.clock().now_ms());
    recorder::played(platform, &spec.game_id, &session.user_id);
    if let Some(host) = &beside {
        companions::met(db, host, &session.user_id, now).await?;
    }
    let character = profiles::active(db, &session.user_id, &session.username, now).await?;
    let left = if spec.persistent {
        world_log::last_place(db, &spec.world_id, &session.user_id).await?
    } else {
        None
    };
    let claims = TicketClaims {
        world_id: spec.world_id.clone(),
        player_id: session.user_id.clone(),
        name: session.username,
        nonce: hex::encode(ids::random_bytes::<16>()),
        session: String::new(),
        expires_at: platform.clock().now_s() + TICKET_LIFETIME_S,
        epoch: placement.epoch,
        character: Some(character),
        left: left.map(PlayerState::for_ticket),
        beside,
    };
    let key = ticket::world_key(&platform.settings().secret_key, &spec.world_id);
    let listens = address::Listens {
        ip: platform.fleet().host(),
        port: platform.port(),
        tls: platform.certificate().is_some(),
        single_port: platform.settings().single_port,
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
        script_key: hex::encode(platform.signer().public_key()),
        transports,
    })
}
