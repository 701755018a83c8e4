//! Joining (PLAT-4): from an id, a game, a room code or nothing to a place in
//! a running world and a ticket for it.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use frolic_protocol::keep::PlayerState;
use frolic_protocol::ticket::{self, TICKET_LIFETIME_S, TicketClaims};

use crate::Platform;
use crate::api::{JoinRequest, JoinResponse};
use crate::auth::Session;
use crate::error::ApiError;
use crate::extract::OptionalJson;
use crate::fleet::{Placement, Server, WorldSpec};
use crate::games::{self, GameRow};
use crate::store::{access, channels, recorder};
use crate::{address, ids, keep, profiles, worlds};

/// What a client asked for.
enum Target {
    World(String),
    Room(String),
    Game(String),
    NewWorld,
}

/// `POST /join`.
///
/// # Errors
/// 400 for more than one target, 404 for an unknown one, 409 for a full
/// world, 503 with `Retry-After` when its server cannot run now.
pub async fn join(
    State(platform): State<Platform>,
    session: Session,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<JoinRequest>,
) -> Result<Json<JoinResponse>, ApiError> {
    let started = Instant::now();
    let result = place(&platform, &session, request).await;
    platform
        .metrics()
        .join_finished(started.elapsed(), result.is_ok());
    let placement = result?;
    recorder::played(&platform, &placement.spec.game_id, &session.user_id);
    Ok(Json(admit(&platform, session, &headers, placement).await?))
}

async fn place(
    platform: &Platform,
    session: &Session,
    request: JoinRequest,
) -> Result<Placement, ApiError> {
    let player_id = &session.user_id;
    let channel = request.channel;
    let server = match Target::of(request)? {
        Target::World(id) => {
            let world = worlds::find(platform.db(), &id).await?;
            let world = world.ok_or_else(worlds::unknown_world)?;
            return enter_world(platform, &world.spec, session).await;
        }
        Target::Room(code) => {
            let world = worlds::find_by_room_code(platform.db(), &code).await?;
            let world = world.ok_or_else(worlds::unknown_room)?;
            return enter_world(platform, &world.spec, session).await;
        }
        Target::Game(id) => {
            let game = games::find(platform.db(), &id)
                .await?
                .filter(|game| access::may_see(game, session))
                .ok_or_else(games::unknown_game)?;
            let game = channels::for_player(platform.db(), game, session, channel).await?;
            place_in_game(platform, &game, player_id).await?
        }
        Target::NewWorld => {
            let game = default_game(platform).await?;
            open_new_world(platform, &game, player_id).await?
        }
    };
    Ok(platform.fleet().join_held(&server, player_id).await?)
}

async fn enter_world(
    platform: &Platform,
    spec: &WorldSpec,
    session: &Session,
) -> Result<Placement, ApiError> {
    // Who may not see a game does not get into it by the code of a room.
    games::find(platform.db(), &spec.game_id)
        .await?
        .filter(|game| access::may_see(game, session))
        .ok_or_else(games::unknown_game)?;
    // Keeps the row from being swept while its server starts.
    worlds::touch(platform.db(), &spec.world_id, platform.clock().now_ms()).await?;
    Ok(platform.fleet().join(spec, &session.user_id).await?)
}

/// A place in the fullest running world with room, else in a new one. One
/// join at a time per game decides, so that a crowd arriving at once fills
/// one world and does not open one each.
async fn place_in_game(
    platform: &Platform,
    game: &GameRow,
    player_id: &str,
) -> Result<Arc<Server>, ApiError> {
    let find = || {
        platform
            .fleet()
            .reserve_in_game(&game.game_id, &game.revision, player_id)
    };
    if let Some(server) = find() {
        return Ok(server);
    }
    let turn = platform.game_turn(&game.game_id);
    let _turn = turn.lock().await;
    match find() {
        Some(server) => Ok(server),
        None => match wake_kept_world(platform, game, player_id).await? {
            Some(server) => Ok(server),
            None => open_new_world(platform, game, player_id).await,
        },
    }
}

