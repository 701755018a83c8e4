//! The benchmark scenarios, and which of them a command line selects.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::table::{self, Table};

/// Stands for the path of the debug build in a scenario's words.
pub const DEBUG_BUILD: &str = "@debug";

/// One run of `frolic bench`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Short and stable: the command line and the results file use it.
    pub id: String,
    /// For people.
    pub title: String,
    /// Arguments of the program.
    pub words: Vec<String>,
    /// The program that measures.
    pub program: Program,
}

/// The program that measures a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `frolic bench`.
    Frolic,
    /// A script of `web/` that receives the path of `frolic` and needs a
    /// browser.
    Browser(&'static str),
}

impl Scenario {
    fn new(id: &str, title: &str, words: &str) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            words: words.split(' ').map(str::to_owned).collect(),
            program: Program::Frolic,
        }
    }
}

/// The scenarios selected by a command line.
pub struct Selection {
    /// To be run, each once.
    pub scenarios: Vec<Scenario>,
    /// To be printed.
    pub tables: Vec<Table>,
}

impl Selection {
    /// Nothing: everything. Else groups and ids; or flags, which describe a
    /// crowd of their own.
    ///
    /// # Errors
    /// When a word means nothing; says which would.
    pub fn of(args: &[String]) -> Result<Self> {
        if args.first().is_some_and(|first| first.starts_with("--")) {
            return Ok(Self::crowd_of(args));
        }
        let groups = groups();
        let mut selection = Self {
            scenarios: Vec::new(),
            tables: Vec::new(),
        };
        if args.is_empty() {
            for group in groups {
                selection.add(group);
            }
            return Ok(selection);
        }
        for word in args {
            let mut found: Vec<Group> = groups.clone();
            found.retain(|group| group.names.contains(&word.as_str()));
            if found.is_empty() {
                found.extend(groups.iter().find_map(|group| group.only(word)));
            }
            if found.is_empty() {
                bail!("no benchmark is called `{word}`; there are {}", names());
            }
            found.into_iter().for_each(|group| selection.add(group));
        }
        Ok(selection)
    }

    fn crowd_of(args: &[String]) -> Self {
        let title = args.join(" ");
        let scenario = Scenario::new(&title, &title, &format!("crowd {title}"));
        let table = table::crowds(vec![scenario.id.clone()]);
        Self {
            scenarios: vec![scenario],
            tables: vec![table],
        }
    }

    fn add(&mut self, group: Group) {
        for scenario in group.scenarios {
            // A group may be asked for twice, and so may one of its scenarios.
            if !self.scenarios.iter().any(|known| known.id == scenario.id) {
                self.scenarios.push(scenario);
            }
        }
        self.tables.push(group.table);
    }
}

/// Scenarios that belong together, and how their figures are shown.
#[derive(Clone)]
struct Group {
    names: &'static [&'static str],
    scenarios: Vec<Scenario>,
    table: Table,
}

impl Group {
    fn new(
        names: &'static [&'static str],
        scenarios: Vec<Scenario>,
        table: fn(Vec<String>) -> Table,
    ) -> Self {
        let ids = scenarios.iter().map(|scenario| scenario.id.clone());
        Self {
            names,
            table: table(ids.collect()),
            scenarios,
        }
    }

    /// The group with one of its scenarios only.
    fn only(&self, id: &str) -> Option<Self> {
        let scenario = self.scenarios.iter().find(|scenario| scenario.id == id)?;
        let mut group = self.clone();
        group.scenarios = vec![scenario.clone()];
        group.table.ids = vec![id.to_owned()];
        Some(group)
    }
}

fn groups() -> Vec<Group> {
    vec![
        Group::new(&["crowds"], crowds(), table::crowds),
        Group::new(&["growth"], growth(), table::growth),
        Group::new(&["growth", "density"], density(), table::density),
        Group::new(&["join"], vec![join()], table::join),
        Group::new(&["step"], vec![step()], table::step),
        Group::new(&["script"], vec![script()], table::script),
        Group::new(&["vm"], vec![vm()], table::vm),
        Group::new(&["snapshot"], vec![snapshot()], table::snapshot),
        Group::new(&["stages"], vec![stages()], table::stages),
        Group::new(&["soak"], vec![soak()], table::soak),
        Group::new(&["physics"], vec![physics()], table::physics),
        Group::new(&["projectiles"], vec![projectiles()], table::projectiles),
        Group::new(&["npcs"], vec![npcs()], table::npcs),
        Group::new(&["terrain"], vec![terrain()], table::terrain),
        Group::new(&["package"], vec![package()], table::package),
        Group::new(&["compute"], vec![compute()], table::compute),
        Group::new(&["listings"], vec![listings()], table::listings),
        Group::new(&["sockets"], vec![sockets()], table::sockets),
    ]
}

fn names() -> String {
    let mut names = Vec::new();
    for group in groups() {
        names.extend(group.names.iter().map(|name| (*name).to_owned()));
        names.extend(group.scenarios.into_iter().map(|scenario| scenario.id));
    }
    let mut known = BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    names.join(", ")
}

