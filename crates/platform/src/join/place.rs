//! Which world a join leads to: exactly the one that was named, or for
//! a game the one with the right people in it, else the fullest with room, else
//! one that sleeps, else a new one.

use std::sync::Arc;

use super::access::{self, Via};
use super::companions;
use crate::Platform;
use crate::api::{Channel, JoinRequest};
use crate::auth::Session;
use crate::error::ApiError;
use crate::fleet::{FleetError, Phase, Step, WorldProcess, WorldSpec};
use crate::games::{self, GameRow};
use crate::social::{self, Invitation};
use crate::spells::Actor;
use crate::store::channels;
use crate::worlds::{self, Wish, WorldRow};

/// What a client asked for.
#[derive(Clone, Debug)]
pub enum Target {
    /// Exactly this world.
    World(String),
    /// The world behind this code.
    Room(String),
    /// The best world of this game, in this channel.
    Game(String, Option<Channel>),
    /// A world of one's own, of the default game.
    NewWorld,
    /// Where this code of a friend's leads.
    Invite(String),
    /// The world that a friend invited to, beside that friend.
    Friend(Invitation),
}

/// Why there is no place.
#[derive(Debug)]
pub enum PlaceError {
    /// Not now; waiting may help.
    Fleet(FleetError),
    /// Not at all.
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
    /// What a request means.
    ///
    /// # Errors
    /// 400 for more than one.
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
                "give only one of world_id, game_id, room_code and invite",
            )),
        }
    }

    /// Beside whom a player of this join appears.
    pub fn beside(&self) -> Option<String> {
        match self {
            Target::Friend(invitation) => Some(invitation.inviter_id.clone()),
            _ => None,
        }
    }
}

/// A code of an invitation becomes what it leads to; everything else is that
/// already.
///
/// # Errors
/// 404 for a code that leads nowhere.
pub async fn follow(
    platform: &Platform,
    session: &Session,
    target: Target,
) -> Result<Target, ApiError> {
    let Target::Invite(code) = target else {
        return Ok(target);
    };
    let now = platform.clock().now_ms();
    let invitation = social::resolve(platform.db(), &code, &session.user_id, now).await?;
    Ok(Target::Friend(invitation))
}

/// Looks for a place, and opens a world where none has one. PendingJoins for nothing
/// but the database.
///
/// # Errors
/// [`PlaceError`].
pub async fn find(
    platform: &Platform,
    session: &Session,
    target: &Target,
) -> Result<Step, PlaceError> {
    match target {
        Target::World(id) => {
            let world = worlds::find(platform.db(), id).await?;
            let world = world.ok_or_else(worlds::unknown_world)?;
            enter(platform, session, &world, Via::Id).await
        }
        Target::Room(code) => {
            let world = worlds::find_by_room_code(platform.db(), code).await?;
            let world = world.ok_or_else(worlds::unknown_room)?;
            enter(platform, session, &world, Via::Code).await
        }
        // Who has it, has been let in by somebody who could.
        Target::Friend(invitation) => {
            let world = worlds::find(platform.db(), &invitation.world_id).await?;
            let world = world.ok_or_else(worlds::unknown_world)?;
            enter(platform, session, &world, Via::Code).await
        }
        Target::Invite(_) => Err(social::unknown_invite().into()),
        Target::Game(id, channel) => {
            let game = access::open_game(platform, &Actor::from(session), id).await?;
            let game = channels::for_player(platform.db(), game, session, *channel).await?;
            if let Some(server) = still_in(platform, session, &game.game_id).await {
                return Ok(Step::Leaving(server));
            }
            place_in_game(platform, session, &game)
                .await
                .map(Step::Held)
        }
        Target::NewWorld => {
            let game = default_game(platform).await?;
            let wish = Wish {
                owned: true,
                ..Wish::open_to_all(&game, &session.user_id)
            };
            open_world(platform, &game, wish).await.map(Step::Held)
        }
    }
}

/// The world of a game that the player was in and that is about to end.
async fn still_in(
    platform: &Platform,
    session: &Session,
    game_id: &str,
) -> Option<Arc<WorldProcess>> {
    let fleet = platform.fleet();
    fleet.closing_with(game_id, &session.user_id).await
}

