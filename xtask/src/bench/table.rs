//! Figures as Markdown tables, to be pasted into bench/RESULTS.md.

use serde_json::Value;

use super::results::Results;

/// A cell's text from a scenario's figures; none where they are missing.
type Cell = fn(&Value) -> Option<String>;

/// A table of several scenarios.
#[derive(Clone)]
pub struct Table {
    /// One per row.
    pub ids: Vec<String>,
    heading: &'static str,
    columns: &'static [(&'static str, Cell)],
}

impl Table {
    /// The table, with a row for each scenario that was ever measured.
    pub fn markdown(&self, results: &Results) -> String {
        let headings: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let mut text = format!(
            "\n| {} | {} |\n|---|{}\n",
            self.heading,
            headings.join(" | "),
            "---|".repeat(self.columns.len())
        );
        for entry in self.ids.iter().filter_map(|id| results.of(id)) {
            match entry["figures"].as_array() {
                // A scenario of several scenes: a row for each.
                Some(scenes) => {
                    for scene in scenes {
                        text += &self.row(&scene["scene"], scene);
                    }
                }
                None => text += &self.row(&entry["name"], &entry["figures"]),
            }
        }
        text
    }

    fn row(&self, name: &Value, figures: &Value) -> String {
        let cells = self.columns.iter().map(|(_, cell)| cell(figures));
        let cells: Vec<String> = cells.map(|cell| cell.unwrap_or("–".to_owned())).collect();
        let name = name.as_str().unwrap_or_default();
        format!("| {name} | {} |\n", cells.join(" | "))
    }
}

/// Crowds against the floor.
pub fn crowds(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "crowd",
        columns: &[
            ("tick p50 ms", |f| number(f, "tick_ms_p50", 2)),
            ("tick p99 ms", |f| number(f, "tick_ms_p99", 2)),
            ("updates Hz", |f| number(f, "update_hz_p50", 2)),
            ("gap p99 ms", |f| number(f, "update_interval_ms_p99", 1)),
            ("CPU s/s", |f| number(f, "server_cpu_s_per_s", 3)),
            ("floor CPU s/s", |f| number(f, "floor_cpu_s_per_s", 3)),
            ("x floor", |f| number(f, "ratio_to_floor", 2)),
            ("bytes/entity/update", |f| {
                number(f, "bytes_per_client_entity_update", 2)
            }),
            ("KiB/s per client", kib_per_client),
            ("stayed", stayed),
            ("join p99 ms", |f| number(f, "join_ms_p99", 0)),
            ("late join p99 ms", |f| number(f, "late_join_ms_p99", 0)),
            ("load CPU s/s", |f| number(f, "load_cpu_s_per_s", 2)),
        ],
    }
}

/// The same world with more and more players.
pub fn growth(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "growth",
        columns: &[
            ("entities known", |f| number(f, "entities_p50", 0)),
            ("CPU s/s", |f| number(f, "server_cpu_s_per_s", 3)),
            ("CPU ms/s per player", cpu_per_player),
            ("x floor", |f| number(f, "ratio_to_floor", 2)),
            ("bytes/s per client", |f| number(f, "bytes_per_client_s", 0)),
            ("tick p50 ms", |f| number(f, "tick_ms_p50", 2)),
            ("tick p99 ms", |f| number(f, "tick_ms_p99", 2)),
            ("updates Hz", |f| number(f, "update_hz_p50", 2)),
            ("gap p99 ms", |f| number(f, "update_interval_ms_p99", 1)),
            ("MiB", |f| number(f, "server_rss_mb", 0)),
        ],
    }
}

/// Visible entities against cost.
pub fn density(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "what is seen",
        columns: &[
            ("entities known", |f| number(f, "entities_p50", 0)),
            ("known pairs/s", |f| number(f, "known_pairs_per_s", 0)),
            ("CPU s/s", |f| number(f, "server_cpu_s_per_s", 3)),
            ("snapshot CPU s/s", |f| {
                snapshot_cpu(f).map(|cpu| format!("{cpu:.3}"))
            }),
            ("snapshot ns per pair", snapshot_ns_per_pair),
            ("CPU over floor, ns per pair", over_floor_ns_per_pair),
            ("bytes/s per client", |f| number(f, "bytes_per_client_s", 0)),
            ("gap p99 ms", |f| number(f, "update_interval_ms_p99", 1)),
            ("x floor", |f| number(f, "ratio_to_floor", 2)),
        ],
    }
}

