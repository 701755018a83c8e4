//! Everything acknowledged is stored, also when the disk was full for a while,
//! and the platform recovers by itself as soon as there is room.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::resident::{Ledger, Resident, game};
use crate::support::{PATIENCE, Platform, Player};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

const RESIDENTS: u64 = 4;
/// How long the disk stays full.
const OUTAGE: Duration = Duration::from_secs(10);

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

    /// Waits until so many more of each kind were acknowledged.
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
        let mut player = join(platform, &self.auditor, &self.world).await;
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

/// Joins a world, also one that is just being started again.
async fn join(platform: &Platform, token: &str, world: &Json) -> Player {
    let began = Instant::now();
    loop {
        let request = platform.request(reqwest::Method::POST, "/join");
        let answer = request.bearer_auth(token).json(world).send().await;
        if let Ok(answer) = answer
            && answer.status().is_success()
            && let Ok(joined) = answer.json().await
            && let Some(player) = Player::try_connect(&joined).await
        {
            return player;
        }
        assert!(began.elapsed() < PATIENCE, "nobody gets in any more");
        tokio::time::sleep(Duration::from_millis(100)).await;
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

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_disk_was_full() {
    let (platform, disk) = Platform::start_on_small_disk("disk-full");
    let mut crowd = Crowd::arrive(&platform).await;
    crowd.until_more_is_done(5).await;

    for _ in 0..2 {
        let full = disk.fill();
        tokio::time::sleep(OUTAGE).await;
        drop(full);
        // Without a restart, everything works again.
        crowd.until_more_is_done(10).await;
        for _ in 0..20 {
            platform.login("Guest").await;
        }
    }

    crowd.leave().await;
    kill_world(&platform).await;
    crowd.compare(&platform).await;
}
