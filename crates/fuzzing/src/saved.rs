//! State that the processes of a world persist for the next: a checkpoint in
//! parts, and the operations after it.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::persist::{Checkpoint, STRUCTURES, STRUCTURES_VERSION, SavedWorld, Section};
use frolic_package::{Limits, Package};
use frolic_protocol::packet::{self, SERVER_MESSAGE_BYTES_MAX};
use frolic_protocol::terrain::{TerrainAction, TerrainOp, TerrainShape};
use frolic_protocol::{Args, Value};
use frolic_terrain::codec;
use frolic_world::{
    ClientView, Delivery, PlayerNumber, TerrainView, World, WorldOptions, input, marks_of,
};

const MANIFEST: &str = "[game]\nid = \"fuzz\"\nname = \"Fuzz\"\n";
/// Two chunks of ground; something to build that stands, and something that falls.
const SCENE: &str = r#"{"format":1,"prefabs":{
    "Ball":{"components":{"Shape":{"type":"sphere","radius":0.5},"Body":{"type":"dynamic"}}},
    "Wall":{"components":{"Transform":{"scale":[2,1,1]},"Shape":{"type":"box","size":[4,3,1]}}}},
  "entities":[{"id":1,"name":"Spawn","components":{"Transform":{"position":[0.5,8,0.5]},"SpawnPoint":{}}}],
  "terrain":{"size":[64,32,32],"generator":{"type":"flat","height":8},"reach":100,"rate":60}}"#;
const SCRIPT: &str = r#"
Network.OnClientEvent("Build", function(player, prefab, x)
    World.Build(prefab, Vector3.new(x, 10, 3), Vector3.new(0, 45, 0), player)
end)
Network.OnClientEvent("Raze", function(player)
    for _, structure in World.Structures() do structure.Destroy() end
end)
"#;

/// The kinds of input: a byte selects one, two give its length.
const PART_STRUCTURES: u8 = 0;
const PART_CHUNK: u8 = 1;
const PART_ANY: u8 = 2;
const PART_OPS: u8 = 3;
const PARTS: u8 = 4;
/// More operations than this only take long.
const OPS_MAX: usize = 24;

/// Whatever earlier processes stored, it loads as a world that runs. The world
/// persists its changes, and the next process loads the same world from them.
pub fn saved_world(bytes: &[u8]) {
    let saved = saved_in(bytes);
    let mut checkpoint = saved.checkpoint.clone();
    let mut marks = marks_of(&checkpoint);
    let mut world = load(saved);
    store(&mut checkpoint, world.checkpoint_since(&mut marks));
    let again = load(SavedWorld {
        checkpoint,
        ops: Vec::new(),
    });
    assert_eq!(whole(&again), whole(&world), "the next has the same");
    go_on(&mut world);
}

/// Everything that reads what was saved, or adds to it.
fn go_on(world: &mut World) {
    let ada = world.apply(input::Join::new("ada", "Ada"));
    let mut view = ClientView::new(ada, Delivery::Ordered);
    let mut terrain = TerrainView::new(ada);
    for tick in 0..4 {
        match tick {
            1 => {
                build(world, ada, "Wall", 5.0);
                // It may be refused: a character stands there, or falls.
                let _ = world.apply(input::Terraform {
                    by: ada.into(),
                    op: dig([3.5, 7.5, 3.5]),
                });
            }
            2 => assert!(world.apply(input::Event::new(ada, "Raze", Args(Vec::new())))),
            3 => {
                let by = "ada".into();
                world.apply(input::Clear { by }).expect("there is room");
            }
            _ => {}
        }
        world.apply(input::Step);
        world.apply(input::OpsPersisted {
            up_to: world.newest_op(),
        });
        world.take_outbox();
        terrain.next(world, &mut |chunk| {
            codec::unpack(&chunk.zstd).expect("what clients get is whole");
        });
        world.collect_changes();
        world.snapshot(&mut view, 0, &mut |_| {});
    }
    assert!(world.structures().is_empty(), "all of it was undone");
}

