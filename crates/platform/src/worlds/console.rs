//! The creator's console: keeps the last log lines and the resource usage of every world's scripts
//! in memory, and restricts who may read them.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use frolic_fleet_api::console::{
    ConsoleLine, ConsoleReport, FromClients, REPORT_LINES_MAX, REPORT_SCRIPTS_MAX, ScriptFigures,
};
use frolic_protocol::client_log::ConsoleLevel;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{ConsoleClient, ConsoleEntry, ConsolePage, ConsoleScript, ConsoleWorld};
use crate::catalog::games;
use crate::community::auth::Principal;
use crate::core::clock::rfc3339;
use crate::core::error::ApiError;
use crate::core::extract::{ApiJson, ApiPath, ApiQuery};
use crate::fleet::{Fleet, WorldProcess};
use crate::worlds::Worlds;
use crate::worlds::internal::Caller;

/// Worlds whose console is stored; the one without reports for the longest time is dropped first.
const WORLDS_MAX: usize = 256;
/// Lines, and bytes of lines, that are stored per world.
const LINES_MAX: usize = 500;
const LINE_BYTES_MAX: usize = 256 * 1024;
/// Lines in one response.
const PAGE_LINES_MAX: usize = 500;
/// Characters of one text field.
const TEXT_CHARS_MAX: usize = 1100;
const NAME_CHARS_MAX: usize = 200;
/// A console that was not requested for this long counts as closed.
const WATCHED_MS: i64 = 10_000;

/// The consoles of all worlds.
#[derive(Default)]
pub struct Consoles {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Number of the last line, counted over all worlds.
    last: u64,
    worlds: HashMap<String, WorldConsole>,
    /// When the console of a game was last requested, in Unix milliseconds.
    watched: HashMap<String, i64>,
}

#[derive(Default)]
struct WorldConsole {
    game_id: String,
    room_code: String,
    lines: VecDeque<StoredLine>,
    bytes: usize,
    scripts: Vec<ScriptFigures>,
    reported_ms: i64,
}

struct StoredLine {
    number: u64,
    at_ms: i64,
    line: ConsoleLine,
}

impl Consoles {
    /// Stores a report of a game server. Its texts are cut to a maximum length, because the process
    /// runs untrusted scripts.
    pub fn take(&self, server: &WorldProcess, report: ConsoleReport, now_ms: i64) {
        let mut inner = self.inner();
        let spec = &server.spec;
        if !inner.worlds.contains_key(&spec.world_id) && inner.worlds.len() >= WORLDS_MAX {
            inner.drop_oldest_report();
        }
        let mut last = inner.last;
        let world = inner.worlds.entry(spec.world_id.clone()).or_default();
        world.game_id.clone_from(&spec.game_id);
        world.room_code.clone_from(&spec.room_code);
        world.reported_ms = now_ms;
        let lost = (report.dropped > 0).then(|| lost_lines(report.dropped));
        let lines = report.lines.into_iter().take(REPORT_LINES_MAX);
        for line in lost.into_iter().chain(lines) {
            last += 1;
            world.push(StoredLine {
                number: last,
                at_ms: now_ms,
                line: shortened(line),
            });
        }
        if !report.scripts.is_empty() {
            let scripts = report.scripts.into_iter().take(REPORT_SCRIPTS_MAX);
            world.scripts = scripts
                .map(|mut script| {
                    script.path = cut(&script.path, NAME_CHARS_MAX);
                    script.hash = cut(&script.hash, NAME_CHARS_MAX);
                    script
                })
                .collect();
        }
        inner.last = last;
    }

