//! Durability: acknowledged operations survive while game servers and the
//! platform are killed with SIGKILL at random moments, with players who build,
//! remove, save and walk.
//! moments under players who build, take away, save and walk.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::resident::{Ledger, Resident, WALK_SPEED, game};
use crate::support::{PATIENCE, Platform, Player};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

const RESIDENTS: u64 = 4;
/// Kills, unless FROLIC_KILL_ROUNDS says more.
const ROUNDS: u32 = 9;

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn number(name: &str, default: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn kill(pid: i32) {
    let pid = Pid::from_raw(pid).expect("a process id");
    kill_process(pid, Signal::KILL).expect("it is ours");
}

async fn only_server(platform: &Platform) -> Json {
    let servers = platform.servers().await;
    assert_eq!(servers.len(), 1, "one world, one process: {servers:?}");
    servers[0].clone()
}

async fn pid_of_world(platform: &Platform) -> i32 {
    only_server(platform).await["pid"]
        .as_i64()
        .expect("a process") as i32
}

/// Processes of this machine that run a world, by what they were started with.
fn processes_of(world_id: &str) -> Vec<i32> {
    let folders = std::fs::read_dir("/proc").expect("a proc folder");
    let pids = folders.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command
            .split(|byte| *byte == 0)
            .any(|word| word == world_id.as_bytes())
    })
    .collect()
}

/// The structures in the world, as the world itself counts them.
struct Count {
    blocks: Vec<u64>,
    keys: BTreeSet<u64>,
    saves: u64,
    /// Blocks of the ground that should be there and are not.
    empty: Vec<u64>,
}

async fn count(platform: &Platform, token: &str, world: &Json, filled: &BTreeSet<u64>) -> Count {
    let mut player = platform.join_again(token, world).await;
    player.fire_with("Count", json!([filled])).await;
    let counted = player.event("Counted").await;
    let tags = |json: &Json| -> Vec<u64> {
        let list = json.as_array().into_iter().flatten();
        list.filter_map(Json::as_f64)
            .map(|tag| tag as u64)
            .collect()
    };
    Count {
        blocks: tags(&counted[0]),
        keys: tags(&counted[1]).into_iter().collect(),
        saves: counted[2].as_f64().unwrap_or_default() as u64,
        empty: tags(&counted[3]),
    }
}

/// Everything acknowledged to any player, at one moment.
#[derive(Default)]
struct Acknowledged {
    built: BTreeSet<u64>,
    razed: BTreeSet<u64>,
    saved: BTreeSet<u64>,
    filled: BTreeSet<u64>,
}

type Ledgers = [Arc<Mutex<Ledger>>];

fn acknowledged(ledgers: &Ledgers) -> Acknowledged {
    let mut all = Acknowledged::default();
    for ledger in ledgers {
        let ledger = ledger.lock().expect("whole");
        all.built.extend(ledger.done("Built"));
        all.razed.extend(ledger.done("Razed"));
        all.saved.extend(ledger.done("Saved"));
        all.filled.extend(ledger.done("Filled"));
    }
    all
}

fn asked(ledgers: &Ledgers, what: &str) -> BTreeSet<u64> {
    let ledgers = ledgers.iter();
    ledgers
        .flat_map(|ledger| ledger.lock().expect("whole").asked(what))
        .collect()
}

/// Compares what was acknowledged before a count with what was counted; what
/// was only asked for may or may not be there.
fn compare(before: &Acknowledged, ledgers: &Ledgers, count: &Count) {
    let blocks: BTreeSet<u64> = count.blocks.iter().copied().collect();
    assert_eq!(blocks.len(), count.blocks.len(), "nothing is built twice");
    let razing = asked(ledgers, "Raze");
    let lost = before.built.iter();
    let lost: Vec<&u64> = lost
        .filter(|tag| !razing.contains(tag) && !blocks.contains(tag))
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let back: Vec<&u64> = before.razed.intersection(&blocks).collect();
    assert!(back.is_empty(), "taken away and back: {back:?}");
    let empty = &count.empty;
    assert!(empty.is_empty(), "filled and empty again: {empty:?}");
    let unsaved: Vec<&u64> = before.saved.difference(&count.keys).collect();
    assert!(unsaved.is_empty(), "saved and lost: {unsaved:?}");
    let saves = before.saved.len() as u64..=asked(ledgers, "Save").len() as u64;
    assert!(
        saves.contains(&count.saves),
        "{} saves, not {saves:?}",
        count.saves
    );
    let building = asked(ledgers, "Build");
    let unknown: Vec<&u64> = blocks.difference(&building).collect();
    assert!(unknown.is_empty(), "unrequested: {unknown:?}");
}

