//! The end of a world: scripts hear of it and are given time to save.

use frolic_script::ScriptEvent;

use super::World;
use crate::replay::Record;

impl World {
    /// Begins to end: `PlayerRemoving` runs for everybody who is in the world,
    /// then `World.OnClose`. Players and characters stay, so that scripts can
    /// read them; nobody joins or leaves from here on. Step the world until
    /// [`World::has_closed`].
    pub fn close(&mut self) {
        if self.closing {
            return;
        }
        self.note(&Record::Close);
        // Who has just come was added before they are removed.
        self.dispatch_events();
        self.closing = true;
        self.vm.dispatch(ScriptEvent::Closing);
        self.note_cuts();
    }

    /// Whether it is about to end.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether everything that scripts do at the end is done, and no script
    /// waits for the store.
    pub fn has_closed(&self) -> bool {
        self.closing && self.vm.closing_left() == 0
    }

    /// The time to close is up: stops the handlers that have not ended, and
    /// tells the creator which those are.
    pub fn end_close(&mut self, seconds: u32) {
        self.vm.end_close(seconds);
    }
}
