//! Places a player in a world: finds or starts one, waits until it is ready, and reports the
//! progress.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::place::{self, PlaceError, Target};
use crate::api::JoinStage;
use crate::community::auth::Session;
use crate::core::error::ApiError;
use crate::fleet::{End, FleetError, Phase, PlaceOutcome, Placement, Reservation, WorldProcess};
use crate::worlds::Worlds;

/// Maximum interval between two attempts of a waiting join.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Failed starts of a world after which a pending join fails.
const FAILED_STARTS_MAX: u32 = 3;

/// How long a join waits for a free slot.
#[derive(Clone, Copy, Debug)]
pub enum WaitPolicy {
    /// Waits only for the start of the server; a full world is rejected at once.
    None,
    /// Waits for a free slot up to this time.
    Until(Duration),
    /// Waits until the client stops polling.
    WhilePolled,
}

/// State of a waiting join.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinStatus {
    /// What the join waits for.
    pub stage: JoinStage,
    /// Description for users.
    pub message: String,
    /// Position in the queue, from 1, and the number of players in it.
    pub queue: Option<(u32, u32)>,
    /// Expected remaining time.
    pub expected: Option<Duration>,
}

/// One attempt of a player to join a world.
pub struct Matchmaker<'a> {
    worlds: &'a Worlds,
    session: &'a Session,
    target: Target,
    wait_policy: WaitPolicy,
    /// Time at which the attempt fails; `None` if the caller decides.
    deadline: Option<Instant>,
    failed_starts: u32,
}

impl<'a> Matchmaker<'a> {
    /// Creates an attempt to join `target`.
    pub fn new(
        worlds: &'a Worlds,
        session: &'a Session,
        target: Target,
        wait_policy: WaitPolicy,
    ) -> Self {
        let start = worlds.core.settings.fleet.start_timeout + Duration::from_secs(1);
        let now = Instant::now();
        let deadline = match wait_policy {
            WaitPolicy::None => Some(now + start),
            WaitPolicy::Until(wait) => Some(now + wait),
            WaitPolicy::WhilePolled => None,
        };
        Self {
            worlds,
            session,
            target,
            wait_policy,
            deadline,
            failed_starts: 0,
        }
    }

    /// Reserves a slot in a world whose server is ready. `report` receives the status whenever the
    /// join has to wait. Dropping the future releases the slot and the position in the queue.
    ///
    /// # Errors
    /// When no world can be joined, or the waiting time is over.
    pub async fn enter(mut self, report: impl Fn(JoinStatus)) -> Result<Placement, ApiError> {
        loop {
            match place::find(self.worlds, self.session, &self.target).await {
                Ok(PlaceOutcome::Reserved(server)) => {
                    if let Some(placement) = self.wait_until_ready(server, &report).await? {
                        return Ok(placement);
                    }
                }
                Ok(PlaceOutcome::Full(server)) => {
                    let full = FleetError::WorldFull {
                        max_players: server.spec.max_players,
                    };
                    self.wait_for_slot(&server, full, &report).await?;
                }
                Ok(PlaceOutcome::Draining(server)) => {
                    self.wait_for_end(&server, FleetError::Draining, &report)
                        .await?;
                }
                Ok(PlaceOutcome::Stopping(server)) => {
                    report(closing());
                    self.ended(&server, FleetError::StartTimeout).await?;
                }
                Err(PlaceError::Fleet(error)) => self.wait_for_machine(error, &report).await?,
                Err(PlaceError::Refused(error)) => return Err(error),
            }
        }
    }

    fn player_id(&self) -> &str {
        &self.session.user_id
    }

    /// Waits on a reserved slot until the server is ready; `None` when the server stopped or failed
    /// and another attempt makes sense.
    async fn wait_until_ready(
        &mut self,
        server: Arc<WorldProcess>,
        report: &impl Fn(JoinStatus),
    ) -> Result<Option<Placement>, ApiError> {
        // Further attempts must use the same world, even if it was created by this one.
        if matches!(self.target, Target::NewWorld) {
            self.target = Target::World(server.spec.world_id.clone());
        }
        let claim = Claim::new(&server, self.player_id(), WorldProcess::release);
        let mut phase = server.watch_phase();
        loop {
            let now = phase.borrow_and_update().clone();
            match now {
                Phase::Ready(endpoints) => {
                    claim.keep();
                    return Ok(Some(Placement {
                        spec: server.spec.clone(),
                        endpoints,
                        epoch: server.epoch(),
                        beside: self.target.beside(),
                    }));
                }
                Phase::Ended(End::Failed(why)) => {
                    return self.handle_failed_start(why).map(|()| None);
                }
                Phase::Ended(End::Stopped) => return Ok(None),
                Phase::Starting | Phase::Stopping | Phase::BackingOff { .. } => {
                    report(self.starting(&server, &now));
                }
            }
            let change = timeout(RETRY_INTERVAL, phase.changed());
            let Ok(_) = timeout_at(self.wait_until(), change).await else {
                return Err(FleetError::StartTimeout.into());
            };
            // The reservation is renewed, because a start may take longer than its lifetime.
            if self
                .worlds
                .fleet
                .renew_reservation(&server, self.player_id())
                == Reservation::Full
            {
                return Ok(None);
            }
        }
    }

