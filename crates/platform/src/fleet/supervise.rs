//! Supervises one game server from launch to end: waits until it is ready, detects missing
//! heartbeats and crashes, launches it again with growing pauses, and stops it on request.

use std::sync::Arc;
use std::time::Duration;

use frolic_fleet_api::ticket;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::adopt::ADOPTION_TIMEOUT;
use super::launcher::{GameServer, LaunchRequest, ServerExit};
use super::process::{End, Phase, WorldProcess};
use super::{Fleet, backoff};
use crate::core::ids;
use crate::fleet::lease;

/// A world with more disabled scripts is not started again.
const DISABLED_MAX: usize = 16;

/// Interval at which timeouts are checked.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// How one process ended.
enum Outcome {
    /// It was asked to stop.
    Stopped,
    /// It ended before it was ready.
    NeverReady(String),
    /// It had to end because of a script that could not be stopped. The script is disabled from now
    /// on.
    Blamed(String),
    /// It ended after it was ready.
    Crashed { ran: Duration, why: String },
}

/// Runs `server` until its end. Exactly one task does this per entry.
pub(super) async fn supervise(
    fleet: Fleet,
    server: Arc<WorldProcess>,
    adopted_process: Option<Box<dyn GameServer>>,
) {
    let end = run_until_end(&fleet, &server, adopted_process).await;
    match &end {
        End::Stopped => tracing::info!(world = server.spec.world_id, "game server stopped"),
        End::Failed(why) => {
            tracing::error!(
                world = server.spec.world_id,
                why,
                "giving up on a game server"
            );
        }
    }
    fleet.remove(&server, end).await;
}

async fn run_until_end(
    fleet: &Fleet,
    server: &Arc<WorldProcess>,
    mut adopted_process: Option<Box<dyn GameServer>>,
) -> End {
    let settings = fleet.settings().clone();
    let mut crashes_in_a_row = 0;
    loop {
        let adopted = adopted_process.is_some();
        let outcome = match adopted_process.take() {
            Some(mut process) => {
                watch_process(fleet, server, process.as_mut(), ADOPTION_TIMEOUT).await
            }
            None => run_once(fleet, server).await,
        };
        if !matches!(outcome, Outcome::Stopped) {
            // At once, so that no player is sent to a process that has ended.
            server.advance(Phase::Starting);
        }
        if let Err(error) = lease::end(fleet.db(), &server.spec.world_id, server.epoch()).await {
            tracing::warn!(%error, world = server.spec.world_id, "could not close the lease of a game server");
        }
        let why = match outcome {
            Outcome::Stopped => return End::Stopped,
            // The adopted process does not call this platform. The next join starts the world
            // again.
            Outcome::NeverReady(why) if adopted => {
                tracing::warn!(
                    world = server.spec.world_id,
                    why,
                    "could not adopt a game server"
                );
                return End::Stopped;
            }
            // Without a pause: players wait to reconnect, and the next launch omits the failing
            // script.
            Outcome::Blamed(script) if server.disabled_scripts().len() < DISABLED_MAX => {
                count_crash(fleet, server).await;
                tracing::error!(
                    world = server.spec.world_id,
                    script,
                    "a script could not be stopped; the world starts again without it"
                );
                if !server.advance(Phase::Starting) {
                    return End::Stopped;
                }
                continue;
            }
            Outcome::Blamed(script) => {
                let why = format!("too many of its scripts had to be disabled, {script} last");
                fleet.record_failure(&server.spec.revision);
                return End::Failed(why);
            }
            // The first launch of a package that cannot start: report it to waiting players at
            // once. The fleet stores the pause per package.
            Outcome::NeverReady(why) if crashes_in_a_row == 0 => {
                fleet.record_failure(&server.spec.revision);
                return End::Failed(why);
            }
            Outcome::NeverReady(why) => why,
            Outcome::Crashed { ran, why } => {
                if ran >= settings.steady_after {
                    crashes_in_a_row = 0;
                }
                why
            }
        };
        crashes_in_a_row += 1;
        count_crash(fleet, server).await;
        tracing::error!(
            world = server.spec.world_id,
            why,
            crashes_in_a_row,
            "game server crashed"
        );
        if crashes_in_a_row >= settings.crashes_max {
            fleet.record_failure(&server.spec.world_id);
            return End::Failed(format!(
                "it crashed {crashes_in_a_row} times in a row: {why}"
            ));
        }
        let pause = backoff(
            settings.backoff_first,
            settings.backoff_max,
            crashes_in_a_row,
        );
        if !back_off(server, pause).await {
            return End::Stopped;
        }
    }
}

