//! Requests from outside of the world, and events for subscribers outside.

use std::time::Instant;

use frolic_protocol::remote_commands::{
    LEARNED_MAX, NEWS_MAX, OutsideNews, OutsideReply, OutsideRequest,
};
use frolic_protocol::value::ValueLimits;
use frolic_protocol::{Args, Value};
use frolic_world::PlayerNumber;
use tokio::sync::oneshot;

use super::Host;
use super::terrain::Unstored;

/// Longest id of an outside user, and longest name of a spell.
const ID_BYTES_MAX: usize = 128;

type Refusal = (&'static str, String);

impl Host {
    /// Performs a request of the control plane for an outside user. The result is
    /// reported once it is stored: the caller takes the answer for an
    /// acknowledgement.
    pub(super) fn answer_outside(
        &mut self,
        request: OutsideRequest,
        answer: oneshot::Sender<OutsideReply>,
    ) {
        let before = self.world.newest_op();
        let reply = self.outside(request);
        let op = self.world.newest_op();
        match reply {
            OutsideReply::Done if op > before => {
                // Bounded by the operations that may wait to be stored.
                self.unstored.push_back(Unstored::outside(op, answer));
            }
            // The caller may have disconnected; it is done all the same.
            reply => drop(answer.send(reply)),
        }
    }

    fn outside(&mut self, request: OutsideRequest) -> OutsideReply {
        let outcome = match request {
            _ if self.closing.is_some() => Err((
                "restarting",
                "The world is closing; try again in a moment.".into(),
            )),
            OutsideRequest::Learn { spells } => self.learn(&spells),
            OutsideRequest::Forget { spells } => {
                self.forget(&spells);
                Ok(())
            }
            OutsideRequest::Cast {
                by,
                spell,
                revision,
                params,
            } => self.cast_for(&by, &spell, revision.as_deref(), &params),
            OutsideRequest::Terraform { by, op } => match self.player_of(&by) {
                Some(number) => self.terraform(number, &op).map(|_| ()),
                None => {
                    let done = self.world.terraform_from_outside(&by, &op);
                    done.map_err(|error| (error.code(), error.to_string()))
                }
            },
            OutsideRequest::Clear { by } => self.clear(&by),
        };
        match outcome {
            Ok(()) => OutsideReply::Done,
            Err((code, message)) => OutsideReply::Refused {
                code: code.to_owned(),
                message,
            },
        }
    }

    fn learn(
        &mut self,
        spells: &[frolic_protocol::remote_commands::LearnSpell],
    ) -> Result<(), Refusal> {
        let mut changed = false;
        let mut refused = None;
        for spell in spells.iter().take(LEARNED_MAX) {
            if spell.name.len() > ID_BYTES_MAX {
                continue;
            }
            match self.world.learn(spell) {
                Ok(done) => changed |= done.is_some(),
                Err(refusal) => refused = Some((refusal.code(), refusal.to_string())),
            }
        }
        if changed {
            self.restock();
        }
        self.write_logs(Instant::now());
        refused.map_or(Ok(()), Err)
    }

    fn forget(&mut self, spells: &[String]) {
        let gone = spells
            .iter()
            .filter(|name| self.world.forget(name).is_some())
            .count();
        if gone > 0 {
            self.restock();
        }
    }

    /// With their character, if they are connected.
    fn cast_for(
        &mut self,
        by: &str,
        spell: &str,
        revision: Option<&str>,
        params: &serde_json::Value,
    ) -> Result<(), Refusal> {
        let params = Value::from_json(params, &ValueLimits::default());
        let params = params.map_err(|error| ("spell_params", error.to_string()))?;
        let params = Args(vec![params]);
        let done = match self.player_of(by) {
            Some(number) => self.world.cast(number, spell, revision, params),
            None => self.world.cast_from_outside(by, spell, revision, params),
        };
        done.map_err(|refusal| (refusal.code(), refusal.to_string()))
    }

    fn clear(&mut self, by: &str) -> Result<(), Refusal> {
        let done = self.world.clear(by);
        done.map_err(|error| (error.code(), error.to_string()))?;
        // Chunks have new versions, which the next process learns only from a
        // checkpoint.
        self.settings.persistence.checkpoint_soon();
        Ok(())
    }

    /// The player with this persistent id, if they are connected.
    fn player_of(&mut self, id: &str) -> Option<PlayerNumber> {
        let mut player_sessions = self.player_sessions.iter_mut();
        let here = player_sessions.find(|(_, player_session)| {
            player_session.identity.player_id == id && player_session.connection_id().is_some()
        });
        here.map(|(number, _)| number)
    }

    /// Forwards the events of this tick.
    pub(super) fn report_outside(&mut self) {
        let mut casts = self.world.take_casts();
        let mut ops = self.settings.persistence.take_unstored();
        if casts.is_empty() && ops.is_empty() {
            return;
        }
        let Some(news) = &self.settings.news else {
            return;
        };
        casts.truncate(NEWS_MAX);
        ops.truncate(NEWS_MAX);
        let news_of_tick = OutsideNews {
            near_only: self.world.is_near_only(),
            casts,
            ops,
        };
        if news.try_send(news_of_tick).is_err() {
            // The tick never waits; subscribers can query the state again.
            tracing::debug!("an event for outside subscribers was lost");
        }
    }
}
