//! What a bot does: walks about, runs, jumps, fires and talks at times, stays near home.

use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, Vec3};

pub struct Behaviour {
    random: Random,
    home: Option<Vec3>,
    roam_m: f32,
    yaw: f32,
    forward: f32,
    running: bool,
    next_change_s: f64,
}

impl Behaviour {
    pub fn new(seed: u64, roam_m: Option<f32>) -> Self {
        let mut random = Random::new(seed);
        Self {
            yaw: random.range(-3.0, 3.0),
            random,
            home: None,
            roam_m: roam_m.unwrap_or(12.0),
            forward: 1.0,
            running: false,
            next_change_s: 0.0,
        }
    }

    /// What it holds at `now_s`, standing at `feet`.
    pub fn input(&mut self, now_s: f64, feet: Vec3) -> CharacterInput {
        let home = *self.home.get_or_insert(feet);
        if now_s >= self.next_change_s {
            self.next_change_s = now_s + f64::from(self.random.range(0.5, 2.5));
            self.yaw += self.random.range(-1.2, 1.2);
            self.running = self.random.below(4) == 0;
            self.forward = if self.random.below(8) == 0 { 0.0 } else { 1.0 };
            let away = Vec3::new(feet.x - home.x, 0.0, feet.z - home.z);
            if away.length() > self.roam_m {
                // Forward at yaw a is (-sin a, -cos a): turn towards home.
                self.yaw = away.x.atan2(away.z);
                self.forward = 1.0;
            }
        }
        let mut buttons = Buttons::default();
        if self.running {
            buttons = buttons.with(Buttons::RUN);
        }
        if self.random.below(120) == 0 {
            buttons = buttons.with(Buttons::JUMP);
        }
        if self.random.below(60) == 0 {
            buttons = buttons.with(Buttons::FIRE);
        }
        CharacterInput::new(0.0, self.forward, self.yaw, 0.0, buttons)
    }

    /// About once in two minutes at 30 turns a second.
    pub fn wants_to_talk(&mut self) -> bool {
        self.random.below(3600) == 0
    }
}