/// Counts a crash and reserves slots for the players who were in the process.
async fn count_crash(fleet: &Fleet, server: &WorldProcess) {
    server.count_crash();
    fleet.count_crash();
    let players = fleet.players_present(&server.spec.world_id, 0).await;
    server.expect_players(players, fleet.settings().resume_hold);
}

/// Pauses before the next launch. Returns `false` if the server was asked to stop.
async fn back_off(server: &WorldProcess, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    let mut phase = server.watch_phase();
    if !server.advance(Phase::BackingOff { until }) {
        return false;
    }
    tokio::select! {
        () = sleep_until(until) => server.advance(Phase::Starting),
        _ = phase.wait_for(|phase| *phase == Phase::Stopping) => false,
    }
}

async fn run_once(fleet: &Fleet, server: &Arc<WorldProcess>) -> Outcome {
    let world_id = &server.spec.world_id;
    let token = ids::new_token();
    let digest = ids::sha256_hex(token.as_bytes());
    let disabled = server.disabled_scripts();
    let epoch = match lease::begin(fleet.db(), world_id, &digest, &disabled).await {
        Ok(epoch) => epoch,
        Err(error) => return Outcome::NeverReady(format!("could not store its launch: {error}")),
    };
    server.begin_launch(&token, epoch);
    let request = LaunchRequest {
        world_id: world_id.clone(),
        control_plane: fleet.control_plane().to_owned(),
        host: fleet.host(),
        world_token: token,
        ticket_key: ticket::world_key(fleet.secret(), world_id),
    };
    tracing::info!(
        world = world_id,
        game = server.spec.game_id,
        room = server.spec.room_code,
        "starting game server"
    );
    let mut process = match fleet.launcher().launch(request).await {
        Ok(process) => process,
        Err(error) => return Outcome::NeverReady(format!("could not launch it: {error}")),
    };
    let timeout = fleet.settings().start_timeout;
    watch_process(fleet, server, process.as_mut(), timeout).await
}

async fn watch_process(
    fleet: &Fleet,
    server: &WorldProcess,
    process: &mut dyn GameServer,
    timeout: Duration,
) -> Outcome {
    let settings = fleet.settings();
    let mut phase = server.watch_phase();
    let mut ready_at = None;
    let mut watch = interval(WATCH_INTERVAL);
    watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        match &*phase.borrow_and_update() {
            Phase::Ready(_) if ready_at.is_none() => {
                ready_at = Some(Instant::now());
                fleet.record_start(server.since_launch());
                tracing::info!(
                    world = server.spec.world_id,
                    after_ms = server.since_launch().as_millis(),
                    "game server ready"
                );
            }
            Phase::Stopping => break,
            _ => {}
        }
        tokio::select! {
            exit = process.wait() => return classify(exit, ready_at, server),
            _ = phase.changed() => {}
            _ = watch.tick() => {
                let stuck = match ready_at {
                    None if server.since_launch() > timeout => "it was not ready in time",
                    Some(_) if server.since_heartbeat() > settings.heartbeat_timeout => "it stopped responding",
                    _ => continue,
                };
                process.kill();
                process.wait().await;
                return match ready_at {
                    None => Outcome::NeverReady(stuck.to_owned()),
                    Some(since) => Outcome::Crashed { ran: since.elapsed(), why: stuck.to_owned() },
                };
            }
        }
    }
    end_process(process, settings.stop_grace).await;
    Outcome::Stopped
}

fn classify(exit: ServerExit, ready_at: Option<Instant>, server: &WorldProcess) -> Outcome {
    if server.phase() == Phase::Stopping {
        return Outcome::Stopped;
    }
    if let Some(script) = exit.blamed.filter(|script| server.disable_script(script)) {
        return Outcome::Blamed(script);
    }
    let why = format!("the game server ended ({})", exit.description);
    match ready_at {
        None => Outcome::NeverReady(why),
        Some(_) if exit.success => Outcome::Stopped,
        Some(since) => Outcome::Crashed {
            ran: since.elapsed(),
            why,
        },
    }
}

async fn end_process(process: &mut dyn GameServer, grace: Duration) {
    process.terminate();
    tokio::select! {
        _ = process.wait() => {}
        () = sleep(grace) => {
            tracing::warn!("a game server did not stop when asked; killing it");
            process.kill();
            process.wait().await;
        }
    }
}
