//! The game from the welcome on: the own character, the moment at which everything
//! else is shown, shots and players.

use frolic_protocol::snapshot::OwnState;
use frolic_protocol::{
    ClientMessage, Inputs, PacketAck, PlayerInfo, ServerMessage, Shown, Welcome,
};
use frolic_sim::{CharacterInput, CharacterState, Rotation, Vec3};

use crate::drawn::{Drawn, DrawnKind};
use crate::event::ClientEvent;
use crate::output::Output;
use crate::pacing::Pacing;
use crate::playback::{OwnFrame, Playback};
use crate::players::{Arrivals, Players};
use crate::prediction::Prediction;
use crate::replica::Replica;
use crate::replication::Replication;
use crate::shots::{DrawnShot, Now, Shots};
use crate::stats::Stats;

pub(crate) struct Joined {
    welcome: Welcome,
    pacing: Pacing,
    playback: Playback,
    prediction: Prediction,
    players: Players,
    shots: Shots,
    /// The own character is dead: it neither walks nor fires.
    dead: bool,
    /// The last frame: others in order of ids, then the own character.
    drawn: Vec<Drawn>,
    /// The last acknowledgement that was sent while there were no inputs to carry
    /// it.
    acknowledged: Option<PacketAck>,
    /// When the welcome arrived.
    welcomed_ms: f64,
    /// The latest world time that was returned.
    world_time_s: f64,
}

impl Joined {
    pub fn new(welcome: Welcome, now_ms: f64) -> Self {
        Self {
            pacing: Pacing::new(welcome.tick_hz),
            playback: Playback::new(welcome.tick_hz, welcome.snapshot_hz),
            prediction: Prediction::new(welcome.character, welcome.tick_hz),
            players: Players::default(),
            shots: Shots::default(),
            dead: false,
            drawn: Vec::new(),
            acknowledged: None,
            welcomed_ms: now_ms,
            world_time_s: 0.0,
            welcome,
        }
    }

    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    pub fn players(&self) -> &Players {
        &self.players
    }

    /// The last frame: others in order of ids, then the own character.
    pub fn drawn(&self) -> &[Drawn] {
        &self.drawn
    }

    pub fn shots(&self) -> &[DrawnShot] {
        self.shots.drawn()
    }

    pub fn own_state(&self) -> &CharacterState {
        self.prediction.state()
    }

    /// The moment at which the last frame showed other entities.
    pub fn shown(&self) -> Shown {
        self.playback.shown()
    }

    /// Handles a message about players, characters and shots.
    pub fn handle(&mut self, message: ServerMessage, output: &mut Output) {
        match message {
            ServerMessage::Presence(players) => self.presence(players, output),
            ServerMessage::Weapon(weapon) => {
                let event = self.shots.define(weapon);
                event.into_iter().for_each(|event| output.emit(event));
            }
            ServerMessage::Armed { player, weapon } => {
                output.emit(self.shots.arm(player, weapon));
            }
            ServerMessage::ProjectileLaunch(launches) => self.shots.launched(launches),
            ServerMessage::ProjectileHit(hits) => {
                let events = self.shots.ended(hits, self.welcome.entity_id);
                events.into_iter().for_each(|event| output.mention(event));
            }
            ServerMessage::Vitals(vitals) => {
                self.dead = !vitals.alive;
                output.emit(ClientEvent::Vitals(vitals));
            }
            ServerMessage::Character(params) => {
                self.welcome.character = params;
                self.prediction.set_params(params);
            }
            _ => {}
        }
    }

    fn presence(&mut self, players: Vec<PlayerInfo>, output: &mut Output) {
        for gone in players.iter().filter(|player| player.left) {
            self.shots.arm(gone.number, None);
        }
        let Arrivals { joined, left } = self.players.apply(players.clone());
        output.emit(ClientEvent::Players {
            changed: players,
            joined,
            left,
        });
    }

    /// Applies the own character's state of a newer snapshot. After a stall its
    /// correction is smoothed.
    pub fn reconcile(
        &mut self,
        replica: &mut Replica,
        (tick, own): (u32, &OwnState),
        now_ms: f64,
        after_stall: bool,
    ) {
        if after_stall {
            self.prediction.forgive();
        }
        self.playback.arrived(tick, now_ms);
        self.pacing.observe(own.queued_inputs, own.late_ticks);
        self.prediction.reconcile(&mut replica.scene, tick, own);
        self.shots.acknowledged(own.ack_seq);
    }

    /// Removes entities from the last frame, so that queries do not find them until
    /// the next one. The own character stays.
    pub fn drop_drawn(&mut self, removed: &[u32]) {
        if removed.is_empty() {
            return;
        }
        let mut removed = removed.to_vec();
        removed.sort_unstable();
        self.drawn
            .retain(|drawn| drawn.own || removed.binary_search(&drawn.id).is_err());
    }

