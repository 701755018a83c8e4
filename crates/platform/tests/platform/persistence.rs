//! Persistence of worlds: operations, checkpoints, positions of players, characters, and protection
//! against writes of replaced processes.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use frolic_fleet_api::ops::{LoggedOp, Structure, WorldOp};
use frolic_fleet_api::persist::{
    Checkpoint, PersistBatch, PersistReply, PlayerState, Saved, SavedPlayer, Section,
};
use frolic_fleet_api::process::WorldBoot;
use frolic_fleet_api::store::{HandledCount, StoreAction, StoreBatch, StoreKey, StoreRequest};
use frolic_fleet_api::ticket::TicketClaims;
use frolic_platform::api::{JoinResponse, LoginResponse};
use frolic_platform::fleet::LaunchRequest;
use frolic_platform::ids;
use reqwest::{Method, Response, StatusCode};
use serde_json::json;
use sqlx::{AnyPool, Row};

use crate::support::{TestPlatform, database, game_files, picture};

/// A game whose worlds are persistent.
pub fn kept_game(id: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = game_files(id, 8);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("[world]\n", "[world]\npersistent = true\n");
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    files
}

/// A process of a world as seen by `/internal`.
pub struct Process<'a> {
    platform: &'a TestPlatform,
    pub world_id: String,
    token: String,
    pub epoch: u64,
}

impl<'a> Process<'a> {
    /// The process that was launched last.
    pub async fn newest(platform: &'a TestPlatform) -> Self {
        let launch = platform.stage.launches.borrow().last().cloned().unwrap();
        Self::of(platform, &launch).await
    }

    /// The process of this launch.
    pub async fn of(platform: &'a TestPlatform, launch: &LaunchRequest) -> Self {
        let mut process = Self {
            platform,
            world_id: launch.world_id.clone(),
            token: launch.world_token.clone(),
            epoch: 0,
        };
        let boot: WorldBoot = process
            .ask(Method::GET, "", &())
            .await
            .json()
            .await
            .unwrap();
        process.epoch = boot.epoch;
        process
    }

    pub async fn ask(&self, method: Method, path: &str, body: &impl serde::Serialize) -> Response {
        let path = format!("/internal/worlds/{}{path}", self.world_id);
        let request = self.platform.request(method, &path).json(body);
        request.bearer_auth(&self.token).send().await.unwrap()
    }

    pub async fn keep(&self, batch: &PersistBatch) -> Result<u64, (u16, serde_json::Value)> {
        let answer = self.ask(Method::POST, "/keep", batch).await;
        let status = answer.status();
        if status == StatusCode::OK {
            let reply: PersistReply = answer.json().await.unwrap();
            return Ok(reply.seq);
        }
        Err((status.as_u16(), answer.json().await.unwrap()))
    }

    pub async fn saved(&self) -> Saved {
        let answer = self.ask(Method::GET, "/saved", &()).await;
        answer.json().await.unwrap()
    }

    pub fn batch(&self, ops: impl IntoIterator<Item = LoggedOp>) -> PersistBatch {
        PersistBatch {
            epoch: self.epoch,
            ops: ops.into_iter().collect(),
            ..PersistBatch::default()
        }
    }
}

pub fn built(seq: u64) -> LoggedOp {
    LoggedOp {
        seq,
        by: Some("client_1".into()),
        op: WorldOp::Build(Structure {
            number: seq,
            prefab: "Wall".into(),
            position: [seq as f32 * 0.1, 1.0 / 3.0, -5.0],
            rotation: [0.0, 0.0, 0.0, 1.0],
            owner: None,
        }),
    }
}

fn player(player_id: &str, x: f32) -> SavedPlayer {
    SavedPlayer {
        player_id: player_id.to_owned(),
        state: PlayerState {
            feet: [x, 1.5, 2.0],
            health: [80.0, 100.0],
            ..PlayerState::default()
        },
        online: true,
        session: "nonce".into(),
        received: 7,
        sent: 0,
        undelivered: vec![1, 0, 255],
    }
}

