//! From scripts to the store and back, without the tick ever waiting: what
//! scripts ask is queued, a task of its own asks the control plane, and the
//! answers come in like everything else.

use std::time::{Duration, Instant};

use frolic_protocol::store::{
    BATCH_BYTES_MAX, BATCH_REQUESTS_MAX, StoreAnswer, StoreBatch, StoreRequest,
};
use frolic_script::MemoryStore;
use frolic_world::World;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::boot::ControlPlane;
use crate::courier::{self, Failure, TRY};
use crate::link::Inbound;

/// Requests that may wait for the control plane.
const QUEUE_MAX: usize = 2048;
/// Tries per batch, and the rests between them.
const RESTS: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1500),
];
/// Nobody waits for the answer any more: scripts give up after ten seconds.
const STALE: Duration = Duration::from_secs(10);

/// Where the requests of a world go.
pub enum StoreDoor {
    /// To the platform.
    Platform(mpsc::Sender<(Instant, StoreRequest)>),
    /// Nowhere: a world without a platform keeps its data until it ends.
    Memory(Box<MemoryStore>),
}

impl StoreDoor {
    /// A store that ends with the world.
    pub fn memory() -> Self {
        StoreDoor::Memory(Box::default())
    }

    /// The platform's store; answers come through `inbox`.
    /// The task ends when the door is dropped and everything has been asked.
    pub fn platform(
        control_plane: ControlPlane,
        inbox: mpsc::Sender<Inbound>,
    ) -> (Self, JoinHandle<()>) {
        let (requests, waiting) = mpsc::channel(QUEUE_MAX);
        let messenger = Messenger {
            control_plane,
            waiting,
            inbox,
            process: hex::encode(courier::process_name()),
            batches: 0,
            next: None,
        };
        let task = tokio::spawn(messenger.run());
        (StoreDoor::Platform(requests), task)
    }

    /// Passes on what scripts asked since the last call.
    pub fn pass_on(&mut self, world: &mut World) {
        for request in world.take_store_requests() {
            match self {
                StoreDoor::Platform(requests) => {
                    let id = request.id;
                    if requests.try_send((Instant::now(), request)).is_err() {
                        let text = "too many requests to the store wait already; save less often";
                        world.store_answer(refusal(id, text));
                    }
                }
                StoreDoor::Memory(store) => {
                    let result = store.apply(&request.action);
                    let id = request.id;
                    world.store_answer(StoreAnswer { id, result });
                }
            }
        }
    }
}

fn refusal(id: u32, text: &str) -> StoreAnswer {
    StoreAnswer {
        id,
        result: Err(text.to_owned()),
    }
}

/// Asks the control plane, one batch after the other over one connection.
struct Messenger {
    control_plane: ControlPlane,
    waiting: mpsc::Receiver<(Instant, StoreRequest)>,
    inbox: mpsc::Sender<Inbound>,
    process: String,
    batches: u64,
    /// Did not fit into the batch before.
    next: Option<(Instant, StoreRequest)>,
}

impl Messenger {
    async fn run(mut self) {
        while let Some(requests) = self.gather().await {
            let ids: Vec<u32> = requests.iter().map(|request| request.id).collect();
            self.batches += 1;
            let batch = StoreBatch {
                batch: format!("{}-{}", self.process, self.batches),
                requests,
            };
            let mut answers = match self.ask(&batch).await {
                Ok(answers) => answers,
                Err(text) => ids.iter().map(|id| refusal(*id, text)).collect(),
            };
            // Whatever was answered, everybody who asked hears of it, once.
            let asked = |answer: &StoreAnswer| ids.contains(&answer.id);
            answers.retain(asked);
            let forgotten = ids
                .iter()
                .filter(|id| !answers.iter().any(|answer| answer.id == **id));
            let forgotten: Vec<StoreAnswer> = forgotten
                .map(|id| refusal(*id, "the store gave no answer"))
                .collect();
            answers.extend(forgotten);
            // A world that has ended needs no answers, but what its scripts
            // asked last is to be saved all the same.
            let _ = self.inbox.send(Inbound::Store(answers)).await;
        }
    }

    /// Waits for a request and takes along what else is there.
    async fn gather(&mut self) -> Option<Vec<StoreRequest>> {
        let mut requests = Vec::new();
        let mut bytes = 0;
        while requests.is_empty() {
            let mut found = match self.next.take() {
                Some(next) => Some(next),
                None => Some(self.waiting.recv().await?),
            };
            while let Some((asked_at, request)) = found {
                if asked_at.elapsed() > STALE {
                    // Its script has been told already; doing it now would surprise.
                    tracing::debug!(id = request.id, "a request to the store came too late");
                } else {
                    bytes += request.action.bytes();
                    if bytes > BATCH_BYTES_MAX && !requests.is_empty() {
                        self.next = Some((asked_at, request));
                        break;
                    }
                    requests.push(request);
                }
                if requests.len() >= BATCH_REQUESTS_MAX {
                    break;
                }
                found = self.waiting.try_recv().ok();
            }
        }
        Some(requests)
    }

    /// Asks until there is an answer, a few times. The same batch again is
    /// not done twice.
    async fn ask(&self, batch: &StoreBatch) -> Result<Vec<StoreAnswer>, &'static str> {
        let asked = courier::ask("the store", RESTS, || self.control_plane.store(batch, TRY));
        match asked.await {
            Ok(answers) => Ok(answers.answers),
            Err(Failure::Refused(_)) => {
                Err("the platform refused this world's requests to the store")
            }
            Err(Failure::Unreachable) => Err(
                "the store cannot be reached; what was to be saved may not have been. Try again later",
            ),
        }
    }
}