async fn enter(
    platform: &Platform,
    session: &Session,
    world: &WorldRow,
    via: Via,
) -> Result<Step, PlaceError> {
    let spec = &world.spec;
    access::may_enter(platform, &Actor::from(session), world, via).await?;
    if let Some(server) = still_in(platform, session, &spec.game_id).await {
        return Ok(Step::Leaving(server));
    }
    // Keeps the row from being swept while its server starts. One that runs is
    // not swept, and a crowd on its way into it need not wait for the disk.
    if platform.fleet().server(&spec.world_id).is_none() {
        worlds::touch(platform.db(), &spec.world_id, platform.clock().now_ms()).await?;
    }
    Ok(platform.fleet().try_enter(spec, &session.user_id).await?)
}

/// A place in a running world with room, else in a new one. One join at a
/// time per game decides, so that a crowd arriving at once fills one world and
/// does not open one each.
async fn place_in_game(
    platform: &Platform,
    session: &Session,
    game: &GameRow,
) -> Result<Arc<WorldProcess>, PlaceError> {
    let db = platform.db();
    let preferred = companions::worlds_of(db, &session.user_id, &game.game_id).await?;
    let find = || {
        platform.fleet().reserve_in_game(
            &game.game_id,
            &game.revision,
            &session.user_id,
            &preferred,
        )
    };
    if let Some(server) = find() {
        return Ok(server);
    }
    let turn = platform.game_turn(&game.game_id);
    let _turn = turn.lock().await;
    if let Some(server) = find() {
        return Ok(server);
    }
    if let Some(server) = wake_kept_world(platform, game, &session.user_id).await? {
        return Ok(server);
    }
    let wish = Wish::open_to_all(game, &session.user_id);
    open_world(platform, game, wish).await
}

/// A world of a persistent game that sleeps, brought to the game's newest
/// version: what players built is where they left it.
async fn wake_kept_world(
    platform: &Platform,
    game: &GameRow,
    player_id: &str,
) -> Result<Option<Arc<WorldProcess>>, PlaceError> {
    if !game.persistent {
        return Ok(None);
    }
    let db = platform.db();
    let kept = worlds::kept_of_game(db, &game.game_id, game.channel).await?;
    let asleep = |world: &WorldRow| platform.fleet().server(&world.spec.world_id).is_none();
    // While a version is rolled out, who does not have it yet does not bring a
    // world back to the older one.
    let ahead = |world: &WorldRow| {
        let next = game.rollout.as_ref();
        next.is_some_and(|next| next.revision == world.spec.revision)
            && world.spec.revision != game.revision
    };
    let wanted = |world: &&WorldRow| asleep(world) && !ahead(world);
    let Some(world) = kept.iter().find(wanted).cloned() else {
        // A world that is closing is joined when it has closed: its scripts save
        // for some seconds, and a second world in the meantime would split players.
        return Ok(kept.iter().find_map(|world| {
            let server = platform.fleet().server(&world.spec.world_id)?;
            let closing = matches!(server.phase(), Phase::Stopping | Phase::Ended(_));
            (closing && !ahead(world)).then_some(server)
        }));
    };
    let mut spec: WorldSpec = world.spec;
    if spec.revision != game.revision {
        worlds::set_revision(db, &spec.world_id, &game.revision).await?;
        spec.revision.clone_from(&game.revision);
    }
    worlds::touch(db, &spec.world_id, platform.clock().now_ms()).await?;
    Ok(Some(platform.fleet().open(&spec, player_id)?))
}

async fn open_world(
    platform: &Platform,
    game: &GameRow,
    wish: Wish<'_>,
) -> Result<Arc<WorldProcess>, PlaceError> {
    let (db, player_id) = (platform.db(), wish.created_by);
    // Looked at again when it starts; but those who wait for a process ask
    // every second, and should not make and unmake a row each time.
    if !platform.fleet().has_room() {
        return Err(FleetError::TooManyServers.into());
    }
    let spec = worlds::create(db, game, wish, platform.clock().now_ms()).await?;
    match platform.fleet().open(&spec, player_id) {
        Ok(server) => Ok(server),
        Err(error) => {
            worlds::delete(db, &spec.world_id).await?;
            Err(error.into())
        }
    }
}

async fn default_game(platform: &Platform) -> Result<GameRow, PlaceError> {
    let game = match platform.default_game() {
        Some(id) => games::find(platform.db(), &id).await?,
        None => None,
    };
    Ok(game.ok_or_else(|| {
        ApiError::not_found(
            "no_default_game",
            "this platform has no default game; join with a game_id from /api/games",
        )
    })?)
}
