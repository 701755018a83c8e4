//! The parts that a host gets: resolved from the scene, and changed by what the server
//! replicates.

use std::collections::BTreeMap;

use frolic_protocol::entity::EntityKind;
use frolic_protocol::packet;
use frolic_protocol::{PlayerInfo, ServerMessage, Value, quantize};
use frolic_scene::{Color, Pattern, Shape};

use super::tests::{SPAWNED, packed, receive, scene, snapshot_at, thing};
use super::*;
use crate::client::tests::joined;
use crate::{Client, RayQuery, parts_of_scene};

fn parts(scene: &str) -> BTreeMap<String, Part> {
    let parts = parts_of_scene(scene.as_bytes()).unwrap_or_else(|cause| panic!("{cause}"));
    let named = parts.into_iter().map(|part| (part.name.clone(), part));
    named.collect()
}

/// Ids of changed and of removed parts.
fn changes(client: &mut Client) -> (Vec<u32>, Vec<u32>) {
    let changes = client.take_part_changes();
    let changed = changes.changed.iter().map(|part| part.id);
    (changed.collect(), changes.removed)
}

#[test]
fn components_combine_with_those_of_the_prefab_as_on_the_server() {
    let parts = parts(
        r##"{"format":1,"prefabs":{"Lava":{"components":{
            "Shape":{"type":"box","size":[1,1,1]},"Material":{"color":"#ff0000","roughness":0.5},
            "Tag":["kill"],"Attributes":{"Pause":0.6,"Seconds":3}}}},
        "entities":[
        {"id":1,"name":"Still","prefab":"Lava"},
        {"id":2,"name":"Slider","prefab":"Lava","components":{
            "Material":{"color":"#00ff00"},"Body":{"type":"kinematic"},
            "Tag":["moving"],"Attributes":{"Seconds":1.4}}}]}"##,
    );
    let (still, slider) = (&parts["Still"], &parts["Slider"]);
    assert_eq!(
        (still.material.roughness, slider.material.roughness),
        (0.5, 0.8)
    );
    assert_eq!(slider.color, Some(Color([0, 0xff, 0])));
    assert_eq!((still.moves, slider.moves), (false, true));
    assert_eq!(slider.shape, still.shape);
    assert_eq!(
        (&still.tags[..], &slider.tags[..]),
        (
            &["kill".to_owned()][..],
            &["kill".to_owned(), "moving".to_owned()][..]
        )
    );
    let seconds = |part: &Part| part.attributes.get("Seconds").cloned();
    assert_eq!(seconds(still), Some(Value::Number(3.0)));
    assert_eq!(seconds(slider), Some(Value::Number(1.4)));
    assert_eq!(slider.attributes["Pause"], Value::Number(0.6));
}

#[test]
fn scale_is_applied_to_shapes_and_round_shapes_stay_round() {
    let parts = parts(
        r#"{"format":1,"entities":[
        {"id":2,"name":"Child","parent":1,"components":{"Transform":{"position":[1,0,0]},
            "Shape":{"type":"cylinder","radius":1,"height":2}}},
        {"id":1,"name":"Parent","components":{"Transform":{"position":[0,5,0],"scale":[2,1,3]},
            "Shape":{"type":"box","size":[1,1,1]}}},
        {"id":3,"name":"Empty","components":{}}]}"#,
    );
    let (child, parent) = (&parts["Child"], &parts["Parent"]);
    assert_eq!(child.transform.position, [2.0, 5.0, 0.0]);
    assert_eq!(
        parent.shape,
        Some(Shape::Box {
            size: [2.0, 1.0, 3.0]
        })
    );
    let cylinder = Shape::Cylinder {
        radius: 3.0,
        height: 2.0,
    };
    assert_eq!(child.shape, Some(cylinder));
    let empty = &parts["Empty"];
    assert_eq!((&empty.shape, empty.color), (&None, None));
    assert_eq!(empty.material.pattern, Pattern::Plain);
}

