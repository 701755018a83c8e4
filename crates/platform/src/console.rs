//! The creator's console: the last lines and the costs of
//! every world's scripts, in memory, and who may read them.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use frolic_protocol::console::{
    ConsoleLevel, ConsoleLine, ConsoleReport, FromClients, REPORT_LINES_MAX, REPORT_SCRIPTS_MAX,
    ScriptFigures,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Platform;
use crate::admin::Admin;
use crate::api::{
    ConsoleClient, ConsoleEntry, ConsolePage, ConsoleScript, ConsoleWorld, ErrorBody,
};
use crate::auth::Session;
use crate::clock::rfc3339;
use crate::error::ApiError;
use crate::extract::{ApiJson, ApiPath, ApiQuery};
use crate::fleet::WorldProcess;
use crate::games;
use crate::internal::Caller;

/// Worlds that are remembered; the one that was silent longest goes.
const WORLDS_MAX: usize = 256;
/// Lines and bytes of lines that are kept per world.
const LINES_MAX: usize = 500;
const LINE_BYTES_MAX: usize = 256 * 1024;
/// Lines of one answer.
const PAGE_LINES_MAX: usize = 500;
/// Characters of one field.
const TEXT_CHARS_MAX: usize = 1100;
const NAME_CHARS_MAX: usize = 200;
/// A console that was not asked for so long is closed.
const WATCHED_MS: i64 = 10_000;

/// The consoles of all worlds.
#[derive(Default)]
pub struct Consoles {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Number of the last line, of all worlds together.
    last: u64,
    worlds: HashMap<String, WorldConsole>,
    /// When somebody last looked at a game's console.
    watched: HashMap<String, i64>,
}

#[derive(Default)]
struct WorldConsole {
    game_id: String,
    room_code: String,
    lines: VecDeque<Kept>,
    bytes: usize,
    scripts: Vec<ScriptFigures>,
    heard_ms: i64,
}

struct Kept {
    number: u64,
    at_ms: i64,
    line: ConsoleLine,
}

