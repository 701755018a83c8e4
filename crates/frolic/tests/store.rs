//! Two game servers that count on the same key, and a platform that dies
//! under them.
// Covers: crates/gameserver, crates/platform, crates/script

use crate::support::{Platform, game};
use serde_json::json;

/// Waits for the other server, increments concurrently with it, and reports the
/// total once both have finished.
const COUNTING: &str = r#"
Store.Increment("here")
while Store.Get("here") < 2 do
	task.wait(0.2)
end
local finished = 0
for thread = 1, 3 do
	task.spawn(function()
		for i = 1, 10 do
			Store.Update("n", function(old) return (old or 0) + 1 end)
			Store.Increment("n", 1)
			Store.Ranking("points").Increment("team", 1)
		end
		finished += 1
	end)
end
while finished < 3 do
	task.wait()
end
Store.Increment("done")
while Store.Get("done") < 2 do
	task.wait(0.2)
end
local n, _, team = Store.Get("n"), Store.Ranking("points").RankOf("team")
task.spawn(function()
	while true do
		Network.Broadcast("Total", n, team)
		task.wait(0.2)
	end
end)
Network.OnClientEvent("Save", function()
	local began = World.Time
	local ok, text = pcall(Store.Set, "late", 1)
	Network.Broadcast("Saved", ok, text, World.Time - began)
end)
"#;

#[tokio::test]
async fn two_servers_count_exactly_and_outlive_their_platform() {
    let mut platform = Platform::start("store-two-servers");
    let token = platform.login("Creator").await;
    platform
        .publish(&token, &game("counting", 1, COUNTING))
        .await;
    let mut one = platform.join("counting").await;
    let mut other = platform.join("counting").await;
    assert_ne!(
        one.world_id, other.world_id,
        "each has a world of their own"
    );
    let pids: Vec<_> = platform.servers().await;
    assert_eq!(pids.len(), 2);
    assert_ne!(pids[0]["pid"], pids[1]["pid"], "and a process");

    let expected = [json!(120), json!(60)];
    assert_eq!(one.event("Total").await, expected);
    assert_eq!(other.event("Total").await, expected);

    one.fire("Save").await;
    let saved = one.event("Saved").await;
    assert_eq!(saved[0], json!(true), "{saved:?}");

    // Without the platform: an error in time, and a world that goes on.
    platform.kill().await;
    one.fire("Save").await;
    one.event("Total").await;
    let saved = one.event("Saved").await;
    assert_eq!(saved[0], json!(false));
    let text = saved[1].as_str().expect("why");
    assert!(text.contains("cannot be reached"), "{text}");
    assert!(saved[2].as_f64().expect("seconds") < 11.0, "{saved:?}");
}