#[test]
fn the_first_changes_are_the_whole_scene_and_the_next_only_what_changed() {
    let mut client = joined();
    assert_eq!(client.take_part_changes(), PartChanges::default());
    receive(&mut client, scene());
    assert_eq!(changes(&mut client), (vec![1, 2, 3, 4], vec![]));
    assert_eq!(client.take_part_changes(), PartChanges::default());
    let wall = thing(SPAWNED, 1, 5.0);
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&[wall][..])));
    assert_eq!(changes(&mut client), (vec![SPAWNED], vec![]));
    let part = client.replica().part(SPAWNED).expect("it is in view");
    assert_eq!(
        (&part.name[..], part.transform.position),
        ("Wall", [5.0, 1.0, 0.0])
    );
    // It only moves: the page sees that in each frame.
    let moved = thing(SPAWNED, 1, 6.0);
    receive(&mut client, snapshot_at(13, Some(0.0), Some(&[moved][..])));
    assert_eq!(client.take_part_changes(), PartChanges::default());
    let mut gate = thing(2, 0, 4.0);
    gate.flags |= flags::DESTROYED;
    receive(&mut client, snapshot_at(16, Some(0.0), Some(&[gate][..])));
    assert_eq!(changes(&mut client), (vec![], vec![2, SPAWNED]));
    assert_eq!(
        (client.replica().part(2), client.replica().part(SPAWNED)),
        (None, None)
    );
    // It is in view again.
    receive(
        &mut client,
        snapshot_at(19, Some(0.0), Some(&[thing(2, 0, 4.0), wall][..])),
    );
    assert_eq!(changes(&mut client), (vec![2, SPAWNED], vec![]));
}

#[test]
fn details_change_a_part() {
    let mut client = joined();
    receive(&mut client, scene());
    client.take_part_changes();
    let mut gate = thing(2, 0, 4.0);
    gate.details = 1;
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&[gate][..])));
    // The source of these snapshots doubles everything that has details.
    let changes = client.take_part_changes();
    assert_eq!(changes.changed.len(), 1);
    assert_eq!(
        changes.changed[0].shape,
        Some(Shape::Box { size: [4.0; 3] })
    );
    assert_eq!(
        changes.changed[0],
        client.replica().part(2).expect("it is in view")
    );
}

#[test]
fn a_part_waits_for_its_definition_and_for_the_scene() {
    let made_up = thing(SPAWNED, 2, 3.0);
    let mut guard = thing(SPAWNED + 1, 2, 3.0);
    guard.kind = EntityKind::Character;
    let mut player = thing(SPAWNED + 2, 0, 3.0);
    player.kind = EntityKind::Character;
    let mut client = joined();
    let states = [made_up, guard, player];
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&states[..])));
    assert_eq!(client.take_part_changes(), PartChanges::default());
    receive(&mut client, scene());
    assert_eq!(changes(&mut client), (vec![1, 2, 3, 4], vec![]));
    let definition = ServerMessage::Definition {
        index: 2,
        components: r#"{"Npc":{"sight_distance":5},"Tag":["guard"]}"#.to_owned(),
    };
    receive(&mut client, packet::single(&definition));
    assert_eq!(changes(&mut client), (vec![SPAWNED, SPAWNED + 1], vec![]));
    let part = client.replica().part(SPAWNED + 1).expect("it is in view");
    assert_eq!(
        (&part.name[..], &part.tags[..]),
        ("Entity", &["guard".to_owned()][..])
    );
    assert_eq!(part.npc.map(|npc| npc.sight_distance), Some(5.0));
    assert_eq!(
        client.replica().part(SPAWNED + 2),
        None,
        "players are not parts"
    );
}