impl Consoles {
    /// Takes in what a game server reports. Nothing in it is trusted to be
    /// short: the process runs other people's code.
    pub fn take(&self, server: &WorldProcess, report: ConsoleReport, now_ms: i64) {
        let mut inner = self.inner();
        let spec = &server.spec;
        if !inner.worlds.contains_key(&spec.world_id) && inner.worlds.len() >= WORLDS_MAX {
            inner.forget_the_most_silent();
        }
        let mut last = inner.last;
        let world = inner.worlds.entry(spec.world_id.clone()).or_default();
        world.game_id.clone_from(&spec.game_id);
        world.room_code.clone_from(&spec.room_code);
        world.heard_ms = now_ms;
        let lost = (report.dropped > 0).then(|| lost_lines(report.dropped));
        let lines = report.lines.into_iter().take(REPORT_LINES_MAX);
        for line in lost.into_iter().chain(lines) {
            last += 1;
            world.push(Kept {
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

    /// The lines of a game after a number, and what its worlds cost.
    fn page(&self, platform: &Platform, game: &games::GameRow, after: u64) -> ConsolePage {
        let inner = self.inner();
        // Numbers start anew with the process; so does whoever asks with one
        // of before.
        let after = if after > inner.last { 0 } else { after };
        let mut lines = Vec::new();
        let mut worlds = Vec::new();
        for (world_id, world) in &inner.worlds {
            if world.game_id != game.game_id {
                continue;
            }
            let server = platform.fleet().server(world_id);
            worlds.push(ConsoleWorld {
                world_id: world_id.clone(),
                room_code: world.room_code.clone(),
                running: server.is_some(),
                players: server.as_ref().map_or(0, |server| server.players()),
                tick_ms_p99: server.as_ref().map_or(0.0, |s| s.info().tick_ms_p99),
                heard_at: rfc3339(world.heard_ms),
                scripts: world.scripts.iter().map(script).collect(),
            });
            let news = world.lines.iter().filter(|kept| kept.number > after);
            lines.extend(news.map(|kept| entry(world_id, world, kept)));
        }
        // Running ones first, then by who was heard last.
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

    /// Whether somebody looks at the console of a game now.
    pub fn is_watched(&self, game_id: &str, now_ms: i64) -> bool {
        let watched = self.inner().watched.get(game_id).copied();
        watched.is_some_and(|at_ms| now_ms - at_ms < WATCHED_MS)
    }

    /// Somebody who may looks at it.
    fn watch(&self, game_id: &str, now_ms: i64) {
        let mut inner = self.inner();
        inner
            .watched
            .retain(|_, at_ms| now_ms - *at_ms < WATCHED_MS);
        inner.watched.insert(game_id.to_owned(), now_ms);
    }

    /// What scripts cost, for an operator's Prometheus.
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
                "Memory that a script holds",
                |script| script.memory_bytes as f64,
            ),
            (
                "frolic_script_stops_total",
                "counter",
                "How often a script was stopped",
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
    fn forget_the_most_silent(&mut self) {
        let silent = self.worlds.iter().min_by_key(|(_, world)| world.heard_ms);
        if let Some(world_id) = silent.map(|(world_id, _)| world_id.clone()) {
            self.worlds.remove(&world_id);
        }
    }
}

impl WorldConsole {
    fn push(&mut self, kept: Kept) {
        self.bytes += size(&kept.line);
        self.lines.push_back(kept);
        while self.lines.len() > LINES_MAX || self.bytes > LINE_BYTES_MAX {
            let Some(gone) = self.lines.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(size(&gone.line));
        }
    }
}

fn lost_lines(count: u32) -> ConsoleLine {
    ConsoleLine {
        level: ConsoleLevel::Warn,
        tick: 0,
        script: "@builtin".to_owned(),
        line: None,
        message: format!("{count} lines before this were lost: there were too many"),
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

fn entry(world_id: &str, world: &WorldConsole, kept: &Kept) -> ConsoleEntry {
    let line = &kept.line;
    ConsoleEntry {
        number: kept.number,
        at: rfc3339(kept.at_ms),
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
    State(platform): State<Platform>,
    Caller(server): Caller,
    ApiJson(report): ApiJson<ConsoleReport>,
) -> StatusCode {
    let now = platform.clock().now_ms();
    let game_id = &server.spec.game_id;
    platform.recorder().said(game_id, &report.lines, now);
    platform.consoles().take(&server, report, now);
    StatusCode::NO_CONTENT
}

/// Whoever may see what scripts say: an operator, or a person with a session,
/// who must then be the game's creator.
pub enum Reader {
    /// With ADMIN_TOKEN.
    Operator,
    /// With a session.
    Person(String),
}

impl FromRequestParts<Platform> for Reader {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        platform: &Platform,
    ) -> Result<Self, Self::Rejection> {
        if Admin::from_request_parts(parts, platform).await.is_ok() {
            return Ok(Reader::Operator);
        }
        let session = Session::from_request_parts(parts, platform).await?;
        Ok(Reader::Person(session.user_id))
    }
}

/// Query of `GET /api/games/{id}/console`.
#[derive(Debug, Default, Deserialize)]
pub struct PageQuery {
    /// Number of the last line that is known already.
    #[serde(default)]
    after: u64,
}

/// What this file answers to people.
pub fn routes() -> OpenApiRouter<Platform> {
    OpenApiRouter::new().routes(routes!(page))
}

/// What the scripts of a game say and cost.
///
/// For its creator and for operators. Ask again with `after` set to `last` to follow it.
#[utoipa::path(get, path = "/api/games/{id}/console", tag = "creating",
    params(
        ("id" = String, Path, description = "id of the game"),
        ("after" = Option<u64>, Query, description = "number of the last line that is known already"),
    ),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "lines after that one, and all costs", body = ConsolePage),
        (status = 401, description = "no or no valid token", body = ErrorBody),
        (status = 403, description = "the game is somebody else's", body = ErrorBody),
        (status = 404, description = "no such game", body = ErrorBody),
    )
)]
pub async fn page(
    State(platform): State<Platform>,
    reader: Reader,
    ApiPath(game_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Result<Json<ConsolePage>, ApiError> {
    let game = games::find(platform.db(), &game_id).await?;
    let visible = game.filter(|game| match &reader {
        Reader::Operator => true,
        Reader::Person(user_id) => game.open_to(user_id),
    });
    let game = visible.ok_or_else(games::unknown_game)?;
    if let Reader::Person(user_id) = &reader
        && *user_id != game.creator_id
    {
        return Err(ApiError::forbidden(
            "only the creator of this game and operators may see its console",
        ));
    }
    let now = platform.clock().now_ms();
    platform.consoles().watch(&game.game_id, now);
    Ok(Json(platform.consoles().page(
        &platform,
        &game,
        query.after,
    )))
}