thread_local! {
    static GAME: OnceCell<Package> = const { OnceCell::new() };
}

fn load(saved: SavedWorld) -> World {
    GAME.with(|game| {
        let package = game.get_or_init(|| {
            let files = [
                ("game.toml", MANIFEST),
                ("scene.json", SCENE),
                ("scripts/ServerScriptService/Main.luau", SCRIPT),
            ];
            let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
            let package = Package::from_files(BTreeMap::from(files), &Limits::default());
            package.unwrap_or_else(|report| panic!("{report}"))
        });
        let options = WorldOptions {
            saved: Some(saved),
            ..WorldOptions::default()
        };
        World::load(package, options).expect("the game loads")
    })
}

/// Applies changes as storage does: removed parts are deleted.
fn store(checkpoint: &mut Checkpoint, changes: Checkpoint) {
    checkpoint.seq = changes.seq;
    checkpoint.sections.extend(changes.sections);
    let sections = &mut checkpoint.sections;
    sections.retain(|_, section| *section != Section::gone());
}

/// All that there is to store of a world.
fn whole(world: &World) -> Checkpoint {
    let mut checkpoint = Checkpoint::default();
    store(&mut checkpoint, world.checkpoint());
    checkpoint
}

/// The meaning of an input.
fn saved_in(mut bytes: &[u8]) -> SavedWorld {
    let mut saved = SavedWorld::default();
    let sections = &mut saved.checkpoint.sections;
    while let Some(([kind, low, high], rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (part, after) = rest.split_at(length);
        bytes = after;
        match kind % PARTS {
            PART_STRUCTURES => {
                let section = Section {
                    version: STRUCTURES_VERSION,
                    bytes: part.to_vec(),
                };
                sections.insert(STRUCTURES.to_owned(), section);
            }
            PART_CHUNK => {
                let Some(([x, y, z, head @ ..], runs)) = part.split_first_chunk::<7>() else {
                    continue;
                };
                // Compressed here: a fuzzer does not guess that.
                let packed = zstd::bulk::compress(&spread(runs), 3).expect("memory is enough");
                let [x, y, z] = [x, y, z].map(|at| *at as i8);
                let section = Section {
                    version: 1,
                    bytes: [head.as_slice(), &packed].concat(),
                };
                sections.insert(format!("terrain/{x},{y},{z}"), section);
            }
            PART_ANY => {
                let Some(([version, name], content)) = part.split_first_chunk() else {
                    continue;
                };
                let (name, content) = content.split_at(content.len().min(usize::from(*name)));
                let section = Section {
                    version: u32::from(*version),
                    bytes: content.to_vec(),
                };
                sections.insert(String::from_utf8_lossy(name).into_owned(), section);
            }
            _ => {
                let ops = packet::messages::<LoggedOp>(part, SERVER_MESSAGE_BYTES_MAX);
                saved.ops.extend(ops.map_while(Result::ok));
            }
        }
    }
    saved.ops.truncate(OPS_MAX);
    // Storage has them by number, without gaps.
    for (seq, logged) in (1..).zip(&mut saved.ops) {
        logged.seq = seq;
    }
    saved
}

/// Chunks are long, and mostly the same byte again and again: an input has how
/// often, and which.
fn spread(runs: &[u8]) -> Vec<u8> {
    let runs = runs.as_chunks::<2>().0.iter();
    runs.flat_map(|[count, byte]| std::iter::repeat_n(*byte, usize::from(*count)))
        .collect()
}

fn gathered(plain: &[u8]) -> Vec<u8> {
    let runs = plain
        .chunk_by(|a, b| a == b)
        .flat_map(|run| run.chunks(255));
    runs.flat_map(|run| [run.len() as u8, run[0]]).collect()
}

fn part(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a short part");
    [&[kind], &length.to_le_bytes()[..], content].concat()
}

/// A checkpoint and operations as an input.
fn written(saved: &SavedWorld) -> Vec<u8> {
    let mut input = Vec::new();
    for (name, section) in &saved.checkpoint.sections {
        let place = name.strip_prefix("terrain/");
        let place = place.map(|place| {
            let parts = place.split(',').map(|at| at.parse::<i8>());
            let parts: Result<Vec<i8>, _> = parts.collect();
            parts.expect("a small terrain")
        });
        let Some(place) = place else {
            input.extend(part(PART_STRUCTURES, &section.bytes));
            continue;
        };
        let (version, packed) = section.bytes.split_at(4);
        let chunk = codec::unpack(packed).expect("a real chunk");
        let mut content: Vec<u8> = place.iter().map(|at| *at as u8).collect();
        content.extend_from_slice(version);
        content.extend(gathered(&codec::to_bytes(&chunk)));
        input.extend(part(PART_CHUNK, &content));
    }
    let mut ops = Vec::new();
    saved.ops.iter().for_each(|op| packet::write(&mut ops, op));
    input.extend(part(PART_OPS, &ops));
    input
}

fn dig(center: [f32; 3]) -> TerrainOp {
    TerrainOp {
        action: TerrainAction::Subtract,
        center,
        shape: TerrainShape::Sphere { radius: 2.0 },
        material: None,
    }
}

fn build(world: &mut World, player: PlayerNumber, prefab: &str, x: f64) {
    let args = Args(vec![Value::String(prefab.into()), Value::Number(x)]);
    assert!(world.apply(input::Event::new(player, "Build", args)));
}

/// A world with edits and structures: its operations, then a checkpoint of all
/// that, then that with more operations after it, the last of which undo
/// everything and start again.
pub fn saved_seeds() -> Vec<Vec<u8>> {
    let mut world = load(SavedWorld::default());
    let ada = world.apply(input::Join::new("ada", "Ada"));
    world.apply(input::Step);
    let mut ops = work(&mut world, ada, 4.5);
    ops.extend(work(&mut world, ada, -8.5));
    let as_ops = SavedWorld {
        ops,
        ..SavedWorld::default()
    };
    let as_checkpoint = SavedWorld {
        checkpoint: world.checkpoint(),
        ops: Vec::new(),
    };
    let mut as_both = SavedWorld {
        ops: work(&mut world, ada, 8.5),
        ..as_checkpoint.clone()
    };
    let mut seeds = [as_ops, as_checkpoint, as_both.clone()]
        .iter()
        .map(written)
        .collect::<Vec<_>>();
    world
        .apply(input::Clear { by: "ada".into() })
        .expect("there is room");
    as_both.ops.extend(work(&mut world, ada, 4.5));
    seeds.push(written(&as_both));
    seeds
}

/// Builds and digs; gives what is to be stored of it.
fn work(world: &mut World, player: PlayerNumber, x: f32) -> Vec<LoggedOp> {
    build(world, player, "Wall", f64::from(x));
    build(world, player, "Ball", f64::from(x + 3.0));
    let dug = world.apply(input::Terraform {
        by: player.into(),
        op: dig([x, 7.5, 4.5]),
    });
    assert!(matches!(dug, Ok(Some(_))), "{dug:?}");
    world.apply(input::Step);
    let ops = world.take_ops();
    world.apply(input::OpsPersisted {
        up_to: world.newest_op(),
    });
    ops
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed that is refused at once leads a fuzzer nowhere.
    #[test]
    fn seeds_are_taken() {
        let worlds: Vec<World> = saved_seeds()
            .iter()
            .map(|seed| load(saved_in(seed)))
            .collect();
        let structures = worlds.iter().map(|world| world.structures().len());
        assert_eq!(structures.collect::<Vec<_>>(), [4, 4, 6, 2]);
        let chunks = worlds.iter().map(|world| world.terrain_versions().len());
        assert_eq!(chunks.collect::<Vec<_>>(), [2, 2, 2, 1]);
        let parts = |world: &World| whole(world).sections;
        assert_eq!(parts(&worlds[0]), parts(&worlds[1]), "both are that world");
        let longest = saved_seeds().iter().map(Vec::len).max();
        assert!(longest < Some(4096), "{longest:?} is more than fuzzers try");
    }
}
