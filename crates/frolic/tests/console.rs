//! Output and errors of a real game server's scripts reach the console of their creator.
// Covers: crates/gameserver, crates/platform, crates/script, crates/protocol

use std::time::{Duration, Instant};

use crate::support::{ADMIN_TOKEN, PATIENCE, Platform, Player, game, next_of_kind};
use serde_json::{Value as Json, json};

const BUSY: &str = r#"
print("the world is up")
local kept = {}
function OnTick()
	for i = 1, 2000 do
		kept[i % 100] = tostring(i)
	end
end
Network.OnClientEvent("Break", function(player)
	local thing = nil
	print(thing.Position)
end)
"#;

/// Asks until the page is as wished.
async fn until(platform: &Platform, token: &str, wished: impl Fn(&Json) -> bool) -> Json {
    let began = Instant::now();
    loop {
        let path = "/api/games/busy/console";
        let request = platform.request(reqwest::Method::GET, path);
        let page = platform.json(request.bearer_auth(token)).await;
        if wished(&page) {
            return page;
        }
        assert!(began.elapsed() < PATIENCE, "{page}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn line<'a>(page: &'a Json, part: &str) -> Option<&'a Json> {
    let lines = page["lines"].as_array()?;
    let says = |line: &&Json| line["message"].as_str().is_some_and(|m| m.contains(part));
    lines.iter().find(says)
}

#[tokio::test]
async fn output_errors_and_costs_of_a_real_world_reach_its_creator() {
    let platform = Platform::start("console");
    let token = platform.login("Creator").await;
    let published = platform.publish(&token, &game("busy", 8, BUSY)).await;
    let mut player = platform.join("busy").await;
    until(&platform, &token, |page| {
        line(page, "the world is up").is_some()
    })
    .await;
    player.fire("Break").await;
    let page = until(&platform, &token, |page| line(page, "index nil").is_some()).await;
    let error = line(&page, "index nil").expect("just seen");
    assert_eq!(error["level"], "error");
    assert_eq!(error["script"], "ServerScriptService/Main.luau");
    assert_eq!(error["line"], 11);
    assert_eq!(error["source_line"], "print(thing.Position)");
    assert!(
        error["stack"]
            .as_str()
            .is_some_and(|stack| stack.contains(":11"))
    );
    assert_eq!(error["revision"], published["revision"]);
    assert_eq!(error["hash"].as_str().map(str::len), Some(64));
    assert_eq!(error["world_id"], player.world_id);

    let main = |page: &Json| -> Option<Json> {
        let scripts = page["worlds"][0]["scripts"].as_array()?;
        let main = |s: &&Json| s["path"] == "ServerScriptService/Main.luau";
        scripts.iter().find(main).cloned()
    };
    let page = until(&platform, &token, |page| {
        main(page).is_some_and(|main| main["errors"] == 1 && main["cpu_ms_per_s"] != 0.0)
    })
    .await;
    let main = main(&page).expect("just seen");
    assert!(main["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    assert_eq!(page["worlds"][0]["running"], true);

    let request = platform.request(reqwest::Method::GET, "/metrics");
    let metrics = request
        .bearer_auth(ADMIN_TOKEN)
        .send()
        .await
        .expect("an answer");
    let metrics = metrics.text().await.expect("a text");
    let named = "script=\"ServerScriptService/Main.luau\"";
    assert!(metrics.contains(named), "{metrics}");
    // The game server's own port is open to players: no names of scripts there.
    let server = &platform.servers().await[0];
    assert_eq!(server["world_id"], player.world_id);
    let open = reqwest::get(format!("{}/metrics", player.http_address())).await;
    let open = open.expect("an answer").text().await.expect("a text");
    assert!(
        open.contains("frolic_tick_seconds_sum") && !open.contains(named),
        "{open}"
    );
}

#[tokio::test]
async fn what_a_client_says_of_its_scripts_reaches_the_creator_as_such() {
    let platform = Platform::start("client-logs");
    let token = platform.login("Creator").await;
    let mut files = game("busy", 8, "print('up')");
    let hud = b"local label = nil\nlabel.Text = 'x'\n".to_vec();
    files.insert("scripts/StarterGui/Hud.luau".to_owned(), hud);
    let published = platform.publish(&token, &files).await;
    let mut player = platform.join("busy").await;
    let error = json!({
        "level": "error", "script": "StarterGui/Hud.luau", "line": 2,
        "message": "attempt to index nil\u{1b}[2J", "stack": "StarterGui/Hud.luau:2", "count": 3,
    });
    let print = json!({ "level": "info", "script": "StarterGui/Hud.luau", "message": "secret" });
    let made_up =
        json!({ "level": "error", "script": "ServerScriptService/Main.luau", "message": "lie" });
    let log = json!({ "browser": "Firefox on Linux", "lines": [print, error, made_up] });
    player.command("scripts", "log", log).await;
    let page = until(&platform, &token, |page| line(page, "lie").is_some()).await;
    let error = line(&page, "index nil").expect("before the other");
    assert_eq!(error["message"], "attempt to index nil [2J");
    assert_eq!(error["source_line"], "label.Text = 'x'");
    assert_eq!(error["client"]["browser"], "Firefox on Linux");
    assert_eq!(
        (&error["client"]["count"], &error["line"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(error["revision"], published["revision"]);
    // A client has no server scripts, so it cannot speak for one.
    assert_eq!(line(&page, "lie").expect("just seen")["script"], "@client");
    // The creator's console was not open, so players' prints were not
    // requested.
    assert!(line(&page, "secret").is_none(), "{page}");
    // Now the console is open, so prints are requested from the client.
    let wanted = next_of_kind(&mut player.socket, "event");
    let mut event = wanted.await;
    while event["action"] != "logs" {
        event = next_of_kind(&mut player.socket, "event").await;
    }
    assert_eq!(event["prints"], true);
    let print =
        json!({ "level": "info", "script": "StarterGui/Hud.luau", "message": "not secret" });
    player
        .command("scripts", "log", json!({ "lines": [print] }))
        .await;
    until(&platform, &token, |page| line(page, "not secret").is_some()).await;
}

#[tokio::test]
async fn prints_of_a_creators_own_client_are_reported_before_the_console_opens() {
    let platform = Platform::start("creator-prints");
    let token = platform.login("Creator").await;
    let mut files = game("busy", 8, "print('up')");
    let hud = b"print('mine')\n".to_vec();
    files.insert("scripts/StarterGui/Hud.luau".to_owned(), hud);
    platform.publish(&token, &files).await;
    let joined = platform
        .join_as(&token, &json!({ "game_id": "busy" }))
        .await;
    let mut creator = Player::connect(joined).await;
    let mut stranger = platform.join("busy").await;
    for (player, text) in [(&mut creator, "mine"), (&mut stranger, "theirs")] {
        let print = json!({ "level": "info", "script": "StarterGui/Hud.luau", "message": text });
        let log = json!({ "lines": [print] });
        player.command("scripts", "log", log).await;
        // The server has taken it before the console is opened.
        while player.next_of_kind("ack").await["seq"] != 1 {}
    }
    let page = until(&platform, &token, |page| line(page, "mine").is_some()).await;
    assert!(line(&page, "theirs").is_none(), "{page}");
}
