//! Requests of users outside of the world, which the control plane forwards.

use std::time::Instant;

use frolic_fleet_api::remote_commands::{LEARNED_MAX, LearnSpell, OutsideReply, OutsideRequest};
use frolic_protocol::value::ValueLimits;
use frolic_protocol::{Args, Value};
use frolic_world::input::{self, Actor};
use tokio::sync::oneshot;

use super::Host;
use super::commits::Requester;
use super::message::Outcome;

/// Longest id of an outside user, and longest name of a spell.
const ID_BYTES_MAX: usize = 128;

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
        let outcome = self.outside(request);
        let op = self.world.newest_op();
        let reply = match outcome {
            Ok(()) if op > before => {
                let requester = Requester::Outside(answer);
                return self.persister.answer_after(op, requester);
            }
            Ok(()) => OutsideReply::Done,
            Err((code, message)) => OutsideReply::Refused {
                code: code.to_owned(),
                message,
            },
        };
        // The caller may have disconnected; it is done all the same.
        let _ = answer.send(reply);
    }

    fn outside(&mut self, request: OutsideRequest) -> Outcome {
        if self.lifecycle.is_closing() {
            let message = "The world is closing; try again in a moment.".to_owned();
            return Err(("restarting", message));
        }
        match request {
            OutsideRequest::Learn { spells } => self.learn(spells),
            OutsideRequest::Forget { spells } => {
                self.forget(spells);
                Ok(())
            }
            OutsideRequest::Cast {
                by,
                spell,
                revision,
                params,
            } => {
                let params = Value::from_json(&params, &ValueLimits::default());
                let params = params.map_err(|error| ("spell_params", error.to_string()))?;
                let cast = input::Cast {
                    by: self.actor(by),
                    spell,
                    revision,
                    params: Args(vec![params]),
                };
                let done = self.world.apply(cast);
                done.map_err(|refusal| (refusal.code(), refusal.to_string()))
            }
            OutsideRequest::Terraform { by, op } => {
                let by = self.actor(by);
                let done = self.world.apply(input::Terraform { by, op });
                done.map_err(|error| (error.code(), error.to_string()))?;
                Ok(())
            }
            OutsideRequest::Clear { by } => {
                let done = self.world.apply(input::Clear { by });
                done.map_err(|error| (error.code(), error.to_string()))?;
                // Chunks have new versions, which the next process learns only from
                // a checkpoint.
                self.persister.checkpoint_soon();
                Ok(())
            }
        }
    }

    fn learn(&mut self, spells: Vec<LearnSpell>) -> Outcome {
        let mut changed = false;
        let mut outcome = Ok(());
        for spell in spells.into_iter().take(LEARNED_MAX) {
            if spell.name.len() > ID_BYTES_MAX {
                continue;
            }
            match self.world.apply(input::Learn(spell)) {
                Ok(done) => changed |= done.is_some(),
                Err(refusal) => outcome = Err((refusal.code(), refusal.to_string())),
            }
        }
        if changed {
            self.scripts.publish(&self.world, &mut self.sessions);
        }
        self.report_scripts(Instant::now());
        outcome
    }

    fn forget(&mut self, spells: Vec<String>) {
        let forget = |name| self.world.apply(input::Forget { name });
        if spells.into_iter().filter_map(forget).count() > 0 {
            self.scripts.publish(&self.world, &mut self.sessions);
        }
    }

    /// A user acts with their character, if they are connected.
    fn actor(&self, by: String) -> Actor {
        match self.players.connected(&by) {
            Some(number) => Actor::Player(number),
            None => Actor::Visitor(by),
        }
    }
}
