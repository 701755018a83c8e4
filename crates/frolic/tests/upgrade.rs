//! A data folder that an earlier version made opens, migrates and plays: accounts,
//! games, worlds with terrain and structures, saves, spells, data of scripts.
//! `fixtures/bea8b59/README.md` describes the folder.
// Covers: crates/gameserver, crates/platform, crates/protocol, crates/script, crates/world

use std::path::PathBuf;

use crate::support::earlier::{fixture, unpack};
use crate::support::{Platform, Player, serve};
use serde_json::{Value as Json, json};

/// The folder, and the answers of the version that made it.
struct Earlier {
    data: PathBuf,
    answers: Json,
}

impl Earlier {
    fn unpack(name: &str) -> Self {
        let answers = std::fs::read(fixture().join("answers.json")).expect("it is committed");
        Self {
            data: unpack(name),
            answers: serde_json::from_slice(&answers).expect("JSON"),
        }
    }

    /// Starts this version on the folder, with the secret key that is in it.
    fn start(&self) -> Platform {
        let mut command = serve(&self.data, "0");
        command.env_remove("SECRET_KEY");
        command.env("ADMIN_TOKEN", self.credential("admin"));
        Platform::start_as(command, self.data.clone())
    }

    fn credential(&self, name: &str) -> &str {
        self.answers["credentials"][name].as_str().expect("a text")
    }

    async fn log_in(&self, platform: &Platform, username: &str) -> String {
        let login = json!({ "username": username, "password": self.credential("password") });
        let request = platform.request(reqwest::Method::POST, "/api/login");
        let session = platform.json(request.json(&login)).await;
        session["session_token"]
            .as_str()
            .expect("a token")
            .to_owned()
    }

    /// Compares what a player finds in a world with what the earlier version reported.
    async fn compare_world(&self, player: &mut Player, name: &str) {
        let earlier = &self.answers[name];
        assert_eq!(player.world_id, earlier["world"], "{name}");
        player.fire("Report").await;
        let reported = player.event("Reported").await;
        assert_covers(&reported[0], &earlier["reported"], name);
        player.fire("Where").await;
        let place = player.event("There").await[0].clone();
        assert!(is_near(&place, &earlier["place"]), "{name}: {place}");
    }
}

/// Whether two places differ by less than a centimetre: a character that has just
/// appeared settles on the terrain.
fn is_near(place: &Json, other: &Json) -> bool {
    let axis = |place: &Json, axis: usize| place["$v"][axis].as_f64().expect("a number");
    (0..3).all(|index| (axis(place, index) - axis(other, index)).abs() < 0.01)
}

/// Everything that was answered is answered still; new fields may be there.
fn assert_covers(found: &Json, earlier: &Json, place: &str) {
    match (found, earlier) {
        (Json::Object(found), Json::Object(earlier)) => {
            for (name, value) in earlier {
                let found = found.get(name).unwrap_or(&Json::Null);
                assert_covers(found, value, &format!("{place}.{name}"));
            }
        }
        (Json::Array(found), Json::Array(earlier)) => {
            assert_eq!(found.len(), earlier.len(), "{place}: {found:?}");
            for (index, (found, value)) in found.iter().zip(earlier).enumerate() {
                assert_covers(found, value, &format!("{place}[{index}]"));
            }
        }
        // The recording has 8 for 8.0.
        (Json::Number(found), Json::Number(earlier)) => {
            assert_eq!(found.as_f64(), earlier.as_f64(), "{place}");
        }
        _ => assert_eq!(found, earlier, "{place}"),
    }
}

/// Casts the spell of the fixture, and returns the event that reports it.
async fn cast(player: &mut Player) -> Json {
    let payload = json!({ "spell_id": "ember", "params": { "target": [2, 2, 2] } });
    player.command("spell", "cast", payload).await;
    loop {
        let event = player.next_of_kind("event").await;
        if event["feature"] == "spell" && event["action"] == "cast" {
            return event;
        }
    }
}

#[tokio::test]
async fn a_data_folder_of_an_earlier_version_opens_and_plays() {
    let earlier = Earlier::unpack("upgrade-plays");
    let answers = &earlier.answers;
    let mut platform = earlier.start();

    let ada = earlier.log_in(&platform, "Ada").await;
    let mia = earlier.log_in(&platform, "Mia").await;
    for asked in answers["rest"].as_array().expect("a list") {
        let path = asked["path"].as_str().expect("a text");
        let request = platform.request(reqwest::Method::GET, path);
        let request = match asked["as"].as_str() {
            Some("ada") => request.bearer_auth(&ada),
            Some("mia") => request.bearer_auth(&mia),
            // A session, a key and a token from before.
            Some(name @ ("gus" | "key" | "admin")) => request.bearer_auth(earlier.credential(name)),
            _ => request,
        };
        let found = platform.json(request).await;
        assert_covers(&found, &asked["body"], path);
    }

    let hamlet = json!({ "world_id": answers["hamlet"]["world"] });
    let mut player = platform.join_again(&ada, &hamlet).await;
    earlier.compare_world(&mut player, "hamlet").await;
    let event = cast(&mut player).await;
    assert_covers(&event, &answers["spell"]["cast"], "cast");
    player.fire("Torches").await;
    let torches = player.event("Lit").await;
    assert_covers(&torches[0], &answers["spell"]["torches"], "torches");
    player.leave().await;

    // The game leads a guest to the public world, with operations after its checkpoint.
    let game = json!({ "game_id": "hamlet" });
    let mut guest = platform.join_again(earlier.credential("gus"), &game).await;
    earlier.compare_world(&mut guest, "outpost").await;
    guest.leave().await;

    let path = format!(
        "/world/{}",
        answers["hamlet"]["world"].as_str().expect("an id")
    );
    let restore = platform.request(reqwest::Method::POST, &path);
    let restore = restore
        .bearer_auth(&ada)
        .json(&json!({ "restore": answers["save"] }));
    platform.json(restore).await;
    let mut player = platform.join_again(&ada, &hamlet).await;
    earlier.compare_world(&mut player, "restored").await;
    player.leave().await;

    // Once more, on the folder that this version has written to.
    platform.terminate();
    drop(platform);
    let platform = earlier.start();
    let mut player = platform.join_again(&ada, &hamlet).await;
    earlier.compare_world(&mut player, "restored").await;
    assert_covers(&cast(&mut player).await, &answers["spell"]["cast"], "cast");
    let mut guest = platform.join_again(earlier.credential("gus"), &game).await;
    earlier.compare_world(&mut guest, "outpost").await;
}
