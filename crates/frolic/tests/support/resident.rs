//! Players who stay in a world whatever happens to it: they walk, build, remove
//! and save, resume when their connection breaks, and record what was
//! acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Metres per second that a character walks.
pub const WALK_SPEED: f32 = 5.0;

/// A game that builds, takes away, saves and lists; `more` is added to its
/// script.
pub fn game(id: &str, more: &str) -> BTreeMap<String, Vec<u8>> {
    let manifest = format!(
        "[game]\nid = \"{id}\"\nname = \"{id}\"\nversion = \"1.0.0\"\nmax_players = 32\n\
         [world]\npersistent = true\n[capabilities]\nstore = true\n"
    );
    let scene = json!({ "format": 1,
        // High above all players: blocks are counted, not walked on.
        "terrain": { "size": [128, 32, 128], "origin": [-64, 32, -64],
            "generator": { "type": "empty" } },
        "prefabs": { "Block": { "components": { "Shape": { "type": "box", "size": [1, 1, 1] } } } },
        "entities": [
            { "id": 1, "name": "Ground", "components": {
                "Transform": { "position": [0, -0.5, 0] },
                "Shape": { "type": "box", "size": [4000, 1, 4000] } } },
            { "id": 2, "name": "Spawn", "components": {
                "Transform": { "position": [0, 0.1, 0] }, "SpawnPoint": {} } },
        ] });
    let script = format!("{SCRIPT}\n{more}");
    BTreeMap::from([
        ("game.toml".to_owned(), manifest.into_bytes()),
        ("scene.json".to_owned(), scene.to_string().into_bytes()),
        (
            "scripts/ServerScriptService/Main.luau".to_owned(),
            script.into_bytes(),
        ),
    ])
}

