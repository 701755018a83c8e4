//! Chooses the world of a join: the named one; or for a game, a running world with companions in
//! it, else the fullest with a free slot, else a stored world that is not running, else a new one.

use std::sync::Arc;

use super::access::{self, Via};
use super::companions;
use crate::api::{Channel, JoinRequest};
use crate::catalog::channels;
use crate::catalog::games::{self, GameRow};
use crate::community::auth::Principal;
use crate::community::auth::Session;
use crate::core::error::ApiError;
use crate::fleet::{FleetError, Phase, PlaceOutcome, WorldProcess, WorldSpec};
use crate::worlds::Worlds;
use crate::worlds::invites::{self, Invitation};
use crate::worlds::{self, NewWorldSpec, WorldRow};

/// Target of a join.
#[derive(Clone, Debug)]
pub enum Target {
    /// The world with this id.
    World(String),
    /// The world with this room code.
    Room(String),
    /// The best world of this game in this channel.
    Game(String, Option<Channel>),
    /// A new world of the default game, owned by the user.
    NewWorld,
    /// The world of the invitation with this code.
    Invite(String),
    /// The world of a resolved invitation, next to the inviter.
    Friend(Invitation),
}

/// Reason why a join could not be placed.
#[derive(Debug)]
pub enum PlaceError {
    /// The fleet cannot place it now; waiting may help.
    Fleet(FleetError),
    /// The join is not allowed or impossible.
    Refused(ApiError),
}

impl From<FleetError> for PlaceError {
    fn from(error: FleetError) -> Self {
        PlaceError::Fleet(error)
    }
}

impl From<ApiError> for PlaceError {
    fn from(error: ApiError) -> Self {
        PlaceError::Refused(error)
    }
}

impl From<sqlx::Error> for PlaceError {
    fn from(error: sqlx::Error) -> Self {
        PlaceError::Refused(error.into())
    }
}

impl From<PlaceError> for ApiError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Fleet(error) => error.into(),
            PlaceError::Refused(error) => error,
        }
    }
}

impl Target {
    /// Target of a request.
    ///
    /// # Errors
    /// 400 when the request names more than one target.
    pub fn of(request: JoinRequest) -> Result<Self, ApiError> {
        let JoinRequest {
            world_id,
            game_id,
            room_code,
            invite,
            channel,
        } = request;
        match (world_id, game_id, room_code, invite) {
            (None, None, None, None) => Ok(Target::NewWorld),
            (Some(id), None, None, None) => Ok(Target::World(id)),
            (None, Some(id), None, None) => Ok(Target::Game(id, channel)),
            (None, None, Some(code), None) => Ok(Target::Room(code)),
            (None, None, None, Some(code)) => Ok(Target::Invite(code)),
            _ => Err(ApiError::bad_request(
                "too_many_targets",
                "send only one of world_id, game_id, room_code and invite",
            )),
        }
    }

    /// Id of the user next to whom the player spawns.
    pub fn beside(&self) -> Option<String> {
        match self {
            Target::Friend(invitation) => Some(invitation.inviter_id.clone()),
            _ => None,
        }
    }
}

/// Resolves the code of an invitation; other targets are returned unchanged.
///
/// # Errors
/// 404 for an unknown code.
pub async fn follow(
    worlds: &Worlds,
    session: &Session,
    target: Target,
) -> Result<Target, ApiError> {
    let Target::Invite(code) = target else {
        return Ok(target);
    };
    let now = worlds.core.clock.now_ms();
    let invitation = invites::resolve(&worlds.core.db, &code, &session.user_id, now).await?;
    Ok(Target::Friend(invitation))
}

/// Tries to reserve a slot and creates a world if none has one. Waits only for the database.
///
/// # Errors
/// [`PlaceError`] when no slot can be reserved.
pub async fn find(
    worlds: &Worlds,
    session: &Session,
    target: &Target,
) -> Result<PlaceOutcome, PlaceError> {
    match target {
        Target::World(id) => {
            let world = worlds::find(&worlds.core.db, id).await?;
            let world = world.ok_or_else(worlds::unknown_world)?;
            enter(worlds, session, &world, Via::Id).await
        }
        Target::Room(code) => {
            let world = worlds::find_by_room_code(&worlds.core.db, code).await?;
            let world = world.ok_or_else(worlds::unknown_room)?;
            enter(worlds, session, &world, Via::Code).await
        }
        // An invitation grants the same access as a room code.
        Target::Friend(invitation) => {
            let world = worlds::find(&worlds.core.db, &invitation.world_id).await?;
            let world = world.ok_or_else(worlds::unknown_world)?;
            enter(worlds, session, &world, Via::Code).await
        }
        Target::Invite(_) => Err(invites::unknown_invite().into()),
        Target::Game(id, channel) => {
            let game = access::open_game(worlds, &Principal::from(session), id).await?;
            let game = channels::for_player(&worlds.core.db, game, session, *channel).await?;
            if let Some(server) = closing_world_of(worlds, session, &game.game_id).await {
                return Ok(PlaceOutcome::Stopping(server));
            }
            place_in_game(worlds, session, &game)
                .await
                .map(PlaceOutcome::Reserved)
        }
        Target::NewWorld => {
            let game = default_game(worlds).await?;
            let new = NewWorldSpec {
                owned: true,
                ..NewWorldSpec::open_to_all(&game, &session.user_id)
            };
            open_world(worlds, &game, new)
                .await
                .map(PlaceOutcome::Reserved)
        }
    }
}

