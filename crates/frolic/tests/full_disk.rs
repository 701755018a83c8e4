//! Everything acknowledged is stored, also when the disk was full or broken for a
//! while or a world stopped without its platform; and the platform recovers by
//! itself as soon as the cause is gone.
// Covers: crates/gameserver, crates/platform, crates/script, crates/protocol, crates/world

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::disk::{Fault, Faults};
use crate::support::resident::{Ledger, Resident, game};
use crate::support::{PATIENCE, Platform, scratch, serve};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

const RESIDENTS: u64 = 4;
/// Writes that fail before a fault is over: enough for connections in every state.
const FAILURES: u64 = 20;

/// Players of one world who edit and save all the time.
struct Crowd {
    world: Json,
    auditor: String,
    ledgers: Vec<Arc<Mutex<Ledger>>>,
    residents: JoinSet<()>,
    end: watch::Sender<bool>,
}

impl Crowd {
    async fn arrive(platform: &Platform) -> Self {
        let creator = platform.login("Creator").await;
        platform.publish(&creator, &game("keep", "")).await;
        let joined = platform
            .join_as(&creator, &json!({ "game_id": "keep" }))
            .await;
        let world = json!({ "world_id": joined["world_id"] });
        let (end, over) = watch::channel(false);
        let mut crowd = Self {
            world,
            auditor: creator,
            ledgers: Vec::new(),
            residents: JoinSet::new(),
            end,
        };
        for number in 1..=RESIDENTS {
            let ledger = Arc::<Mutex<Ledger>>::default();
            crowd.ledgers.push(ledger.clone());
            let resident = Resident {
                number,
                url: platform.url.clone(),
                session: platform.login("Resident").await,
                world: crowd.world.clone(),
                ledger,
                over: over.clone(),
                tags: 0,
            };
            crowd.residents.spawn(resident.live());
        }
        crowd
    }

    /// Everything that was acknowledged so far under a name.
    fn done(&self, what: &str) -> BTreeSet<u64> {
        let ledgers = self.ledgers.iter();
        ledgers
            .flat_map(|ledger| ledger.lock().expect("whole").done(what))
            .collect()
    }

    fn asked(&self, what: &str) -> BTreeSet<u64> {
        let ledgers = self.ledgers.iter();
        ledgers
            .flat_map(|ledger| ledger.lock().expect("whole").asked(what))
            .collect()
    }

