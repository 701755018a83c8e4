//! Worlds that stop in order: what a game saves in `PlayerRemoving` and
//! `World.OnClose` is there at the next start.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{ADMIN_TOKEN, Platform, Player, frolic, game, scratch};
use serde_json::{Value as Json, json};

/// As docs/create/store.md has it. Nothing is saved before the player leaves.
const SAVING: &str = r#"
Players.PlayerAdded:Connect(function(player)
	local coins = Store.ForPlayer(player).Get("coins") or 0
	player.leaderstats.Coins = coins
	Network.FireClient(player, "Loaded", coins, Store.Get("closes") or 0)
end)
Network.OnClientEvent("Earn", function(player)
	player.leaderstats.Coins += 1
	Network.FireClient(player, "Coins", player.leaderstats.Coins)
end)
Players.PlayerRemoving:Connect(function(player)
	local store = Store.ForPlayer(player)
	store.Set("left", true)
	store.Set("coins", player.leaderstats.Coins)
	print("saved", player.Name)
end)
World.OnClose(function()
	task.wait(0.2)
	Store.Increment("closes")
end)
"#;

fn saving() -> BTreeMap<String, Vec<u8>> {
    let mut files = game("saving", 8, SAVING);
    let manifest = "[game]\nid = \"saving\"\nname = \"Saving\"\nversion = \"1.0.0\"\n\
                    [world]\nidle_stop_s = 1\n[capabilities]\nstore = true\n";
    files.insert("game.toml".to_owned(), manifest.as_bytes().to_vec());
    files
}

/// A player, the token to come back with, and what the game loaded for them.
async fn play(platform: &Platform, token: &str) -> (Player, String, Vec<Json>) {
    let joined = platform
        .join_as(token, &json!({ "game_id": "saving" }))
        .await;
    let mut player = Player::connect(joined).await;
    let welcome = player.next_of_kind("welcome").await;
    let resume = welcome["resumeToken"].as_str().expect("a token").to_owned();
    let loaded = player.event("Loaded").await;
    (player, resume, loaded)
}

async fn earn(player: &mut Player, coins: u32) {
    for _ in 0..coins {
        player.fire("Earn").await;
        player.event("Coins").await;
    }
}

#[tokio::test]
async fn progress_outlives_a_stop_of_the_platform() {
    let mut platform = Platform::start("closing-serve");
    let creator = platform.login("Creator").await;
    platform.publish(&creator, &saving()).await;
    let ada = platform.login("Ada").await;
    let (mut player, resume, loaded) = play(&platform, &ada).await;
    assert_eq!(loaded, [json!(0), json!(0)]);
    earn(&mut player, 7).await;
    platform.terminate();
    let error = player.next_of_kind("error").await;
    assert_eq!(error["code"], "restarting", "players are notified");

    platform.restart();
    let wish = json!({ "world_id": player.world_id });
    let joined = platform.join_as(&ada, &wish).await;
    let resumed = Player::try_resume(&joined, &resume).await;
    let (mut player, welcome) = resumed.expect("the next process is there");
    assert_eq!(welcome["resumption"], "restarted");
    assert_eq!(player.event("Loaded").await, [json!(7), json!(1)]);
    earn(&mut player, 1).await;

    // The operator stops the world: the same.
    let path = format!("/admin/servers/{}", player.world_id);
    let stop = platform.request(reqwest::Method::DELETE, &path);
    platform.json(stop.bearer_auth(ADMIN_TOKEN)).await;
    player.next_of_kind("error").await;
    let (mut player, _, loaded) = play(&platform, &ada).await;
    assert_eq!(loaded, [json!(8), json!(2)]);

    // All players have left: it stops by itself.
    earn(&mut player, 2).await;
    let stopped = format!("game server stopped world=\"{}\"", player.world_id);
    player.leave().await;
    platform.wait_for(&stopped);
    let (_player, _, loaded) = play(&platform, &ada).await;
    assert_eq!(loaded, [json!(10), json!(3)]);
}

fn write(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (path, bytes) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is ours");
        std::fs::write(path, bytes).expect("the folder is ours");
    }
}

#[tokio::test]
async fn progress_outlives_a_scene_saved_in_frolic_dev() {
    let folder = scratch("closing-dev");
    let mut files = saving();
    write(&folder, &files);
    let mut command = frolic();
    command.arg("dev").arg(&folder);
    command.args(["--port", "0", "--no-open"]);
    let mut platform = Platform::start_as(command, folder.clone());
    let site = platform.url.split("/play/").next().expect("a site");
    platform.url = site.to_owned();
    let ada = platform.login("Ada").await;
    let (mut player, _, _) = play(&platform, &ada).await;
    earn(&mut player, 7).await;
    let scene = files.get_mut("scene.json").expect("there is one");
    *scene = String::from_utf8_lossy(scene)
        .replace("[0,1,0]", "[0,2,0]")
        .into_bytes();
    write(&folder, &files);
    player.next_of_kind("error").await;
    let (_player, _, loaded) = play(&platform, &ada).await;
    assert_eq!(loaded, [json!(7), json!(1)]);
}