    /// Predicts the steps that are due, with the held input. Returns what to send.
    pub fn advance(
        &mut self,
        replica: &mut Replica,
        input: CharacterInput,
        now_ms: f64,
        stalled: bool,
    ) -> Option<ClientMessage> {
        let steps = self.pacing.steps_due(now_ms);
        if stalled {
            // These steps would never be shown: the character waits where it is.
            self.prediction.rest();
            return None;
        }
        if !replica.is_ready() {
            return self.acknowledge(&replica.replication);
        }
        let input = match self.dead {
            true => input.at_rest(),
            false => input,
        };
        for _ in 0..steps {
            self.prediction.step(&mut replica.scene, input);
            let feet = self.prediction.state().feet;
            let (player, entity) = (self.welcome.player_number, self.welcome.entity_id);
            let step = self.prediction.last_step();
            self.shots.own_step(player, entity, step, &input, feet);
        }
        (steps > 0).then(|| ClientMessage::Inputs {
            ack: replica.replication.ack(),
            shown: Some(self.playback.shown()),
            inputs: self.prediction.newest_inputs(steps),
        })
    }

    /// Acknowledges packets while there is no scene to move through yet: otherwise
    /// all of them would be sent again and again, beside a large scene.
    fn acknowledge(&mut self, replication: &Replication) -> Option<ClientMessage> {
        let ack = replication.ack();
        let is_new = std::mem::replace(&mut self.acknowledged, ack) != ack;
        is_new.then(|| ClientMessage::Inputs {
            ack,
            shown: None,
            inputs: Inputs::default(),
        })
    }

    /// Poses everything that moves; see [`Self::drawn`]. While the connection is
    /// stalled, the world is frozen as of `stalled_at_ms`. Returns what happened to
    /// shots.
    pub fn draw(
        &mut self,
        replica: &mut Replica,
        now_ms: f64,
        stalled_at_ms: Option<f64>,
    ) -> Vec<ClientEvent> {
        self.drawn.clear();
        if replica.replication.newest_own().is_none() {
            return Vec::new();
        }
        let own_id = self.welcome.entity_id;
        let mut own = *self.prediction.state();
        let now_ms = stalled_at_ms.unwrap_or(now_ms);
        let fraction = match stalled_at_ms {
            Some(_) => 1.0,
            None => self.pacing.fraction(now_ms),
        };
        if stalled_at_ms.is_some() {
            own.velocity = Vec3::ZERO;
        }
        let own_frame = OwnFrame {
            id: own_id,
            tick: self.prediction.shown_tick(fraction),
            ground: own.ground,
            ground_error: self.prediction.ground_error(),
            pushed: self.prediction.pushed(),
        };
        let replication = &mut replica.replication;
        self.playback
            .frame(replication, now_ms, &own_frame, &mut self.drawn);
        for drawn in &mut self.drawn {
            replica.scene.draw_at_home(drawn);
        }
        let input = self.prediction.newest_input();
        self.drawn.push(Drawn {
            id: own_id,
            kind: DrawnKind::Character,
            definition: 0,
            grounded: own.grounded(),
            dead: self.dead,
            own: true,
            position: self.prediction.shown(fraction),
            rotation: Rotation::IDENTITY,
            velocity: own.velocity,
            yaw: input.yaw.radians(),
            pitch: input.pitch.radians(),
            mood: Default::default(),
        });
        let now = Now {
            own_tick: own_frame.tick,
            others_tick: self.playback.shown_tick(),
        };
        let dt = 1.0 / self.welcome.tick_hz.max(1) as f32;
        let character = (own_id, &self.welcome.character);
        let solids = &replica.scene.collision;
        self.shots.advance(now, dt, character, solids, &self.drawn)
    }

    /// Seconds since the world started, by the server's clock. Never decreases.
    pub fn world_time_s(&mut self, now_ms: f64) -> f64 {
        let time_s = self.playback.server_time_s(now_ms).unwrap_or_else(|| {
            let welcome = &self.welcome;
            let then_s = f64::from(welcome.tick) / f64::from(welcome.tick_hz);
            then_s + (now_ms - self.welcomed_ms) / 1000.0
        });
        self.world_time_s = self.world_time_s.max(time_s);
        self.world_time_s
    }

    /// Adds the statistics of prediction and playback.
    pub fn fill_in(&self, stats: &mut Stats) {
        stats.jitter_ms = self.playback.jitter_ms();
        stats.playback_delay_ms = self.playback.delay_s() * 1000.0;
        stats.input_seq = self.prediction.last_seq();
        stats.pending_inputs = self.prediction.pending_count();
        stats.corrections = self.prediction.corrections;
        stats.last_correction_m = self.prediction.last_correction_m;
    }
}