/// Tags are numbers that no two requests share; a block's owner is its tag.
const SCRIPT: &str = r#"
Network.OnClientEvent("Build", function(player, tag)
	World.Build("Block", Vector3.new(tag % 97, 40, tag // 97), nil, `tag {tag}`)
	Network.FireClient(player, "Built", tag)
end)
Network.OnClientEvent("Raze", function(player, tag)
	for _, block in World.Structures(`tag {tag}`) do
		block.Destroy()
	end
	World.Saved()
	Network.FireClient(player, "Razed", tag)
end)
-- Every tag has a block of its own in the air.
local function block(tag)
	local resident, index = tag // 1000000, tag % 1000000
	local x, z = index % 128, index // 128 % 32 + 32 * ((resident - 1) % 4)
	return Vector3.new(x - 63.5, 33.5 + index // 4096, z - 63.5)
end
Network.OnClientEvent("Fill", function(player, tag)
	Terrain.Set(block(tag), "brick")
	World.Saved()
	Network.FireClient(player, "Filled", tag)
end)
Network.OnClientEvent("Save", function(player, tag)
	Store.Set(`tag {tag}`, tag)
	Store.Increment("saves")
	Network.FireClient(player, "Saved", tag)
end)
-- Positions of all players, ten times a second: snapshots of a world full of
-- blocks
-- are too large to come often.
task.spawn(function()
	while task.wait(0.1) do
		for _, player in Players.All() do
			local place = player.Character.Position
			Network.FireClient(player, "At", place.X, place.Y, place.Z)
		end
	end
end)
Network.OnClientEvent("Count", function(player, filled)
	local empty = {}
	for _, tag in filled or {} do
		if Terrain.Get(block(tag)) ~= "brick" then
			table.insert(empty, tag)
		end
	end
	local tags, keys, after = {}, 0, nil
	for _, block in World.Structures() do
		table.insert(tags, tonumber(string.sub(block.BuiltBy, 5)))
	end
	local found = {}
	repeat
		local page
		page, after = Store.List("tag ", after)
		for _, key in page do
			table.insert(found, tonumber(string.sub(key, 5)))
		end
	until not after
	Network.FireClient(player, "Counted", tags, found, Store.Get("saves") or 0, empty)
end)
"#;

/// The operations that a resident requested, and the acknowledged ones.
#[derive(Default)]
pub struct Ledger {
    /// Asked for, by what; what was not confirmed may or may not be.
    pub asked: BTreeMap<&'static str, BTreeSet<u64>>,
    /// Acknowledged.
    pub done: BTreeMap<String, BTreeSet<u64>>,
    /// Positions at the loss of a connection and after resuming.
    pub returns: Vec<([f32; 3], [f32; 3])>,
    /// Where it is.
    pub place: Option<[f32; 3]>,
    /// Times that it came in.
    pub arrivals: u32,
    pub process: Option<String>,
}

impl Ledger {
    pub fn asked(&self, what: &str) -> BTreeSet<u64> {
        self.asked.get(what).cloned().unwrap_or_default()
    }

    pub fn done(&self, what: &str) -> BTreeSet<u64> {
        self.done.get(what).cloned().unwrap_or_default()
    }
}

/// One who lives there.
pub struct Resident {
    pub number: u64,
    pub url: String,
    pub session: String,
    pub world: Json,
    pub ledger: Arc<Mutex<Ledger>>,
    /// True when it may go home.
    pub over: watch::Receiver<bool>,
    /// Requests so far.
    pub tags: u64,
}

impl Resident {
    /// Lives until it is over.
    pub async fn live(mut self) {
        frolic_platform::tls::use_ring();
        let http = reqwest::Client::new();
        while !*self.over.borrow() {
            if let Some(joined) = self.join(&http).await {
                self.world = json!({ "world_id": joined["world_id"] });
                let _ = self.stay(&joined).await;
            }
            // The platform may be down, or the port still the dead server's.
            let _ = tokio::time::timeout(Duration::from_millis(150), self.over.changed()).await;
        }
    }

    async fn join(&self, http: &reqwest::Client) -> Option<Json> {
        let request = http.post(format!("{}/join", self.url));
        let request = request.bearer_auth(&self.session).json(&self.world);
        let answer = request.timeout(Duration::from_secs(30)).send().await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        answer.json().await.ok()
    }

    async fn stay(&mut self, joined: &Json) -> Option<()> {
        let address = joined["server_address"].as_str()?;
        let ticket = joined["ticket"].as_str()?;
        let mut request = format!("{address}?ticket={ticket}")
            .into_client_request()
            .ok()?;
        let protocol = frolic_protocol::json::SUBPROTOCOL.parse().ok()?;
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.ok()?;
        let mut entity = None;
        let mut returned = false;
        let (mut seq, mut input) = (0u32, 0u32);
        let mut every = tokio::time::interval(Duration::from_millis(50));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let began = Instant::now();
        loop {
            tokio::select! {
                message = socket.next() => {
                    let Message::Text(text) = message?.ok()? else { continue };
                    let body: Json = serde_json::from_str(&text).ok()?;
                    match body["kind"].as_str() {
                        Some("welcome") => {
                            entity = body["entityId"].as_u64();
                            self.ledger.lock().expect("whole").arrivals += 1;
                        }
                        Some("event") => self.receive(&body, &mut returned),
                        _ => {}
                    }
                }
                _ = every.tick() => {
                    if *self.over.borrow() {
                        return None;
                    }
                    if entity.is_none() {
                        continue;
                    }
                    // Walks on at 60 inputs a second.
                    let inputs: Vec<Json> = (1..=3).map(|n| json!({ "seq": input + n, "up": true })).collect();
                    input += 3;
                    seq += 1;
                    let walk = json!({ "v": 2, "kind": "command", "seq": seq, "feature": "movement",
                        "action": "input_batch", "payload": { "inputs": inputs } });
                    socket.send(Message::Text(walk.to_string().into())).await.ok()?;
                    if began.elapsed() < Duration::from_millis(100) {
                        continue;
                    }
                    let (what, tag) = self.next_request();
                    seq += 1;
                    let fire = json!({ "v": 2, "kind": "command", "seq": seq, "feature": "network",
                        "action": "event", "payload": { "name": what, "args": [tag] } });
                    socket.send(Message::Text(fire.to_string().into())).await.ok()?;
                }
            }
        }
    }

    fn receive(&self, event: &Json, returned: &mut bool) {
        let (Some(name), Some(tag)) = (event["name"].as_str(), event["args"][0].as_f64()) else {
            return;
        };
        let mut ledger = self.ledger.lock().expect("whole");
        if name == "At" {
            let part = |index: usize| event["args"][index].as_f64().unwrap_or_default() as f32;
            let place = [part(0), part(1), part(2)];
            let before = ledger.place.replace(place);
            if !std::mem::replace(returned, true)
                && let Some(before) = before
            {
                ledger.returns.push((before, place));
            }
            return;
        }
        let done = ledger.done.entry(name.to_owned()).or_default();
        done.insert(tag as u64);
    }

    /// Builds mostly; fills a block of the ground; takes away what it knows is there; saves about once a
    /// second, because the store has a rate.
    fn next_request(&mut self) -> (&'static str, u64) {
        self.tags += 1;
        let mut ledger = self.ledger.lock().expect("whole");
        let (what, tag) = match self.tags % 20 {
            0 => ("Save", self.number * 1_000_000 + self.tags),
            3 | 13 => ("Fill", self.number * 1_000_000 + self.tags),
            5 | 10 | 15 => {
                let razing = ledger.asked("Raze");
                let standing = ledger.done("Built");
                match standing.difference(&razing).next() {
                    Some(tag) => ("Raze", *tag),
                    None => ("Build", self.number * 1_000_000 + self.tags),
                }
            }
            _ => ("Build", self.number * 1_000_000 + self.tags),
        };
        ledger.asked.entry(what).or_default().insert(tag);
        (what, tag)
    }
}