/// Where a tick's time goes.
pub fn stages(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "world",
        columns: &[
            ("tick p50 ms", |f| number(f, "tick_ms_p50", 3)),
            ("tick p99 ms", |f| number(f, "tick_ms_p99", 3)),
            ("scripts", |f| number(&f["stage_ms"], "scripts", 3)),
            ("characters", |f| number(&f["stage_ms"], "characters", 3)),
            ("physics", |f| number(&f["stage_ms"], "physics", 3)),
            ("projectiles", |f| number(&f["stage_ms"], "projectiles", 3)),
            ("NPCs", |f| number(&f["stage_ms"], "npcs", 3)),
            ("triggers", |f| number(&f["stage_ms"], "triggers", 3)),
            ("events", |f| number(&f["stage_ms"], "events", 3)),
        ],
    }
}

/// Rigid bodies against the library alone.
pub fn physics(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "bodies",
        columns: &[
            ("bodies", |f| number(f, "bodies", 0)),
            ("awake", |f| number(f, "awake", 0)),
            ("rapier alone us", |f| number(f, "bare_mean_us", 0)),
            ("physics stage us", |f| number(f, "physics_mean_us", 0)),
            ("x rapier", |f| number(f, "ratio", 2)),
            ("physics p99 us", |f| number(f, "physics_p99_us", 0)),
            ("whole step us", |f| number(f, "step_mean_us", 0)),
        ],
    }
}

/// Shots against rays.
pub fn projectiles(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "shots",
        columns: &[
            ("stage p50 us", |f| number(f, "median_us", 0)),
            ("stage p99 us", |f| number(f, "p99_us", 0)),
            ("ns per shot", |f| number(f, "ns_per_shot", 0)),
            ("one ray ns", |f| number(f, "ray_ns", 0)),
            ("x ray", |f| number(f, "ratio_to_ray", 2)),
            ("bytes per shot and second", |f| {
                number(f, "bytes_per_shot_s", 2)
            }),
        ],
    }
}

/// More and more NPCs.
pub fn npcs(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "NPCs",
        columns: &[
            ("stage p50 ms", |f| number(&f["npcs_ms"], "median", 3)),
            ("stage p99 ms", |f| number(&f["npcs_ms"], "p99", 3)),
            ("tick p50 ms", |f| number(&f["tick_ms"], "median", 3)),
            ("tick p99 ms", |f| number(&f["tick_ms"], "p99", 3)),
            ("rays per tick", |f| number(f, "rays_mean", 0)),
            ("most rays", |f| number(f, "rays_max", 0)),
        ],
    }
}

/// The cost of terrain.
pub fn terrain(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "ground",
        columns: &[
            ("times", |f| number(f, "count", 0)),
            ("us each", |f| number(f, "us_each", 1)),
            ("ms in all", |f| number(f, "ms", 1)),
            ("came out", |f| number(f, "amount", 0)),
            ("of", |f| f["unit"].as_str().map(str::to_owned)),
        ],
    }
}

/// Packages against what no reader can do without.
pub fn package(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "package",
        columns: &[
            ("files", |f| number(f, "files", 0)),
            ("packed bytes", |f| number(f, "packed_bytes", 0)),
            ("unpacked bytes", |f| number(f, "unpacked_bytes", 0)),
            ("read and check ms", |f| number(f, "read_ms", 2)),
            ("inflate and hash ms", |f| number(f, "floor_ms", 2)),
            ("x inflate and hash", |f| number(f, "ratio", 2)),
        ],
    }
}

/// Luau alone; the browser beside it is in the table of `vm`.
pub fn compute(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "pure Luau",
        columns: &[("ms", |f| number(f, "ms", 2))],
    }
}

/// The store against a route that says hello.
pub fn listings(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "one core",
        columns: &[
            ("games", |f| number(f, "games", 0)),
            ("listings/s", |f| number(f, "listings_per_s", 0)),
            ("hello world/s", |f| number(f, "hello_per_s", 0)),
            ("of hello world", |f| number(f, "share_of_hello", 2)),
            ("p50 ms", |f| number(f, "listings_ms_p50", 2)),
            ("p99 ms", |f| number(f, "listings_ms_p99", 2)),
            ("steady/s", |f| number(f, "steady_per_s", 0)),
            ("steady p50 ms", |f| number(f, "steady_ms_p50", 2)),
            ("steady p99 ms", |f| number(f, "steady_ms_p99", 2)),
            ("bytes each", |f| number(f, "answer_bytes", 0)),
        ],
    }
}

