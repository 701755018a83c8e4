//! The `frolic` binary from outside: what a creator types, and what comes back.
//! (Being an integration test it also makes `cargo test` build the binary that
//! the browser tests run, with the very features the other tests use.)
// Covers: crates/lint, crates/package, crates/scene, crates/script, crates/soul

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

fn frolic(args: &[&str]) -> Output {
    crate::support::frolic()
        .args(args)
        .output()
        .expect("cargo built it")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn sample_game() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games/obby");
    folder.to_string_lossy().into_owned()
}

/// A folder of its own for one test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the scratch folder is ours");
    folder
}

#[test]
fn packing_twice_gives_the_same_bytes_and_the_package_checks() {
    let folder = scratch("pack");
    let packages = ["first.game", "second.game"].map(|name| folder.join(name));
    for package in &packages {
        let output = frolic(&["pack", &sample_game(), "-o", &package.to_string_lossy()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let [first, second] = packages;
    assert_eq!(fs::read(&first).unwrap(), fs::read(second).unwrap());
    let checked = frolic(&["check", &first.to_string_lossy()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn a_new_game_passes_its_check_without_a_warning() {
    let parent = scratch("new");
    for template in ["basic", "obby", "arena", "sandbox", "stealth"] {
        let folder = parent.join(format!("My {template}"));
        let game = folder.to_string_lossy();
        let made = frolic(&["new", &game, "--template", template]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        assert!(text(&made.stdout).contains("frolic dev"));
        let checked = frolic(&["check", &game]);
        assert!(checked.status.success(), "{}", text(&checked.stderr));
        assert_eq!(text(&checked.stderr), "", "{template}");
        assert!(text(&checked.stdout).starts_with("My "));
        let manifest = fs::read_to_string(folder.join("game.toml")).unwrap();
        let id = format!("id = \"my-{template}\"");
        assert!(manifest.contains(&id), "{manifest}");
        // A second time would write over what is there.
        let again = frolic(&["new", &game]);
        assert!(!again.status.success());
        assert!(text(&again.stderr).contains("is not empty"));
    }
}

#[test]
fn what_is_no_game_is_refused_with_the_name_of_what_is_missing() {
    let folder = scratch("empty");
    for command in ["check", "pack"] {
        let output = frolic(&[command, &folder.to_string_lossy()]);
        assert!(!output.status.success());
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("game.toml"), "{command}: {said}");
    }
}

#[test]
fn a_file_that_is_not_a_package_is_refused() {
    let file = scratch("noise").join("noise.game");
    fs::write(&file, b"PK\x03\x04 and then nothing that makes sense").unwrap();
    let output = frolic(&["check", &file.to_string_lossy()]);
    assert!(!output.status.success());
    assert!(!text(&output.stderr).contains("panicked"));
}

/// A model that answers every request the same, over HTTP, until its drop.
struct FakeModel {
    url: String,
    requests: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    _runtime: tokio::runtime::Runtime,
}

impl FakeModel {
    fn start(code: &'static str) -> Self {
        use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = std::sync::Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        let answer = move || {
            counted.fetch_add(1, SeqCst);
            let text = format!("```luau\n{code}\n```");
            let content = serde_json::json!([{ "type": "text", "text": text }]);
            let body = serde_json::json!({ "content": content, "stop_reason": "end_turn" });
            async move { axum::Json(body) }
        };
        let app = axum::Router::new().route("/v1/messages", axum::routing::post(answer));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self {
            url,
            requests,
            _runtime: runtime,
        }
    }

    fn requests(&self) -> usize {
        self.requests.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[test]
fn packing_writes_a_soul_out_once() {
    let folder = scratch("soul");
    let service = folder.join("scripts/ServerScriptService");
    fs::create_dir_all(&service).unwrap();
    fs::write(
        folder.join("game.toml"),
        "[game]\nid = \"soulful\"\nname = \"Soulful\"\nversion = \"1.0.0\"\n",
    )
    .unwrap();
    let scene = r#"{"format":1,"prefabs":{},"entities":[{"id":1,"name":"Spawn","components":{"SpawnPoint":{}}}]}"#;
    fs::write(folder.join("scene.json"), scene).unwrap();
    let soul = service.join("Greet.soul");
    fs::write(&soul, "Greet each player who comes in.\n").unwrap();
    let model = FakeModel::start("print(\"hello\")");
    let run = |args: &[&str], key: Option<&str>| {
        let mut command = crate::support::frolic();
        command.args(args).current_dir(&folder);
        command.env("SOUL_API_URL", &model.url);
        match key {
            Some(key) => command.env("SOUL_API_KEY", key),
            None => &mut command,
        };
        command.output().expect("cargo built it")
    };

    // Without a key: how to set one. A check says what to do.
    let output = run(&["pack", "."], None);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("SOUL_API_KEY"));
    let output = run(&["check", "."], None);
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("frolic pack"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(model.requests(), 0);

    let output = run(&["pack", "."], Some("a-key"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Greet.soul.luau"));
    let made = fs::read_to_string(service.join("Greet.soul.luau")).unwrap();
    assert!(made.contains("print(\"hello\")"), "{made}");
    assert_eq!(model.requests(), 1);

    // The Luau is stored: from here on the model is not asked, and no key is
    // needed.
    for args in [&["pack", "."], &["check", "."]] {
        let output = run(args, None);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let soul_path = soul.to_string_lossy().into_owned();
    let output = run(&["soul", &soul_path], None);
    assert!(text(&output.stdout).contains("up to date"));
    assert_eq!(model.requests(), 1);

    // After a change it is stale until it is generated again.
    fs::write(&soul, "Greet each player twice.\n").unwrap();
    assert!(!run(&["check", "."], None).status.success());
    let output = run(&["soul", &soul_path], Some("a-key"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(model.requests(), 2);
    assert!(run(&["check", "."], None).status.success());

    // Luau that a creator wrote by hand is not overwritten.
    let own = service.join("Own.soul");
    fs::write(&own, "Do something.").unwrap();
    fs::write(service.join("Own.soul.luau"), "print(\"mine\")").unwrap();
    let output = run(&["soul", &own.to_string_lossy()], Some("a-key"));
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("written by hand"));
    let own = fs::read_to_string(service.join("Own.soul.luau")).unwrap();
    assert_eq!(own, "print(\"mine\")");
}