async fn claims_of(joined: &JoinResponse) -> TicketClaims {
    let (body, _) = joined.ticket.split_once('.').unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).unwrap()).unwrap()
}

async fn join_as(
    platform: &TestPlatform,
    guest: &LoginResponse,
    body: serde_json::Value,
) -> JoinResponse {
    let answer = platform.try_join(&guest.session_token, body).await;
    assert_eq!(answer.status(), StatusCode::OK);
    answer.json().await.unwrap()
}

#[tokio::test]
async fn stored_batches_are_loaded_and_not_applied_twice() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&kept_game("sandbox")).await;
    platform.join(json!({ "game_id": "sandbox" })).await;
    let process = Process::newest(&platform).await;
    assert_eq!(process.saved().await, Saved::default());

    let mut batch = process.batch((1..=5).map(built));
    batch.players.push(player("client_1", 3.25));
    assert_eq!(process.keep(&batch).await, Ok(5));
    assert_eq!(
        process.keep(&batch).await,
        Ok(5),
        "a batch is repeated after a lost response"
    );
    let saved = process.saved().await;
    assert_eq!(saved.world.ops, (1..=5).map(built).collect::<Vec<_>>());
    assert_eq!(saved.players, [player("client_1", 3.25)]);
    // A batch of which half is stored already.
    assert_eq!(
        process.keep(&process.batch((4..=7).map(built))).await,
        Ok(7)
    );
    // A gap in the operations is refused.
    let gap = process.keep(&process.batch([built(9)])).await;
    assert_eq!(gap.unwrap_err().0, 400);
    let gap = process.keep(&process.batch([built(8), built(10)])).await;
    assert_eq!(gap.unwrap_err().0, 400);

    // A checkpoint replaces the operations up to its number, and no others.
    let section = |bytes: &[u8]| Section {
        version: 1,
        bytes: bytes.to_vec(),
    };
    let mut batch = process.batch([built(8)]);
    batch.checkpoint = Some(Checkpoint {
        seq: 7,
        sections: BTreeMap::from([
            ("structures".to_owned(), section(b"\0\xff walls")),
            ("terrain/0,0,0".to_owned(), section(b"hills")),
        ]),
    });
    assert_eq!(process.keep(&batch).await, Ok(8));
    let mut batch = process.batch([built(9)]);
    batch.checkpoint = Some(Checkpoint {
        seq: 8,
        sections: BTreeMap::from([("terrain/0,0,0".to_owned(), section(b""))]),
    });
    batch.forget.push("client_1".into());
    assert_eq!(process.keep(&batch).await, Ok(9));
    let saved = process.saved().await;
    assert_eq!(saved.world.checkpoint.seq, 8);
    let sections: Vec<_> = saved.world.checkpoint.sections.into_iter().collect();
    assert_eq!(
        sections,
        [("structures".to_owned(), section(b"\0\xff walls"))]
    );
    assert_eq!(saved.world.ops, [built(9)]);
    assert_eq!(saved.players, []);
    let mut ahead = process.batch([]);
    ahead.checkpoint = Some(Checkpoint {
        seq: 10,
        ..Checkpoint::default()
    });
    assert_eq!(process.keep(&ahead).await.unwrap_err().0, 400);
}