/// Clients that say nothing.
pub fn sockets(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "idle",
        columns: &[
            ("clients", |f| number(f, "clients", 0)),
            ("all in after s", |f| number(f, "connect_s", 1)),
            ("MB before", |f| number(f, "rss_mb_before", 1)),
            ("MB with them", |f| number(f, "rss_mb_after", 1)),
            ("KB per client", |f| number(f, "kb_per_client", 1)),
            ("CPU % while idle", |f| number(f, "cpu_percent_idle", 1)),
        ],
    }
}

/// Sessions and what they came to.
pub fn soak(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "game",
        columns: &[
            ("ticks", |f| number(f, "ticks", 0)),
            ("fingerprint", |f| {
                f["fingerprint"].as_str().map(str::to_owned)
            }),
            ("scripts cut", |f| number(f, "cuts", 0)),
            ("same in the debug build", |f| {
                f["same"].as_bool().map(|same| same.to_string())
            }),
        ],
    }
}

/// The way into a world.
pub fn join(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "ms from the join request",
        columns: &[
            ("cold welcome p50", |f| number(f, "cold_welcome_ms_p50", 1)),
            ("p99", |f| number(f, "cold_welcome_ms_p99", 1)),
            ("cold first snapshot p50", |f| {
                number(f, "cold_snapshot_ms_p50", 1)
            }),
            ("p99", |f| number(f, "cold_snapshot_ms_p99", 1)),
            ("warm welcome p50", |f| number(f, "warm_welcome_ms_p50", 1)),
            ("p99", |f| number(f, "warm_welcome_ms_p99", 1)),
            ("warm first snapshot p50", |f| {
                number(f, "warm_snapshot_ms_p50", 1)
            }),
            ("p99", |f| number(f, "warm_snapshot_ms_p99", 1)),
        ],
    }
}

/// The cost of a step of a character.
pub fn step(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "character step, ns",
        columns: &[
            ("solids", |f| number(f, "solids", 0)),
            ("walking median", |f| {
                number(&f["walking"], "step_median_ns", 0)
            }),
            ("p99", |f| number(&f["walking"], "step_p99_ns", 0)),
            ("mean", |f| number(&f["walking"], "step_mean_ns", 0)),
            ("idle median", |f| number(&f["idle"], "step_median_ns", 0)),
            ("p99", |f| number(&f["idle"], "step_p99_ns", 0)),
            ("mean", |f| number(&f["idle"], "step_mean_ns", 0)),
        ],
    }
}

/// The browser's VM against this machine's.
pub fn vm(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "Luau in Chromium",
        columns: &[
            ("native ms", |f| number(f, "native_ms", 1)),
            ("browser ms", |f| number(f, "browser_ms", 1)),
            ("x native", |f| number(f, "ratio", 2)),
        ],
    }
}

/// Scripts against plain mlua.
pub fn script(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "script",
        columns: &[
            ("per tick", |f| number(f, "count", 0)),
            ("ns", |f| number(f, "ns", 0)),
            ("plain mlua ns", |f| number(f, "plain_ns", 0)),
            ("x plain", |f| number(f, "ratio", 2)),
            ("ms per tick", |f| number(f, "ms_per_tick", 3)),
        ],
    }
}

/// The cost of encoding and decoding a snapshot.
pub fn snapshot(ids: Vec<String>) -> Table {
    Table {
        ids,
        heading: "snapshot, per entity",
        columns: &[
            ("entities", |f| number(f, "entities", 0)),
            ("bytes", |f| number(f, "bytes_per_entity", 2)),
            ("encode ns", |f| number(f, "encode_ns_per_entity", 1)),
            ("decode ns", |f| number(f, "decode_ns_per_entity", 1)),
            ("bytes unpacked", |f| number(f, "copy_bytes_per_entity", 0)),
            ("copying those, ns", |f| number(f, "copy_ns_per_entity", 1)),
            ("encode x copying", |f| number(f, "encode_ratio_to_copy", 1)),
            ("decode x copying", |f| number(f, "decode_ratio_to_copy", 1)),
        ],
    }
}

fn number(figures: &Value, name: &str, digits: usize) -> Option<String> {
    figures[name].as_f64().map(|n| format!("{n:.digits$}"))
}

fn kib_per_client(figures: &Value) -> Option<String> {
    let bytes = figures["bytes_per_client_s"].as_f64()?;
    Some(format!("{:.1}", bytes / 1024.0))
}

fn stayed(figures: &Value) -> Option<String> {
    let count = |name: &str| figures[name].as_u64();
    Some(format!(
        "{} of {}",
        count("players_finished")?,
        count("players")?
    ))
}

