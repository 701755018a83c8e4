//! Places a player in a world: finds or starts one, waits for what it has to wait
//! for, and reports the progress.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::place::{self, PlaceError, Target};
use crate::Platform;
use crate::api::JoinStage;
use crate::auth::Session;
use crate::error::ApiError;
use crate::fleet::{End, FleetError, Phase, Placement, Reservation, Step, WorldProcess};

/// Those who wait look again at least this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Starts of a world that may fail before a join that waits gives up.
const FAILED_STARTS_MAX: u32 = 3;

/// How long to wait for what is not there.
#[derive(Clone, Copy, Debug)]
pub enum WaitPolicy {
    /// For a start, as every join; a full world is refused at once.
    None,
    /// For a place, so long.
    Until(Duration),
    /// As long as somebody asks.
    AsLongAsAsked,
}

/// What a join waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinStatus {
    /// Why.
    pub stage: JoinStage,
    /// The same for people.
    pub message: String,
    /// Place in the queue, from 1, and how many are in it.
    pub queue: Option<(u32, u32)>,
    /// How long it may still take.
    pub expected: Option<Duration>,
}

/// Somebody on the way into a world.
pub struct Matchmaker<'a> {
    platform: &'a Platform,
    session: &'a Session,
    target: Target,
    patience: WaitPolicy,
    /// When to stop trying; for joins that wait, the loop around decides.
    deadline: Option<Instant>,
    failed_starts: u32,
}

impl<'a> Matchmaker<'a> {
    /// Somebody who wants `target`.
    pub fn new(
        platform: &'a Platform,
        session: &'a Session,
        target: Target,
        patience: WaitPolicy,
    ) -> Self {
        let start = platform.settings().fleet.start_timeout + Duration::from_secs(1);
        let now = Instant::now();
        let deadline = match patience {
            WaitPolicy::None => Some(now + start),
            WaitPolicy::Until(wait) => Some(now + wait),
            WaitPolicy::AsLongAsAsked => None,
        };
        Self {
            platform,
            session,
            target,
            patience,
            deadline,
            failed_starts: 0,
        }
    }

    /// Finds a place whose server is ready. `tell` hears what it waits for.
    /// Dropping this gives the place up, in the queue and in the world.
    ///
    /// # Errors
    /// When there is none, or waiting for it is over.
    pub async fn enter(mut self, tell: impl Fn(JoinStatus)) -> Result<Placement, ApiError> {
        loop {
            match place::find(self.platform, self.session, &self.target).await {
                Ok(Step::Held(server)) => {
                    if let Some(placement) = self.settle(server, &tell).await? {
                        return Ok(placement);
                    }
                }
                Ok(Step::Full(server)) => {
                    let full = FleetError::WorldFull {
                        max_players: server.spec.max_players,
                    };
                    self.wait_for_room(&server, full, &tell).await?;
                }
                Ok(Step::Draining(server)) => {
                    self.wait_for_end(&server, FleetError::Draining, &tell)
                        .await?;
                }
                Ok(Step::Leaving(server)) => {
                    tell(closing());
                    self.ended(&server, FleetError::StartTimeout).await?;
                }
                Err(PlaceError::Fleet(error)) => self.wait_for_machine(error, &tell).await?,
                Err(PlaceError::Refused(error)) => return Err(error),
            }
        }
    }

    fn player_id(&self) -> &str {
        &self.session.user_id
    }

    /// PendingJoins on a held place until its server is ready; none when it stopped
    /// or failed, and another try makes sense.
    async fn settle(
        &mut self,
        server: Arc<WorldProcess>,
        tell: &impl Fn(JoinStatus),
    ) -> Result<Option<Placement>, ApiError> {
        // The next try is for this world, also when this one was made anew.
        if matches!(self.target, Target::NewWorld) {
            self.target = Target::World(server.spec.world_id.clone());
        }
        let hold = Claim::new(&server, self.player_id(), WorldProcess::release);
        let mut phase = server.watch_phase();
        loop {
            let now = phase.borrow_and_update().clone();
            match now {
                Phase::Ready(endpoints) => {
                    hold.keep();
                    return Ok(Some(Placement {
                        spec: server.spec.clone(),
                        endpoints,
                        epoch: server.epoch(),
                        beside: self.target.beside(),
                    }));
                }
                Phase::Ended(End::Failed(why)) => return self.start_failed(why).map(|()| None),
                Phase::Ended(End::Stopped) => return Ok(None),
                Phase::Starting | Phase::Stopping | Phase::BackingOff { .. } => {
                    tell(self.starting(&server, &now));
                }
            }
            let look = timeout(LOOK_EVERY, phase.changed());
            let Ok(_) = timeout_at(self.end_of_patience(), look).await else {
                return Err(FleetError::StartTimeout.into());
            };
            // A start may take longer than places are held.
            if self.platform.fleet().hold(&server, self.player_id()) == Reservation::Full {
                return Ok(None);
            }
        }
    }