/// A world of a persistent game that sleeps, brought to the game's newest
/// version: what players built is where they left it.
async fn wake_kept_world(
    platform: &Platform,
    game: &GameRow,
    player_id: &str,
) -> Result<Option<Arc<Server>>, ApiError> {
    if !game.persistent {
        return Ok(None);
    }
    let db = platform.db();
    let kept = worlds::kept_of_game(db, &game.game_id, game.channel).await?;
    let asleep = |world: &worlds::WorldRow| platform.fleet().server(&world.spec.world_id).is_none();
    // While a version is rolled out, who does not have it yet does not bring a
    // world back to the older one.
    let ahead = |world: &worlds::WorldRow| {
        let next = game.rollout.as_ref();
        next.is_some_and(|next| next.revision == world.spec.revision)
            && world.spec.revision != game.revision
    };
    let wanted = |world: &worlds::WorldRow| asleep(world) && !ahead(world);
    let Some(world) = kept.into_iter().find(wanted) else {
        return Ok(None);
    };
    let mut spec = world.spec;
    if spec.revision != game.revision {
        worlds::set_revision(db, &spec.world_id, &game.revision).await?;
        spec.revision.clone_from(&game.revision);
    }
    worlds::touch(db, &spec.world_id, platform.clock().now_ms()).await?;
    Ok(Some(platform.fleet().open(&spec, player_id)?))
}

async fn open_new_world(
    platform: &Platform,
    game: &GameRow,
    player_id: &str,
) -> Result<Arc<Server>, ApiError> {
    let db = platform.db();
    let spec = worlds::create(db, game, player_id, platform.clock().now_ms()).await?;
    match platform.fleet().open(&spec, player_id) {
        Ok(server) => Ok(server),
        Err(error) => {
            worlds::delete(db, &spec.world_id).await?;
            Err(error.into())
        }
    }
}

async fn default_game(platform: &Platform) -> Result<GameRow, ApiError> {
    let game = match platform.default_game() {
        Some(id) => games::find(platform.db(), &id).await?,
        None => None,
    };
    game.ok_or_else(|| {
        ApiError::not_found(
            "no_default_game",
            "this platform has no default game; join with a game_id from /api/games",
        )
    })
}

async fn admit(
    platform: &Platform,
    session: Session,
    headers: &HeaderMap,
    placement: Placement,
) -> Result<JoinResponse, ApiError> {
    let spec = placement.spec;
    let (db, now) = (platform.db(), platform.clock().now_ms());
    let character = profiles::active(db, &session.user_id, &session.username, now).await?;
    let left = if spec.persistent {
        keep::last_place(db, &spec.world_id, &session.user_id).await?
    } else {
        None
    };
    let claims = TicketClaims {
        world_id: spec.world_id.clone(),
        player_id: session.user_id.clone(),
        name: session.username,
        nonce: hex::encode(ids::random_bytes::<16>()),
        expires_at: platform.clock().now_s() + TICKET_LIFETIME_S,
        character: Some(character),
        left: left.map(PlayerState::for_ticket),
    };
    let key = ticket::world_key(&platform.settings().secret_key, &spec.world_id);
    let reach = address::reach(headers, platform.fleet().host(), platform.port());
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

impl Target {
    fn of(request: JoinRequest) -> Result<Self, ApiError> {
        match (request.world_id, request.game_id, request.room_code) {
            (None, None, None) => Ok(Target::NewWorld),
            (Some(id), None, None) => Ok(Target::World(id)),
            (None, Some(id), None) => Ok(Target::Game(id)),
            (None, None, Some(code)) => Ok(Target::Room(code)),
            _ => Err(ApiError::bad_request(
                "too_many_targets",
                "give only one of world_id, game_id and room_code",
            )),
        }
    }
}
