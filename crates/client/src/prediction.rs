//! Prediction: the own character moves at once, and is corrected afterwards.

use std::collections::VecDeque;

use frolic_protocol::snapshot::OwnState;
use frolic_protocol::{Inputs, NumberedInput};
use frolic_sim::{
    CharacterInput, CharacterParams, CharacterState, StepCache, Vec3, step_character_with,
};

use crate::scene::ClientScene;

/// Inputs stored for replay: two seconds at 60 Hz.
const PENDING_MAX: usize = 128;
/// An input is in this many consecutive packets, the first included, at one input
/// per packet: that many losses before the server misses it.
const PACKETS_PER_INPUT: usize = 6;
/// Corrections beyond this are jumps (a respawn, a teleport), not errors.
const SMOOTHED_ERROR_MAX_M: f32 = 2.5;
/// After a stall the player walked alone for up to two seconds: that is corrected
/// smoothly, too.
const SMOOTHED_AFTER_STALL_MAX_M: f32 = 20.0;
/// For this many server states after a stall: inputs of that time may still arrive,
/// or turn out to be lost.
const FORGIVEN_VERDICTS: u32 = 20;
/// What is left of a shown error after one second.
const ERROR_LEFT_PER_S: f32 = 1e-5;

/// Bodies that are drawn in the own time because the character pushes them.
pub(crate) const PUSHED_MAX: usize = 4;
/// Ticks for which a push counts: between two touches there are some without.
const PUSHED_TICKS: u8 = 20;

struct Pending {
    input: NumberedInput,
    /// The predicted result of the input.
    outcome: CharacterState,
}

pub(crate) struct Prediction {
    params: CharacterParams,
    cache: StepCache,
    dt: f32,
    next_seq: u32,
    pending: VecDeque<Pending>,
    /// Newest predicted state, and the one before it, for drawing between steps.
    current: CharacterState,
    previous: CharacterState,
    /// Which tick the server will simulate input `n` at is `n + tick_offset`.
    tick_offset: i64,
    /// Shown minus predicted position: decays to zero.
    error: Vec3,
    /// What the character stands on, and where that was after the newest step.
    ground: Option<(u32, Vec3)>,
    /// The same error of what it stands on: the start of a platform is also
    /// received late, and its rider must not slide over it while both catch up.
    ground_error: Vec3,
    /// Whether the server has sent our position.
    placed: bool,
    /// Server states whose corrections are smoothed, however large.
    forgiven: u32,
    /// What the character walked against recently, and for how many ticks that
    /// counts.
    pushed: [(u32, u8); PUSHED_MAX],
    pub corrections: u32,
    pub last_correction_m: f32,
}

impl Prediction {
    pub fn new(params: CharacterParams, tick_hz: u32) -> Self {
        let start = CharacterState::at(Vec3::ZERO);
        Self {
            params,
            cache: StepCache::default(),
            dt: 1.0 / tick_hz.max(1) as f32,
            next_seq: 1,
            pending: VecDeque::with_capacity(PENDING_MAX),
            current: start,
            previous: start,
            tick_offset: 0,
            error: Vec3::ZERO,
            ground: None,
            ground_error: Vec3::ZERO,
            placed: false,
            forgiven: 0,
            pushed: [(0, 0); PUSHED_MAX],
            corrections: 0,
            last_correction_m: 0.0,
        }
    }

    /// The character stays where the last step left it, also between steps.
    pub fn rest(&mut self) {
        self.previous = self.current;
    }

    /// The connection was silent and is back: deviations since then are corrected
    /// without a jump.
    pub fn forgive(&mut self) {
        self.forgiven = FORGIVEN_VERDICTS;
    }

    /// Changes how characters move.
    pub fn set_params(&mut self, params: CharacterParams) {
        self.params = params;
    }

    /// What the own character walks against, newest first.
    pub fn pushed(&self) -> [Option<u32>; PUSHED_MAX] {
        self.pushed
            .map(|(entity, left)| (left > 0).then_some(entity))
    }

    /// Remembers for a while what was pushed.
    fn note_pushed(&mut self) {
        for (_, left) in &mut self.pushed {
            *left = left.saturating_sub(1);
        }
        for touch in self.cache.touches() {
            if touch.speed <= 0.0 && !touch.stands {
                continue;
            }
            let known = self.pushed.iter().position(|(id, _)| *id == touch.entity);
            let place = known.or_else(|| {
                let oldest = self
                    .pushed
                    .iter()
                    .enumerate()
                    .min_by_key(|(_, (_, left))| *left);
                oldest.map(|(at, _)| at)
            });
            if let Some(at) = place {
                self.pushed[at] = (touch.entity, PUSHED_TICKS);
            }
        }
    }

