//! From scripts to the store and back, without the tick ever waiting: what
//! scripts ask is queued, a task of its own asks the control plane, and the
//! answers come in like everything else.

use std::time::{Duration, Instant};

use frolic_protocol::store::{
    BATCH_BYTES_MAX, BATCH_REQUESTS_MAX, HeardCount, StoreAnswer, StoreBatch, StoreRequest,
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
    Platform(Queue),
    /// Nowhere: a world without a platform keeps its data until it ends.
    Memory(Box<MemoryStore>),
}

/// Requests on their way to the platform.
pub struct Queue {
    asked: mpsc::Sender<Asked>,
    /// How many there were.
    count: u64,
    /// How many of them have their answers, which come in order.
    answered: u64,
}

/// What a script asked.
struct Asked {
    at: Instant,
    request: StoreRequest,
    /// With the last write of a tick: how far its players had been heard.
    heard: Vec<HeardCount>,
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
        epoch: u64,
        inbox: mpsc::Sender<Inbound>,
    ) -> (Self, JoinHandle<()>) {
        let (asked, waiting) = mpsc::channel(QUEUE_MAX);
        let messenger = Messenger {
            control_plane,
            epoch,
            waiting,
            inbox,
            process: hex::encode(courier::process_name()),
            batches: 0,
            next: None,
        };
        let task = tokio::spawn(messenger.run());
        let queue = Queue {
            asked,
            count: 0,
            answered: 0,
        };
        (StoreDoor::Platform(queue), task)
    }

    /// Passes on what scripts asked since the last call. `heard` says how far
    /// players have been heard by now.
    pub fn pass_on(&mut self, world: &mut World, heard: impl FnOnce() -> Vec<HeardCount>) {
        let requests = world.take_store_requests();
        let last_write = requests.iter().rposition(|request| request.action.writes());
        let mut heard = last_write.map_or_else(Vec::new, |_| heard());
        for (place, request) in requests.into_iter().enumerate() {
            match self {
                StoreDoor::Platform(queue) => {
                    let id = request.id;
                    let heard = match last_write == Some(place) {
                        true => std::mem::take(&mut heard),
                        false => Vec::new(),
                    };
                    let asked = Asked {
                        at: Instant::now(),
                        request,
                        heard,
                    };
                    match queue.asked.try_send(asked) {
                        Ok(()) => queue.count += 1,
                        Err(_) => {
                            let text =
                                "too many requests to the store wait already; save less often";
                            world.store_answer(refusal(id, text));
                        }
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

impl StoreDoor {
    /// So many requests have their answers.
    pub fn note_answers(&mut self, count: usize) {
        if let StoreDoor::Platform(queue) = self {
            queue.answered += count as u64;
        }
    }

    /// How much scripts have asked so far.
    pub fn asked(&self) -> u64 {
        match self {
            StoreDoor::Platform(queue) => queue.count,
            StoreDoor::Memory(_) => 0,
        }
    }

    /// Whether so much is answered: what scripts did about the messages they
    /// had heard by then is stored.
    pub fn has_answered(&self, asked: u64) -> bool {
        match self {
            StoreDoor::Platform(queue) => queue.answered >= asked,
            StoreDoor::Memory(_) => true,
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
    epoch: u64,
    waiting: mpsc::Receiver<Asked>,
    inbox: mpsc::Sender<Inbound>,
    process: String,
    batches: u64,
    /// Did not fit into the batch before.
    next: Option<Asked>,
}

impl Messenger {
    async fn run(mut self) {
        while let Some(batch) = self.gather().await {
            let ids: Vec<u32> = batch.requests.iter().map(|request| request.id).collect();
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
    async fn gather(&mut self) -> Option<StoreBatch> {
        self.batches += 1;
        let mut batch = StoreBatch {
            batch: format!("{}-{}", self.process, self.batches),
            epoch: self.epoch,
            ..StoreBatch::default()
        };
        let mut bytes = 0;
        while batch.requests.is_empty() {
            let mut found = match self.next.take() {
                Some(next) => Some(next),
                None => Some(self.waiting.recv().await?),
            };
            while let Some(asked) = found {
                if asked.at.elapsed() > STALE {
                    // Its script has been told already; doing it now would surprise.
                    let id = asked.request.id;
                    let late = vec![refusal(id, "the request waited too long")];
                    let _ = self.inbox.send(Inbound::Store(late)).await;
                } else {
                    bytes += asked.request.action.bytes();
                    if bytes > BATCH_BYTES_MAX && !batch.requests.is_empty() {
                        self.next = Some(asked);
                        break;
                    }
                    batch.requests.push(asked.request);
                    note_heard(&mut batch.heard, asked.heard);
                }
                if batch.requests.len() >= BATCH_REQUESTS_MAX {
                    break;
                }
                found = self.waiting.try_recv().ok();
            }
        }
        Some(batch)
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

/// Takes later counts in place of earlier ones.
fn note_heard(known: &mut Vec<HeardCount>, later: Vec<HeardCount>) {
    let is_later = |count: &HeardCount| later.iter().any(|l| l.player_id == count.player_id);
    known.retain(|count| !is_later(count));
    known.extend(later);
}
