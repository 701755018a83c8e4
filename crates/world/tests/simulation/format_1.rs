//! Packages of format 1 become the same world as in the version that packed them: the sample games
//! of commit bea8b59, packed by its `frolic pack` without their thumbnails.
//!
//! That version's [`World::state_hash`] covers entities, transforms, tags, attributes, bodies, NPCs,
//! characters (which move by the collision world), triggers, terrain and the output of scripts.
//! The hash function has not changed since, except that it knows values of the type `Buffer`,
//! which these games do not use. But a character that respawns is now sent `Facing`, and messages are
//! part of the hash: where the walk ends in the void (obby), the last hash differs by design.

use std::path::Path;
use std::time::Duration;

use frolic_package::Package;
use frolic_protocol::{NumberedInput, ServerMessage};
use frolic_scene::Limits;
use frolic_sim::{Buttons, CharacterInput};
use frolic_world::{World, WorldOptions, input};

/// Hashes of the earlier version: after loading, after two seconds, with a player, and after the
/// player has walked for ten seconds; without scripts, and with them.
const EARLIER: [(&str, [[u64; 4]; 2]); 4] = [
    (
        "arena",
        [
            [
                4_218_679_385_621_600_430,
                14_810_561_982_967_633_748,
                3_687_724_736_249_895_186,
                18_102_151_854_040_102_533,
            ],
            [
                5_445_509_431_438_436_590,
                4_770_067_620_765_940_856,
                11_358_994_129_898_357_539,
                6_217_377_213_774_972_510,
            ],
        ],
    ),
    (
        "obby",
        [
            [
                18_340_068_075_248_144_670,
                17_182_776_304_464_875_932,
                13_049_197_100_148_394_750,
                8_213_164_912_919_945_796,
            ],
            [
                6_101_108_070_886_958_077,
                16_675_279_219_807_411_736,
                2_018_398_988_229_571_160,
                5_069_668_734_823_865_935,
            ],
        ],
    ),
    (
        "sandbox",
        [
            [
                17_646_534_926_993_855_088,
                3_730_462_156_257_733_968,
                13_921_888_386_653_947_815,
                2_901_866_434_097_738_261,
            ],
            [
                17_646_534_926_993_855_088,
                3_730_462_156_257_733_968,
                13_921_888_386_653_947_815,
                7_128_018_590_022_640_946,
            ],
        ],
    ),
    (
        "stealth",
        [
            [
                1_139_733_834_387_505_405,
                15_290_001_771_591_490_545,
                10_610_687_357_524_258_731,
                12_161_488_505_619_151_084,
            ],
            [
                1_139_733_834_387_505_405,
                15_290_001_771_591_490_545,
                10_610_687_357_524_258_731,
                14_880_717_719_762_215_902,
            ],
        ],
    ),
];

#[test]
fn packages_of_format_1_give_the_same_worlds_as_before() {
    for (game, earlier) in EARLIER {
        let package = read(game);
        let worlds = [without_scripts(&package), package];
        for (package, mut earlier) in worlds.iter().zip(earlier) {
            let (found, respawned) = hashes(package);
            assert_eq!(respawned, game == "obby", "{game}");
            if respawned {
                earlier[3] = found[3];
            }
            assert_eq!(found, earlier, "{game}");
        }
    }
}

fn read(game: &str) -> Package {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bea8b59");
    let archive = std::fs::read(fixtures.join(format!("{game}.game"))).expect("it is committed");
    Package::read(&archive, &Limits::default()).unwrap_or_else(|report| panic!("{report}"))
}

fn without_scripts(package: &Package) -> Package {
    let mut package = package.clone();
    for (path, bytes) in &mut package.files {
        if path.starts_with("scripts/") {
            bytes.clear();
        }
    }
    package
}

/// The hashes, and whether the player was turned after a respawn.
fn hashes(package: &Package) -> ([u64; 4], bool) {
    let mut options = WorldOptions::default();
    // A busy machine must not interrupt a script.
    options.scripts.slice = Duration::from_secs(5);
    options.scripts.average = Duration::from_secs(5);
    let mut world = World::load(package, options).expect("it starts");
    let loaded = world.state_hash();
    for _ in 0..120 {
        world.apply(input::Step);
    }
    let alone = world.state_hash();
    let player = world.apply(input::Join::new("user_ada", "Ada"));
    let joined = world.state_hash();
    for tick in 0..600_u32 {
        let buttons = match tick % 90 {
            0..5 => Buttons::JUMP,
            _ => Buttons::RUN,
        };
        let input = CharacterInput::new(0.0, 1.0, (tick / 60) as f32 * 0.8, 0.0, buttons);
        world.apply(input::Controls::new(
            player,
            [NumberedInput {
                seq: tick + 1,
                input,
            }],
        ));
        world.apply(input::Step);
    }
    let hashes = [loaded, alone, joined, world.state_hash()];
    let outbox = world.take_outbox();
    let is_facing = |message: &ServerMessage| matches!(message, ServerMessage::Facing { .. });
    (hashes, outbox.iter().any(|sent| is_facing(&sent.message)))
}
