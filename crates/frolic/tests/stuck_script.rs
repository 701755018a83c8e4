//! A script that nothing inside the VM can stop ends its world's process; the
//! platform starts the world again without that script.
// Covers: crates/gameserver, crates/platform, crates/script

use std::collections::BTreeMap;

use crate::support::{Platform, Player};
use serde_json::{Value as Json, json};

/// Thousands of comparisons of long strings without a call or a loop between
/// them: not one point at which Luau could be interrupted.
fn without_a_safe_point(first: &str) -> String {
    let mut source = format!("{first}\nlocal a = string.rep('x', 262144)\n");
    source += &"a = a .. a\n".repeat(5);
    source += "local b, n = a .. 'y', false\n";
    source += &"n = a < b\n".repeat(25_000);
    source
}

fn game(script: &str) -> BTreeMap<String, Vec<u8>> {
    let path = "scripts/ServerScriptService/Stuck.luau";
    let honest = "task.spawn(function() while true do task.wait(0.2) print('honest') end end)";
    let mut files = crate::support::game("stuck", 8, honest);
    files.insert(path.to_owned(), script.as_bytes().to_vec());
    files
}

/// Publishes the game and joins it.
async fn play(platform: &Platform, script: &str) -> Player {
    let creator = platform.login("Creator").await;
    platform.publish(&creator, &game(script)).await;
    platform.join("stuck").await
}

/// Stands somewhere and builds something, and then hangs the world.
const BEFORE_THE_END: &str = r#"
Network.OnClientEvent("Go", function(player)
	player.Teleport(Vector3.new(50, 0.1, -30))
	task.wait(1.5)
	Network.FireClient(player, "Gone")
end)
Network.OnClientEvent("Where", function(player)
	local place = player.Character.Position
	Network.FireClient(player, "Here", math.round(place.X), math.round(place.Z))
end)
"#;

#[tokio::test]
async fn a_world_that_was_hung_goes_on_from_its_checkpoint() {
    let platform = Platform::start("stuck-kept");
    let creator = platform.login("Creator").await;
    let mut files = crate::support::resident::game("stuck", BEFORE_THE_END);
    let hang = format!(
        "Network.OnClientEvent(\"Hang\", function()\n{}\nend)",
        without_a_safe_point("")
    );
    let path = "scripts/ServerScriptService/Stuck.luau";
    files.insert(path.to_owned(), hang.into_bytes());
    platform.publish(&creator, &files).await;
    let joined = platform
        .join_as(&creator, &json!({ "game_id": "stuck" }))
        .await;
    let mut player = Player::connect(joined).await;
    player.fire_with("Build", json!([7])).await;
    player.event("Built").await;
    player.fire("Go").await;
    player.event("Gone").await;
    player.fire("Hang").await;
    let warning = platform.wait_for("starts again without it");
    assert!(
        warning.contains("ServerScriptService/Stuck.luau"),
        "{warning}"
    );

    let world = json!({ "world_id": player.world_id });
    let joined = platform.join_as(&creator, &world).await;
    let mut player = Player::connect(joined).await;
    player.fire("Where").await;
    assert_eq!(player.event("Here").await, [json!(50), json!(-30)]);
    player.fire("Count").await;
    assert_eq!(player.event("Counted").await[0], json!([7]));
    // The script that hung it does not run any more.
    player.fire("Hang").await;
    player.fire("Where").await;
    player.event("Here").await;
    assert_eq!(game_server(&platform).await["crashes"], 1);
}

async fn game_server(platform: &Platform) -> Json {
    platform.servers().await.remove(0)
}

/// The process of a world has given up its rights, whatever runs in it.
fn confined(server: &Json) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server["pid"]));
    let status = status.expect("it runs");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert!(status.contains("Seccomp:\t2"), "{status}");
}

#[tokio::test]
async fn a_world_that_hangs_while_it_starts_starts_without_the_culprit() {
    let platform = Platform::start("stuck-at-start");
    let _player = play(&platform, &without_a_safe_point("")).await;
    platform.wait_for("honest");
    let server = game_server(&platform).await;
    confined(&server);
    assert_eq!(
        (&server["state"], &server["crashes"]),
        (&json!("ready"), &json!(1))
    );
}

#[tokio::test]
async fn a_world_that_hangs_later_is_restarted_and_its_creator_notified() {
    let platform = Platform::start("stuck-later");
    let _player = play(&platform, &without_a_safe_point("task.wait(0.5)")).await;
    platform.wait_for("honest");
    let warning = platform.wait_for("starts again without it");
    assert!(
        warning.contains("ServerScriptService/Stuck.luau"),
        "{warning}"
    );
    let warning = platform.wait_for("disabled: it could not be stopped");
    assert!(
        warning.contains("ServerScriptService/Stuck.luau"),
        "{warning}"
    );
    platform.wait_for("honest");
    assert_eq!(game_server(&platform).await["crashes"], 1);
}