#[tokio::test]
async fn a_process_that_was_replaced_stores_nothing() {
    let platform = TestPlatform::start_with(|settings| {
        settings.fleet.backoff_first = std::time::Duration::from_millis(10);
    })
    .await;
    platform.publish_sample(&kept_game("sandbox")).await;
    let joined = platform.join(json!({ "game_id": "sandbox" })).await;
    let old = Process::newest(&platform).await;
    assert_eq!(old.keep(&old.batch([built(1)])).await, Ok(1));
    platform.stage.crash_all();
    platform.stage.wait_for_launches(2).await;
    platform.join(json!({ "world_id": joined.world_id })).await;
    let new = Process::newest(&platform).await;
    assert_eq!((old.epoch, new.epoch), (1, 2));

    // Its token is invalid, and its epoch is refused even with a valid token.
    assert_eq!(old.keep(&old.batch([built(2)])).await.unwrap_err().0, 401);
    let mut batch = new.batch([built(2)]);
    batch.epoch = old.epoch;
    let (status, body) = new.keep(&batch).await.unwrap_err();
    assert_eq!((status, &body["error"]["code"]), (409, &json!("replaced")));
    assert_eq!(body["error"]["details"]["epoch"], 2, "{body}");
    assert_eq!(new.saved().await.world.ops, [built(1)]);
    assert_eq!(new.keep(&new.batch([built(2)])).await, Ok(2));
}

/// A data store write of a process that had received `received` messages of client_1.
fn write(process: &Process<'_>, name: &str, session: &str, received: u32) -> StoreBatch {
    let at = StoreKey {
        player: None,
        key: "writes".into(),
    };
    StoreBatch {
        batch: name.to_owned(),
        epoch: process.epoch,
        requests: vec![StoreRequest {
            id: 1,
            action: StoreAction::Increment { at, by: 1.0 },
        }],
        handled: vec![HandledCount {
            player_id: "client_1".into(),
            session: session.to_owned(),
            received,
            sent: 0,
            undelivered: Vec::new(),
            calls: Vec::new(),
        }],
        ..StoreBatch::default()
    }
}

