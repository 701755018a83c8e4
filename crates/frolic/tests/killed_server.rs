//! A game server is killed under its players: the platform restarts it, all
//! players resume as the same player in the same place, and messages they sent
//! meanwhile are received exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::support::Platform;
use crate::support::crowd::{ask, open};
use frolic_client::{Client, ClientEvent};
use frolic_protocol::message::Resumption;
use frolic_protocol::{Args, EntityKind, Value};
use frolic_sim::Vec3;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

const PLAYERS: u32 = 200;
/// For everything together; a slow machine needs most of it for the logins.
const PATIENCE: Duration = Duration::from_secs(240);
/// A meadow with a place for each player, so that none pushes another.
const GAME: &str =
    "[game]\nid = \"meadow\"\nname = \"Meadow\"\nmax_players = 250\n\n[simulation]\ntick_hz = 30\n";
const PLACES_PER_SIDE: u32 = 16;
/// Sent by each player while there is no server.
const SAID: [f64; 2] = [1.0, 2.0];
/// Answers with everything that it has received from a player.
const SCRIPT: &str = r#"
local received = {}
Network.OnClientEvent("Say", function(player, number)
	local all = received[player.UserId] or {}
	received[player.UserId] = all
	table.insert(all, number)
	Network.FireClient(player, "Heard", table.unpack(all))
end)
"#;
/// Feet that stand still, and quantized on their way.
const SAME_PLACE_M: f32 = 0.05;

fn meadow() -> BTreeMap<String, Vec<u8>> {
    let ground = json!({ "id": 1, "name": "Ground", "components": {
        "Transform": { "position": [0, -0.5, 0] },
        "Shape": { "type": "box", "size": [200, 1, 200] },
    } });
    let spawn = |n: u32| {
        let (x, z) = (n % PLACES_PER_SIDE, n / PLACES_PER_SIDE);
        json!({ "id": n + 2, "name": format!("Spawn {n}"), "components": {
            "Transform": { "position": [x * 3, 0.1, z * 3] },
            "SpawnPoint": {},
        } })
    };
    let spawns = (0..PLACES_PER_SIDE * PLACES_PER_SIDE).map(spawn);
    let entities: Vec<Json> = std::iter::once(ground).chain(spawns).collect();
    let scene = json!({ "format": 1, "prefabs": {}, "entities": entities });
    BTreeMap::from([
        ("game.toml".to_owned(), GAME.as_bytes().to_vec()),
        ("scene.json".to_owned(), scene.to_string().into_bytes()),
        (
            "scripts/ServerScriptService/Main.luau".to_owned(),
            SCRIPT.as_bytes().to_vec(),
        ),
    ])
}

/// How a player's connection began.
struct Arrival {
    player_id: String,
    entity: u32,
    resumption: Resumption,
}

/// One player of the crowd.
struct Player {
    number: u32,
    client: Client,
    began: Instant,
    arrivals: Vec<Arrival>,
    /// Where they stood last, each time they were in.
    places: Vec<Vec3>,
    has_spoken: bool,
    /// The messages that the server last reported as received.
    received: Vec<f64>,
    /// Sends the player's number at each arrival.
    arrived: mpsc::Sender<u32>,
    /// True when all players are back.
    over: watch::Receiver<bool>,
}

/// A player in the end.
struct Outcome {
    arrivals: Vec<Arrival>,
    places: Vec<Vec3>,
    received: Vec<f64>,
    /// How many characters they saw.
    sees: usize,
}

/// Why a connection ended.
enum End {
    Lost(String),
    Over,
}