fn cpu_per_player(figures: &Value) -> Option<String> {
    let cpu = figures["server_cpu_s_per_s"].as_f64()?;
    let players = figures["players"].as_f64()?;
    Some(format!("{:.2}", cpu * 1000.0 / players))
}

/// Seconds per second in the stage that makes snapshots. The median tick would
/// not do: where updates are rarer than ticks, some have none to make.
fn snapshot_cpu(figures: &Value) -> Option<f64> {
    let stage = &figures["server_stats"]["stage_ms"]["snapshots"];
    let per_tick_ms = stage["mean"].as_f64()?;
    Some(per_tick_ms / 1000.0 * figures["tick_hz"].as_f64()?)
}

fn snapshot_ns_per_pair(figures: &Value) -> Option<String> {
    per_pair(figures, snapshot_cpu(figures)?)
}

fn over_floor_ns_per_pair(figures: &Value) -> Option<String> {
    let cpu = figures["server_cpu_s_per_s"].as_f64()?;
    per_pair(figures, cpu - figures["floor_cpu_s_per_s"].as_f64()?)
}

fn per_pair(figures: &Value, cpu_s_per_s: f64) -> Option<String> {
    let pairs = figures["known_pairs_per_s"].as_f64()?;
    (pairs > 0.0).then(|| format!("{:.0}", cpu_s_per_s * 1e9 / pairs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results() -> Results {
        let figures = json!({
            "players": 400, "players_finished": 399, "tick_hz": 30,
            "server_cpu_s_per_s": 0.25, "floor_cpu_s_per_s": 0.05,
            "known_pairs_per_s": 4_000_000.0, "bytes_per_client_s": 2048.0, "ratio_to_floor": 5.0,
            "server_stats": { "stage_ms": { "snapshots": { "p50": 3.0, "p99": 9.0, "mean": 2.0 } } },
        });
        Results::made_up(vec![
            json!({ "id": "all-400", "name": "all see all", "figures": figures }),
            json!({ "id": "old", "name": "old", "figures": {} }),
            json!({ "id": "step", "name": "step", "figures": [
                { "scene": "flat", "walking": { "step_median_ns": 120.4 } },
                { "scene": "hills", "walking": { "step_median_ns": 900.0 } },
            ] }),
        ])
    }

    fn row(table: Table) -> String {
        let text = table.markdown(&results());
        text.trim().lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn rows_hold_what_is_known_and_dashes() {
        let ids = vec!["all-400".to_owned(), "never-measured".to_owned()];
        let crowd = row(crowds(ids.clone()));
        assert!(crowd.starts_with("| all see all | – | –"), "{crowd}");
        assert!(crowd.contains("| 2.0 | 399 of 400 |"), "{crowd}");
        assert!(row(growth(ids)).contains("| 0.250 | 0.62 |"));
        let old = row(density(vec!["old".to_owned()]));
        assert_eq!(old, format!("| old |{}", " – |".repeat(9)));
    }

    #[test]
    fn a_pair_has_a_price() {
        // 2 ms on average at 30 Hz are 0.06 s/s: 15 ns for each of four million pairs.
        let seen = row(density(vec!["all-400".to_owned()]));
        assert!(
            seen.contains("| 4000000 | 0.250 | 0.060 | 15 | 50 |"),
            "{seen}"
        );
        assert!(seen.ends_with("| 5.00 |"), "{seen}");
    }

    #[test]
    fn each_scene_of_a_scenario_has_a_row() {
        let text = step(vec!["step".to_owned()]).markdown(&results());
        assert!(text.contains("\n| flat | – | 120 |"), "{text}");
        assert!(text.contains("\n| hills | – | 900 |"), "{text}");
    }

    #[test]
    fn every_table_is_as_wide_as_its_rows() {
        let tables = [crowds, growth, density, join, step, package, compute];
        for table in tables.into_iter().chain([listings, sockets]) {
            let text = table(vec!["all-400".to_owned()]).markdown(&results());
            let widths: Vec<usize> = text
                .trim()
                .lines()
                .map(|l| l.matches('|').count())
                .collect();
            assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        }
    }

    /// So that new figures can be pasted over the old ones.
    #[test]
    fn the_results_hold_tables_as_they_are_printed() {
        let page = include_str!("../../../bench/RESULTS.md");
        let nothing = Results::made_up(Vec::new());
        for table in [crowds, density, growth, stages, script, snapshot] {
            let heading = table(Vec::new()).markdown(&nothing);
            assert!(page.contains(heading.trim()), "{heading}");
        }
    }
}
