//! A script that nothing inside the VM can stop ends its world's process; the
//! platform starts the world again without that script (SCR-16).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

const PATIENCE: Duration = Duration::from_secs(60);
const ADMIN_TOKEN: &str = "admin-of-this-test-0123456789";

/// Thousands of comparisons of long strings without a call or a loop between
/// them: not one point at which Luau could be interrupted.
fn without_a_safe_point(first: &str) -> String {
    let mut source = format!("{first}\nlocal a = string.rep('x', 262144)\n");
    source += &"a = a .. a\n".repeat(5);
    source += "local b, n = a .. 'y', false\n";
    source += &"n = a < b\n".repeat(25_000);
    source
}

fn game(script: &str) -> Vec<u8> {
    let text = |text: &str| text.as_bytes().to_vec();
    let manifest = "[game]\nid = \"stuck\"\nname = \"Stuck\"\nversion = \"1.0.0\"\n";
    let scene = r##"{"format": 1, "prefabs": {}, "entities": [
        {"id": 1, "name": "Ground", "components": {"Transform": {"position": [0, -1, 0]},
         "Shape": {"type": "box", "size": [50, 2, 50]}, "Body": {"type": "static"}}}]}"##;
    let honest = "task.spawn(function() while true do task.wait(0.2) print('honest') end end)";
    frolic_package::pack(&BTreeMap::from([
        ("game.toml".to_owned(), text(manifest)),
        ("scene.json".to_owned(), text(scene)),
        (
            "scripts/ServerScriptService/Honest.luau".to_owned(),
            text(honest),
        ),
        (
            "scripts/ServerScriptService/Stuck.luau".to_owned(),
            text(script),
        ),
    ]))
    .expect("it packs")
}

/// `frolic serve` on a free port, ended with the test. Its lines and those of
/// its game servers can be waited for.
struct Platform {
    process: Child,
    url: String,
    lines: mpsc::Receiver<String>,
}

impl Platform {
    fn start(name: &str) -> Self {
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data).expect("the scratch folder is ours");
        let mut process = Command::new(env!("CARGO_BIN_EXE_frolic"))
            .arg("serve")
            .current_dir(&data)
            .env("HOST", "127.0.0.1")
            .env("PORT", "0")
            .env("DATA_DIR", &data)
            .env("ADMIN_TOKEN", ADMIN_TOKEN)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("cargo built it");
        let stdout = process.stdout.take().expect("piped");
        let stderr = process.stderr.take().expect("piped");
        let (told, lines) = mpsc::channel();
        let also = told.clone();
        std::thread::spawn(move || pass_on(stdout, &told));
        std::thread::spawn(move || pass_on(stderr, &also));
        let mut platform = Self {
            process,
            url: String::new(),
            lines,
        };
        let line = platform.wait_for("http://127.0.0.1:");
        let url = &line[line.find("http://").expect("just seen")..];
        platform.url = url.split_whitespace().next().unwrap_or(url).to_owned();
        platform
    }

    /// The next line that contains `text`.
    fn wait_for(&self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(began.elapsed());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("nothing said \"{text}\""));
            if line.contains(text) {
                return line;
            }
        }
    }

    async fn post(&self, path: &str, session: &str, body: impl Into<reqwest::Body>) -> Json {
        let request = reqwest::Client::new()
            .post(format!("{}{path}", self.url))
            .bearer_auth(session)
            .header("content-type", "application/json")
            .body(body);
        let answer = request.send().await.expect("the platform answers");
        let status = answer.status();
        let text = answer.text().await.expect("a text");
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Publishes the game and joins it; the answer to the join.
    async fn play(&self, script: &str) -> Json {
        let login = self.post("/login", "", json!({}).to_string()).await;
        let session = login["session_token"].as_str().expect("a session");
        self.post("/api/games", session, game(script)).await;
        let wish = json!({ "game_id": "stuck" }).to_string();
        self.post("/join", session, wish).await
    }

    async fn game_server(&self) -> Json {
        let request = reqwest::Client::new()
            .get(format!("{}/admin/servers", self.url))
            .bearer_auth(ADMIN_TOKEN);
        let answer = request.send().await.expect("the platform answers");
        let list: Json = answer.json().await.expect("JSON");
        list["servers"][0].clone()
    }
}

fn pass_on(output: impl std::io::Read, told: &mpsc::Sender<String>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if told.send(line).is_err() {
            return;
        }
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.process.wait();
    }
}

/// Whatever runs in it, the process of a world has given up its rights.
fn confined(server: &Json) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server["pid"]));
    let status = status.expect("it runs");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert!(status.contains("Seccomp:\t2"), "{status}");
}

#[tokio::test]
async fn a_world_that_hangs_while_it_starts_starts_without_the_culprit() {
    let platform = Platform::start("stuck-at-start");
    let joined = platform.play(&without_a_safe_point("")).await;
    assert!(joined["server_address"].is_string(), "{joined}");
    platform.wait_for("honest");
    let server = platform.game_server().await;
    confined(&server);
    assert_eq!(
        (&server["state"], &server["crashes"]),
        (&json!("ready"), &json!(1))
    );
}

#[tokio::test]
async fn a_world_that_hangs_later_comes_back_and_the_creator_is_told() {
    let platform = Platform::start("stuck-later");
    platform.play(&without_a_safe_point("task.wait(0.5)")).await;
    platform.wait_for("honest");
    let told = platform.wait_for("starts again without it");
    assert!(told.contains("ServerScriptService/Stuck.luau"), "{told}");
    let told = platform.wait_for("disabled: it could not be stopped");
    assert!(told.contains("ServerScriptService/Stuck.luau"), "{told}");
    platform.wait_for("honest");
    assert_eq!(platform.game_server().await["crashes"], 1);
}
