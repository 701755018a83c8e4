//! A game server is killed again and again while its players' words are being
//! stored: whatever they say is done once, however often they have to say it.
// Covers: crates/gameserver, crates/platform, crates/script, crates/client, crates/protocol, crates/world

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::support::Platform;
use crate::support::crowd::{ask, open};
use frolic_client::{Client, ClientEvent};
use frolic_protocol::{Args, Value};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

const PLAYERS: u32 = 24;
const KILLS: u32 = 3;
/// For everything together.
const PATIENCE: Duration = Duration::from_secs(120);
/// Operations of each player between two kills, in quick succession, and
/// altogether. Few enough for the store's rate limit.
const DEEDS_AT_ONCE: u32 = 5;
const DEEDS: u32 = DEEDS_AT_ONCE * (KILLS + 1);
const EVERY: Duration = Duration::from_millis(40);
/// The kill follows within this time after all players have begun.
const KILLED_WITHIN_MS: u64 = 400;
/// Each deposit counts in a digit of its own, so that a lost one and one that was
/// done twice do not make up for each other.
const BASE: u32 = 4;

const GAME: &str = "[game]\nid = \"bank\"\nname = \"Bank\"\nmax_players = 50\n\n\
    [world]\npersistent = true\n\n[simulation]\ntick_hz = 30\n\n[capabilities]\nstore = true\n";
