//! The worlds of `frolic bench stages`: a meadow with more and more of one
//! thing, and one with some of everything.

use anyhow::Result;
use frolic_package::Package;
use serde_json::{Value as Json, json};

use crate::tools;

/// Side of the meadow.
const AREA_M: f32 = 200.0;
/// Spawn points per side.
const SPAWNS: u32 = 16;
const MANIFEST: &str = "[game]\nid = \"stages\"\nname = \"Stages\"\nversion = \"1.0.0\"\n\
                        max_players = 1000\n[world]\npersistent = true\n";

/// The contents of a world.
#[derive(Clone, Copy, Default)]
struct Things {
    /// Balls that bounce for ever.
    awake: u32,
    /// Boxes that lie still.
    asleep: u32,
    /// Shots in the air at any time.
    shots: u32,
    npcs: u32,
    /// Edits of the ground per second.
    edits: u32,
}

/// One world to measure.
pub struct Case {
    pub name: String,
    pub players: u32,
    /// How many things beside players.
    pub things: u32,
    inside: Things,
}

impl Case {
    fn new(name: &str, players: u32, inside: Things) -> Self {
        let Things {
            awake,
            asleep,
            shots,
            npcs,
            edits,
        } = inside;
        Self {
            name: name.to_owned(),
            players,
            things: awake + asleep + shots + npcs + edits,
            inside,
        }
    }
}

/// Every case, small to large.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let nothing = Things::default();
    for players in [100, 300, 1000] {
        cases.push(Case::new(&format!("{players} players"), players, nothing));
    }
    for awake in [100, 300, 1000] {
        let inside = Things { awake, ..nothing };
        cases.push(Case::new(&format!("{awake} bodies awake"), 0, inside));
    }
    for asleep in [1000, 4000] {
        let inside = Things { asleep, ..nothing };
        cases.push(Case::new(&format!("{asleep} bodies asleep"), 0, inside));
    }
    for shots in [100, 300, 1000] {
        let inside = Things { shots, ..nothing };
        cases.push(Case::new(
            &format!("{shots} projectiles, 50 players"),
            50,
            inside,
        ));
    }
    for npcs in [100, 250, 500] {
        let inside = Things { npcs, ..nothing };
        cases.push(Case::new(&format!("{npcs} NPCs, 50 players"), 50, inside));
    }
    for edits in [10, 30, 100] {
        let inside = Things { edits, ..nothing };
        cases.push(Case::new(
            &format!("{edits} edits of the ground per second"),
            0,
            inside,
        ));
    }
    let all = Things {
        awake: 200,
        npcs: 100,
        ..nothing
    };
    cases.push(Case::new(
        "300 players, 200 bodies awake, 100 NPCs",
        300,
        all,
    ));
    cases
}

impl Case {
    /// The world as a package.
    pub fn package(&self) -> Result<Package> {
        let mut scene = json!({
            "format": 1,
            "prefabs": {
                "Ball": { "components": {
                    "Shape": { "type": "sphere", "radius": 0.4 },
                    "Body": { "type": "dynamic", "friction": 0, "restitution": 1 },
                } },
                "Crate": { "components": {
                    "Shape": { "type": "box", "size": [1, 1, 1] },
                    "Body": { "type": "dynamic" },
                } },
            },
            "entities": self.entities(),
        });
        if self.inside.edits > 0 {
            scene["terrain"] = json!({
                "size": [128, 64, 128], "generator": { "type": "hills", "seed": 7, "height": 20, "amplitude": 8,
                    "scale": 60 },
            });
        }
        let script = self.script();
        let scripts = [("scripts/ServerScriptService/Main.luau", script.as_str())];
        let mut files = tools::files("stages", &scene, &scripts)?;
        files.insert("game.toml".to_owned(), MANIFEST.as_bytes().to_vec());
        tools::package(files)
    }

