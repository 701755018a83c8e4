//! The behaviour of a bot: it walks all the time, sometimes runs, jumps, fires
//! and talks, and stays near home.
//!
//! Its gait consists of stretches of half a second to two and a half. Each
//! begins with a turn of up to 1.2 rad, or towards home where that is too far.
//! In half of them it goes straight on from there; in the others it turns
//! steadily, by up to 2 rad/s to either side, like a player who looks around.
//! Every bot moves, and many turn: bots that did not would cost less than
//! players do.

use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, Vec3};

/// How long a stretch lasts, in seconds.
const STRETCH_S: (f32, f32) = (0.5, 2.5);
/// The most by which a stretch begins in another direction.
const VEER_MAX: f32 = 1.2;
/// The most that a bot turns while it walks, per second.
const TURN_MAX: f32 = 2.0;
/// How often it jumps, and fires, per second.
const JUMPS_PER_S: f64 = 0.25;
const SHOTS_PER_S: f64 = 0.5;
/// A bot that was not asked for longer has not turned meanwhile.
const PAUSE_S_MAX: f64 = 0.1;

/// How one bot plays.
pub struct Behaviour {
    random: Random,
    home: Option<Vec3>,
    roam_m: f32,
    yaw: f32,
    /// Per second.
    turn: f32,
    running: bool,
    asked_s: f64,
    next_change_s: f64,
}

impl Behaviour {
    /// Equal seeds play alike; they stay within `roam_m` metres of their start.
    pub fn new(seed: u64, roam_m: Option<f32>) -> Self {
        let mut random = Random::new(seed);
        Self {
            yaw: random.range(-3.0, 3.0),
            random,
            home: None,
            roam_m: roam_m.unwrap_or(12.0),
            turn: 0.0,
            running: false,
            asked_s: 0.0,
            next_change_s: 0.0,
        }
    }

    /// Its input at `now_s`, standing at `feet`.
    pub fn input(&mut self, now_s: f64, feet: Vec3) -> CharacterInput {
        let home = *self.home.get_or_insert(feet);
        let passed_s = (now_s - self.asked_s).clamp(0.0, PAUSE_S_MAX);
        self.asked_s = now_s;
        self.yaw += self.turn * passed_s as f32;
        if now_s >= self.next_change_s {
            self.begin_stretch(now_s, feet - home);
        }
        let mut buttons = Buttons::default();
        if self.running {
            buttons = buttons.with(Buttons::RUN);
        }
        if self.happens(JUMPS_PER_S * passed_s) {
            buttons = buttons.with(Buttons::JUMP);
        }
        if self.happens(SHOTS_PER_S * passed_s) {
            buttons = buttons.with(Buttons::FIRE);
        }
        CharacterInput::new(0.0, 1.0, self.yaw, 0.0, buttons)
    }

    fn begin_stretch(&mut self, now_s: f64, from_home: Vec3) {
        let (shortest, longest) = STRETCH_S;
        self.next_change_s = now_s + f64::from(self.random.range(shortest, longest));
        self.yaw += self.random.range(-VEER_MAX, VEER_MAX);
        self.running = self.random.below(4) == 0;
        self.turn = match self.random.below(2) {
            0 => 0.0,
            _ => self.random.range(-TURN_MAX, TURN_MAX),
        };
        let away = Vec3::new(from_home.x, 0.0, from_home.z);
        if away.length() > self.roam_m {
            // Forward at yaw a is (-sin a, -cos a): turn towards home.
            self.yaw = away.x.atan2(away.z);
        }
    }

    fn happens(&mut self, chance: f64) -> bool {
        f64::from(self.random.unit()) < chance
    }

    /// About once in two minutes at 30 turns a second.
    pub fn wants_to_talk(&mut self) -> bool {
        self.random.below(3600) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_sim::Angle;

    /// Fifty bots for a minute, who get nowhere: inputs of each, 60 a second.
    fn walks() -> Vec<Vec<CharacterInput>> {
        let walk = |seed| {
            let mut bot = Behaviour::new(seed, None);
            let inputs = (0..3600).map(|step| bot.input(f64::from(step) / 60.0, Vec3::ZERO));
            inputs.collect()
        };
        (0..50).map(walk).collect()
    }

    #[test]
    fn no_bot_stands_still_and_half_of_them_turn() {
        let (mut steady, mut turning, mut sudden) = (0, 0, 0);
        for walk in walks() {
            assert!(walk.iter().all(|input| input.forward == 127));
            for pair in walk.windows(2) {
                let [before, after] = [pair[0].yaw.0, pair[1].yaw.0];
                let angle = Angle(after.wrapping_sub(before)).radians().abs();
                if after == before {
                    steady += 1;
                } else if angle <= TURN_MAX / 60.0 + 1e-3 {
                    turning += 1;
                } else {
                    sudden += 1;
                }
            }
        }
        let all = f64::from(steady + turning + sudden);
        let share = f64::from(turning) / all;
        assert!((0.45..0.55).contains(&share), "{share} of the time");
        assert!(f64::from(sudden) / all < 0.02, "{sudden} sudden turns");
    }

    #[test]
    fn how_often_it_jumps_does_not_depend_on_how_often_it_is_asked() {
        let jumps = |hz: u32| {
            let count = |seed| {
                let mut bot = Behaviour::new(seed, None);
                let asked = (0..hz * 60).map(|step| f64::from(step) / f64::from(hz));
                let inputs = asked.map(|now_s| bot.input(now_s, Vec3::ZERO));
                inputs
                    .filter(|input| input.buttons.contains(Buttons::JUMP))
                    .count()
            };
            (0..50).map(count).sum::<usize>()
        };
        // Fifty minutes, one jump in four seconds.
        for hz in [30, 60] {
            assert!((650..850).contains(&jumps(hz)), "{} at {hz} Hz", jumps(hz));
        }
    }

    #[test]
    fn who_is_far_from_home_goes_back() {
        let mut bot = Behaviour::new(7, Some(10.0));
        let mut feet = Vec3::ZERO;
        let mut furthest = 0.0_f32;
        for step in 0..60 * 300 {
            let input = bot.input(f64::from(step) / 60.0, feet);
            let (sin, cos) = input.yaw.sin_cos();
            feet += Vec3::new(-sin, 0.0, -cos) * (6.0 / 60.0);
            furthest = furthest.max(feet.length());
        }
        assert!(furthest < 30.0, "{furthest} m");
    }
}