#[tokio::test]
async fn received_counts_are_stored_with_data_store_writes() {
    let platform = TestPlatform::start().await;
    platform.join(json!({ "game_id": "sample" })).await;
    let process = Process::newest(&platform).await;
    let keep = async |received: u32| {
        let mut batch = process.batch([]);
        batch.players.push(SavedPlayer {
            received,
            undelivered: Vec::new(),
            ..player("client_1", 3.0)
        });
        process.keep(&batch).await.unwrap();
    };
    let store = async |batch: StoreBatch| {
        let answer = process.ask(Method::POST, "/store", &batch).await;
        (answer.status(), answer.text().await.unwrap())
    };
    let stored = async || {
        let players = process.saved().await.players;
        players.first().map(|player| player.received)
    };
    // A count alone does not create a player.
    assert_eq!(
        store(write(&process, "a", "nonce", 3)).await.0,
        StatusCode::OK
    );
    assert_eq!(stored().await, None);
    keep(7).await;
    store(write(&process, "b", "nonce", 9)).await;
    assert_eq!(stored().await, Some(9));
    keep(8).await;
    assert_eq!(stored().await, Some(9), "an older checkpoint arrived later");
    store(write(&process, "c", "nonce", 4)).await;
    assert_eq!(stored().await, Some(9));
    store(write(&process, "d", "another", 30)).await;
    assert_eq!(stored().await, Some(9), "a count of an ended session");
    keep(12).await;
    assert_eq!(stored().await, Some(12));

    let late = StoreBatch {
        epoch: process.epoch - 1,
        ..write(&process, "e", "nonce", 20)
    };
    let (status, text) = store(late).await;
    assert_eq!(status, StatusCode::CONFLICT, "{text}");
    assert!(text.contains("replaced"), "{text}");
    assert_eq!(stored().await, Some(12));
    let (_, text) = store(write(&process, "f", "nonce", 12)).await;
    assert!(
        text.contains("[5]"),
        "the refused write is not applied: {text}"
    );
    let mut too_long = write(&process, "g", "nonce", 13);
    too_long.handled[0].player_id = "x".repeat(200);
    assert_eq!(store(too_long).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn undelivered_messages_match_the_received_count() {
    let platform = TestPlatform::start().await;
    platform.join(json!({ "game_id": "sample" })).await;
    let process = Process::newest(&platform).await;
    let keep = async |session: &str, (received, sent): (u32, u32), messages: u8| {
        let mut batch = process.batch([]);
        batch.players.push(SavedPlayer {
            session: session.into(),
            received,
            sent,
            undelivered: vec![messages],
            ..player("client_1", 3.0)
        });
        process.keep(&batch).await.unwrap();
    };
    let store = async |name: &str, (received, sent): (u32, u32), messages: &[u8]| {
        let mut batch = write(&process, name, "nonce", received);
        batch.handled[0].sent = sent;
        batch.handled[0].undelivered = messages.to_vec();
        let answer = process.ask(Method::POST, "/store", &batch).await;
        assert_eq!(answer.status(), StatusCode::OK);
    };
    let stored = async || {
        let players = process.saved().await.players;
        let found = players.first().expect("a player");
        (found.received, found.sent, found.undelivered.clone())
    };
    keep("nonce", (1, 4), 1).await;
    store("a", (2, 5), &[2]).await;
    assert_eq!(stored().await, (2, 5, vec![2]), "stored with the write");
    keep("nonce", (1, 4), 3).await;
    assert_eq!(
        stored().await,
        (2, 5, vec![2]),
        "an older checkpoint arrived later"
    );
    keep("nonce", (1, 5), 4).await;
    assert_eq!(
        stored().await,
        (2, 5, vec![2]),
        "the write received one more call"
    );
    keep("nonce", (2, 5), 5).await;
    assert_eq!(stored().await, (2, 5, vec![5]), "the checkpoint is newer");
    store("b", (3, 6), &[]).await;
    assert_eq!(
        stored().await,
        (3, 5, vec![5]),
        "the write contained no messages"
    );
    // Pending calls are appended nevertheless.
    let calls = async |name: &str, received: u32, calls: &[u8]| {
        let mut batch = write(&process, name, "nonce", received);
        batch.handled[0].sent = 7;
        batch.handled[0].calls = calls.to_vec();
        let answer = process.ask(Method::POST, "/store", &batch).await;
        assert_eq!(answer.status(), StatusCode::OK);
    };
    calls("c", 4, &[7, 8]).await;
    calls("d", 5, &[9]).await;
    assert_eq!(
        stored().await,
        (5, 5, vec![5, 7, 8, 9]),
        "appended in order"
    );
    keep("nonce", (5, 7), 10).await;
    assert_eq!(stored().await, (5, 7, vec![10]));
    keep("another", (0, 1), 6).await;
    assert_eq!(
        stored().await,
        (0, 1, vec![6]),
        "a new session resets the counts"
    );
}

/// Operations must be stored with a write that acknowledges the messages which caused them.
#[tokio::test]
async fn operations_are_stored_with_data_store_writes() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&kept_game("sandbox")).await;
    platform.join(json!({ "game_id": "sandbox" })).await;
    let process = Process::newest(&platform).await;
    let mut first = process.batch([built(1)]);
    first.players.push(SavedPlayer {
        received: 1,
        ..player("client_1", 3.0)
    });
    assert_eq!(process.keep(&first).await, Ok(1));
    let store = async |name: &str, ops: &[u64], received: u32| {
        let mut batch = write(&process, name, "nonce", received);
        batch.ops = ops.iter().copied().map(built).collect();
        let answer = process.ask(Method::POST, "/store", &batch).await;
        let status = answer.status();
        (status, answer.json::<serde_json::Value>().await.unwrap())
    };
    let stored = async || {
        let saved = process.saved().await;
        (saved.world.ops.len(), saved.players[0].received)
    };
    // One of the operations is stored already.
    let (status, answers) = store("a", &[1, 2, 3], 2).await;
    assert_eq!((status, &answers["kept"]), (StatusCode::OK, &json!(3)));
    assert_eq!(stored().await, (3, 2));
    store("a", &[1, 2, 3], 2).await;
    assert_eq!(stored().await, (3, 2), "a repeated batch is applied once");
    assert_eq!(
        process.keep(&process.batch([built(3), built(4)])).await,
        Ok(4)
    );
    // A batch with a gap is refused as a whole.
    let (status, _) = store("b", &[6], 9).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(stored().await, (4, 2));
    let (_, answers) = store("c", &[5], 3).await;
    assert_eq!(
        answers["answers"][0]["result"]["Ok"],
        json!([2]),
        "{answers}"
    );
}