/// The host may have it where it was when it changed last.
#[test]
fn a_part_that_goes_out_of_view_is_resolved_again() {
    let mut client = joined();
    receive(&mut client, scene());
    let gate = thing(2, 0, 4.0);
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&[gate][..])));
    client.take_part_changes();
    receive(&mut client, snapshot_at(13, Some(0.0), Some(&[][..])));
    assert_eq!(changes(&mut client), (vec![2], vec![]));
    receive(&mut client, snapshot_at(16, Some(0.0), Some(&[][..])));
    assert_eq!(client.take_part_changes(), PartChanges::default());
}

#[test]
fn a_definition_with_a_value_out_of_range_is_refused() {
    let mut client = joined();
    receive(&mut client, scene());
    client.take_part_changes();
    // Larger than any number of 32 bits.
    let definition = ServerMessage::Definition {
        index: 2,
        components: r#"{"Shape":{"type":"sphere","radius":1e39}}"#.to_owned(),
    };
    receive(&mut client, packet::single(&definition));
    let states = [thing(SPAWNED, 2, 3.0)];
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&states[..])));
    assert_eq!(client.take_part_changes(), PartChanges::default());
    let events = std::iter::from_fn(|| client.take_event());
    let refused = |event: &ClientEvent| matches!(event, ClientEvent::Error { code, .. } if code == "bad_definition");
    assert_eq!(events.filter(refused).count(), 1);
}

#[test]
fn a_removed_entity_is_not_found_before_the_next_frame() {
    let mut client = joined();
    receive(&mut client, scene());
    let states = [thing(SPAWNED, 1, 3.0)];
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&states[..])));
    client.frame(0.0);
    assert!(client.queries().entity(SPAWNED).is_some());
    receive(&mut client, snapshot_at(13, Some(0.0), Some(&[][..])));
    assert!(client.queries().entity(SPAWNED).is_none());
}

#[test]
fn what_a_snapshot_removed_before_the_scene_arrived_is_no_part() {
    let mut gate = thing(2, 0, 4.0);
    gate.flags |= flags::DESTROYED;
    let mut client = joined();
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&[gate][..])));
    receive(&mut client, scene());
    assert_eq!(changes(&mut client), (vec![1, 3, 4], vec![]));
}

/// What a ray along x at this height hits, and after how many centimetres.
fn along_x(client: &Client, y: f32, tag: Option<&str>, ignore: &[u32]) -> Option<(u32, i32)> {
    let hit = client.queries().raycast(&RayQuery {
        origin: Vec3::new(0.0, y, 0.0),
        direction: Vec3::X * 2.0,
        distance_max: 20.0,
        tag,
        ignore,
        characters: true,
    })?;
    Some((hit.entity, (hit.distance * 100.0).round() as i32))
}

#[test]
fn a_ray_hits_solids_exactly_and_characters_of_others() {
    let scene = r#"{"format":1,"entities":[
        {"id":2,"name":"Ball","components":{"Transform":{"position":[4,1,0]},
            "Shape":{"type":"sphere","radius":1},"Tag":["ball"]}},
        {"id":3,"name":"Zone","components":{"Transform":{"position":[2,1,0]},
            "Shape":{"type":"box","size":[1,9,9]},"Trigger":{}}},
        {"id":4,"name":"Wall","components":{"Transform":{"position":[10,1,0]},
            "Shape":{"type":"box","size":[2,9,9]},"Tag":["wall"]}}]}"#;
    let mut client = joined();
    receive(&mut client, packed(scene));
    // Not its bounding box: half a metre up, the ball is 0.866 m wide.
    assert_eq!(along_x(&client, 1.0, None, &[]), Some((2, 300)));
    assert_eq!(along_x(&client, 1.5, None, &[]), Some((2, 313)));
    assert_eq!(along_x(&client, 2.5, None, &[]), Some((4, 900)));
    assert_eq!(along_x(&client, 1.0, None, &[2]), Some((4, 900)));
    assert_eq!(along_x(&client, 1.0, Some("wall"), &[]), Some((4, 900)));
    assert_eq!(along_x(&client, 1.0, Some("door"), &[]), None);
    // Another character comes between; the own one, at the start of the ray, is
    // passed through.
    let mut other = thing(SPAWNED, 0, 2.5);
    other.kind = EntityKind::Character;
    let states = [other];
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&states[..])));
    client.frame(0.0);
    let (entity, distance) = along_x(&client, 1.5, None, &[]).expect("a character is there");
    assert_eq!(entity, SPAWNED);
    assert!((150..250).contains(&distance), "{distance} cm");
    assert_eq!(along_x(&client, 1.5, None, &[SPAWNED]), Some((2, 313)));
    assert_eq!(along_x(&client, 1.5, Some("ball"), &[]), Some((2, 313)));
}

