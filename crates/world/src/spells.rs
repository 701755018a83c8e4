//! Casting spells: whether a player may, with which seed, and which clients are
//! notified once the spell has run.

use std::collections::{BTreeMap, BTreeSet};

use frolic_fleet_api::remote_commands::CastNews;
use frolic_package::Package;
use frolic_package::spells::{SpellSettings, script_path};
use frolic_protocol::spell::CastEvent;
use frolic_protocol::{Args, ServerMessage, Value};
use frolic_script::ScriptEvent;
use frolic_sim::Vec3;

use crate::player::{Player, PlayerNumber};
use crate::space::Space;

/// Casts that scripts may be processing.
const OPEN_MAX: usize = 256;

/// Why a spell was not cast. The text is shown to the player.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CastRefusal {
    /// `game.toml` does not allow spells.
    #[error("spells are not allowed in this world")]
    NotAllowed,
    /// It does not exist, or not in that revision.
    #[error("this world has no spell {0}")]
    NoSuchSpell(String),
    /// The caster has left.
    #[error("only players who are in the world can cast")]
    NoSuchPlayer,
    /// The caster is dead.
    #[error("the dead cast no spells")]
    Dead,
    /// It was cast too recently.
    #[error("{spell} can be cast again in {seconds:.1} s")]
    Cooldown {
        /// The spell.
        spell: String,
        /// Remaining time.
        seconds: f32,
    },
    /// Not enough mana.
    #[error("{spell} takes {cost} mana, and you have {mana:.0}")]
    Cost {
        /// The spell.
        spell: String,
        /// Required mana.
        cost: f32,
        /// Available mana.
        mana: f32,
    },
    /// The target is not a valid place.
    #[error("target is [x, y, z] in metres")]
    BadTarget,
    /// The target is too far away.
    #[error("{spell} reaches {range} m, and the target is {distance:.0} m away")]
    TooFar {
        /// The spell.
        spell: String,
        /// Its range.
        range: f32,
        /// Distance of the target.
        distance: f32,
    },
    /// Too many casts at once.
    #[error("too many spells at once; try again in a moment")]
    Busy,
}

impl CastRefusal {
    /// A machine-readable code.
    pub fn code(&self) -> &'static str {
        match self {
            CastRefusal::NotAllowed => "spells_not_allowed",
            CastRefusal::NoSuchSpell(_) => "no_such_spell",
            CastRefusal::NoSuchPlayer => "spell_caster",
            CastRefusal::Dead => "spell_dead",
            CastRefusal::Cooldown { .. } => "spell_cooldown",
            CastRefusal::Cost { .. } => "spell_cost",
            CastRefusal::BadTarget => "spell_target",
            CastRefusal::TooFar { .. } => "spell_range",
            CastRefusal::Busy => "spell_busy",
        }
    }
}

/// The available spells, and casts in progress.
pub(crate) struct Spells {
    pub allowed: bool,
    known: BTreeMap<String, Known>,
    open: BTreeMap<u32, Open>,
    casts: u32,
}

/// A spell that can be cast.
struct Known {
    settings: SpellSettings,
    /// The learned revision; none for a spell of the game.
    revision: Option<String>,
    /// Tick at which it was last learned or cast.
    used: u32,
}

/// A cast in progress.
struct Open {
    event: CastEvent,
    /// Persistent id of the caster.
    by: String,
    revision: String,
    /// The caster's number and place at the time of casting, because a spell
    /// may teleport them. Unset for a user without a character.
    player: PlayerNumber,
    from: Option<Vec3>,
}

impl Known {
    fn of_game(settings: SpellSettings) -> Self {
        Self {
            settings,
            revision: None,
            used: 0,
        }
    }
}

impl Spells {
    pub fn new(package: &Package) -> Self {
        Self {
            allowed: package.manifest.world.spells,
            known: package
                .spells
                .iter()
                .map(|(id, settings)| (id.clone(), Known::of_game(settings.clone())))
                .collect(),
            open: BTreeMap::new(),
            casts: 0,
        }
    }

    pub fn ids(&self) -> Vec<String> {
        self.known.keys().cloned().collect()
    }

    /// Whether the game has a spell with this id.
    pub fn is_of_game(&self, id: &str) -> bool {
        let known = self.known.get(id);
        known.is_some_and(|known| known.revision.is_none())
    }