#[tokio::test]
async fn a_world_that_is_not_persistent_stores_players_only() {
    let platform = TestPlatform::start().await;
    let guest = platform.login("Ada").await;
    let joined = join_as(&platform, &guest, json!({ "game_id": "sample" })).await;
    let process = Process::newest(&platform).await;
    let (status, _) = process.keep(&process.batch([built(1)])).await.unwrap_err();
    assert_eq!(status, 400);
    let mut batch = process.batch([]);
    batch.players.push(player(&guest.client_id, 4.0));
    assert_eq!(process.keep(&batch).await, Ok(0));
    assert_eq!(process.saved().await.players.len(), 1);
    // A later join starts without a position in the ticket.
    let again = join_as(&platform, &guest, json!({ "world_id": joined.world_id })).await;
    assert_eq!(claims_of(&again).await.left, None);
    // A later process receives no players.
    platform.clock.advance_ms(200_000);
    assert_eq!(process.saved().await.players, []);
}

#[tokio::test]
async fn a_ticket_contains_the_character_and_the_last_position() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&kept_game("sandbox")).await;
    let ada = platform.login("Ada").await;
    let joined = join_as(&platform, &ada, json!({ "game_id": "sandbox" })).await;
    let claims = claims_of(&joined).await;
    let character = claims.character.expect("a character");
    assert_eq!(
        (character.id.as_str(), character.looks.as_str()),
        ("default", "{}")
    );
    assert_eq!(claims.left, None);
    let process = Process::newest(&platform).await;
    let mut batch = process.batch([]);
    batch.players.push(player(&ada.client_id, 4.0));
    process.keep(&batch).await.unwrap();
    platform.clock.advance_ms(3_600_000);
    let again = join_as(&platform, &ada, json!({ "world_id": joined.world_id })).await;
    let left = claims_of(&again).await.left.expect("a position");
    assert_eq!(left.feet, [4.0, 1.5, 2.0]);
    assert!(again.ticket.len() < 2048, "{}", again.ticket.len());
    // A player who was never here has no position.
    let ben = platform.login("Ben").await;
    let other = join_as(&platform, &ben, json!({ "world_id": joined.world_id })).await;
    assert_eq!(claims_of(&other).await.left, None);
}

#[tokio::test]
async fn a_stored_world_is_started_instead_of_a_new_one() {
    let platform = TestPlatform::start_with(|settings| {
        settings.fleet.stop_grace = std::time::Duration::from_millis(200);
    })
    .await;
    platform.publish_sample(&kept_game("sandbox")).await;
    let first = platform.join(json!({ "game_id": "sandbox" })).await;
    platform.platform.fleet().stop(&first.world_id);
    platform.stage.wait_for_alive(0).await;
    let mut newer = kept_game("sandbox");
    newer.insert("assets/new.png".into(), picture());
    let revision = platform.publish_sample(&newer).await;
    let again = platform.join(json!({ "game_id": "sandbox" })).await;
    assert_eq!(again.world_id, first.world_id);
    let server = platform.platform.fleet().server(&again.world_id).unwrap();
    assert_eq!(
        server.revision(),
        revision,
        "the world runs the newest version"
    );
}

async fn database(platform: &TestPlatform) -> AnyPool {
    sqlx::any::install_default_drivers();
    AnyPool::connect(&platform.database_url).await.unwrap()
}