    /// Predicts one step.
    pub fn step(&mut self, scene: &mut ClientScene, input: CharacterInput) {
        let seq = self.next_seq;
        self.next_seq = self.next_seq.wrapping_add(1);
        if self.pending.len() == PENDING_MAX {
            self.pending.pop_front();
        }
        self.previous = self.current;
        scene.pose_movers_at(self.tick_of(seq));
        step_character_with(
            &mut self.cache,
            &scene.collision,
            &self.params,
            &mut self.current,
            &input,
            self.dt,
        );
        self.note_pushed();
        self.pending.push_back(Pending {
            input: NumberedInput { seq, input },
            outcome: self.current,
        });
        self.ground = ground_of(scene, &self.current);
        let left = ERROR_LEFT_PER_S.powf(self.dt);
        self.error *= left;
        self.ground_error *= left;
    }

    /// Compares the server's state with the prediction, and predicts again from
    /// there if they differ.
    pub fn reconcile(&mut self, scene: &mut ClientScene, server_tick: u32, own: &OwnState) {
        let truth = own.character;
        let smoothed_max_m = match self.forgiven {
            0 => SMOOTHED_ERROR_MAX_M,
            _ => SMOOTHED_AFTER_STALL_MAX_M,
        };
        self.forgiven = self.forgiven.saturating_sub(1);
        let used = own.ack_seq.wrapping_add(u32::from(own.late_ticks));
        self.tick_offset = i64::from(server_tick) - i64::from(used);
        let mut predicted = None;
        while let Some(first) = self.pending.front()
            && first.input.seq <= used
        {
            predicted = self.pending.pop_front().map(|pending| pending.outcome);
        }
        if used >= self.next_seq {
            // The server continued without us (the tab was suspended): count on
            // from there.
            self.next_seq = used.wrapping_add(1);
        }
        // Where the platform is now known to be at the newest step.
        scene.pose_movers_at(self.tick_of(self.last_seq()));
        let same_ground = ground_of(scene, &self.current) == self.ground;
        if predicted == Some(truth) && same_ground {
            return;
        }
        let shown = self.current.feet + self.error;
        let mut state = truth;
        self.previous = truth;
        for pending in &mut self.pending {
            let tick = i64::from(pending.input.seq) + self.tick_offset;
            scene.pose_movers_at(tick.max(0) as u32);
            self.previous = state;
            step_character_with(
                &mut self.cache,
                &scene.collision,
                &self.params,
                &mut state,
                &pending.input.input,
                self.dt,
            );
            pending.outcome = state;
        }
        let wrong_by = (self.current.feet - state.feet).length();
        self.current = state;
        // The first state only places the character; there was no prediction to be
        // wrong.
        let first = !std::mem::replace(&mut self.placed, true);
        if wrong_by > 1e-6 && !first {
            self.corrections += 1;
            self.last_correction_m = wrong_by;
        }
        let smooth = wrong_by < smoothed_max_m;
        let ground = ground_of(scene, &state);
        self.ground_error = match (self.ground, ground) {
            (Some((before, was)), Some((after, is))) if smooth && before == after => {
                self.ground_error + was - is
            }
            _ => Vec3::ZERO,
        };
        self.ground = ground;
        self.error = if smooth {
            shown - state.feet
        } else {
            self.previous = state;
            Vec3::ZERO
        };
    }

    fn tick_of(&self, seq: u32) -> u32 {
        (i64::from(seq) + self.tick_offset).max(0) as u32
    }

    /// Number of the newest step, and its server tick.
    pub fn last_step(&self) -> (u32, u32) {
        let seq = self.last_seq();
        (seq, self.tick_of(seq))
    }

    /// The inputs of the next packet: those of the steps just made, however many,
    /// after the last few before them; oldest first.
    pub fn newest_inputs(&self, steps: u32) -> Inputs {
        let count = steps as usize + PACKETS_PER_INPUT - 1;
        let skip = self.pending.len().saturating_sub(count);
        self.pending
            .iter()
            .skip(skip)
            .map(|pending| pending.input)
            .collect()
    }

    /// The tick that is shown for the own character, with its fraction.
    pub fn shown_tick(&self, fraction: f32) -> f64 {
        f64::from(self.tick_of(self.next_seq)) - 2.0 + f64::from(fraction)
    }

    /// Where to draw the own character.
    pub fn shown(&self, fraction: f32) -> Vec3 {
        self.previous.feet + (self.current.feet - self.previous.feet) * fraction + self.error
    }

    pub fn state(&self) -> &CharacterState {
        &self.current
    }

    /// By how much to offset what the character stands on when drawing it.
    pub fn ground_error(&self) -> Vec3 {
        self.ground_error
    }

    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    pub fn last_seq(&self) -> u32 {
        self.next_seq.wrapping_sub(1)
    }

    /// The newest input, for the direction the own character faces.
    pub fn newest_input(&self) -> CharacterInput {
        self.pending
            .back()
            .map_or_else(CharacterInput::default, |pending| pending.input.input)
    }
}

/// What a character stands on, and where that is.
fn ground_of(scene: &ClientScene, state: &CharacterState) -> Option<(u32, Vec3)> {
    let id = state.ground?;
    let (low, high) = scene.collision.bounds_of(id)?;
    Some((id, (low + high) * 0.5))
}

#[cfg(test)]
mod tests;
