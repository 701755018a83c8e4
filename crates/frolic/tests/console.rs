//! What a real game server's scripts say reaches their creator (SCR-18, BEY-3).

use std::time::{Duration, Instant};

use crate::support::{ADMIN_TOKEN, PATIENCE, Platform, game};
use serde_json::Value as Json;

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
async fn scr_18_lines_errors_and_costs_of_a_real_world_reach_its_creator() {
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
        open.contains("frolic_tick_ms_p99") && !open.contains(named),
        "{open}"
    );
}