    /// Whether it was learned since the start.
    pub fn has_learned(&self, name: &str) -> bool {
        let known = self.known.get(name);
        known.is_some_and(|known| known.revision.is_some())
    }

    /// Paths of spells learned since the start: no package has them.
    pub fn learned_paths(&self) -> BTreeSet<String> {
        let learned = self.known.iter();
        let learned = learned.filter(|(_, known)| known.revision.is_some());
        learned.map(|(name, _)| script_path(name)).collect()
    }

    /// The spell to remove before another one with this name is learned.
    pub fn to_forget(&self, name: &str, most: usize) -> Option<String> {
        let learned = self.known.iter();
        let learned = learned.filter(|(_, known)| known.revision.is_some());
        if self.known.contains_key(name) || learned.clone().count() < most {
            return None;
        }
        let oldest = learned.min_by_key(|(_, known)| known.used);
        oldest.map(|(name, _)| name.clone())
    }

    pub fn learn(&mut self, name: &str, revision: &str, settings: SpellSettings, tick: u32) {
        let known = Known {
            settings,
            revision: Some(revision.to_owned()),
            used: tick,
        };
        self.known.insert(name.to_owned(), known);
    }

    pub fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// Casts since the start, for a fingerprint.
    pub fn casts(&self) -> u32 {
        self.casts
    }
}

impl Spells {
    /// Checks a cast and passes it to scripts.
    pub fn cast(
        &mut self,
        space: &mut Space,
        number: PlayerNumber,
        spell: &str,
        revision: Option<&str>,
        params: Value,
    ) -> Result<(), CastRefusal> {
        let (settings, code) = self.castable(space, spell, revision)?;
        let (tick, tick_hz) = (space.tick, space.tick_hz);
        let player = space.players.get(&number).filter(|player| player.online);
        let player = player.ok_or(CastRefusal::NoSuchPlayer)?;
        if player.vitality.health <= 0.0 {
            return Err(CastRefusal::Dead);
        }
        let ready = player.magic.ready.get(spell).copied().unwrap_or(0);
        if tick < ready {
            let seconds = (ready - tick) as f32 / tick_hz as f32;
            let spell = spell.to_owned();
            return Err(CastRefusal::Cooldown { spell, seconds });
        }
        if player.magic.mana < settings.cost {
            return Err(CastRefusal::Cost {
                spell: spell.to_owned(),
                cost: settings.cost,
                mana: player.magic.mana,
            });
        }
        let target = target_of(space, player, &settings, &params)?;
        let distance = (target - space.feet_of(player)).length();
        // The eyes are above the feet: aiming at the full range is allowed.
        if distance > settings.range_m + space.params.height {
            return Err(CastRefusal::TooFar {
                spell: spell.to_owned(),
                range: settings.range_m,
                distance,
            });
        }
        let Some(player) = space.players.get_mut(&number) else {
            return Err(CastRefusal::NoSuchPlayer);
        };
        player.magic.mana -= settings.cost;
        let wait = (settings.cooldown_s * tick_hz as f32) as u32;
        player.magic.ready.retain(|_, ready| *ready > tick);
        player.magic.ready.insert(spell.to_owned(), tick + wait);
        let caster = (player.entity, number, player.id.clone());
        self.begin(space, spell, code, caster, target, params);
        Ok(())
    }

    /// The settings of a spell and the hash of its code, if it can be cast
    /// here. A revision is identified by that hash, or by the name it was
    /// learned with.
    pub fn castable(
        &self,
        space: &Space,
        spell: &str,
        revision: Option<&str>,
    ) -> Result<(SpellSettings, String), CastRefusal> {
        let unknown = || CastRefusal::NoSuchSpell(spell.chars().take(80).collect());
        if !self.allowed {
            return Err(CastRefusal::NotAllowed);
        }
        let known = self.known.get(spell).ok_or_else(unknown)?;
        let code = space.console.hash_of(&script_path(spell));
        let code = code.ok_or_else(unknown)?;
        if revision
            .is_some_and(|wanted| wanted != code && known.revision.as_deref() != Some(wanted))
        {
            return Err(unknown());
        }
        if self.open.len() >= OPEN_MAX {
            return Err(CastRefusal::Busy);
        }
        Ok((known.settings.clone(), code.clone()))
    }