/// The scenarios of issue 3.
fn crowds() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "sample-100",
            "sample game, 100 players",
            "crowd --players 100",
        ),
        seeing("all-200", 200, "all"),
        seeing("all-400", 400, "all"),
        seeing("radius-50", 400, "50"),
        Scenario::new(
            "default-1000",
            "1,000 players, 60 Hz, 400 x 400 m",
            "crowd --players 1000 --area 400 --tick-hz 60 --snapshot-hz 20",
        ),
        // As dense as the thousand; joining into it is measured, too.
        Scenario::new(
            "default-2000",
            "2,000 players, 60 Hz, 566 x 566 m",
            "crowd --players 2000 --area 566 --tick-hz 60 --snapshot-hz 20 \
             --joins-per-second 200 --late-joins 40",
        ),
    ]
}

/// Players in 200 x 200 m with this radius in metres, or `all`.
fn seeing(id: &str, players: u32, radius: &str) -> Scenario {
    let what = match radius {
        "all" => "all see all".to_owned(),
        metres => format!("{metres} m radius"),
    };
    Scenario::new(
        id,
        &format!("{what}, {players} players, 30 Hz"),
        &format!("crowd --players {players} --area 200 --tick-hz 30 --radius {radius}"),
    )
}

/// More and more players in the same place.
fn growth() -> Vec<Scenario> {
    let of = |players: u32| {
        Scenario::new(
            &format!("growth-{players}"),
            &format!("{players} players in 400 x 400 m, 60 Hz"),
            &format!("crowd --players {players} --area 400"),
        )
    };
    [100, 200, 400, 700, 1000].map(of).to_vec()
}

/// The same players with increasing radius. Two of these crowds are among those
/// above, too; each table has its own run of them, so that its rows are from
/// one session.
fn density() -> Vec<Scenario> {
    let of = |radius| seeing(&format!("density-{radius}"), 400, radius);
    ["15", "25", "50", "100", "all"].map(of).to_vec()
}

fn join() -> Scenario {
    Scenario::new("join", "join, cold and warm", "join")
}

fn script() -> Scenario {
    Scenario::new("script", "what scripts cost", "script")
}

fn vm() -> Scenario {
    Scenario {
        program: Program::Browser("bench/vm.mjs"),
        ..Scenario::new("vm", "Luau in the browser", "vm")
    }
}

fn stages() -> Scenario {
    Scenario::new("stages", "stages of a tick", "stages")
}

fn physics() -> Scenario {
    Scenario::new("physics", "rigid bodies beside rapier alone", "physics")
}

fn projectiles() -> Scenario {
    Scenario::new("projectiles", "shots in flight beside rays", "projectiles")
}

fn npcs() -> Scenario {
    Scenario::new("npcs", "NPCs among players", "npcs")
}

fn terrain() -> Scenario {
    Scenario::new("terrain", "ground of 512 x 512 x 128 blocks", "terrain")
}

fn package() -> Scenario {
    Scenario::new("package", "reading and checking packages", "package")
}

fn compute() -> Scenario {
    Scenario::new("compute", "pure Luau on this machine", "compute")
}

fn listings() -> Scenario {
    Scenario::new("listings", "listings of 10,000 games", "listings")
}

fn sockets() -> Scenario {
    Scenario::new("sockets", "idle Socket.IO clients", "sockets")
}

/// The debug build, if there is one, has to come to the same.
fn soak() -> Scenario {
    let words = format!("soak --against {DEBUG_BUILD}");
    Scenario::new("soak", "sample games, a minute each", &words)
}

fn snapshot() -> Scenario {
    Scenario::new("snapshot", "packing snapshots", "snapshot")
}

fn step() -> Scenario {
    Scenario::new("step", "character step", "step")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(args: &[&str]) -> Vec<String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let selection = Selection::of(&args).unwrap();
        selection.scenarios.into_iter().map(|s| s.id).collect()
    }

    #[test]
    fn nothing_asks_for_everything_once() {
        let all = ids(&[]);
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        assert!(all.len() >= 14);
    }

    /// A benchmark that is never run has unknown figures.
    #[test]
    fn nothing_is_left_out() {
        let source = include_str!("../../../crates/bench/src/command.rs");
        let (_, after) = source.split_once("enum Benchmark {").unwrap();
        let (variants, _) = after.split_once("\n}").unwrap();
        let all = Selection::of(&[]).unwrap().scenarios;
        let mut hidden = false;
        let mut seen = 0;
        for line in variants.lines().map(str::trim) {
            let Some((name, _)) = line.split_once('(').filter(|_| !line.starts_with('#')) else {
                hidden = line.contains("hide = true");
                continue;
            };
            let name = name.to_lowercase();
            let runs = |scenario: &Scenario| scenario.words.first() == Some(&name);
            assert!(hidden || all.iter().any(runs), "{name}");
            hidden = false;
            seen += 1;
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn groups_ids_and_crowds_of_your_own() {
        assert_eq!(ids(&["growth"]).len(), 10, "players, and what they see");
        assert_eq!(ids(&["density"]).len(), 5);
        assert_eq!(ids(&["all-400", "join"]), ["all-400", "join"]);
        let own = ["--players".to_owned(), "7".to_owned()];
        let own = Selection::of(&own).unwrap();
        assert_eq!(own.scenarios[0].words, ["crowd", "--players", "7"]);
        assert_eq!(own.scenarios[0].id, "--players 7");
        let error = Selection::of(&["al-400".to_owned()])
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("all-400"), "{error}");
    }

    /// Else measuring one table would change figures of another.
    #[test]
    fn no_table_shares_a_result_with_another() {
        let mut known = BTreeSet::new();
        for group in groups() {
            for scenario in group.scenarios {
                assert!(known.insert(scenario.id.clone()), "{}", scenario.id);
            }
        }
    }
}
