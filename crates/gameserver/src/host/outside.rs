//! Requests of users outside of the world, which the control plane forwards.

use std::time::Instant;

use frolic_fleet_api::remote_commands::{LEARNED_MAX, LearnSpell, OutsideReply, OutsideRequest};
use frolic_protocol::value::ValueLimits;
use frolic_protocol::{Args, Value};
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
            OutsideRequest::Terraform { by, op } => {
                let done = match self.players.connected(&by) {
                    Some(number) => self.world.terraform(number, &op).map(|_| ()),
                    None => self.world.terraform_from_outside(&by, &op),
                };
                done.map_err(|error| (error.code(), error.to_string()))
            }
            OutsideRequest::Clear { by } => {
                let done = self.world.clear(&by);
                done.map_err(|error| (error.code(), error.to_string()))?;
                // Chunks have new versions, which the next process learns only from
                // a checkpoint.
                self.persister.checkpoint_soon();
                Ok(())
            }
        }
    }

    fn learn(&mut self, spells: &[LearnSpell]) -> Outcome {
        let mut changed = false;
        let mut outcome = Ok(());
        for spell in spells.iter().take(LEARNED_MAX) {
            if spell.name.len() > ID_BYTES_MAX {
                continue;
            }
            match self.world.learn(spell) {
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

    fn forget(&mut self, spells: &[String]) {
        let forgotten = spells
            .iter()
            .filter(|name| self.world.forget(name).is_some());
        if forgotten.count() > 0 {
            self.scripts.publish(&self.world, &mut self.sessions);
        }
    }

    /// With their character, if they are connected.
    fn cast_for(
        &mut self,
        by: &str,
        spell: &str,
        revision: Option<&str>,
        params: &serde_json::Value,
    ) -> Outcome {
        let params = Value::from_json(params, &ValueLimits::default());
        let params = params.map_err(|error| ("spell_params", error.to_string()))?;
        let params = Args(vec![params]);
        let done = match self.players.connected(by) {
            Some(number) => self.world.cast(number, spell, revision, params),
            None => self.world.cast_from_outside(by, spell, revision, params),
        };
        done.map_err(|refusal| (refusal.code(), refusal.to_string()))
    }
}
