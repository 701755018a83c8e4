//! Server and client resolve every sample scene in the same way: prefabs, parents,
//! transforms, scale, tags and attributes.

use frolic_client::Part;
use frolic_protocol::Value;
use frolic_sim::{Rotation, Vec3};
use frolic_world::{EntityRecord, InterestPolicy, WorldOptions};

use crate::harness::{Run, game};
use crate::network::Quality;

const GAMES: [&str; 4] = ["arena", "obby", "sandbox", "stealth"];
/// Replicated positions are rounded.
const ROUNDING_M: f32 = 0.01;

/// A run of a sample game with one player who sees everything.
fn played(name: &str) -> (Run, usize) {
    let options = WorldOptions {
        interest: Some(InterestPolicy::default()),
        ..WorldOptions::default()
    };
    let mut run = Run::with(&game(name), options, 1, Quality::GOOD);
    let player = run.join("Ada");
    run.for_ms(1_500);
    (run, player)
}

fn compare(part: &Part, record: &EntityRecord, context: &str) {
    assert_eq!(part.name, record.name, "{context}");
    assert_eq!(part.tags, record.tags, "{context}");
    assert_eq!(part.attributes, record.attributes, "{context}");
    assert_eq!(part.transform.scale, record.scale.to_array(), "{context}");
    let components = &record.components;
    let shape = components.shape.as_ref();
    let scaled = shape.map(|shape| shape.scaled(record.scale.to_array()));
    assert_eq!(part.shape, scaled, "{context}");
    assert_eq!(part.light, components.light, "{context}");
    assert_eq!(part.trigger, components.trigger.is_some(), "{context}");
    assert_eq!(
        part.spawn_point,
        components.spawn_point.is_some(),
        "{context}"
    );
    let looks = &record.looks;
    let declared = components.material.clone().unwrap_or_default();
    let color = looks.color.unwrap_or(declared.color.0);
    assert_eq!(part.material.color.0, color, "{context}");
    let opacity = looks.opacity.unwrap_or(declared.opacity);
    assert_eq!(part.material.opacity, opacity, "{context}");
    assert_eq!(part.material.pattern, declared.pattern, "{context}");
    if !record.rests {
        return;
    }
    let off = Vec3::from(part.transform.position) - record.position;
    assert!(
        off.length() < ROUNDING_M,
        "{context} is {} m off",
        off.length()
    );
    let turn = Rotation::from_array(part.transform.rotation);
    let same = turn.dot(record.rotation).abs();
    assert!(same > 0.9999, "{context} is turned differently: {same}");
}

#[test]
fn clients_resolve_every_sample_scene_as_the_server_does() {
    for name in GAMES {
        let (run, player) = played(name);
        let (world, client) = (run.world(), run.client(player));
        let mut compared = 0;
        for entity in &game(name).scene.entities {
            let context = format!("{name}: {} ({})", entity.name, entity.id);
            let record = world.entity(entity.id).filter(|record| !record.destroyed);
            match (client.replica().part(entity.id), record) {
                (Some(part), Some(record)) => compare(&part, &record, &context),
                (part, record) => {
                    assert_eq!(part.is_some(), record.is_some(), "{context}");
                    continue;
                }
            }
            assert_eq!(
                client.replica().bounds_of(entity.id).is_some(),
                world.bounds_of(entity.id).is_some(),
                "{context}"
            );
            compared += 1;
        }
        assert!(compared > 0, "{name} has no entities");
    }
}

/// Where an entity and its prefab both have them, tags and attributes combine.
#[test]
fn client_scripts_see_the_tags_and_attributes_of_prefabs() {
    let (run, player) = played("obby");
    let part = |name: &str| {
        let scene = game("obby").scene;
        let entity = scene.entities.iter().find(|entity| entity.name == name);
        let id = entity.unwrap_or_else(|| panic!("no {name}")).id;
        run.client(player)
            .replica()
            .part(id)
            .expect("it is in view")
    };
    assert_eq!(part("KillSlider1").tags, ["kill", "moving"]);
    let platform = part("MovingPlatform2");
    assert_eq!(platform.attributes["Pause"], Value::Number(0.6));
    assert_eq!(platform.attributes["Seconds"], Value::Number(3.2));
}