#[tokio::test]
async fn selections_of_characters_are_repaired() {
    let platform = TestPlatform::start().await;
    let db = database(&platform).await;
    let ada = platform.login("Ada").await;
    let character = async || {
        let joined = join_as(&platform, &ada, json!({ "game_id": "sample" })).await;
        claims_of(&joined).await.character.unwrap()
    };
    let run = async |query: &'static str| {
        let query = sqlx::query(query).bind(&ada.client_id);
        query.execute(&db).await.unwrap();
    };
    assert_eq!(character().await.id, "default");
    run(
        "INSERT INTO characters (user_id, character_id, name, looks, created_at, updated_at)
         VALUES ($1, 'knight', 'Knight', '{\"hat\":\"helmet\"}', 1, 1)",
    )
    .await;
    run("UPDATE active_characters SET character_id = 'knight' WHERE user_id = $1").await;
    let knight = character().await;
    assert_eq!(
        (knight.id.as_str(), knight.looks.as_str()),
        ("knight", "{\"hat\":\"helmet\"}")
    );
    // After each kind of damage, the oldest valid character is selected.
    for damage in [
        "UPDATE active_characters SET character_id = 'dragon' WHERE user_id = $1",
        "DELETE FROM active_characters WHERE user_id = $1",
        "DELETE FROM characters WHERE user_id = $1 AND character_id = 'knight'",
        "UPDATE characters SET looks = '{' WHERE user_id = $1",
        "UPDATE characters SET looks = '[1]' WHERE user_id = $1",
        "DELETE FROM characters WHERE user_id = $1",
    ] {
        run(damage).await;
        let first = character().await;
        assert!(
            ["knight", "default"].contains(&first.id.as_str()),
            "{damage}: {first:?}"
        );
        assert_eq!(
            character().await,
            first,
            "{damage}: the repair is permanent"
        );
        let row = sqlx::query("SELECT character_id FROM active_characters WHERE user_id = $1");
        let row = row.bind(&ada.client_id).fetch_one(&db).await.unwrap();
        assert_eq!(row.get::<String, _>("character_id"), first.id);
    }
}

#[tokio::test]
async fn users_older_than_characters_get_the_default_one() {
    let data_dir = std::env::temp_dir().join(ids::new_id("frolic-test"));
    let old = data_dir.join("old-migrations");
    std::fs::create_dir_all(&old).unwrap();
    let all = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for name in ["0001_start.sql", "0002_store.sql", "0003_capabilities.sql"] {
        std::fs::copy(all.join(name), old.join(name)).unwrap();
    }
    sqlx::any::install_default_drivers();
    let db = AnyPool::connect(&database::url(&data_dir)).await.unwrap();
    let migrator = sqlx::migrate::Migrator::new(old).await.unwrap();
    migrator.run(&db).await.unwrap();
    sqlx::query("INSERT INTO users VALUES ('client_old', 'Old', 'old', 'account', 'player', 5, 5)")
        .execute(&db)
        .await
        .unwrap();
    db.close().await;

    let platform = TestPlatform::start_in(data_dir.clone(), |_| {}).await;
    let db = database(&platform).await;
    let count = async || {
        let rows = sqlx::query(
            "SELECT c.looks FROM characters c JOIN active_characters a
             ON a.user_id = c.user_id AND a.character_id = c.character_id
             WHERE c.user_id = 'client_old' AND c.character_id = 'default'",
        );
        rows.fetch_all(&db).await.unwrap().len()
    };
    assert_eq!(count().await, 1);
    // Running the statements again changes nothing.
    let text = std::fs::read_to_string(all.join("0004_lasting.sql")).unwrap();
    let text: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect::<Vec<_>>()
        .join("\n");
    for statement in text
        .split(';')
        .filter(|statement| !statement.trim().is_empty())
    {
        let statement = sqlx::AssertSqlSafe(statement.to_owned());
        sqlx::query(statement).execute(&db).await.unwrap();
    }
    assert_eq!(count().await, 1);
}