    /// Waits until `more` further operations of each kind were acknowledged.
    async fn until_more_is_done(&self, more: usize) {
        let counts = || ["Built", "Filled", "Saved"].map(|what| self.done(what).len());
        let before = counts();
        let began = Instant::now();
        while counts()
            .iter()
            .zip(before)
            .any(|(now, before)| *now < before + more)
        {
            let now = counts();
            assert!(
                began.elapsed() < PATIENCE,
                "stuck at {now:?} after {before:?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn leave(&mut self) {
        self.end.send_replace(true);
        while let Some(resident) = self.residents.join_next().await {
            resident.expect("no panic");
        }
    }

    /// Compares what was acknowledged with what a process of the world finds.
    async fn compare(&self, platform: &Platform) {
        let (built, filled, saved) = (self.done("Built"), self.done("Filled"), self.done("Saved"));
        let razing = self.asked("Raze");
        let mut player = platform.join_again(&self.auditor, &self.world).await;
        player.fire_with("Count", json!([filled])).await;
        let counted = player.event("Counted").await;
        let tags = |json: &Json| -> BTreeSet<u64> {
            let list = json.as_array().into_iter().flatten();
            list.filter_map(Json::as_f64)
                .map(|tag| tag as u64)
                .collect()
        };
        let (blocks, keys, empty) = (tags(&counted[0]), tags(&counted[1]), tags(&counted[3]));
        println!(
            "acknowledged {} builds, {} fills, {} saves; stored {} builds, {} keys",
            built.len(),
            filled.len(),
            saved.len(),
            blocks.len(),
            keys.len(),
        );
        assert!(empty.is_empty(), "filled and empty again: {empty:?}");
        let lost: Vec<_> = built
            .iter()
            .filter(|tag| !razing.contains(tag) && !blocks.contains(tag))
            .collect();
        assert!(lost.is_empty(), "built and lost: {lost:?}");
        let lost: Vec<_> = saved.difference(&keys).collect();
        assert!(lost.is_empty(), "saved and lost: {lost:?}");
    }
}

/// Ends the process of the only world, so that the next one has nothing but what
/// is stored.
async fn kill_world(platform: &Platform) {
    let servers = platform.servers().await;
    assert_eq!(servers.len(), 1, "one world: {servers:?}");
    let pid = servers[0]["pid"].as_i64().expect("a process") as i32;
    kill_process(Pid::from_raw(pid).expect("an id"), Signal::KILL).expect("it is ours");
}

/// A figure of `/metrics`.
async fn figure(platform: &Platform, name: &str) -> u64 {
    let request = platform.request(reqwest::Method::GET, "/metrics");
    let text = request.send().await.expect("an answer").text().await;
    let text = text.expect("a text");
    let mut found = text.lines().filter_map(|line| line.strip_prefix(name));
    let found = found.find_map(|rest| rest.strip_prefix(' '));
    let found = found.unwrap_or_else(|| panic!("{name} is not in\n{text}"));
    found.parse().expect("a number")
}

/// Status and message of `/readyz`.
async fn readiness(platform: &Platform) -> (u16, String) {
    let request = platform.request(reqwest::Method::GET, "/readyz");
    let answer = request.send().await.expect("an answer");
    let status = answer.status().as_u16();
    let body: Json = answer.json().await.expect("JSON");
    let message = body["error"]["message"].as_str().unwrap_or_default();
    (status, message.to_owned())
}

/// Waits until the platform reports that it cannot store anything, with the
/// reason and a number of failed writes.
async fn until_reported(platform: &Platform, reason: &str) {
    let failures = "frolic_persistence_failures_total";
    let before = figure(platform, failures).await;
    until("it is reported", async || {
        let (status, message) = readiness(platform).await;
        status == 503
            && message.contains(reason)
            && figure(platform, "frolic_persistence_fault").await == 1
            && figure(platform, failures).await >= before + FAILURES
    })
    .await;
}

async fn until_ready(platform: &Platform) {
    until("it is ready again", async || {
        readiness(platform).await.0 == 200
            && figure(platform, "frolic_persistence_fault").await == 0
    })
    .await;
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A player who only reads what the server sends, as a page does: a connection
/// that is not read is closed.
struct Watcher {
    /// Whether saving is delayed, by the last notice.
    delayed: watch::Receiver<bool>,
    reading: JoinHandle<()>,
}

impl Watcher {
    async fn join(platform: &Platform, crowd: &Crowd) -> Self {
        let mut player = platform.join_again(&crowd.auditor, &crowd.world).await;
        let (sender, delayed) = watch::channel(false);
        let reading = tokio::spawn(async move {
            while let Some(event) = player.try_next_of_kind("event").await {
                if event["feature"] == "session"
                    && event["action"] == "saving"
                    && let Some(delayed) = event["delayed"].as_bool()
                {
                    sender.send_replace(delayed);
                }
            }
        });
        Self { delayed, reading }
    }

    /// Waits until the player was notified that saving is delayed, or no longer is.
    /// On a busy machine it may be delayed without a fault, too.
    async fn until_notified(&mut self, delayed: bool) {
        let notified = self.delayed.wait_for(|now| *now == delayed);
        let notified = tokio::time::timeout(PATIENCE, notified).await;
        notified
            .expect("a notice in time")
            .expect("the connection is open");
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Goes through a fault under players who edit and save: it is reported, players
/// see it, it ends by itself, and nothing that was acknowledged is lost.
async fn survive(
    platform: &Platform,
    reason: &str,
    mut begin: impl FnMut() -> Box<dyn std::any::Any>,
) {
    let mut crowd = Crowd::arrive(platform).await;
    crowd.until_more_is_done(3).await;
    let mut watcher = Watcher::join(platform, &crowd).await;
    for _ in 0..2 {
        let fault = begin();
        until_reported(platform, reason).await;
        watcher.until_notified(true).await;
        drop(fault);
        until_ready(platform).await;
        watcher.until_notified(false).await;
        // Without a restart, everything works again.
        crowd.until_more_is_done(5).await;
        for _ in 0..20 {
            platform.login("Guest").await;
        }
    }
    drop(watcher);
    crowd.leave().await;
    kill_world(platform).await;
    crowd.compare(platform).await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_disk_was_full() {
    let (platform, disk) = Platform::start_on_small_disk("disk-full");
    survive(&platform, "full", || Box::new(disk.fill())).await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_disk_did_not_sync() {
    broken_disk("disk-fsync", Fault::Fsync, "I/O error").await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_disk_was_read_only() {
    broken_disk("disk-read-only", Fault::ReadOnly, "").await;
}

async fn broken_disk(name: &str, fault: Fault, reason: &str) {
    let data = scratch(name);
    let mut command = serve(&data, "0");
    let faults = Faults::prepare(&mut command, name, &data);
    let platform = Platform::start_as(command, data);
    survive(&platform, reason, || Box::new(faults.begin(fault))).await;
}

/// A platform that starts on a disk with a fault reports it from the first request
/// on, and recovers by itself.
#[tokio::test]
async fn a_fault_is_reported_by_a_platform_that_starts_with_it() {
    let data = scratch("start-fsync");
    let mut before = Platform::start_as(serve(&data, "0"), data.clone());
    before.login("Ada").await;
    before.kill().await;
    let mut command = serve(&data, "0");
    let faults = Faults::prepare(&mut command, "start-fsync", &data);
    let failing = faults.begin(Fault::Fsync);
    let platform = Platform::start_as(command, data);
    let (status, message) = readiness(&platform).await;
    assert_eq!(status, 503, "{message}");
    drop(failing);
    until_ready(&platform).await;
    platform.login("Ben").await;
}

#[tokio::test]
async fn a_stop_without_a_platform_loses_nothing_acknowledged() {
    let platform = Platform::start("stop-without-platform");
    let mut crowd = Crowd::arrive(&platform).await;
    crowd.until_more_is_done(3).await;
    let mut watcher = Watcher::join(&platform, &crowd).await;
    let servers = platform.servers().await;
    let pid = servers[0]["pid"].as_i64().expect("a process") as i32;

    // The platform answers nothing for a while, and the world stops meanwhile.
    let frozen = Frozen::new(&platform);
    watcher.until_notified(true).await;
    let world = Pid::from_raw(pid).expect("an id");
    kill_process(world, Signal::TERM).expect("it is ours");
    until("the world has stopped", async || !is_running(pid)).await;
    drop(frozen);

    // The next process of the world has everything that was acknowledged.
    crowd.until_more_is_done(3).await;
    crowd.leave().await;
    kill_world(&platform).await;
    crowd.compare(&platform).await;
}

/// A platform that is there and answers nothing.
struct Frozen(Pid);

impl Frozen {
    fn new(platform: &Platform) -> Self {
        let pid = Pid::from_raw(platform.pid().cast_signed()).expect("an id");
        kill_process(pid, Signal::STOP).expect("it is ours");
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Whether a process still runs; one that has ended and waits for its frozen parent
/// does not.
fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