    /// The lines of a game after the number `after`, and the resource usage of its worlds.
    fn page(&self, fleet: &Fleet, game: &games::GameRow, after: u64) -> ConsolePage {
        let inner = self.inner();
        // Numbers restart with the process, so a number of an earlier process reads from the start.
        let after = if after > inner.last { 0 } else { after };
        let mut lines = Vec::new();
        let mut worlds = Vec::new();
        for (world_id, world) in &inner.worlds {
            if world.game_id != game.game_id {
                continue;
            }
            let server = fleet.server(world_id);
            worlds.push(ConsoleWorld {
                world_id: world_id.clone(),
                room_code: world.room_code.clone(),
                running: server.is_some(),
                players: server.as_ref().map_or(0, |server| server.players()),
                tick_ms_p99: server.as_ref().map_or(0.0, |s| s.info().tick_ms_p99),
                heard_at: rfc3339(world.reported_ms),
                scripts: world.scripts.iter().map(script).collect(),
            });
            let unread = world.lines.iter().filter(|stored| stored.number > after);
            lines.extend(unread.map(|stored| entry(world_id, world, stored)));
        }
        // Running worlds first, then by the time of the last report.
        worlds.sort_by(|a, b| {
            let running = b.running.cmp(&a.running);
            running
                .then_with(|| b.heard_at.cmp(&a.heard_at))
                .then_with(|| a.world_id.cmp(&b.world_id))
        });
        lines.sort_by_key(|line| line.number);
        let skipped = lines.len().saturating_sub(PAGE_LINES_MAX);
        lines.drain(..skipped);
        ConsolePage {
            game_id: game.game_id.clone(),
            name: game.name.clone(),
            revision: game.revision.clone(),
            last: inner.last,
            worlds,
            lines,
        }
    }

    /// Whether the console of a game is open at the moment.
    pub fn is_watched(&self, game_id: &str, now_ms: i64) -> bool {
        let watched = self.inner().watched.get(game_id).copied();
        watched.is_some_and(|at_ms| now_ms - at_ms < WATCHED_MS)
    }

    /// Records that the console of a game was requested.
    fn watch(&self, game_id: &str, now_ms: i64) {
        let mut inner = self.inner();
        inner
            .watched
            .retain(|_, at_ms| now_ms - *at_ms < WATCHED_MS);
        inner.watched.insert(game_id.to_owned(), now_ms);
    }

