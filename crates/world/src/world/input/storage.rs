//! Answers of storage: of the `Store`, and about persistent operations.

use frolic_fleet_api::store::StoreAnswer;
use frolic_script::ScriptEvent;
use serde::{Deserialize, Serialize};

use super::{Effect, Input, World};

/// An answer of the `Store`; the waiting script resumes in the next step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreAnswered(pub StoreAnswer);

impl Effect for StoreAnswered {
    type Outcome = ();

    fn run(self, world: &mut World) {
        let StoreAnswer { id, result } = self.0;
        // Entities are never stored, so none can come from there.
        let result = result.map(|args| world.known_entities(args.0));
        world.inbox.push(ScriptEvent::StoreAnswer { id, result });
    }
}

/// Persistent operations are stored up to this number, which releases the
/// messages that wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpsPersisted {
    /// The number of the last of them.
    pub up_to: u64,
}

impl Effect for OpsPersisted {
    type Outcome = ();

    fn recorded(&self, world: &World) -> Option<Input> {
        (self.up_to > world.persisted_op()).then(|| (*self).into())
    }

    fn run(self, world: &mut World) {
        if self.up_to <= world.persisted_op() {
            return;
        }
        // Resumes scripts that wait for an operation, in the next step.
        let up_to = self.up_to;
        world.inbox.push(ScriptEvent::OpsKept { up_to });
        world.state.borrow_mut().ops_persisted(up_to);
    }
}