    fn entities(&self) -> Vec<Json> {
        let mut entities = Vec::new();
        let mut add = |name: &str, position: [f32; 3], mut components: Json| {
            components["Transform"] = json!({ "position": position });
            let id = entities.len() + 1;
            entities.push(json!({ "id": id, "name": name, "components": components }));
        };
        let half = AREA_M / 2.0;
        if self.inside.edits == 0 {
            let size = [AREA_M, 1.0, AREA_M];
            // Bodies that are to sleep must not bounce.
            let restitution = u32::from(self.inside.asleep == 0);
            let ground = json!({ "Shape": { "type": "box", "size": size },
                "Body": { "type": "static", "restitution": restitution,
                    "friction": 1 - restitution } });
            add("Ground", [0.0, -0.5, 0.0], ground);
        }
        for (x, z, size) in [
            (half, 0.0, [1.0, 40.0, AREA_M]),
            (-half, 0.0, [1.0, 40.0, AREA_M]),
            (0.0, half, [AREA_M, 40.0, 1.0]),
            (0.0, -half, [AREA_M, 40.0, 1.0]),
        ] {
            let wall = json!({ "Shape": { "type": "box", "size": size },
                "Body": { "type": "static", "restitution": 1, "friction": 0 } });
            add("Wall", [x, 19.0, z], wall);
        }
        // Something to look and walk around.
        for index in 0..64 {
            let [x, z] = spread(index, 64, AREA_M - 20.0);
            let hut = json!({ "Shape": { "type": "box", "size": [4, 3, 4] } });
            add("Hut", [x, 1.5, z], hut);
        }
        for index in 0..SPAWNS * SPAWNS {
            let [x, z] = spread(index, SPAWNS * SPAWNS, AREA_M - 16.0);
            add("Spawn", [x + 3.5, 0.1, z], json!({ "SpawnPoint": {} }));
        }
        for index in 0..self.inside.awake {
            let [x, z] = spread(index, self.inside.awake, AREA_M - 30.0);
            let ball = json!({ "Shape": { "type": "sphere", "radius": 0.4 },
                "Body": { "type": "dynamic", "friction": 0, "restitution": 1 } });
            add("Ball", [x + 3.0, 3.0 + (index % 7) as f32, z + 3.0], ball);
        }
        for index in 0..self.inside.asleep {
            let [x, z] = spread(index, self.inside.asleep, AREA_M - 30.0);
            let crate_ = json!({ "Shape": { "type": "box", "size": [1, 1, 1] },
                "Body": { "type": "dynamic" } });
            add("Crate", [x, 3.55, z], crate_);
        }
        for index in 0..self.inside.npcs {
            let [x, z] = spread(index, self.inside.npcs, AREA_M - 30.0);
            let patrol = [[x + 3.0, 0.0, z - 2.0], [x - 6.0, 0.0, z + 5.0]];
            add(
                "Guard",
                [x + 3.0, 0.1, z - 2.0],
                json!({ "Npc": { "patrol": patrol } }),
            );
        }
        entities
    }

    fn script(&self) -> String {
        let Things { shots, edits, .. } = self.inside;
        let mut script = String::new();
        if shots > 0 {
            // Slow ones that live for four seconds, for a constant number in
            // the air.
            let per_tick = f64::from(shots) / 240.0;
            script.push_str(&format!(
                r#"
                Projectile.Define("Bench", {{ Speed = 12, Gravity = 0, LifeSeconds = 4, Damage = 0 }})
                local random, due = Random.new(5), 0
                function OnTick()
                    due += {per_tick}
                    while due >= 1 do
                        due -= 1
                        local from = Vector3.new(random.NextNumber(-60, 60), 8, random.NextNumber(-60, 60))
                        local way = Vector3.new(random.NextNumber(-1, 1), 0, random.NextNumber(-1, 1))
                        Projectile.Fire({{ Weapon = "Bench", From = from, Direction = way }})
                    end
                end
                "#
            ));
        }
        if edits > 0 {
            let per_tick = f64::from(edits) / 60.0;
            script.push_str(&format!(
                r#"
                local random, due = Random.new(5), 0
                function OnTick()
                    due += {per_tick}
                    while due >= 1 do
                        due -= 1
                        local place = Vector3.new(random.NextNumber(-50, 50), random.NextNumber(0, 20), random.NextNumber(-50, 50))
                        World.Terraform({{ op = if random.NextNumber() < 0.5 then "add" else "subtract", center = place, radius = 3, material = "stone" }})
                    end
                end
                "#
            ));
        }
        script
    }
}

/// One of many places, spread evenly over a square.
fn spread(index: u32, count: u32, side: f32) -> [f32; 2] {
    let per_side = (f64::from(count).sqrt().ceil() as u32).max(1);
    let pitch = side / per_side as f32;
    let place = |n: u32| (n as f32 + 0.5) * pitch - side / 2.0;
    [place(index % per_side), place(index / per_side)]
}
