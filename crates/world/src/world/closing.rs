//! Closing a world: scripts are notified and get time to save.

use frolic_script::ScriptEvent;

use super::World;
use crate::replay::Record;

impl World {
    /// Begins to close: `PlayerRemoving` runs for all players in the world,
    /// then `World.OnClose`. Players and characters stay, so that scripts can
    /// read them; no player joins or leaves from here on. Step the world until
    /// [`World::has_closed`].
    pub fn close(&mut self) {
        if self.closing {
            return;
        }
        self.note(&Record::Close);
        // Players who have just joined must be added before they are removed.
        self.dispatch_events();
        self.closing = true;
        self.vm.dispatch(ScriptEvent::Closing);
        self.note_cuts();
    }

    /// Whether it is closing.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether all closing handlers have finished, and no script waits for the
    /// store.
    pub fn has_closed(&self) -> bool {
        self.closing && self.vm.closing_left() == 0
    }

    /// Ends closing after the time limit: stops the handlers that have not
    /// finished, and logs them for the creator.
    pub fn end_close(&mut self, seconds: u32) {
        self.vm.end_close(seconds);
    }
}