/// No player lost more than a second of their walk.
fn check_places(ledgers: &Ledgers) -> (usize, f32) {
    let (mut returns, mut worst) = (0, 0f32);
    for ledger in ledgers {
        for (before, after) in &ledger.lock().expect("whole").returns {
            let (x, z) = (before[0] - after[0], before[2] - after[2]);
            let lost = (x * x + z * z).sqrt();
            returns += 1;
            worst = worst.max(lost);
        }
    }
    assert!(worst <= WALK_SPEED, "a player lost {worst} m of their walk");
    (returns, worst)
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_whatever_is_killed() {
    let mut platform = Platform::start("kept-through-kills");
    let creator = platform.login("Creator").await;
    platform.publish(&creator, &game("keep", "")).await;
    let auditor = platform.login("Auditor").await;
    let (end, over) = watch::channel(false);
    let mut residents = JoinSet::new();
    let mut ledgers = Vec::new();
    let first = platform
        .join_again(&auditor, &json!({ "game_id": "keep" }))
        .await;
    let world = json!({ "world_id": first.world_id });
    drop(first);
    for number in 1..=RESIDENTS {
        let ledger = Arc::<Mutex<Ledger>>::default();
        ledgers.push(ledger.clone());
        let resident = Resident {
            number,
            url: platform.url.clone(),
            session: platform.login("Resident").await,
            world: world.clone(),
            ledger,
            over: over.clone(),
            tags: 0,
        };
        residents.spawn(resident.live());
    }
    let seed = number("FROLIC_KILL_SEED", 20_261_116);
    let rounds = number("FROLIC_KILL_ROUNDS", u64::from(ROUNDS));
    println!("seed {seed}, {rounds} rounds");
    let mut dice = Dice(seed.max(1));
    // A platform gives up worlds that crash again and again: between two of
    // its own ends a game server is killed twice at most.
    let mut server_kills = 0;
    for round in 0..rounds {
        tokio::time::sleep(Duration::from_millis(700 + dice.below(1800))).await;
        let what = if server_kills >= 2 {
            1 + dice.below(2)
        } else {
            dice.below(3)
        };
        let pid = pid_of_world(&platform).await;
        match what {
            0 => {
                server_kills += 1;
                kill(pid);
            }
            1 => {
                server_kills = 0;
                platform.kill_now();
                tokio::time::sleep(Duration::from_millis(dice.below(1500))).await;
                platform.restart();
            }
            _ => {
                server_kills = 0;
                platform.kill_now();
                tokio::time::sleep(Duration::from_millis(dice.below(300))).await;
                kill(pid);
                platform.restart();
            }
        }
        let before = acknowledged(&ledgers);
        let count = count(&platform, &auditor, &world, &before.filled).await;
        compare(&before, &ledgers, &count);
        let server = only_server(&platform).await;
        assert_eq!(server["world_id"], world["world_id"]);
        let world_id = world["world_id"].as_str().expect("an id");
        let running = processes_of(world_id);
        assert_eq!(running.len(), 1, "the world runs once: {running:?}");
        println!(
            "round {round}: {} with {} blocks, {} keys",
            ["game server", "platform", "both"][what as usize],
            count.blocks.len(),
            count.keys.len()
        );
    }
    tokio::time::sleep(Duration::from_millis(1500)).await;
    end.send_replace(true);
    while let Some(resident) = residents.join_next().await {
        resident.expect("no panic");
    }
    let before = acknowledged(&ledgers);
    let count = count(&platform, &auditor, &world, &before.filled).await;
    compare(&before, &ledgers, &count);
    let built = before.built.len();
    let (returns, worst) = check_places(&ledgers);
    println!("{built} builds acknowledged, {returns} returns, {worst:.2} m lost at most");
    assert!(built as u64 > 10 * rounds, "they were busy: {built}");
    assert!(returns > 0);
}

/// Counts the players' messages in the store, and acknowledges each.
const TALLY: &str = r#"
Network.OnClientEvent("Tally", function(player, number)
	Store.Increment("tally")
	Network.FireClient(player, "Tallied", number)
end)
Network.OnClientEvent("Total", function(player)
	Network.FireClient(player, "Is", Store.Get("tally"))
end)
"#;

/// Resumes in a world whose process was killed, and resends the messages that
/// it had not received: docs/protocol/websocket.md, "Coming back".
async fn come_back(
    platform: &Platform,
    session: &str,
    world: &Json,
    token: &str,
    said: u64,
) -> Player {
    let began = Instant::now();
    let (mut player, welcome) = loop {
        let joined = platform.join_as(session, world).await;
        if let Some(resumed) = Player::try_resume(&joined, token).await {
            break resumed;
        }
        assert!(began.elapsed() < PATIENCE, "no player can join any more");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(welcome["resumption"], "restarted", "{welcome}");
    let received = welcome["received"].as_u64().expect("a count");
    println!("{received} of {said} were received");
    for number in received + 1..=said {
        player.fire_with("Tally", json!([number])).await;
    }
    player
}

#[tokio::test]
async fn a_killed_server_does_not_receive_persisted_messages_again() {
    // The number of acknowledged messages, and of messages in flight, when the
    // server is killed.
    for (acknowledged_count, on_their_way) in [(12, 0), (5, 20)] {
        let platform = Platform::start("kept-tally");
        let creator = platform.login("Creator").await;
        let files = crate::support::game("tally", 8, TALLY);
        platform.publish(&creator, &files).await;
        let joined = platform
            .join_as(&creator, &json!({ "game_id": "tally" }))
            .await;
        let world = json!({ "world_id": joined["world_id"] });
        let mut player = Player::connect(joined).await;
        let welcome = player.next_of_kind("welcome").await;
        let token = welcome["resumeToken"].as_str().expect("a token").to_owned();
        for number in 1..=acknowledged_count {
            player.fire_with("Tally", json!([number])).await;
            assert_eq!(player.event("Tallied").await, [json!(number)]);
        }
        let said = acknowledged_count + on_their_way;
        for number in acknowledged_count + 1..=said {
            player.fire_with("Tally", json!([number])).await;
        }
        if on_their_way > 0 {
            // Some of them are stored, and some are not.
            player.event("Tallied").await;
        }
        kill(pid_of_world(&platform).await);

        let mut player = come_back(&platform, &creator, &world, &token, said).await;
        // The store answers in the order in which it was asked.
        player.fire("Total").await;
        assert_eq!(player.event("Is").await, [json!(said)], "each once");
    }
}

#[tokio::test]
async fn a_world_goes_on_while_its_platform_is_killed_and_comes_back() {
    let mut platform = Platform::start("kept-adopted");
    let creator = platform.login("Creator").await;
    platform.publish(&creator, &game("keep", "")).await;
    let mut player = platform.join("keep").await;
    player.fire_with("Build", json!([1])).await;
    assert_eq!(player.event("Built").await, [json!(1)]);
    let before = only_server(&platform).await;

    platform.kill_now();
    // Asked without a platform: acknowledged when it is back and has persisted
    // it.
    player.fire_with("Build", json!([2])).await;
    platform.restart();
    assert_eq!(player.event("Built").await, [json!(2)]);

    // The session from before works, and leads to the very same process.
    let world = json!({ "world_id": player.world_id });
    let mut other = platform.join_again(&creator, &world).await;
    other.fire("Count").await;
    assert_eq!(other.event("Counted").await[0], json!([1, 2]));
    let after = only_server(&platform).await;
    assert_eq!(
        (&after["pid"], &after["state"]),
        (&before["pid"], &json!("ready"))
    );

    // Its end is noticed although it is not a child of this platform.
    kill(after["pid"].as_i64().expect("a process") as i32);
    let mut again = platform.join_again(&creator, &world).await;
    again.fire("Count").await;
    assert_eq!(again.event("Counted").await[0], json!([1, 2]));
    assert_ne!(only_server(&platform).await["pid"], before["pid"]);
}

#[tokio::test]
async fn an_idle_persistent_world_sleeps_and_wakes_unchanged() {
    let platform = Platform::start("kept-asleep");
    let creator = platform.login("Creator").await;
    platform.publish(&creator, &game("keep", "")).await;
    let mut player = platform.join("keep").await;
    for tag in 1..=20 {
        player.fire_with("Build", json!([tag])).await;
    }
    for _ in 1..=20 {
        player.event("Built").await;
    }
    // Stopped in order: the last thing it does is a checkpoint.
    let path = format!("/admin/servers/{}", player.world_id);
    let stop = platform.request(reqwest::Method::DELETE, &path);
    stop.bearer_auth(crate::support::ADMIN_TOKEN)
        .send()
        .await
        .expect("an answer");
    // A player who joins while it closes waits for it: the game has one world.
    let world = player.world_id.clone();
    let mut player = platform.join("keep").await;
    assert_eq!(player.world_id, world);
    player.fire("Count").await;
    let blocks = player.event("Counted").await[0].as_array().map(Vec::len);
    assert_eq!(blocks, Some(20));
}