    fn starting(&self, server: &WorldProcess, phase: &Phase) -> JoinStatus {
        let usual = self.worlds.fleet.average_start();
        let (stage, message, expected) = match phase {
            Phase::BackingOff { until } => {
                let pause = until.saturating_duration_since(Instant::now());
                let message = "The world crashed and is restarting";
                (JoinStage::Restarting, message, pause + usual)
            }
            Phase::Stopping => (JoinStage::Closing, "The world is closing", usual),
            _ => {
                let left = usual.saturating_sub(server.since_launch());
                (JoinStage::Starting, "Starting the world", left)
            }
        };
        JoinStatus {
            stage,
            message: message.to_owned(),
            queue: None,
            expected: Some(expected),
        }
    }

    /// A failed start is reported at once, except that a pending join allows a few failures.
    fn handle_failed_start(&mut self, why: String) -> Result<(), ApiError> {
        self.failed_starts += 1;
        match self.wait_policy {
            WaitPolicy::WhilePolled if self.failed_starts < FAILED_STARTS_MAX => Ok(()),
            _ => Err(FleetError::StartFailed { why }.into()),
        }
    }

    async fn wait_for_slot(
        &self,
        server: &Arc<WorldProcess>,
        full: FleetError,
        report: &impl Fn(JoinStatus),
    ) -> Result<(), ApiError> {
        self.may_wait(&full)?;
        // Subscribed before the queue is read, so that no later change is missed.
        let mut slots = server.watch_slots();
        let mut phase = server.watch_phase();
        phase.mark_unchanged();
        let position = server.enqueue(self.player_id());
        let claim = Claim::new(server, self.player_id(), WorldProcess::leave_queue);
        let Some(entry) = position else {
            return Err(full.into());
        };
        let ahead = entry.position.saturating_sub(1);
        let message = match ahead {
            0 => "The world is full: you are next".to_owned(),
            1 => "The world is full: one player is ahead of you".to_owned(),
            _ => format!("The world is full: {ahead} players are ahead of you"),
        };
        report(JoinStatus {
            stage: JoinStage::Queued,
            message,
            queue: Some((entry.position, entry.waiting)),
            expected: entry.expected,
        });
        let change = async {
            tokio::select! {
                _ = slots.changed() => {}
                _ = phase.changed() => {}
            }
        };
        let change = timeout(RETRY_INTERVAL, change);
        if timeout_at(self.wait_until(), change).await.is_err() {
            return Err(full.into());
        }
        // The next attempt continues with the same position in the queue.
        claim.keep();
        Ok(())
    }

    async fn wait_for_end(
        &self,
        server: &WorldProcess,
        error: FleetError,
        report: &impl Fn(JoinStatus),
    ) -> Result<(), ApiError> {
        self.may_wait(&error)?;
        report(closing());
        let ended = timeout(RETRY_INTERVAL, server.ended());
        match timeout_at(self.wait_until(), ended).await {
            Ok(_) => Ok(()),
            Err(_) => Err(error.into()),
        }
    }

    async fn ended(&self, server: &WorldProcess, error: FleetError) -> Result<(), ApiError> {
        let ended = timeout_at(self.wait_until(), server.ended());
        ended.await.map_err(|_| error.into())
    }

    /// Waits for the backoff pause of a failing package. If all servers are in use, stops an empty
    /// world to make room.
    async fn wait_for_machine(
        &self,
        error: FleetError,
        report: &impl Fn(JoinStatus),
    ) -> Result<(), ApiError> {
        let status = match &error {
            FleetError::TooManyServers => {
                if self.worlds.fleet.stop_longest_empty() {
                    // Also for joins that do not wait, because a stop takes only a moment.
                    tracing::debug!("a join waits for an empty world to stop");
                }
                JoinStatus {
                    stage: JoinStage::MachineFull,
                    message:
                        "All game servers are in use; your world starts as soon as one is free"
                            .to_owned(),
                    queue: None,
                    expected: None,
                }
            }
            FleetError::CrashLoop { retry_after } => JoinStatus {
                stage: JoinStage::Restarting,
                message: "The world crashed and will restart in a moment".to_owned(),
                queue: None,
                expected: Some(*retry_after + self.worlds.fleet.average_start()),
            },
            _ => return Err(error.into()),
        };
        self.may_wait(&error)?;
        report(status);
        let pause = match &error {
            FleetError::CrashLoop { retry_after } => RETRY_INTERVAL.min(*retry_after),
            _ => RETRY_INTERVAL,
        };
        let pause = tokio::time::sleep(pause);
        match timeout_at(self.wait_until(), pause).await {
            Ok(()) => Ok(()),
            Err(_) => Err(error.into()),
        }
    }

    fn may_wait(&self, error: &FleetError) -> Result<(), ApiError> {
        match self.wait_policy {
            WaitPolicy::None => Err(error.clone().into()),
            WaitPolicy::Until(_) | WaitPolicy::WhilePolled => Ok(()),
        }
    }

    /// The deadline of this attempt; far in the future if the caller decides.
    fn wait_until(&self) -> Instant {
        self.deadline
            .unwrap_or_else(|| Instant::now() + Duration::from_secs(3600))
    }
}

fn closing() -> JoinStatus {
    JoinStatus {
        stage: JoinStage::Closing,
        message: "The world is closing and will restart afterwards".to_owned(),
        queue: None,
        expected: None,
    }
}

/// A reserved slot or a position in the queue, released on drop unless it is kept.
struct Claim {
    server: Arc<WorldProcess>,
    player_id: String,
    release: fn(&WorldProcess, &str),
    kept: bool,
}

impl Claim {
    fn new(server: &Arc<WorldProcess>, player_id: &str, release: fn(&WorldProcess, &str)) -> Self {
        Self {
            server: server.clone(),
            player_id: player_id.to_owned(),
            release,
            kept: false,
        }
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.kept {
            (self.release)(&self.server, &self.player_id);
        }
    }
}
