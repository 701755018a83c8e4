//! NPCs in the fingerprint of a world.

use frolic_scene::PatrolPoint;
use frolic_sim::digest::Digest;

use super::behaviour::Rounds;
use super::orders::Orders;
use super::perception::Senses;
use super::{Npc, Npcs};
use crate::fingerprint::Fingerprint;
use crate::space::Space;

impl Npcs {
    /// Adds everything that determines what they do next. Structures are
    /// destructured by name, as in `replay/hash.rs`.
    pub fn fingerprint(&self, space: &Space, out: &mut Fingerprint) {
        let Npcs {
            all,
            nav,
            rays: _, // a metric
        } = self;
        out.word(all.len() as u64);
        all.values().for_each(|npc| npc.fingerprint(space, out));
        nav.words().for_each(|word| out.word(word));
    }
}

impl Npc {
    fn fingerprint(&self, space: &Space, out: &mut Fingerprint) {
        let Npc {
            entity,
            settings: _, // part of the definition, like its sight
            sight_cos: _,
            patrol,
            home,
            home_yaw,
            gait,
            step_cache: _, // a cache
            input,
            yaw,
            facing,
            senses,
            state,
            reported,
            since,
            rounds,
            journey,
            orders,
            reported_arrival,
            shown: _, // only for clients
        } = self;
        out.word(u64::from(*entity) << 32 | u64::from(*since));
        out.word((*reported as u64) << 8 | (*state as u64) << 1 | u64::from(*reported_arrival));
        out.word(patrol.len() as u64);
        for point in patrol {
            match point {
                PatrolPoint::At(place) => out.floats(place),
                PatrolPoint::Named(name) => out.text(name),
            }
        }
        out.vector(*home);
        out.floats(&[*home_yaw, *yaw, *facing]);
        let mut digest = Digest::default();
        digest.character(&gait.at(space.entities.feet(*entity)));
        out.word(digest.value());
        out.input(input);
        let Senses {
            suspicion,
            target,
            last_known,
            sees,
            unseen_s,
            in_sight,
            catches_after_s,
        } = senses;
        out.floats(&[*suspicion, *unseen_s, *catches_after_s]);
        out.option(*target);
        out.word(u64::from(*sees) << 1 | u64::from(*in_sight));
        out.vector(last_known.unwrap_or(frolic_sim::Vec3::INFINITY));
        let Rounds {
            point,
            waited,
            spots,
            spot,
        } = rounds;
        out.word((*point as u64) << 32 | u64::from(*waited));
        out.word(u64::from(*spots));
        out.vector(spot.unwrap_or(frolic_sim::Vec3::INFINITY));
        journey.words().into_iter().for_each(|word| out.word(word));
        let Orders { goal, look, state } = orders;
        let (to, runs) = goal
            .flatten()
            .unwrap_or((frolic_sim::Vec3::INFINITY, false));
        out.word(u64::from(goal.is_some()) << 1 | u64::from(runs));
        out.vector(to);
        out.vector(look.unwrap_or(frolic_sim::Vec3::INFINITY));
        out.word(state.map_or(u64::MAX, |state| state as u64));
    }
}
