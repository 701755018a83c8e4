//! The state machine of an NPC, from calm to chase and back, as one pure
//! function.

use frolic_protocol::npc::NpcState;

/// Suspicion at which it investigates, on its post and on its way back.
const NOTICES_AT: f32 = 0.35;
const NOTICES_AGAIN_AT: f32 = 0.5;
/// Suspicion below which it has forgotten.
const FORGETS_AT: f32 = 0.05;
/// How long it is startled.
const STARTLED_S: f32 = 0.6;
/// How long a target must be out of sight to be lost.
pub const LOSES_AFTER_S: f32 = 1.8;
/// Limit of the time spent on a place that cannot be reached.
const SUSPICIOUS_MAX_S: f32 = 25.0;
const RETURN_MAX_S: f32 = 90.0;

/// The inputs of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// From 0 to 1.
    pub suspicion: f32,
    /// Whether a target is visible now.
    pub sees: bool,
    /// Seconds since a target was visible.
    pub unseen_s: f32,
    /// Seconds in the current state.
    pub in_state_s: f32,
    /// Duration of a search in seconds.
    pub search_s: f32,
    /// Whether the journey has ended, by arrival or failure.
    pub journey_over: bool,
}

/// The next state.
pub fn next(state: NpcState, facts: &Facts) -> NpcState {
    let sure = facts.sees && facts.suspicion >= 1.0;
    match state {
        NpcState::Idle if sure => NpcState::Alert,
        NpcState::Idle if facts.suspicion >= NOTICES_AT => NpcState::Suspicious,
        NpcState::Suspicious if sure => NpcState::Alert,
        NpcState::Suspicious if facts.suspicion <= FORGETS_AT => NpcState::Return,
        NpcState::Suspicious if !facts.sees && facts.in_state_s >= SUSPICIOUS_MAX_S => {
            NpcState::Return
        }
        NpcState::Alert if facts.in_state_s >= STARTLED_S => match facts.sees {
            true => NpcState::Chase,
            false => NpcState::Search,
        },
        NpcState::Chase if facts.unseen_s >= LOSES_AFTER_S => NpcState::Search,
        NpcState::Search if facts.sees => NpcState::Chase,
        NpcState::Search if facts.in_state_s >= facts.search_s => NpcState::Return,
        NpcState::Return if sure => NpcState::Alert,
        NpcState::Return if facts.suspicion >= NOTICES_AGAIN_AT => NpcState::Suspicious,
        NpcState::Return if facts.journey_over || facts.in_state_s >= RETURN_MAX_S => {
            NpcState::Idle
        }
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::NpcState::*;
    use super::*;

    const CALM: Facts = Facts {
        suspicion: 0.0,
        sees: false,
        unseen_s: 100.0,
        in_state_s: 0.0,
        search_s: 8.0,
        journey_over: false,
    };

    #[test]
    fn every_transition_and_nothing_else() {
        let suspects = |suspicion| Facts { suspicion, ..CALM };
        let sees = |suspicion| Facts {
            suspicion,
            sees: true,
            unseen_s: 0.0,
            ..CALM
        };
        let after = |in_state_s, facts: Facts| Facts {
            in_state_s,
            ..facts
        };
        let there = Facts {
            journey_over: true,
            ..CALM
        };
        let lost = |unseen_s| Facts {
            unseen_s,
            suspicion: 1.0,
            ..CALM
        };
        let table = [
            (Idle, CALM, Idle),
            (Idle, suspects(0.34), Idle),
            (Idle, suspects(0.35), Suspicious),
            (Idle, suspects(1.0), Suspicious),
            (Idle, sees(1.0), Alert),
            (Idle, there, Idle),
            (Suspicious, suspects(0.2), Suspicious),
            (Suspicious, suspects(0.05), Return),
            (Suspicious, sees(0.9), Suspicious),
            (Suspicious, sees(1.0), Alert),
            (Suspicious, after(30.0, suspects(0.5)), Return),
            (Suspicious, after(30.0, sees(0.5)), Suspicious),
            (Alert, sees(1.0), Alert),
            (Alert, after(0.7, sees(1.0)), Chase),
            (Alert, after(0.7, lost(0.7)), Search),
            (Chase, sees(1.0), Chase),
            (Chase, after(500.0, sees(1.0)), Chase),
            (Chase, lost(1.7), Chase),
            (Chase, lost(1.8), Search),
            (Search, suspects(0.5), Search),
            (Search, sees(0.1), Chase),
            (Search, after(7.9, suspects(0.5)), Search),
            (Search, after(8.0, suspects(0.5)), Return),
            (Return, CALM, Return),
            (Return, suspects(0.4), Return),
            (Return, suspects(0.5), Suspicious),
            (Return, sees(1.0), Alert),
            (Return, there, Idle),
            (Return, after(90.0, CALM), Idle),
        ];
        for (state, facts, expected) in table {
            assert_eq!(next(state, &facts), expected, "{state:?} {facts:?}");
        }
    }

    #[test]
    fn an_undisturbed_npc_calms_down() {
        for mut state in NpcState::ALL {
            let mut in_state_s = 0.0;
            let mut total_s = 0.0;
            while state != Idle {
                let facts = Facts { in_state_s, ..CALM };
                let before = state;
                state = next(before, &facts);
                in_state_s = if before == state {
                    in_state_s + 0.1
                } else {
                    0.0
                };
                total_s += 0.1;
                assert!(total_s < 130.0, "{state:?} for ever");
            }
        }
    }
}
