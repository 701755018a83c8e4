//! From scripts to the store and back, without the tick ever waiting: what
//! scripts ask is queued, a task of its own asks the control plane, and the
//! answers come in like everything else.

mod worker;

use std::sync::Arc;
use std::time::Instant;

use frolic_protocol::store::{HeardCount, StoreAnswer, StoreRequest};
use frolic_script::MemoryStore;
use frolic_world::World;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::worker::{BatchBuilder, StoreWorker, refusal};
use crate::control_plane::ControlPlane;
use crate::link::Inbound;
use crate::persistence::PersistQueue;

/// Requests that may wait for the control plane.
const QUEUE_MAX: u64 = 2048;

/// Where the requests of a world go.
pub enum StoreClient {
    /// To the platform.
    Platform(Queue),
    /// Nowhere: a world without a platform keeps its data until it ends.
    Memory(Box<MemoryStore>),
}

/// Requests on their way to the platform.
pub struct Queue {
    asked: mpsc::UnboundedSender<TickRequests>,
    /// How many there were.
    count: u64,
    /// How many of them have their answers, which come in order.
    answered: u64,
}

/// What scripts asked in one tick. All of it goes into one transaction.
struct TickRequests {
    at: Instant,
    requests: Vec<StoreRequest>,
    /// Where something is written: who was heard for it.
    with: InputWatermarks,
}

/// What has to be stored with the writes of a tick: whatever it was that caused
/// them, it must not happen again, nor be half done.
#[derive(Default)]
pub struct InputWatermarks {
    /// How far players had been heard.
    pub counts: Vec<HeardCount>,
    /// What has to be on the disk before: that these sessions are there.
    pub after_mark: u64,
    /// The newest operation, which may have been caused by the same words.
    pub newest_op: u64,
}

impl StoreClient {
    /// A store that ends with the world.
    pub fn memory() -> Self {
        StoreClient::Memory(Box::default())
    }

    /// The platform's store; answers come through `inbox`. What is on the `queue`
    /// and not yet stored goes along where it has to.
    /// The task ends when the door is dropped and everything has been asked.
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

    /// Passes on what scripts asked since the last call. `heard` says who has
    /// been heard by now.
    pub fn pass_on(&mut self, world: &mut World, heard: impl FnOnce() -> InputWatermarks) {
        let requests = world.take_store_requests();
        match self {
            StoreClient::Platform(queue) => {
                for refused in queue.ask(requests, heard) {
                    world.store_answer(refused);
                }
            }
            StoreClient::Memory(store) => {
                for StoreRequest { id, action } in requests {
                    let result = store.apply(&action);
                    world.store_answer(StoreAnswer { id, result });
                }
            }
        }
    }

    /// So many requests have their answers.
    pub fn note_answers(&mut self, count: usize) {
        if let StoreClient::Platform(queue) = self {
            queue.answered += count as u64;
        }
    }

    /// How much scripts have asked so far.
    pub fn asked(&self) -> u64 {
        match self {
            StoreClient::Platform(queue) => queue.count,
            StoreClient::Memory(_) => 0,
        }
    }

    /// Whether so much is answered: what scripts did about the messages they
    /// had heard by then is stored.
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

    /// Takes what was asked in one tick; returns the answers to what there is no
    /// room for.
    fn ask(
        &mut self,
        mut requests: Vec<StoreRequest>,
        heard: impl FnOnce() -> InputWatermarks,
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
                    true => heard(),
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