    /// Passes a checked cast to scripts. The caster is an entity, a player and
    /// a persistent id; the first two are 0 for a user without a character.
    pub fn begin(
        &mut self,
        space: &mut Space,
        spell: &str,
        code: String,
        (caster, player, by): (u32, PlayerNumber, String),
        target: Vec3,
        params: Value,
    ) {
        let tick = space.tick;
        self.casts = self.casts.wrapping_add(1);
        let cast = self.casts;
        let seed = seed_of(tick, cast, player);
        let mut revision = code.clone();
        if let Some(known) = self.known.get_mut(spell) {
            known.used = tick;
            if let Some(learned) = &known.revision {
                revision.clone_from(learned);
            }
        }
        let event = CastEvent {
            spell_id: spell.to_owned(),
            revision_id: code,
            caster,
            target: target.to_array(),
            params: Args(vec![params.clone()]),
            seed,
            draws: 0,
            answers: Args(Vec::new()),
            tick,
        };
        let open = Open {
            event,
            by,
            revision,
            player,
            from: {
                let player = space.players.get(&player);
                player.map(|player| space.feet_of(player))
            },
        };
        self.open.insert(cast, open);
        space.events.push(ScriptEvent::Cast {
            cast,
            path: script_path(spell),
            spell: spell.to_owned(),
            seed,
            player,
            target: target.to_array(),
            params,
        });
    }

    /// Notifies clients that a spell has run, with its results. Returns the
    /// cast for observers outside the world.
    pub fn announce(
        &mut self,
        space: &mut Space,
        (cast, draws): (u32, u32),
        answers: Vec<Value>,
    ) -> Option<CastNews> {
        let open = self.open.remove(&cast)?;
        let recipients = open.recipients(space);
        let mut event = open.event;
        event.draws = draws;
        event.answers = Args(answers);
        let news = serde_json::to_value(&event).ok().map(|cast| CastNews {
            by: open.by,
            revision_id: open.revision,
            cast,
        });
        let message = ServerMessage::Cast(Box::new(event));
        for to in recipients {
            space.outbox.send(to, message.clone());
        }
        news
    }
}

impl Open {
    /// All players; with a radius the caster, and players within it of the
    /// caster's place or of the target.
    fn recipients(&self, space: &Space) -> Vec<Option<PlayerNumber>> {
        let policy = space.updates.policy;
        if policy.radius.is_none() {
            return vec![None];
        }
        let places = [self.from, Some(Vec3::from(self.event.target))];
        let recipients = space.online().filter(|player| {
            let feet = space.feet_of(player);
            let mut places = places.into_iter().flatten();
            player.number == self.player || places.any(|place| policy.reaches(feet, place))
        });
        recipients.map(|player| Some(player.number)).collect()
    }
}

/// The place in `params.target`, if there is one.
pub(crate) fn named_target(params: &Value) -> Result<Option<Vec3>, CastRefusal> {
    let named = match params {
        Value::Map(map) => map.get("target"),
        _ => None,
    };
    let Some(named) = named else {
        return Ok(None);
    };
    place(named).map(Some).ok_or(CastRefusal::BadTarget)
}

/// The place in `params.target`, or the point that the caster looks at.
fn target_of(
    space: &Space,
    caster: &Player,
    settings: &SpellSettings,
    params: &Value,
) -> Result<Vec3, CastRefusal> {
    if let Some(named) = named_target(params)? {
        return Ok(named);
    }
    let (eyes, ahead) = caster.aim(space.feet_of(caster), &space.params);
    let hit = space.collision.raycast(eyes, ahead, settings.range_m, &[]);
    Ok(hit.map_or(eyes + ahead * settings.range_m, |hit| hit.point))
}

fn place(value: &Value) -> Option<Vec3> {
    let place = match value {
        Value::Vector(place) => *place,
        Value::List(items) => {
            let number = |item: &Value| match item {
                Value::Number(number) => Some(*number as f32),
                _ => None,
            };
            let numbers: Option<Vec<f32>> = items.iter().map(number).collect();
            numbers?.try_into().ok()?
        }
        _ => return None,
    };
    let place = Vec3::from(place);
    (place.is_finite() && place.abs().max_element() < 1e6).then_some(place)
}

/// Differs for each cast and is the same in a replay; has as many bits as a
/// double holds.
fn seed_of(tick: u32, cast: u32, player: PlayerNumber) -> u64 {
    let mut mixed = u64::from(tick) << 32 | u64::from(cast);
    mixed ^= u64::from(player).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // SplitMix64's finish.
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) >> 11
}