impl Player {
    /// Plays, joining again when the connection breaks, until all players are
    /// back and visible.
    async fn play(mut self, url: String, game: String) -> Result<Outcome, String> {
        frolic_platform::tls::use_ring();
        let http = reqwest::Client::new();
        let name = json!({ "username": format!("Player {}", self.number) });
        let login = ask(http.post(format!("{url}/login")).json(&name), PATIENCE).await?;
        let session = login["session_token"].as_str().unwrap_or_default();
        let mut wish = json!({ "game_id": game });
        while self.began.elapsed() < PATIENCE {
            let join = http.post(format!("{url}/join")).bearer_auth(session);
            let joined = ask(join.json(&wish), PATIENCE).await?;
            wish = json!({ "world_id": joined["world_id"] });
            let ticket = joined["ticket"].as_str().map(str::to_owned);
            let address = joined["server_address"].as_str().unwrap_or_default();
            self.client.handshake(ticket, None, None);
            match self.stay(address).await {
                End::Over => {
                    return Ok(Outcome {
                        sees: self.characters(),
                        arrivals: self.arrivals,
                        places: self.places,
                        received: self.received,
                    });
                }
                End::Lost(cause) => {
                    println!("player {}: connection lost: {cause}", self.number);
                    // The port may still be the dead server's.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
            // Sent without a server, after the first connection was lost.
            if self.arrivals.len() == 1 && !std::mem::replace(&mut self.has_spoken, true) {
                for number in SAID {
                    let args = Args(vec![Value::Number(number)]);
                    self.client.fire_server("Say".to_owned(), args);
                }
            }
            self.client.reconnect();
        }
        let (number, count) = (self.number, self.arrivals.len());
        let (sees, received) = (self.characters(), &self.received);
        Err(format!(
            "player {number} came in {count} times, saw {sees}, received {received:?}"
        ))
    }

    fn characters(&self) -> usize {
        let entities = self.client.replica().entities();
        entities
            .filter(|state| state.kind == EntityKind::Character)
            .count()
    }

    async fn stay(&mut self, address: &str) -> End {
        match self.stay_connected(address).await {
            Ok(end) => end,
            Err(cause) => End::Lost(cause),
        }
    }

    async fn stay_connected(&mut self, address: &str) -> Result<End, String> {
        let mut socket = open(address).await?;
        let mut every = tokio::time::interval(Duration::from_millis(100));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Binary(bytes))) => {
                        let now_ms = self.began.elapsed().as_secs_f64() * 1000.0;
                        let taken = self.client.receive(&bytes, now_ms);
                        taken.map_err(|error| error.to_string())?;
                    }
                    Some(Ok(Message::Close(_))) | None => return Err("closed".into()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.to_string()),
                },
                _ = every.tick() => {
                    self.client.advance(self.began.elapsed().as_secs_f64() * 1000.0);
                    while let Some(packet) = self.client.take_packet() {
                        let sent = socket.send(Message::Binary(packet.into())).await;
                        sent.map_err(|error| error.to_string())?;
                    }
                }
            }
            self.note_events().await;
            if self.is_done() {
                return Ok(End::Over);
            }
            if self.began.elapsed() > PATIENCE {
                return Err("out of patience".into());
            }
        }
    }

    async fn note_events(&mut self) {
        while let Some(event) = self.client.take_event() {
            match event {
                ClientEvent::Welcome(welcome) => self.arrivals.push(Arrival {
                    player_id: welcome.player_id,
                    entity: welcome.entity_id,
                    resumption: welcome.resumption,
                }),
                ClientEvent::Remote { args, .. } => self.received = numbers(&args),
                _ => {}
            }
        }
        let Some(own) = self.client.own_state() else {
            return;
        };
        // A player whose position is known has arrived.
        if self.places.len() < self.arrivals.len() {
            self.places.push(own.feet);
            let _ = self.arrived.send(self.number).await;
        } else if let Some(place) = self.places.last_mut() {
            *place = own.feet;
        }
    }

    fn is_done(&self) -> bool {
        *self.over.borrow()
            && self.characters() >= PLAYERS as usize
            && self.received.len() >= SAID.len()
    }
}

fn numbers(args: &Args) -> Vec<f64> {
    let number = |value: &Value| match value {
        Value::Number(number) => *number,
        other => panic!("{other:?}"),
    };
    args.0.iter().map(number).collect()
}

