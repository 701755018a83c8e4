//! `frolic serve` as the README says: the binary alone in an empty
//! folder, with nothing set but a port.
// Covers: crates/gameserver, crates/platform

use std::path::Path;
use std::process::Command;

use crate::support::{Platform, Player, scratch};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn the_binary_needs_no_other_file_and_no_setting() {
    let folder = scratch("bare-start");
    let binary = folder.join("frolic");
    // A link and not a copy: a file that was open for writing when another test
    // started a process cannot be executed ("Text file busy").
    std::fs::hard_link(env!("CARGO_BIN_EXE_frolic"), &binary).expect("a link");
    let mut command = Command::new(&binary);
    command
        .arg("serve")
        .current_dir(&folder)
        .env_clear()
        .env("PORT", "0");
    let platform = Platform::start_as(command, folder.join("data"));
    assert!(
        platform.url.starts_with("http://127.0.0.1:"),
        "{}",
        platform.url
    );

    let site = platform.request(Method::GET, "/").send().await;
    let site = site.expect("an answer");
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist/index.html");
    // A build without the site contains none; `cargo xtask test` always builds
    // it first.
    if let Ok(page) = std::fs::read_to_string(built) {
        assert!(site.status().is_success(), "{}", site.status());
        assert_eq!(site.text().await.expect("a page"), page);
    }

    let games = platform
        .json(platform.request(Method::GET, "/api/games"))
        .await;
    let listed = games.to_string();
    for game in ["arena", "obby", "sandbox", "stealth"] {
        assert!(listed.contains(&format!("\"{game}\"")), "{game}: {listed}");
    }

    // Nothing said of which game: the first sample.
    let token = platform.login("Ada").await;
    let joined = platform.join_as(&token, &json!({})).await;
    assert_eq!(joined["game_id"], "obby");
    let mut ada = Player::connect(joined.clone()).await;
    let welcome = ada.next_of_kind("welcome").await;
    assert_eq!(welcome["worldId"], joined["world_id"]);

    let secret = std::fs::metadata(platform.data.join("secret_key")).expect("made by itself");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(secret.permissions().mode() & 0o777, 0o600);
    }
    assert!(secret.len() >= 32);
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("it is there")
        .map(|entry| entry.expect("readable").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["data", "frolic"], "everything is in one place");
}
