//! Store requests of scripts on their way to the host.

use frolic_fleet_api::store::StoreRequest;
use frolic_script::EngineError;

/// Requests queued until the game server takes them.
const WAITING_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct StoreQueue {
    waiting: Vec<StoreRequest>,
    count: u64,
}

impl StoreQueue {
    pub fn push(&mut self, request: StoreRequest) -> Result<(), EngineError> {
        if self.waiting.len() >= WAITING_MAX {
            let message = format!("{WAITING_MAX} requests to the store in one tick");
            return Err(EngineError::Limit(message));
        }
        self.count += 1;
        self.waiting.push(request);
        Ok(())
    }

    /// The requests since the last call.
    pub fn take(&mut self) -> Vec<StoreRequest> {
        std::mem::take(&mut self.waiting)
    }

    /// How many requests there were in all.
    pub fn count(&self) -> u64 {
        self.count
    }
}
