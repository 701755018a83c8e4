//! What a world's scripts ask of the outside, and what they cost.

use std::borrow::Cow;

use frolic_protocol::store::{StoreAnswer, StoreRequest};
use frolic_script::{ScriptCost, ScriptEvent};

use super::World;
use crate::replay::Record;

impl World {
    /// What scripts asked of the store since the last call; each is answered
    /// with [`World::store_answer`].
    pub fn take_store_requests(&mut self) -> Vec<StoreRequest> {
        std::mem::take(&mut self.state.borrow_mut().store_outbox)
    }

    /// The store answered; the script that waits goes on in the next step.
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

    /// Lasting operations are kept: scripts that wait for one go on in the
    /// next step.
    pub(crate) fn tell_scripts_kept(&mut self, up_to: u64) {
        self.inbox.push(ScriptEvent::OpsKept { up_to });
    }

    /// What each script has cost so far; for once a second, not every tick.
    pub fn script_costs(&self) -> Vec<ScriptCost> {
        self.vm.costs()
    }
}