/// Waits until every player has joined once more. None of them ends before.
async fn until_all_joined(
    players: &mut JoinSet<Result<Outcome, String>>,
    arrived: &mut mpsc::Receiver<u32>,
    deadline: tokio::time::Instant,
) {
    let mut missing: BTreeSet<u32> = (0..PLAYERS).collect();
    while !missing.is_empty() {
        let number = tokio::select! {
            number = arrived.recv() => number.expect("players are there"),
            ended = players.join_next() => match ended.expect("players are there") {
                Ok(Err(cause)) => panic!("a player gave up: {cause}"),
                Ok(Ok(_)) => panic!("a player ended before all were back"),
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            },
            () = tokio::time::sleep_until(deadline) => panic!("not in time: players {missing:?}"),
        };
        assert!(missing.remove(&number), "player {number} came in twice");
    }
}

/// Players that the platform has stored so far, each as often as it was.
async fn stored_players(platform: &Platform) -> u32 {
    let request = platform.request(reqwest::Method::GET, "/metrics");
    let answer = request
        .bearer_auth(crate::support::ADMIN_TOKEN)
        .send()
        .await;
    let text = answer.expect("an answer").text().await.expect("a text");
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix("frolic_persisted_players_total "));
    let count: f64 = found.expect("a figure").parse().expect("a number");
    count as u32
}

/// Waits until every arrived player is persisted: one who is not, when a server
/// is killed, would restart at any spawn point.
async fn until_all_stored(platform: &Platform) {
    let before = stored_players(platform).await;
    // One batch may have been in flight already, with every player but the
    // last; the next has all who have arrived.
    let began = Instant::now();
    while stored_players(platform).await <= before + PLAYERS {
        assert!(began.elapsed() < PATIENCE, "players are not persisted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn two_hundred_come_back_after_their_game_server_is_killed() {
    let platform = Platform::start("killed-server");
    let creator = platform.login("Creator").await;
    platform.publish(&creator, &meadow()).await;
    let game = "meadow".to_owned();
    let (arrived, mut arrivals) = mpsc::channel(PLAYERS as usize);
    let (end, over) = watch::channel(false);
    let began = Instant::now();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut players = JoinSet::new();
    for number in 0..PLAYERS {
        let player = Player {
            number,
            client: Client::new(),
            began,
            arrivals: Vec::new(),
            places: Vec::new(),
            has_spoken: false,
            received: Vec::new(),
            arrived: arrived.clone(),
            over: over.clone(),
        };
        players.spawn(player.play(platform.url.clone(), game.clone()));
    }
    until_all_joined(&mut players, &mut arrivals, deadline).await;
    until_all_stored(&platform).await;
    let before = platform.servers().await;
    assert_eq!(before.len(), 1, "all in one world: {before:?}");
    let pid = before[0]["pid"].as_i64().expect("a process") as i32;
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");

    until_all_joined(&mut players, &mut arrivals, deadline).await;
    end.send(true).expect("players are there");
    let (mut ids, mut entities) = (BTreeSet::new(), BTreeSet::new());
    while let Some(player) = players.join_next().await {
        let player = player.expect("no panic");
        let player = player.unwrap_or_else(|why| panic!("{why}"));
        let [before, after] = player.arrivals.as_slice() else {
            panic!("{} arrivals", player.arrivals.len());
        };
        let [stood, stands] = player.places[..] else {
            panic!("{} places", player.places.len());
        };
        let moved = (stands - stood).length();
        assert!(moved < SAME_PLACE_M, "stood at {stood}, came to {stands}");
        assert_eq!(player.received, SAID, "all of it, in order, once");
        assert_eq!(player.sees, PLAYERS as usize, "each player exactly once");
        assert_eq!(before.resumption, Resumption::New);
        assert_eq!(after.resumption, Resumption::Restarted, "by its token");
        assert_eq!(before.player_id, after.player_id);
        ids.insert(after.player_id.clone());
        entities.insert(after.entity);
    }
    assert_eq!(
        (ids.len(), entities.len()),
        (PLAYERS as usize, PLAYERS as usize)
    );
    let after = platform.servers().await;
    assert_eq!(after.len(), 1, "in the same world: {after:?}");
    assert_eq!(after[0]["world_id"], before[0]["world_id"]);
    assert_eq!(after[0]["crashes"], 1);
    assert_ne!(after[0]["pid"], before[0]["pid"]);
}
