//! Requests of a world's scripts to the host, and their cost.

use std::borrow::Cow;

use frolic_fleet_api::store::{StoreAnswer, StoreRequest};
use frolic_script::{ScriptCost, ScriptEvent};

use super::World;
use crate::replay::Record;

impl World {
    /// Store requests of scripts since the last call; each is answered with
    /// [`World::store_answer`].
    pub fn take_store_requests(&mut self) -> Vec<StoreRequest> {
        std::mem::take(&mut self.state.borrow_mut().store_outbox)
    }

    /// Delivers an answer of the store; the waiting script resumes in the next
    /// step.
    pub fn store_answer(&mut self, answer: StoreAnswer) {
        let StoreAnswer { id, result } = answer;
        self.note(&Record::StoreAnswer {
            id,
            result: match &result {
                Ok(args) => Ok(Cow::Borrowed(args)),
                Err(text) => Err(Cow::Borrowed(text)),
            },
        });
        // Entities are never stored, so none can come from there.
        let result = result.map(|args| self.known_entities(args.0));
        self.inbox.push(ScriptEvent::StoreAnswer { id, result });
    }

    /// Resumes scripts that wait for a persistent operation, in the next step,
    /// once it is stored.
    pub(crate) fn notify_scripts_persisted(&mut self, up_to: u64) {
        self.inbox.push(ScriptEvent::OpsKept { up_to });
    }

    /// The cost of each script so far; intended for once a second, not every
    /// tick.
    pub fn script_costs(&self) -> Vec<ScriptCost> {
        self.vm.costs()
    }
}