/// The stopping world of a game in which the player still is.
async fn closing_world_of(
    worlds: &Worlds,
    session: &Session,
    game_id: &str,
) -> Option<Arc<WorldProcess>> {
    let fleet = &worlds.fleet;
    fleet.closing_with(game_id, &session.user_id).await
}

async fn enter(
    worlds: &Worlds,
    session: &Session,
    world: &WorldRow,
    via: Via,
) -> Result<PlaceOutcome, PlaceError> {
    let spec = &world.spec;
    access::may_enter(worlds, &Principal::from(session), world, via).await?;
    if let Some(server) = closing_world_of(worlds, session, &spec.game_id).await {
        return Ok(PlaceOutcome::Stopping(server));
    }
    // Protects the row from the cleanup while its server starts. A running world is not cleaned up,
    // so joins into it do not wait for a write.
    if worlds.fleet.server(&spec.world_id).is_none() {
        worlds::touch(&worlds.core.db, &spec.world_id, worlds.core.clock.now_ms()).await?;
    }
    Ok(worlds.fleet.try_enter(spec, &session.user_id).await?)
}

/// Reserves a slot in a running world, else in a new one. One join per game decides at a time, so
/// that many simultaneous joins fill one world instead of opening one each.
async fn place_in_game(
    worlds: &Worlds,
    session: &Session,
    game: &GameRow,
) -> Result<Arc<WorldProcess>, PlaceError> {
    let db = &worlds.core.db;
    let preferred = companions::worlds_of(db, &session.user_id, &game.game_id).await?;
    let find = || {
        worlds
            .fleet
            .reserve_in_game(&game.game_id, &game.revision, &session.user_id, &preferred)
    };
    if let Some(server) = find() {
        return Ok(server);
    }
    let lock = worlds.core.locks.lock(format!("open:{}", game.game_id));
    let _guard = lock.await;
    if let Some(server) = find() {
        return Ok(server);
    }
    if let Some(server) = start_stored_world(worlds, game, &session.user_id).await? {
        return Ok(server);
    }
    let new = NewWorldSpec::open_to_all(game, &session.user_id);
    open_world(worlds, game, new).await
}

/// Starts a stored world of a persistent game and updates it to the game's newest version, so that
/// the structures of its players are still there.
async fn start_stored_world(
    worlds: &Worlds,
    game: &GameRow,
    player_id: &str,
) -> Result<Option<Arc<WorldProcess>>, PlaceError> {
    if !game.persistent {
        return Ok(None);
    }
    let db = &worlds.core.db;
    let stored = worlds::persistent_of_game(db, &game.game_id, game.channel).await?;
    let stopped = |world: &WorldRow| worlds.fleet.server(&world.spec.world_id).is_none();
    // While a version is rolled out, a player without it must not revert a world to the older
    // version.
    let ahead = |world: &WorldRow| {
        let next = game.rollout.as_ref();
        next.is_some_and(|next| next.revision == world.spec.revision)
            && world.spec.revision != game.revision
    };
    let wanted = |world: &&WorldRow| stopped(world) && !ahead(world);
    let Some(world) = stored.iter().find(wanted).cloned() else {
        // Joins wait for a world that is closing, because its scripts store data for some seconds
        // and a second world in the meantime would split the players.
        return Ok(stored.iter().find_map(|world| {
            let server = worlds.fleet.server(&world.spec.world_id)?;
            let closing = matches!(server.phase(), Phase::Stopping | Phase::Ended(_));
            (closing && !ahead(world)).then_some(server)
        }));
    };
    let mut spec: WorldSpec = world.spec;
    if spec.revision != game.revision {
        worlds::set_revision(db, &spec.world_id, &game.revision).await?;
        spec.revision.clone_from(&game.revision);
    }
    worlds::touch(db, &spec.world_id, worlds.core.clock.now_ms()).await?;
    Ok(Some(worlds.fleet.open(&spec, player_id)?))
}

async fn open_world(
    worlds: &Worlds,
    game: &GameRow,
    new: NewWorldSpec<'_>,
) -> Result<Arc<WorldProcess>, PlaceError> {
    let (db, player_id) = (&worlds.core.db, new.created_by);
    // Checked again at the start. Pending joins retry every second and should not create and delete
    // a row each time.
    if !worlds.fleet.has_capacity() {
        return Err(FleetError::TooManyServers.into());
    }
    let spec = worlds::create(db, game, new, worlds.core.clock.now_ms()).await?;
    match worlds.fleet.open(&spec, player_id) {
        Ok(server) => Ok(server),
        Err(error) => {
            worlds::delete(db, &spec.world_id).await?;
            Err(error.into())
        }
    }
}

async fn default_game(worlds: &Worlds) -> Result<GameRow, PlaceError> {
    let game = match worlds.catalog.default_game() {
        Some(id) => games::find(&worlds.core.db, &id).await?,
        None => None,
    };
    Ok(game.ok_or_else(|| {
        ApiError::not_found(
            "no_default_game",
            "this platform has no default game; join with a game_id from /api/games",
        )
    })?)
}
