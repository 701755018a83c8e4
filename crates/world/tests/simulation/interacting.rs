//! Interact at what is in front: once per press, within reach, not for the dead.

use frolic_protocol::NumberedInput;
use frolic_sim::{Buttons, CharacterInput};
use frolic_world::{World, WorldOptions, input};

use crate::harness::package;

const SCENE: &str = r#"{"format": 1, "prefabs": {}, "entities": [
    {"id": 1, "name": "Ground", "components": {"Shape": {"type": "box", "size": [100, 1, 100]}}},
    {"id": 2, "name": "Spawn", "components": {"Transform": {"position": [0, 2, 0]}, "SpawnPoint": {}}},
    {"id": 3, "name": "Lever", "components": {"Transform": {"position": [0, 1, -3]},
        "Shape": {"type": "box", "size": [0.3, 0.5, 0.3]}, "Script": {"path": "Workspace/Lever.luau"}}},
    {"id": 4, "name": "Far", "components": {"Transform": {"position": [0, 1, 9]},
        "Shape": {"type": "box", "size": [1, 3, 1]}, "Script": {"path": "Workspace/Lever.luau"}}}]}"#;

const LEVER: &str = r#"
    function OnInteract(player)
        print(player.Name .. " at " .. entity.Name)
    end
"#;

/// The broadcasts while a player looks there and presses interact in these
/// ticks.
fn press(yaw: f32, ticks: &[u32]) -> Vec<String> {
    press_at(LEVER, yaw, ticks)
}

fn press_at(lever: &str, yaw: f32, ticks: &[u32]) -> Vec<String> {
    press_in(SCENE, lever, yaw, ticks)
}

fn press_in(scene: &str, lever: &str, yaw: f32, ticks: &[u32]) -> Vec<String> {
    let game = package(scene, &[("scripts/Workspace/Lever.luau", lever)]);
    let mut world = World::load(&game, WorldOptions::default()).expect("it loads");
    let ada = world.apply(input::Join::new("user_1", "Ada"));
    let mut said = Vec::new();
    for seq in 1..=90 {
        let held = if ticks.contains(&seq) {
            Buttons::INTERACT
        } else {
            Buttons::default()
        };
        let input = CharacterInput::new(0.0, 0.0, yaw, 0.0, held);
        world.apply(input::Controls::new(ada, [NumberedInput { seq, input }]));
        world.apply(input::Step);
        said.extend(world.take_logs().into_iter().map(|line| line.message));
    }
    said
}

#[test]
fn the_entity_in_front_receives_one_event_per_press() {
    assert_eq!(
        press(0.0, &[60, 61, 62, 70]),
        ["Ada at Lever", "Ada at Lever"]
    );
}

#[test]
fn entities_behind_or_far_away_receive_no_event() {
    assert_eq!(press(std::f32::consts::PI, &[60, 70]), [] as [&str; 0]);
    assert_eq!(press(0.0, &[]), [] as [&str; 0]);
}

/// A player uses the entity whose prompt they see: the lever has a prompt, and
/// loses it.
#[test]
fn a_prompt_is_sent_to_clients_and_an_empty_one_removes_it() {
    let lever = r#"
        function OnInteract(player)
            print(entity.GetAttribute("Prompt"))
            entity.SetAttribute("Prompt", "")
        end
    "#;
    let said = press_at(lever, 0.0, &[60, 70]);
    assert_eq!(said, ["Use"], "the second press meets nothing");
    let named = format!("entity.SetAttribute('Prompt', 'Pull')\n{lever}");
    assert_eq!(press_at(&named, 0.0, &[60]), ["Pull"]);
}

/// A script that only listens to something else is not in the way of what can
/// be used, however near it is.
#[test]
fn what_has_a_prompt_comes_before_what_has_a_script() {
    let lever = r#"
        if entity.Name == "Near" then
            function OnTriggerEnter() end
        else
            function OnInteract() print(entity.Name) end
        end
    "#;
    let scene = SCENE.replace(
        r#"{"id": 4, "name": "Far", "components": {"Transform": {"position": [0, 1, 9]}"#,
        r#"{"id": 4, "name": "Near", "components": {"Transform": {"position": [0.6, 1, -1]}"#,
    );
    assert_ne!(scene, SCENE);
    assert_eq!(press_in(&scene, lever, 0.0, &[60]), ["Lever"]);
}