fn ada() -> PlayerInfo {
    PlayerInfo {
        id: "user_1".to_owned(),
        number: 7,
        entity_id: SPAWNED,
        name: "Ada".to_owned(),
        online: true,
        left: false,
        team: None,
        stats: Vec::new(),
        looks: Default::default(),
    }
}

#[test]
fn scripts_query_what_stands_what_moves_and_players() {
    let scene = r##"{"format":1,
        "prefabs":{"Coin":{"components":{"Tag":["coin"],"Material":{"color":"#ffc53d"}}}},
        "entities":[
        {"id":9,"name":"Ground","components":{"Attributes":{"Kind":"grass"}}},
        {"id":2,"name":"Door","components":{"Transform":{"position":[3,0,0]},"Tag":["door"]}}]}"##;
    let mut client = joined();
    receive(&mut client, packed(scene));
    let players = ServerMessage::Presence(vec![ada()]);
    receive(&mut client, packet::single(&players));
    let mut character = thing(SPAWNED, 0, 1.0);
    character.kind = EntityKind::Character;
    character.velocity = quantize::velocity(Vec3::X * 2.0);
    let coin = thing(SPAWNED + 1, 1, 5.0);
    let states = [character, coin];
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&states[..])));
    client.frame(0.0);

    let entity = |id: u32| client.queries().entity(id).expect("it is known");
    assert_eq!(entity(2).position(), Vec3::new(3.0, 0.0, 0.0));
    assert_eq!(entity(SPAWNED + 1).position(), Vec3::new(5.0, 1.0, 0.0));
    assert_eq!(entity(SPAWNED).velocity(), Vec3::X * 2.0);
    let names = [9, 2, SPAWNED, SPAWNED + 1].map(|id| entity(id).name().to_owned());
    assert_eq!(names, ["Ground", "Door", "Ada", "Coin"]);
    assert_eq!(entity(SPAWNED + 1).tags(), ["coin"]);
    assert_eq!(entity(SPAWNED + 1).color(), Some(Color([0xff, 0xc5, 0x3d])));
    let kind = Some(Value::String("grass".to_owned()));
    assert_eq!(entity(9).attribute("Kind"), kind);
    assert_eq!(entity(9).attribute("Other"), None);
    assert!(client.queries().entity(99).is_none());

    assert_eq!(client.queries().find("Door"), [2]);
    assert_eq!(client.queries().find("coin"), [SPAWNED + 1]);
    assert_eq!(client.queries().find("Ada"), [SPAWNED]);
    assert_eq!(client.queries().find("nothing"), [0; 0]);
    assert_eq!(
        client.queries().in_radius(Vec3::new(5.0, 0.0, 0.0), 2.5),
        [2, SPAWNED + 1]
    );
    assert_eq!(client.queries().player_of(SPAWNED), Some(&ada()));
    assert_eq!(
        (client.queries().player_of(9), client.queries().player_of(0)),
        (None, None)
    );
    assert_eq!(client.queries().player(7), Some(&ada()));

    let mut door = thing(2, 0, 3.0);
    door.flags |= flags::DESTROYED;
    receive(&mut client, snapshot_at(20, Some(0.0), Some(&[door][..])));
    client.frame(16.0);
    assert!(client.queries().entity(2).is_none());
    assert!(client.queries().entity(SPAWNED + 1).is_none());
    assert_eq!(client.queries().find("door"), [0; 0]);
}