    fn starting(&self, server: &WorldProcess, phase: &Phase) -> JoinStatus {
        let usual = self.platform.fleet().usual_start();
        let (stage, message, expected) = match phase {
            Phase::BackingOff { until } => {
                let pause = until.saturating_duration_since(Instant::now());
                let message = "The world had a problem and starts again";
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

    /// A world that cannot start says so at once, and those who wait are
    /// willing to see it fail a few times.
    fn start_failed(&mut self, why: String) -> Result<(), ApiError> {
        self.failed_starts += 1;
        match self.patience {
            WaitPolicy::AsLongAsAsked if self.failed_starts < FAILED_STARTS_MAX => Ok(()),
            _ => Err(FleetError::StartFailed { why }.into()),
        }
    }

    async fn wait_for_room(
        &self,
        server: &Arc<WorldProcess>,
        full: FleetError,
        tell: &impl Fn(JoinStatus),
    ) -> Result<(), ApiError> {
        self.may_wait(&full)?;
        // Before the look at the queue: what changes from here on is noticed.
        let mut places = server.watch_places();
        let mut phase = server.watch_phase();
        phase.mark_unchanged();
        let turn = server.queue_up(self.player_id());
        let stand = Claim::new(server, self.player_id(), WorldProcess::leave_queue);
        let Some(turn) = turn else {
            return Err(full.into());
        };
        let others = turn.position.saturating_sub(1);
        let message = match others {
            0 => "The world is full: you are next".to_owned(),
            1 => "The world is full: one more is before you".to_owned(),
            _ => format!("The world is full: {others} are before you"),
        };
        tell(JoinStatus {
            stage: JoinStage::Queued,
            message,
            queue: Some((turn.position, turn.waiting)),
            expected: turn.expected,
        });
        let news = async {
            tokio::select! {
                _ = places.changed() => {}
                _ = phase.changed() => {}
            }
        };
        let news = timeout(LOOK_EVERY, news);
        if timeout_at(self.end_of_patience(), news).await.is_err() {
            return Err(full.into());
        }
        // Goes on with the same turn.
        stand.keep();
        Ok(())
    }

    async fn wait_for_end(
        &self,
        server: &WorldProcess,
        error: FleetError,
        tell: &impl Fn(JoinStatus),
    ) -> Result<(), ApiError> {
        self.may_wait(&error)?;
        tell(closing());
        let ended = timeout(LOOK_EVERY, server.ended());
        match timeout_at(self.end_of_patience(), ended).await {
            Ok(_) => Ok(()),
            Err(_) => Err(error.into()),
        }
    }

    async fn ended(&self, server: &WorldProcess, error: FleetError) -> Result<(), ApiError> {
        let ended = timeout_at(self.end_of_patience(), server.ended());
        ended.await.map_err(|_| error.into())
    }

    /// A package that keeps failing gets its pause, and a machine that is full
    /// gets rid of worlds that nobody is in.
    async fn wait_for_machine(
        &self,
        error: FleetError,
        tell: &impl Fn(JoinStatus),
    ) -> Result<(), ApiError> {
        let standing = match &error {
            FleetError::TooManyServers => {
                if self.platform.fleet().make_room() {
                    // Also for those who do not wait: it takes a moment.
                    tracing::debug!("a join waits for an empty world to end");
                }
                JoinStatus {
                    stage: JoinStage::MachineFull,
                    message: "All game servers are in use; yours is next as soon as one is free"
                        .to_owned(),
                    queue: None,
                    expected: None,
                }
            }
            FleetError::CrashLoop { retry_after } => JoinStatus {
                stage: JoinStage::Restarting,
                message: "The world had a problem and starts again in a moment".to_owned(),
                queue: None,
                expected: Some(*retry_after + self.platform.fleet().usual_start()),
            },
            _ => return Err(error.into()),
        };
        self.may_wait(&error)?;
        tell(standing);
        let pause = match &error {
            FleetError::CrashLoop { retry_after } => LOOK_EVERY.min(*retry_after),
            _ => LOOK_EVERY,
        };
        let pause = tokio::time::sleep(pause);
        match timeout_at(self.end_of_patience(), pause).await {
            Ok(()) => Ok(()),
            Err(_) => Err(error.into()),
        }
    }

    fn may_wait(&self, error: &FleetError) -> Result<(), ApiError> {
        match self.patience {
            WaitPolicy::None => Err(error.clone().into()),
            WaitPolicy::Until(_) | WaitPolicy::AsLongAsAsked => Ok(()),
        }
    }

    /// Far away when somebody else decides.
    fn end_of_patience(&self) -> Instant {
        self.deadline
            .unwrap_or_else(|| Instant::now() + Duration::from_secs(3600))
    }
}

fn closing() -> JoinStatus {
    JoinStatus {
        stage: JoinStage::Closing,
        message: "The world is closing; it starts again once it has".to_owned(),
        queue: None,
        expected: None,
    }
}

/// A place in a world or in its queue, given back when the join ends without
/// having used it.
struct Claim {
    server: Arc<WorldProcess>,
    player_id: String,
    give_back: fn(&WorldProcess, &str),
    kept: bool,
}

impl Claim {
    fn new(
        server: &Arc<WorldProcess>,
        player_id: &str,
        give_back: fn(&WorldProcess, &str),
    ) -> Self {
        Self {
            server: server.clone(),
            player_id: player_id.to_owned(),
            give_back,
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
            (self.give_back)(&self.server, &self.player_id);
        }
    }
}
