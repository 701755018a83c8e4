//! State of non-player characters beyond their movement.

use serde::{Deserialize, Serialize};

/// The behaviour state of an NPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "snake_case")]
pub enum NpcState {
    /// On patrol, or at its post.
    #[default]
    Idle,
    /// It noticed something, and investigates.
    Suspicious,
    /// It is certain, and startled for a moment.
    Alert,
    /// It pursues a character it sees.
    Chase,
    /// It searches for a character it has lost.
    Search,
    /// On its way back.
    Return,
}

impl NpcState {
    /// All of them, from calm to calm again.
    pub const ALL: [NpcState; 6] = [
        NpcState::Idle,
        NpcState::Suspicious,
        NpcState::Alert,
        NpcState::Chase,
        NpcState::Search,
        NpcState::Return,
    ];

    /// Its name in JSON and for scripts.
    pub fn name(self) -> &'static str {
        match self {
            NpcState::Idle => "idle",
            NpcState::Suspicious => "suspicious",
            NpcState::Alert => "alert",
            NpcState::Chase => "chase",
            NpcState::Search => "search",
            NpcState::Return => "return",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// State and suspicion of an NPC in one byte of
/// [`EntityState`](crate::EntityState): zero for everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mood(pub u8);

/// Suspicion is quantized to this many steps.
const LEVELS: f32 = 15.0;

impl Mood {
    /// Of an NPC; suspicion is 0 to 1.
    pub fn new(state: NpcState, suspicion: f32) -> Self {
        let level = (suspicion.clamp(0.0, 1.0) * LEVELS) as u8;
        Self((state as u8 + 1) << 4 | level)
    }

    /// None for anything but an NPC.
    pub fn state(self) -> Option<NpcState> {
        NpcState::ALL
            .get((self.0 >> 4).checked_sub(1)? as usize)
            .copied()
    }

    /// From 0 to 1.
    pub fn suspicion(self) -> f32 {
        f32::from(self.0 & 15) / LEVELS
    }
}

/// NPC_EVENT: an NPC has changed its behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NpcEvent {
    /// The NPC's entity.
    pub entity: u32,
    /// The previous state.
    pub before: NpcState,
    /// The current state.
    pub state: NpcState,
    /// The character it pays attention to.
    pub target: Option<u32>,
    /// From 0 to 1.
    pub suspicion: f32,
    /// Its feet.
    pub position: [f32; 3],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mood_keeps_state_and_suspicion() {
        for state in NpcState::ALL {
            for suspicion in [0.0, 0.4, 1.0] {
                let mood = Mood::new(state, suspicion);
                assert_eq!(mood.state(), Some(state));
                assert!((mood.suspicion() - suspicion).abs() <= 1.0 / LEVELS);
            }
            assert_eq!(NpcState::from_name(state.name()), Some(state));
        }
        assert_eq!(Mood::default().state(), None);
        assert_eq!(Mood::new(NpcState::Idle, f32::NAN).suspicion(), 0.0);
        // Any byte may arrive over the wire.
        assert!((0..=255).all(|byte| Mood(byte).suspicion() <= 1.0));
        assert_eq!(Mood(255).state(), None);
    }
}
