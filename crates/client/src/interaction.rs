//! What the player can interact with. The server decides when interact is pressed
//! (`crates/world/src/characters/interact.rs`); this applies the same rule to entities with a
//! prompt.

use frolic_protocol::Value;
use frolic_sim::Vec3;
use frolic_sim::flight::EYE_HEIGHT_M;

use crate::queries::{Queries, RayQuery};

/// Reach of an arm, including a step.
const REACH_M: f32 = 4.0;
/// Cosine of the largest angle to an entity that the player does not aim at.
const ASIDE_COS: f32 = 0.5;
/// The attribute with the prompt. Empty: the entity cannot be used now.
const PROMPT: &str = "Prompt";
/// Longer prompts are cut.
const PROMPT_CHARS_MAX: usize = 40;

/// An entity to interact with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// The entity.
    pub entity: u32,
    /// What the player reads about it.
    pub prompt: String,
}

impl Queries<'_> {
    /// The entity that the player can interact with while looking in a direction, in
    /// radians: the one looked at, otherwise the nearest in front.
    pub fn interaction(&self, yaw: f32, pitch: f32) -> Option<Interaction> {
        let own = self.own().filter(|own| !own.dead)?;
        let eyes = own.position + Vec3::Y * EYE_HEIGHT_M;
        let level = Vec3::new(-yaw.sin(), 0.0, -yaw.cos());
        let looked_at = self.raycast(&RayQuery {
            origin: eyes,
            direction: level * pitch.cos() + Vec3::Y * pitch.sin(),
            distance_max: REACH_M,
            tag: None,
            ignore: &[],
            characters: false,
        });
        if let Some(offer) = looked_at.and_then(|hit| self.offer(hit.entity)) {
            return Some(offer);
        }
        let near = self.in_radius(eyes, REACH_M).into_iter();
        let offers = near.filter(|id| *id != own.id).filter_map(|id| {
            let offer = self.offer(id)?;
            let way = self.entity(id)?.position() - eyes;
            let aside = Vec3::new(way.x, 0.0, way.z);
            let in_front = aside.dot(level) >= aside.length() * ASIDE_COS;
            in_front.then(|| (way.length_squared(), offer))
        });
        let nearest = offers.min_by(|(a, _), (b, _)| a.total_cmp(b));
        nearest.map(|(_, offer)| offer)
    }

    fn offer(&self, id: u32) -> Option<Interaction> {
        match self.entity(id)?.attribute(PROMPT)? {
            Value::String(text) if !text.is_empty() => Some(Interaction {
                entity: id,
                prompt: text.chars().take(PROMPT_CHARS_MAX).collect(),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Client;
    use crate::client::tests::joined;
    use crate::replica::tests::{packed, receive, snapshot_at};

    const LEVER: u32 = 2;
    const DOOR: u32 = 3;

    /// A player at the origin, whose eyes are 1.55 m above the ground, between two
    /// entities: boxes of 20 cm with these prompts at these places.
    fn between(lever: ([f32; 3], &str), door: ([f32; 3], &str)) -> Client {
        let entity = |id, (at, prompt): ([f32; 3], &str)| {
            format!(
                r#"{{"id":{id},"name":"It","components":{{"Transform":{{"position":{at:?}}},
                    "Shape":{{"type":"box","size":[0.2,0.2,0.2]}},"Attributes":{{"Prompt":"{prompt}"}}}}}}"#
            )
        };
        let scene = format!(
            r#"{{"format":1,"prefabs":{{}},"entities":[{},{}]}}"#,
            entity(LEVER, lever),
            entity(DOOR, door)
        );
        let mut client = joined();
        receive(&mut client, packed(&scene));
        receive(&mut client, snapshot_at(10, Some(0.0), None));
        client.frame(0.0);
        client
    }

    fn offered(client: &Client) -> Option<(u32, String)> {
        let offer = client.queries().interaction(0.0, 0.0)?;
        Some((offer.entity, offer.prompt))
    }

    #[test]
    fn the_nearest_entity_in_front_is_offered() {
        let client = between(([1.0, 1.0, -3.0], "Pull"), ([1.0, 1.0, -2.0], "Open"));
        assert_eq!(offered(&client), Some((DOOR, "Open".to_owned())));
    }

    #[test]
    fn what_is_behind_out_of_reach_or_without_a_prompt_is_not_offered() {
        let client = between(([0.0, 1.0, 3.0], "Pull"), ([0.0, 1.0, -4.5], "Open"));
        assert_eq!(offered(&client), None);
        let client = between(([0.0, 1.0, -2.0], ""), ([2.0, 1.0, -0.5], "Open"));
        assert_eq!(offered(&client), None);
    }

    #[test]
    fn the_entity_looked_at_comes_first() {
        let client = between(([0.0, 1.55, -3.0], "Pull"), ([1.0, 1.0, -2.0], "Open"));
        assert_eq!(offered(&client), Some((LEVER, "Pull".to_owned())));
        let client = between(([0.0, 1.55, -3.0], ""), ([1.0, 1.0, -2.0], "Open"));
        assert_eq!(offered(&client), Some((DOOR, "Open".to_owned())));
    }

    #[test]
    fn a_long_prompt_is_cut() {
        let long = "é".repeat(50);
        let client = between(([0.0, 1.0, -2.0], &long), ([0.0, 1.0, 3.0], ""));
        assert_eq!(offered(&client), Some((LEVER, "é".repeat(40))));
    }
}
