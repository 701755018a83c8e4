//! rapier's world, which skips a step that would change nothing.

use std::ops::{Deref, DerefMut};

use frolic_sim::Vec3;
use rapier3d::prelude::{EventHandler, PhysicsWorld};

/// rapier's world. All mutable access goes through `deref_mut`, so no change is
/// missed.
#[derive(Default)]
pub(super) struct Physics {
    world: PhysicsWorld,
    /// Nothing was awake after the last step, and nothing has changed since.
    still: bool,
}

impl Physics {
    /// Steps, unless that would change nothing. Returns whether it stepped.
    pub fn step(&mut self, gravity: Vec3, events: &dyn EventHandler) -> bool {
        if self.world.gravity != gravity {
            self.world.gravity = gravity;
        }
        if self.still {
            return false;
        }
        self.world.step_with_events(&(), events);
        self.still = self.world.islands.num_active_bodies() == 0;
        true
    }
}

impl Deref for Physics {
    type Target = PhysicsWorld;

    fn deref(&self) -> &PhysicsWorld {
        &self.world
    }
}

impl DerefMut for Physics {
    fn deref_mut(&mut self) -> &mut PhysicsWorld {
        self.still = false;
        &mut self.world
    }
}