const SCRIPT: &str = r#"
Network.OnClientEvent("Deposit", function(player, coins)
	local ok, problem = pcall(Store.Increment, player.UserId, coins)
	if not ok then
		Network.FireClient(player, "Failed", problem)
	end
end)
Network.OnClientEvent("Build", function(player)
	local ok, problem = pcall(World.Build, "Coin", Vector3.new(0, 5, 0), nil, player)
	if not ok then
		Network.FireClient(player, "Failed", problem)
	end
end)
Network.OnClientEvent("Count", function(player)
	World.Saved()
	Network.FireClient(player, "Counted", Store.Get(player.UserId), #World.Structures(player))
end)
"#;

fn bank() -> BTreeMap<String, Vec<u8>> {
    let scene = json!({
        "format": 1,
        "prefabs": { "Coin": { "components": { "Shape": { "type": "sphere", "radius": 0.3 } } } },
        "entities": [
            { "id": 1, "name": "Ground", "components": {
                "Transform": { "position": [0, -0.5, 0] },
                "Shape": { "type": "box", "size": [90, 1, 90] },
            } },
            { "id": 2, "name": "Spawn", "components": {
                "Transform": { "position": [0, 0.1, 0] },
                "SpawnPoint": {},
            } },
        ],
    });
    BTreeMap::from([
        ("game.toml".to_owned(), GAME.as_bytes().to_vec()),
        ("scene.json".to_owned(), scene.to_string().into_bytes()),
        (
            "scripts/ServerScriptService/Bank.luau".to_owned(),
            SCRIPT.as_bytes().to_vec(),
        ),
    ])
}

/// The operation of a number: every fourth builds, the others pay into the
/// account.
fn deed(number: u32) -> (&'static str, f64) {
    match number % 4 {
        3 => ("Build", 0.0),
        _ => (
            "Deposit",
            f64::from(BASE).powi((number - number / 4) as i32),
        ),
    }
}

/// The expected result of all of them.
fn sum_of_deeds() -> (f64, f64) {
    let deeds = (0..DEEDS).map(deed);
    deeds.fold((0.0, 0.0), |(coins, built), deed| match deed {
        ("Build", _) => (coins, built + 1.0),
        (_, more) => (coins + more, built),
    })
}

/// How often each deposit is in an account.
fn digits(mut coins: f64) -> Vec<u32> {
    let base = f64::from(BASE);
    let mut digits = Vec::new();
    while coins >= 1.0 {
        digits.push((coins % base) as u32);
        coins = (coins / base).floor();
    }
    digits
}

struct Player {
    number: u32,
    client: Client,
    began: Instant,
    /// Deeds that were said.
    said: u32,
    said_at: Instant,
    /// Asked what there is in the end.
    has_asked: bool,
    counted: Option<(f64, f64)>,
    /// Sends the player's number at each arrival.
    arrived: mpsc::Sender<u32>,
    /// How often all players were connected together; one more than the kills
    /// ends the test.
    round: watch::Receiver<u32>,
}

impl Player {
    /// Plays, joining again when the connection breaks, until it has its
    /// counts.
    async fn play(mut self, url: String) -> Result<(f64, f64), String> {
        frolic_platform::tls::use_ring();
        let http = reqwest::Client::new();
        let name = json!({ "username": format!("Player {}", self.number) });
        let login = ask(http.post(format!("{url}/login")).json(&name), PATIENCE).await?;
        let session = login["session_token"].as_str().unwrap_or_default();
        let mut wish = json!({ "game_id": "bank" });
        while self.began.elapsed() < PATIENCE {
            let join = http.post(format!("{url}/join")).bearer_auth(session);
            let joined = ask(join.json(&wish), PATIENCE).await?;
            wish = json!({ "world_id": joined["world_id"] });
            let ticket = joined["ticket"].as_str().map(str::to_owned);
            let address = joined["server_address"].as_str().unwrap_or_default();
            self.client.handshake(ticket, None, None);
            let lost = self.stay(address).await;
            if let Some(counted) = self.counted {
                return Ok(counted);
            }
            if let Err(cause) = lost
                && cause.starts_with("failed")
            {
                return Err(cause);
            }
            self.client.reconnect();
            // The port may still be the dead server's.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (number, said) = (self.number, self.said);
        Err(format!("player {number} said {said} and got no account"))
    }

    async fn stay(&mut self, address: &str) -> Result<(), String> {
        let mut socket = open(address).await?;
        let mut every = tokio::time::interval(EVERY / 2);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.counted.is_none() && self.began.elapsed() < PATIENCE {
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
                    self.speak();
                    self.client.advance(self.began.elapsed().as_secs_f64() * 1000.0);
                    while let Some(packet) = self.client.take_packet() {
                        let sent = socket.send(Message::Binary(packet.into())).await;
                        sent.map_err(|error| error.to_string())?;
                    }
                }
            }
            self.note_events().await?;
        }
        Ok(())
    }

    /// Sends the next operation when it is due, whether or not it is connected.
    fn speak(&mut self) {
        let round = *self.round.borrow();
        if self.said < round * DEEDS_AT_ONCE && self.said_at.elapsed() > EVERY {
            let (name, coins) = deed(self.said);
            let args = Args(vec![Value::Number(coins)]);
            self.client.fire_server(name.to_owned(), args);
            (self.said, self.said_at) = (self.said + 1, Instant::now());
        }
        if self.said == DEEDS && !self.has_asked {
            self.client.fire_server("Count".to_owned(), Args::default());
            self.has_asked = true;
        }
    }

    async fn note_events(&mut self) -> Result<(), String> {
        while let Some(event) = self.client.take_event() {
            match event {
                ClientEvent::Welcome(_) => {
                    let _ = self.arrived.send(self.number).await;
                }
                ClientEvent::Remote { name, args } if name == "Counted" => {
                    let [Value::Number(coins), Value::Number(built)] = args.0[..] else {
                        return Err(format!("failed: {args:?}"));
                    };
                    self.counted = Some((coins, built));
                }
                ClientEvent::Remote { name, args } if name == "Failed" => {
                    return Err(format!("failed: {args:?}"));
                }
                ClientEvent::Error { code, message } if code == "messages_lost" => {
                    return Err(format!("failed: {message}"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Waits until every player has joined since the last time.
async fn until_all_joined(arrived: &mut mpsc::Receiver<u32>, deadline: tokio::time::Instant) {
    let mut seen = BTreeSet::new();
    while seen.len() < PLAYERS as usize {
        let waited = tokio::time::timeout_at(deadline, arrived.recv()).await;
        let count = seen.len();
        let number = waited.unwrap_or_else(|_| panic!("only {count} of {PLAYERS} came in"));
        seen.insert(number.expect("players are there"));
    }
}

#[tokio::test]
async fn what_players_do_is_done_once_however_often_their_game_server_is_killed() {
    let platform = Platform::start("killed-store");
    let creator = platform.login("Creator").await;
    platform.publish(&creator, &bank()).await;
    let (arrived, mut arrivals) = mpsc::channel(PLAYERS as usize);
    let (begin, round) = watch::channel(0);
    let began = Instant::now();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut players = JoinSet::new();
    for number in 0..PLAYERS {
        let player = Player {
            number,
            client: Client::new(),
            began,
            said: 0,
            said_at: began,
            has_asked: false,
            counted: None,
            arrived: arrived.clone(),
            round: round.clone(),
        };
        players.spawn(player.play(platform.url.clone()));
    }
    for round in 1..=KILLS {
        until_all_joined(&mut arrivals, deadline).await;
        begin.send(round).expect("players are there");
        // Never the same one, and right at any.
        let moment = u64::from(began.elapsed().subsec_micros()) % KILLED_WITHIN_MS;
        tokio::time::sleep(Duration::from_millis(moment)).await;
        let servers = platform.servers().await;
        let pid = servers[0]["pid"].as_i64().expect("a process") as i32;
        let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
    }
    until_all_joined(&mut arrivals, deadline).await;
    begin.send(KILLS + 1).expect("players are there");
    let (coins, built) = sum_of_deeds();
    while let Some(player) = players.join_next().await {
        let player = player.expect("no panic");
        let (has, stands) = player.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(digits(has), digits(coins), "each deposit once");
        assert_eq!(stands, built, "each of them once");
    }
    let after = platform.servers().await;
    assert_eq!(after[0]["crashes"], KILLS);
}
