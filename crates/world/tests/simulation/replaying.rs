//! A recorded session, done again.

use std::time::Duration;

use frolic_fleet_api::store::StoreAnswer;
use frolic_package::Package;
use frolic_protocol::{Args, Value};
use frolic_script::{LogLevel, MemoryStore, VmLimits};
use frolic_sim::random::Random;
use frolic_sim::{Buttons, CharacterInput, Vec3};
use frolic_world::input::{self, Input};
use frolic_world::replay::{
    Ending, Record, RecordOptions, RecordReader, RecordingError, Replay, ReplayError, replay,
};
use frolic_world::{World, WorldOptions};

use crate::harness::{Run, obby, package};
use crate::network::Quality;

fn recorded(package: &Package, seed: u64, hash_every_ticks: Option<u32>) -> Run {
    let options = WorldOptions {
        seed,
        record: Some(RecordOptions {
            hash_every_ticks,
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    Run::with(package, options, seed, Quality::BAD)
}

/// The sample game, with a script that answers, counts, rolls dice, spawns
/// and moves things: all that could go another way.
fn busy_obby() -> Package {
    let mut files = obby().files;
    files.insert(
        "scripts/ServerScriptService/Busy.luau".into(),
        br#"
        local random = Random.new()
        local scores = {}
        Network.OnClientEvent("Roll", function(player, at)
            scores[player.Name] = (scores[player.Name] or 0) + random.NextInteger(1, 6)
            local thing = World.Spawn({ Shape = { type = "box", size = { 1, 1, 1 } } }, at)
            thing.SetAttribute("owner", player.Name)
            thing.SetVelocity(random.NextUnitVector() * 3)
            for name, score in scores do
                Network.Broadcast("Score", name, score)
            end
            task.delay(math.random() * 3, function() thing.Destroy() end)
        end)
        Network.OnClientInvoke("Time", function(player) return time(), World.Time end)
        "#
        .to_vec(),
    );
    Package::from_files(files, &frolic_scene::Limits::default())
        .unwrap_or_else(|report| panic!("{report}"))
}

/// Players come and go, walk, jump, fire events and call functions, at random.
fn play(run: &mut Run, seed: u64, turns: u32) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut here = vec![run.join("Ada"), run.join("Ben")];
    run.for_ms(500);
    for turn in 0..turns {
        if here.len() < 5 && random.below(8) == 0 {
            here.push(run.join(&format!("Guest{turn}")));
        }
        if here.len() > 1 && random.below(12) == 0 {
            let gone = here.swap_remove(random.below(here.len() as u32) as usize);
            run.leave(gone);
        }
        for &peer in &here {
            let input = CharacterInput::new(
                random.range(-1.0, 1.0),
                random.range(-0.2, 1.0),
                random.range(-3.0, 3.0),
                0.0,
                Buttons(random.below(4) as u8),
            );
            run.steer(peer, input);
        }
        let peer = here[random.below(here.len() as u32) as usize];
        let number = run.number(peer);
        match random.below(6) {
            0 => {
                let at = [random.range(-5.0, 5.0), 4.0, 0.0];
                let args = Args(vec![Value::Vector(at)]);
                run.client_mut(peer).fire_server("Roll".into(), args);
            }
            1 => {
                let args = Args::default();
                run.world_mut().apply(input::Invoke {
                    player: number,
                    id: turn,
                    name: "Time".into(),
                    args,
                });
            }
            2 => run.world_mut().apply(input::Reconnect { player: number }),
            _ => {}
        }
        run.for_ms(150);
    }
    let errors = run.world_mut().take_logs();
    let errors = errors.iter().filter(|line| line.level == LogLevel::Error);
    assert_eq!(
        errors.map(|line| &line.message).collect::<Vec<_>>(),
        [""; 0]
    );
    let mut bytes = run.world_mut().take_recording();
    run.world_mut().end_recording(Ending::Complete);
    bytes.extend(run.world_mut().take_recording());
    bytes
}

/// A store that answers some ticks later, in another order each time.
fn answer_store(run: &mut Run, store: &mut MemoryStore, random: &mut Random) -> usize {
    let mut requests = run.world_mut().take_store_requests();
    let count = requests.len();
    run.for_ms(random.below(200));
    while !requests.is_empty() {
        let index = random.below(requests.len() as u32) as usize;
        let request = requests.swap_remove(index);
        let result = match random.below(5) {
            0 => Err("the store cannot be reached".to_owned()),
            _ => store.apply(&request.action),
        };
        let id = request.id;
        run.world_mut()
            .apply(input::StoreAnswered(StoreAnswer { id, result }));
    }
    count
}

#[test]
fn answers_of_the_store_are_part_of_the_session() {
    let mut files = obby().files;
    let script = br#"
        for i = 1, 3 do
            task.spawn(function()
                while true do
                    local ok, value = pcall(Store.Update, "n", function(n) return (n or 0) + i end)
                    Network.Broadcast("Saved", i, ok, value)
                    local _, top = pcall(Store.Ranking("r").Increment, `k{i}`, i)
                    World.Spawn({ Shape = { type = "box", size = { 1, 1, 1 } } }, Vector3.new(i, tonumber(top) or 0, 0))
                    task.wait(0.05)
                end
            end)
        end
    "#;
    files.insert(
        "scripts/ServerScriptService/Save.luau".into(),
        script.to_vec(),
    );
    let game = Package::from_files(files, &frolic_scene::Limits::default())
        .unwrap_or_else(|report| panic!("{report}"));
    let mut run = recorded(&game, 5, Some(1));
    let (mut store, mut random) = (MemoryStore::default(), Random::new(9));
    run.join("Ada");
    let mut answered = 0;
    for _ in 0..60 {
        run.for_ms(50);
        answered += answer_store(&mut run, &mut store, &mut random);
    }
    assert!(answered > 50, "{answered}");
    run.world_mut().end_recording(Ending::Complete);
    let bytes = run.world_mut().take_recording();
    let report = replay(&game, &bytes).expect("it can be replayed");
    assert_eq!(report.difference, None);
    assert_eq!(report.same_hashes, report.ticks + 1);
}

#[test]
fn a_session_done_again_is_the_same_at_every_tick() {
    let game = busy_obby();
    for seed in 1..=3 {
        let mut run = recorded(&game, seed, Some(1));
        let bytes = play(&mut run, seed, 120);
        let report = replay(&game, &bytes).expect("it can be replayed");
        assert_eq!(report.difference, None, "seed {seed}");
        assert_eq!(report.ticks, run.world().tick());
        assert_eq!(report.same_hashes, report.ticks + 1, "and at the end");
        assert_eq!(report.ending, Some(Ending::Complete));
        assert_eq!((report.cut_at, report.replay_cut_at), (None, None));
        let seconds = report.ticks / 60;
        println!("{} bytes for {seconds} s of 1 to 5 players", bytes.len());
    }
}

/// Refused inputs are not in a recording. So the inputs a world accepts must
/// not depend on how many were refused.
#[test]
fn what_was_refused_between_changes_nothing() {
    let game = package(
        r#"{"format":1,"prefabs":{},"entities":[]}"#,
        &[(
            "scripts/ServerScriptService/Count.luau",
            r#"Network.OnClientEvent("Say", function()
                   World.Spawn({ Shape = { type = "box", size = { 1, 1, 1 } } }, Vector3.zero)
               end)"#,
        )],
    );
    let options = WorldOptions {
        record: Some(RecordOptions {
            hash_every_ticks: Some(1),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let mut world = World::load(&game, options).expect("it loads");
    let player = world.apply(input::Join::new("a", "Ada"));
    let words = Args(vec![Value::String("x".into()); 37]);
    let mut taken = 0;
    for _ in 0..600 {
        taken += u32::from(world.apply(input::Event::new(player, "Say", words.clone())));
        world.apply(input::Step);
    }
    assert!((100..600).contains(&taken), "{taken} of 600 were taken");
    world.end_recording(Ending::Complete);
    let bytes = world.take_recording();
    let report = replay(&game, &bytes).expect("it can be replayed");
    assert_eq!(report.difference, None);
    assert_eq!(report.same_hashes, report.ticks + 1);
}

#[test]
fn one_second_apart_is_enough_to_find_a_difference() {
    let game = busy_obby();
    let bytes = play(&mut recorded(&game, 5, None), 5, 60);
    let report = replay(&game, &bytes).expect("it can be replayed");
    assert_eq!(report.same_hashes, report.ticks / 60 + 1);
    let mut header = header_of(&bytes);
    header.seed ^= 1 << 40;
    let mut other = Replay::new(&game, &header).expect("it loads");
    for (_, record) in records_of(&bytes) {
        other.apply(record).expect("the same players are there");
    }
    assert!(
        other.report().difference.is_some(),
        "another seed rolls other dice"
    );
}

fn reader_of(bytes: &[u8]) -> RecordReader {
    let mut reader = RecordReader::default();
    reader.push(bytes);
    reader
}

fn header_of(bytes: &[u8]) -> frolic_world::replay::RecordingHeader {
    reader_of(bytes).header().expect("readable").expect("whole")
}

fn record(input: impl Into<Input>) -> Record {
    Record::Input(input.into())
}

fn is_step(record: &Record) -> bool {
    matches!(record, Record::Input(Input::Step(_)))
}

/// The records and where each ends.
fn records_of(bytes: &[u8]) -> Vec<(usize, Record)> {
    let mut reader = reader_of(bytes);
    reader.header().expect("readable");
    let mut records = Vec::new();
    while let Some(record) = reader.record().expect("readable") {
        records.push((reader.bytes_read() as usize, record));
    }
    records
}

#[test]
fn a_changed_input_is_found_at_its_tick() {
    let game = busy_obby();
    let bytes = play(&mut recorded(&game, 2, Some(1)), 2, 40);
    let records = records_of(&bytes);
    let is_input = |record: &Record| matches!(record, Record::Input(Input::Controls(_)));
    let inputs: Vec<usize> = (0..records.len())
        .filter(|&index| is_input(&records[index].1))
        .collect();
    assert!(inputs.len() > 100, "{} inputs", inputs.len());
    for index in [
        inputs[0],
        inputs[inputs.len() / 2],
        inputs[inputs.len() - 20],
    ] {
        let before = &records[..index];
        let ticks = before.iter().filter(|(_, record)| is_step(record));
        let tick = ticks.count() as u32;
        let mut bytes = bytes.clone();
        // The last byte of a record of inputs is what was held.
        bytes[records[index].0 - 1] ^= 1;
        let report = replay(&game, &bytes).expect("it can be replayed");
        let difference = report.difference.expect("it is found");
        assert_eq!(difference.tick, tick + 1);
        assert_eq!(difference.same_until, Some(tick).filter(|tick| *tick > 0));
    }
}

#[test]
fn a_file_that_was_cut_off_replays_to_its_end() {
    let game = busy_obby();
    let bytes = play(&mut recorded(&game, 3, Some(5)), 3, 30);
    let records = records_of(&bytes);
    for share in [3, 5, 8] {
        let cut = bytes.len() * share / 9;
        let whole = records.iter().take_while(|(end, _)| *end <= cut);
        let ticks = whole.filter(|(_, record)| is_step(record)).count();
        let report = replay(&game, &bytes[..cut]).expect("it can be replayed");
        assert_eq!((report.ticks as usize, report.difference), (ticks, None));
        assert_eq!(report.ending, None);
    }
    let header = bytes.len() - records_of_bytes(&bytes);
    let report = replay(&game, &bytes[..header]).expect("nothing happened");
    assert_eq!(report.ticks, 0);
    assert!(matches!(
        replay(&game, &bytes[..header - 1]),
        Err(ReplayError::NoHeader)
    ));
}

fn records_of_bytes(bytes: &[u8]) -> usize {
    let mut reader = reader_of(bytes);
    reader.header().expect("readable");
    reader.left()
}

#[test]
fn forged_files_are_refused_and_never_panic() {
    let game = package(
        r#"{"format":1,"prefabs":{},"entities":[{"id":1,"name":"Ground","components":{
            "Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[80,1,80]}}}]}"#,
        &[],
    );
    let mut run = recorded(&game, 4, Some(7));
    let bytes = play(&mut run, 4, 4);
    assert!(replay(&game, &bytes).is_ok());
    assert!(matches!(
        replay(&obby(), &bytes),
        Err(ReplayError::OtherPackage { .. })
    ));
    assert!(matches!(
        replay(&game, b"GIF89a and more"),
        Err(ReplayError::Recording(RecordingError::NotOne))
    ));
    let mut random = Random::new(9);
    let header = bytes.len() - records_of_bytes(&bytes);
    let mut refused = 0;
    for _ in 0..150 {
        let mut forged = bytes.clone();
        for _ in 0..=random.below(8) {
            let at = header as u32 + random.below((bytes.len() - header) as u32);
            forged[at as usize] = random.below(256) as u8;
        }
        refused += u32::from(replay(&game, &forged).is_err());
    }
    assert!(refused > 10, "{refused} of 150 could not be read");
}

#[test]
fn forged_records_cannot_do_what_no_host_does() {
    let game = package(r#"{"format":1,"prefabs":{},"entities":[]}"#, &[]);
    let header = header_of(&recorded(&game, 1, None).world_mut().take_recording());
    let mut replay = Replay::new(&game, &header).expect("it loads");
    assert!(replay.apply(record(input::Leave { player: 77 })).is_err());
    let join = || record(input::Join::new("a", "a"));
    let joined = (0..100_000).take_while(|_| replay.apply(join()).is_ok());
    assert_eq!(joined.count(), 20_000);
    let mut greedy = header;
    greedy.scripts.memory_bytes = u64::MAX;
    assert!(Replay::new(&game, &greedy).is_err());
}

#[test]
fn a_stopped_script_is_logged() {
    let game = package(
        r#"{"format":1,"prefabs":{},"entities":[]}"#,
        &[(
            "scripts/ServerScriptService/Slow.luau",
            r#"task.wait(0.5)
               local n = 0
               for i = 1, 40000000 do n += i % 7 end
               Network.Broadcast("Done", n)"#,
        )],
    );
    let options = WorldOptions {
        scripts: VmLimits {
            slice: Duration::from_millis(1),
            ..VmLimits::default()
        },
        record: Some(RecordOptions {
            hash_every_ticks: Some(1),
            ..RecordOptions::default()
        }),
        ..WorldOptions::default()
    };
    let mut run = Run::with(&game, options, 1, Quality::GOOD);
    run.for_ms(1_000);
    let bytes = run.world_mut().take_recording();
    let report = replay(&game, &bytes).expect("it can be replayed");
    let cut_at = report.cut_at.expect("it was stopped");
    assert!((29..=32).contains(&cut_at), "{cut_at}");
    // The replay gives it the time it needs, so it goes another way there.
    let difference = report.difference.expect("it went on");
    assert_eq!((difference.tick, report.replay_cut_at), (cut_at, None));
}

/// A caller that moves a player from outside changes the world: it is in the
/// recording.
#[test]
fn a_player_who_was_put_elsewhere_is_there_in_the_replay() {
    let game = obby();
    let mut run = recorded(&game, 5, Some(1));
    let player = run.join("Ada");
    run.for_ms(500);
    let number = run.number(player);
    run.world_mut()
        .apply(input::Teleport::new(number, Vec3::new(1.0, 30.0, 2.0)));
    run.for_ms(200);
    run.world_mut().end_recording(Ending::Complete);
    let report = replay(&game, &run.world_mut().take_recording()).expect("it can be read");
    assert_eq!(report.difference, None);
    assert_eq!(report.ending, Some(Ending::Complete));
}