    /// Resource usage of all scripts in the Prometheus text format.
    pub fn prometheus(&self) -> String {
        let inner = self.inner();
        let mut text = String::new();
        type Figure = fn(&ScriptFigures) -> f64;
        let figures: [(&str, &str, &str, Figure); 3] = [
            (
                "frolic_script_cpu_seconds_total",
                "counter",
                "CPU time of a script",
                |script| script.cpu_us as f64 / 1e6,
            ),
            (
                "frolic_script_memory_bytes",
                "gauge",
                "Memory used by a script",
                |script| script.memory_bytes as f64,
            ),
            (
                "frolic_script_stops_total",
                "counter",
                "Times a script was stopped",
                |script| f64::from(script.stops),
            ),
        ];
        for (name, kind, help, figure) in figures {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (world_id, world) in &inner.worlds {
                for script in &world.scripts {
                    let _ = writeln!(
                        text,
                        "{name}{{game=\"{}\",world=\"{world_id}\",script=\"{}\"}} {}",
                        world.game_id,
                        escaped(&script.path),
                        figure(script)
                    );
                }
            }
        }
        text
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn drop_oldest_report(&mut self) {
        let oldest = self
            .worlds
            .iter()
            .min_by_key(|(_, world)| world.reported_ms);
        if let Some(world_id) = oldest.map(|(world_id, _)| world_id.clone()) {
            self.worlds.remove(&world_id);
        }
    }
}

impl WorldConsole {
    fn push(&mut self, stored: StoredLine) {
        self.bytes += size(&stored.line);
        self.lines.push_back(stored);
        while self.lines.len() > LINES_MAX || self.bytes > LINE_BYTES_MAX {
            let Some(dropped) = self.lines.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(size(&dropped.line));
        }
    }
}

fn lost_lines(count: u32) -> ConsoleLine {
    ConsoleLine {
        level: ConsoleLevel::Warn,
        tick: 0,
        script: "@builtin".to_owned(),
        line: None,
        message: format!("{count} earlier lines were dropped because the scripts logged too many"),
        source_line: None,
        stack: String::new(),
        revision: String::new(),
        hash: String::new(),
        client: None,
    }
}

fn shortened(line: ConsoleLine) -> ConsoleLine {
    ConsoleLine {
        script: cut(&line.script, NAME_CHARS_MAX),
        message: cut(&line.message, TEXT_CHARS_MAX),
        source_line: line.source_line.map(|text| cut(&text, TEXT_CHARS_MAX)),
        stack: cut(&line.stack, TEXT_CHARS_MAX),
        revision: cut(&line.revision, NAME_CHARS_MAX),
        hash: cut(&line.hash, NAME_CHARS_MAX),
        client: line.client.map(|client| FromClients {
            browser: cut(&client.browser, NAME_CHARS_MAX),
            ..client
        }),
        ..line
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

fn escaped(text: &str) -> String {
    text.replace(['\\', '"', '\n'], "_")
}

fn size(line: &ConsoleLine) -> usize {
    let source = line.source_line.as_ref().map_or(0, String::len);
    let texts = line.script.len() + line.message.len() + line.stack.len();
    let client = line
        .client
        .as_ref()
        .map_or(0, |client| client.browser.len());
    texts + source + client + line.revision.len() + line.hash.len() + 64
}

fn script(figures: &ScriptFigures) -> ConsoleScript {
    ConsoleScript {
        path: figures.path.clone(),
        hash: figures.hash.clone(),
        cpu_ms_per_s: figures.cpu_ms_per_s,
        memory_bytes: figures.memory_bytes,
        instances: figures.instances,
        errors: figures.errors,
        stops: figures.stops,
        disabled: figures.disabled,
    }
}

fn entry(world_id: &str, world: &WorldConsole, stored: &StoredLine) -> ConsoleEntry {
    let line = &stored.line;
    ConsoleEntry {
        number: stored.number,
        at: rfc3339(stored.at_ms),
        world_id: world_id.to_owned(),
        room_code: world.room_code.clone(),
        level: match line.level {
            ConsoleLevel::Info => "info",
            ConsoleLevel::Warn => "warn",
            ConsoleLevel::Error => "error",
        }
        .to_owned(),
        tick: line.tick,
        script: line.script.clone(),
        line: line.line,
        message: line.message.clone(),
        source_line: line.source_line.clone(),
        stack: line.stack.clone(),
        revision: line.revision.clone(),
        hash: line.hash.clone(),
        client: line.client.as_ref().map(|client| ConsoleClient {
            browser: client.browser.clone(),
            count: client.count,
            players: client.players,
        }),
    }
}

/// `POST /internal/worlds/{id}/console`.
pub async fn report(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
    ApiJson(report): ApiJson<ConsoleReport>,
) -> StatusCode {
    let now = worlds.core.clock.now_ms();
    let game_id = &server.spec.game_id;
    worlds
        .catalog
        .recorder
        .record_lines(game_id, &report.lines, now);
    worlds.consoles.take(&server, report, now);
    StatusCode::NO_CONTENT
}

/// Query of `GET /api/games/{id}/console`.
#[derive(Debug, Default, Deserialize)]
pub struct PageQuery {
    /// Number of the last line that the caller has.
    #[serde(default)]
    after: u64,
}

/// REST routes of the console.
pub fn routes() -> OpenApiRouter<Arc<Worlds>> {
    OpenApiRouter::new().routes(routes!(page))
}

/// Console of a game: log lines and resource usage of its scripts.
///
/// For the creator of the game and for operators. To follow the console, request it again with
/// `after` set to `last`.
#[utoipa::path(get, path = "/api/games/{id}/console", tag = "creating",
    params(
        ("id" = String, Path, description = "id of the game"),
        ("after" = Option<u64>, Query, description = "number of the last line that the caller has"),
    ),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "the lines after `after`, and the resource usage of all scripts", body = ConsolePage),
        (status = 403, description = "the caller is not the creator of the game"),
        (status = 404, description = "no such game"),
    )
)]
pub async fn page(
    State(worlds): State<Arc<Worlds>>,
    principal: Principal,
    ApiPath(game_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<ConsolePage>, ApiError> {
    let game = games::find(&worlds.core.db, &game_id).await?;
    principal.require_login()?;
    let game = game
        .filter(|game| principal.is_admin() || game.open_to(&principal.user_id))
        .ok_or_else(games::unknown_game)?;
    if !principal.owns(&game.creator_id) {
        return Err(ApiError::forbidden(
            "only the creator of this game and operators may see its console",
        ));
    }
    let now = worlds.core.clock.now_ms();
    worlds.consoles.watch(&game.game_id, now);
    Ok(Json(worlds.consoles.page(
        &worlds.fleet,
        &game,
        query.after,
    )))
}
