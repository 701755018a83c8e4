//! The Npc component: a character that no player controls.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::check::{Checker, POSITION_MAX};
use crate::color::Color;
use crate::component::fields;
use crate::field::{Field, Numbers};

/// Points of one patrol.
pub const PATROL_POINTS_MAX: usize = 256;

/// How a non-player character sees, detects sounds, walks and looks. Its body is the capsule that players
/// have too, so an entity with it needs no [`crate::Shape`]. Distances are metres, times seconds,
/// angles degrees. What has its default value is not written to scene.json.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Npc {
    /// How far it sees; 0 is blind.
    pub sight_distance: f32,
    /// The whole angle in which it sees, left to right.
    pub field_of_view: f32,
    /// How far it detects a player who runs or lands; 0 is deaf. Walls do not block sound.
    pub hearing_distance: f32,
    /// Metres per second on patrol.
    pub walk_speed: f32,
    /// Metres per second while it chases a player.
    pub run_speed: f32,
    /// Where it goes, in turn, for ever; without it stays where it is.
    pub patrol: Vec<PatrolPoint>,
    /// How long it stands at each of them.
    pub patrol_wait: f32,
    /// What its own are called; see [`Hostility::OtherTeams`].
    pub team: Option<String>,
    /// Whom it minds.
    pub hostile: Hostility,
    /// How long a player at half its sight distance must be in view before it is sure.
    pub suspicion_rise: f32,
    /// How long a full suspicion takes to fade.
    pub suspicion_fall: f32,
    /// How long it searches for a player it has lost.
    pub search_time: f32,
    /// How near it must come to catch a player.
    pub reach: f32,
    /// Whether clients draw on the ground what it sees.
    pub vision_cone: bool,
    /// Colour of its shirt; by its id when left out, as the next ones.
    pub shirt: Option<Color>,
    /// Colour of its trousers.
    pub trousers: Option<Color>,
    /// Colour of its skin.
    pub skin: Option<Color>,
    /// Colour of its hair.
    pub hair: Option<Color>,
}

fields! {
    Npc {
        sight_distance: Field::range(0.0, 200.0).unit("m"),
        field_of_view: Field::range(0.0, 360.0).unit("degrees"),
        hearing_distance: Field::range(0.0, 200.0).unit("m"),
        walk_speed: Field::range(0.0, 20.0).unit("m/s"),
        run_speed: Field::range(0.0, 20.0).unit("m/s"),
        patrol: Field::any().widget("patrol"),
        patrol_wait: Field::range(0.0, 3600.0).unit("s"),
        suspicion_rise: Field::range(0.05, 600.0).unit("s"),
        suspicion_fall: Field::range(0.05, 600.0).unit("s"),
        search_time: Field::range(0.0, 600.0).unit("s"),
        reach: Field::range(0.0, 10.0).unit("m"),
        shirt: Field::any().widget("color"),
        trousers: Field::any().widget("color"),
        skin: Field::any().widget("color"),
        hair: Field::any().widget("color"),
    }
    with check_patrol
}

fn check_patrol(npc: &Npc, found: &mut Checker) {
    if npc.patrol.len() > PATROL_POINTS_MAX {
        let message = format!(
            "a patrol has at most {PATROL_POINTS_MAX} points, not {}",
            npc.patrol.len()
        );
        found.invalid("patrol", message);
    }
    for point in npc.patrol.iter().take(PATROL_POINTS_MAX) {
        match point {
            PatrolPoint::At(position) => {
                for value in *position {
                    found.range("patrol", value, -POSITION_MAX, POSITION_MAX);
                }
            }
            PatrolPoint::Named(name) => found.label("patrol", name),
        }
    }
    if let Some(team) = &npc.team {
        found.label("team", team);
    }
}

impl Default for Npc {
    fn default() -> Self {
        Self {
            sight_distance: 14.0,
            field_of_view: 100.0,
            hearing_distance: 6.0,
            walk_speed: 2.0,
            run_speed: 5.5,
            patrol: Vec::new(),
            patrol_wait: 1.5,
            team: None,
            hostile: Hostility::Players,
            suspicion_rise: 1.2,
            suspicion_fall: 4.0,
            search_time: 8.0,
            reach: 1.3,
            vision_cone: false,
            shirt: None,
            trousers: None,
            skin: None,
            hair: None,
        }
    }
}

/// A place on a patrol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "a patrol point is [x, y, z] or the name of an entity"
)]
pub enum PatrolPoint {
    /// `[x, y, z]`.
    At([f32; 3]),
    /// Where the first entity with this name or tag is.
    Named(String),
}

impl Numbers for Vec<PatrolPoint> {}

/// Whom an NPC minds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Hostility {
    /// Every player.
    #[default]
    Players,
    /// Players of another team than its own, or of none.
    OtherTeams,
    /// No player: it only walks about.
    Nobody,
}

impl Serialize for Npc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usual = Npc::default();
        // Not how many there will be; none at all would be written as another kind of empty.
        let mut out = serializer.serialize_struct("Npc", 1)?;
        macro_rules! unless_usual {
            ($($field:ident),*) => {$(
                if self.$field != usual.$field {
                    out.serialize_field(stringify!($field), &self.$field)?;
                }
            )*};
        }
        unless_usual!(
            sight_distance,
            field_of_view,
            hearing_distance,
            walk_speed,
            run_speed,
            patrol,
            patrol_wait,
            team,
            hostile,
            suspicion_rise,
            suspicion_fall,
            search_time,
            reach,
            vision_cone,
            shirt,
            trousers,
            skin,
            hair
        );
        out.end()
    }
}
