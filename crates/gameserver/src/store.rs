//! Connects scripts to the store, without blocking the tick: requests are queued, a
//! task sends them to the control plane, and the answers arrive through the inbox.

mod worker;

use std::sync::Arc;
use std::time::Instant;

use frolic_fleet_api::store::{HandledCount, StoreAnswer, StoreRequest};
use frolic_script::MemoryStore;
use frolic_world::{World, input};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::worker::{BatchBuilder, StoreWorker, refusal};
use crate::control_plane::ControlPlane;
use crate::inbox::Inbound;
use crate::persistence::PersistQueue;

/// Requests that may wait for the control plane.
const QUEUE_MAX: u64 = 2048;

/// Receives the store requests of a world.
pub enum StoreClient {
    /// To the platform.
    Platform(Queue),
    /// A world without a platform stores its data until it ends.
    Memory(Box<MemoryStore>),
}

/// Requests on their way to the platform.
pub struct Queue {
    asked: mpsc::UnboundedSender<TickRequests>,
    /// How many requests were made.
    count: u64,
    /// How many of them are answered; answers arrive in order.
    answered: u64,
}

/// The requests of scripts in one tick. All of them go into one transaction.
struct TickRequests {
    at: Instant,
    requests: Vec<StoreRequest>,
    /// For writes: the input counts to store with them.
    with: InputWatermarks,
}

/// What must be stored with the writes of a tick: the messages that caused them
/// must neither be handled again nor half handled.
#[derive(Default)]
pub struct InputWatermarks {
    /// Counts of handled messages per player.
    pub counts: Vec<HandledCount>,
    /// What must be on disk before: the sessions of these players.
    pub after_mark: u64,
    /// The newest operation, which may have been caused by the same messages.
    pub newest_op: u64,
}

impl StoreClient {
    /// A store that ends with the world.
    pub fn memory() -> Self {
        StoreClient::Memory(Box::default())
    }

    /// The platform's store; answers arrive through `inbox`. Unstored operations on
    /// the `queue` are sent along where required. The task ends when this client is
    /// dropped and all requests were sent.
    pub fn platform(
        control_plane: ControlPlane,
        epoch: u64,
        inbox: mpsc::Sender<Inbound>,
        persist_queue: Arc<PersistQueue>,
    ) -> (Self, JoinHandle<()>) {
        let (queue, waiting) = Queue::new();
        let gathering = BatchBuilder::new(epoch, waiting);
        let messenger = StoreWorker::new(control_plane, inbox, persist_queue, gathering);
        let task = tokio::spawn(messenger.run());
        (StoreClient::Platform(queue), task)
    }

    /// Sends the requests of scripts since the last call. `watermarks` gives the current
    /// counts of handled messages.
    pub fn pass_on(&mut self, world: &mut World, watermarks: impl FnOnce() -> InputWatermarks) {
        let requests = world.take_store_requests();
        match self {
            StoreClient::Platform(queue) => {
                for refused in queue.ask(requests, watermarks) {
                    world.apply(input::StoreAnswered(refused));
                }
            }
            StoreClient::Memory(store) => {
                for StoreRequest { id, action } in requests {
                    let result = store.apply(&action);
                    let answer = StoreAnswer { id, result };
                    world.apply(input::StoreAnswered(answer));
                }
            }
        }
    }

    /// Records `count` answered requests.
    pub fn note_answers(&mut self, count: usize) {
        if let StoreClient::Platform(queue) = self {
            queue.answered += count as u64;
        }
    }

    /// How many requests scripts have made so far.
    pub fn asked(&self) -> u64 {
        match self {
            StoreClient::Platform(queue) => queue.count,
            StoreClient::Memory(_) => 0,
        }
    }

    /// Whether this many requests are answered: the effects of the messages that
    /// scripts had handled by then are stored.
    pub fn has_answered(&self, asked: u64) -> bool {
        match self {
            StoreClient::Platform(queue) => queue.answered >= asked,
            StoreClient::Memory(_) => true,
        }
    }
}

impl Queue {
    fn new() -> (Self, mpsc::UnboundedReceiver<TickRequests>) {
        // Bounded by the requests in it, of which each element has one at least.
        let (asked, waiting) = mpsc::unbounded_channel();
        let queue = Self {
            asked,
            count: 0,
            answered: 0,
        };
        (queue, waiting)
    }

    /// Queues the requests of one tick; returns refusals for those beyond the
    /// capacity.
    fn ask(
        &mut self,
        mut requests: Vec<StoreRequest>,
        watermarks: impl FnOnce() -> InputWatermarks,
    ) -> Vec<StoreAnswer> {
        let waiting = self.count.saturating_sub(self.answered);
        let room = usize::try_from(QUEUE_MAX.saturating_sub(waiting)).unwrap_or(0);
        let refused = requests.split_off(requests.len().min(room));
        if !requests.is_empty() {
            let writes = requests.iter().any(|request| request.action.writes());
            self.count += requests.len() as u64;
            // The task lives as long as the world.
            let _ = self.asked.send(TickRequests {
                at: Instant::now(),
                requests,
                with: match writes {
                    true => watermarks(),
                    false => InputWatermarks::default(),
                },
            });
        }
        let text = "too many requests to the store wait already; save less often";
        refused
            .iter()
            .map(|asked| refusal(asked.id, text))
            .collect()
    }
}

#[cfg(test)]
mod tests;
