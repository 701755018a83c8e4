//! `deploy/`: the image that the Dockerfile describes lets players in, and what
//! else runs the platform elsewhere is sound.
// Covers: deploy, crates/platform

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use frolic_platform::Settings;
use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::support::{Platform, Player, scratch};

/// Runs a program of the image in its root file system, with a `/proc` and a
/// `/dev` as containers have them, as the user that the image names.
const RUN: &str = r#"root=$1; user=$2; shift 2
mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && exec chroot --userspec="$user" "$root" "$@""#;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// Says so where a test cannot run on this machine.
fn is_missing(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let missing = !found.is_ok_and(|output| output.status.success());
    if missing {
        eprintln!("skipped: {program} is not installed");
    }
    missing
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output: Output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{said}\n{errors}");
    said
}

/// Images and containers in a folder of the test, gone with it.
struct Images(PathBuf);

impl Images {
    fn buildah(&self) -> Command {
        let mut command = Command::new("buildah");
        command
            .args(["--storage-driver=vfs", "--root"])
            .arg(self.0.join("storage"))
            .arg("--runroot")
            .arg(self.0.join("run"));
        command
    }

    /// The image that the Dockerfile makes of the binary under test.
    fn build(&self, name: &str) -> Json {
        let root = self.0.join("root");
        let binary = env!("CARGO_BIN_EXE_frolic");
        succeeds(Command::new(deploy().join("rootfs.sh")).args([Path::new(binary), &root]));
        let mut context = std::ffi::OsString::from("build=");
        context.push(&root);
        let mut build = self.buildah();
        build.args(["bud", "--format=docker", "--quiet", "--tag", name]);
        build.arg("--build-context").arg(context).arg("--file");
        build.arg(deploy().join("Dockerfile")).arg(&root);
        succeeds(&mut build);
        let image = succeeds(self.buildah().args(["inspect", "--type=image", name]));
        let image: Json = serde_json::from_str(&image).expect("JSON");
        image["Docker"]["config"].clone()
    }

    /// The root file system of a container of that image.
    fn mount(&self, name: &str) -> PathBuf {
        let container = succeeds(self.buildah().args(["from", "--pull-never", name]));
        succeeds(self.buildah().args(["mount", &container])).into()
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        let _ = self.buildah().args(["umount", "--all"]).output();
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn texts(list: &Json) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|text| text.as_str().expect("a text").to_owned())
        .collect()
}

/// A program of the image, with the settings that the image gives it.
fn in_container(root: &Path, config: &Json, program: &[String]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", RUN, "sh"])
        .arg(root)
        .arg(config["User"].as_str().expect("a user"))
        .args(program)
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
    for setting in texts(&config["Env"]) {
        let (name, value) = setting.split_once('=').expect("NAME=value");
        if name != "PATH" {
            command.env(name, value);
        }
    }
    command
}

#[tokio::test]
async fn a_player_joins_a_world_in_the_container() {
    if is_missing("buildah") || is_missing("unshare") {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root may run a program in another root file system");
        return;
    }
    let images = Images(scratch("deploy-image"));
    let config = images.build("frolic-test");
    assert_eq!(config["User"], "65532:65532", "not root");
    assert!(config["ExposedPorts"]["5000/tcp"].is_object(), "{config}");
    assert!(config["Volumes"]["/data"].is_object(), "{config}");
    let root = images.mount("frolic-test");

    let mut start = texts(&config["Entrypoint"]);
    start.extend(texts(&config["Cmd"]));
    let mut command = in_container(&root, &config, &start);
    command.env("PORT", "0");
    let platform = Platform::start_as(command, root.join("data"));
    let token = platform.login("Ada").await;
    let joined = platform.join_as(&token, &json!({})).await;
    // One port is published: the way into the world goes through it.
    let address = joined["server_address"].as_str().expect("an address");
    let public = platform.url.replace("http://", "ws://");
    assert!(address.starts_with(&public), "{address} {public}");
    let mut ada = Player::connect(joined.clone()).await;
    let welcome = ada.next_of_kind("welcome").await;
    assert_eq!(welcome["worldId"], joined["world_id"]);

    let mut check = texts(&config["Healthcheck"]["Test"]);
    assert_eq!(check.remove(0), "CMD", "there is no shell");
    let port = platform.url.rsplit(':').next().expect("a port").to_owned();
    let said = succeeds(in_container(&root, &config, &check).env("PORT", &port));
    assert_eq!(said, "ready");
    let mut wrong = in_container(&root, &config, &check);
    let wrong = wrong.env("PORT", "1").output().expect("it starts");
    assert!(!wrong.status.success(), "no process is running");

    // Nothing of it runs as root, and all it wrote is its own.
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(format!("/proc/{}", platform.pid()));
    assert_eq!(owner.expect("it runs").uid(), 65_532);
    let secret = std::fs::metadata(root.join("data/secret_key"));
    assert_eq!(secret.expect("made by itself").uid(), 65_532);
    let games = platform.json(platform.request(Method::GET, "/api/games"));
    assert!(
        games.await["games"]
            .as_array()
            .is_some_and(|games| games.len() >= 4)
    );

    let mut platform = platform;
    platform.terminate();
    platform.wait_for("Stopped.");
}

#[test]
fn the_unit_of_systemd_is_sound() {
    if is_missing("systemd-analyze") {
        return;
    }
    let folder = scratch("deploy-unit");
    let unit = std::fs::read_to_string(deploy().join("frolic.service")).expect("the unit");
    let installed = "/usr/local/bin/frolic";
    assert!(unit.contains(&format!("ExecStart={installed} serve\n")));
    // The program has to be there.
    let unit = unit.replace(
        &format!("ExecStart={installed}"),
        &format!("ExecStart={}", env!("CARGO_BIN_EXE_frolic")),
    );
    let file = folder.join("frolic.service");
    std::fs::write(&file, unit).expect("our folder");
    let mut verify = Command::new("systemd-analyze");
    let output = verify.arg("verify").arg(&file).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    // It warns of what it ignores, and is content.
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("frolic.service"))
        .collect();
    assert!(output.status.success() && ours.is_empty(), "{said}");
}

#[test]
fn every_way_to_run_it_gives_worlds_the_time_to_stop() {
    let settings = Settings::new(PathBuf::from("data"), Vec::new());
    // The fleet's own grace, and what the platform does around it.
    let needed = settings.fleet.stop_grace + Duration::from_secs(10);
    for (file, before, after) in [
        ("frolic.service", "TimeoutStopSec=", "\n"),
        ("fly.toml", "kill_timeout = \"", "s\""),
        ("compose.yaml", "stop_grace_period: ", "s\n"),
    ] {
        let text = std::fs::read_to_string(deploy().join(file)).expect("a file");
        let seconds = text
            .split(before)
            .nth(1)
            .and_then(|rest| rest.split(after).next());
        let seconds: u64 = seconds.expect("a time").trim().parse().expect("seconds");
        assert!(seconds >= needed.as_secs().max(30), "{file}: {seconds} s");
    }
}
