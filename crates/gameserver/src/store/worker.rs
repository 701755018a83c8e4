//! Sends Store requests of scripts to the control plane in batches and returns the answers.

use std::sync::Arc;
use std::time::Duration;

use frolic_fleet_api::store::{
    BATCH_BYTES_MAX, BATCH_REQUESTS_MAX, HandledCount, StoreAnswer, StoreAnswers, StoreBatch,
    StoreRequest,
};
use tokio::sync::mpsc;

use super::{InputWatermarks, TickRequests};
use crate::control_plane::ControlPlane;
use crate::inbox::Inbound;
use crate::persistence::PersistQueue;
use crate::retry::{self, Failure, TRY};
use crate::stored::Stored;

/// Delays between the attempts of a batch.
const RESTS: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1500),
];
/// The caller no longer waits for the answer: scripts give up after ten seconds.
const STALE: Duration = Duration::from_secs(10);
/// Limits of requests and bytes of several ticks in one batch. More wait for the
/// next batch: a long transaction blocks others.
const TOGETHER_MAX: (usize, usize) = (64, 512 * 1024);

const UNREACHABLE: &str =
    "the store cannot be reached; what was to be saved may not have been. Try again later";

/// Sends one batch after the other to the control plane, over one connection.
pub(super) struct StoreWorker {
    control_plane: ControlPlane,
    inbox: mpsc::Sender<Inbound>,
    persist_queue: Arc<PersistQueue>,
    gathering: BatchBuilder,
}

impl StoreWorker {
    pub fn new(
        control_plane: ControlPlane,
        inbox: mpsc::Sender<Inbound>,
        persist_queue: Arc<PersistQueue>,
        gathering: BatchBuilder,
    ) -> Self {
        Self {
            control_plane,
            inbox,
            persist_queue,
            gathering,
        }
    }

    pub async fn run(mut self) {
        loop {
            let mut late = Vec::new();
            let gathered = self.gathering.next(&mut late).await;
            if !late.is_empty() {
                let _ = self.inbox.send(Inbound::Store(late)).await;
            }
            match gathered {
                Some(gathered) if gathered.batch.requests.is_empty() => {}
                Some(gathered) => self.ask(gathered).await,
                None => return,
            }
        }
    }

    /// Sends a batch, and delivers an answer to every request.
    async fn ask(&mut self, gathered: Gathered) {
        let Gathered {
            mut batch, with, ..
        } = gathered;
        let ids: Vec<u32> = batch.requests.iter().map(|request| request.id).collect();
        let queue = &self.persist_queue;
        let earlier = async {
            queue.until_stored(with.after_mark).await;
            queue.held_ops(with.newest_op).await
        };
        let answers = match tokio::time::timeout(STALE, earlier).await {
            Ok(ops) => {
                batch.handled.clone_from(&with.counts);
                batch.ops = ops;
                batch.near_only = queue.is_near_only();
                self.answers(&batch).await
            }
            Err(_) => Err(UNREACHABLE),
        };
        let (stored, mut answers) = match answers {
            Ok(answers) => (Stored::with_writes(&answers), answers.answers),
            Err(text) => (None, ids.iter().map(|id| refusal(*id, text)).collect()),
        };
        match stored {
            Some(stored) if !batch.ops.is_empty() => {
                self.persist_queue.ops_are_stored(stored);
                let _ = self.inbox.send(Inbound::Persisted(stored)).await;
            }
            Some(_) => {}
            None => self.gathering.unnoted.note(with),
        }
        // Whatever was answered, every request gets exactly one answer.
        let asked = |answer: &StoreAnswer| ids.contains(&answer.id);
        answers.retain(asked);
        let forgotten = ids
            .iter()
            .filter(|id| !answers.iter().any(|answer| answer.id == **id));
        let forgotten: Vec<StoreAnswer> = forgotten
            .map(|id| refusal(*id, "the store gave no answer"))
            .collect();
        answers.extend(forgotten);
        // A world that has ended needs no answers, but the last requests of its
        // scripts must still be saved.
        let _ = self.inbox.send(Inbound::Store(answers)).await;
    }

    /// Retries a few times until there is an answer. A repeated batch is not
    /// applied twice.
    async fn answers(&self, batch: &StoreBatch) -> Result<StoreAnswers, &'static str> {
        let asked = retry::ask("the store", RESTS, || self.control_plane.store(batch, TRY));
        match asked.await {
            Ok(answers) => Ok(answers),
            Err(Failure::Refused(_)) => {
                Err("the platform refused this world's requests to the store")
            }
            Err(Failure::Unreachable) => Err(UNREACHABLE),
        }
    }
}

/// Builds batches from queued requests.
pub(super) struct BatchBuilder {
    epoch: u64,
    process: String,
    batches: u64,
    waiting: mpsc::UnboundedReceiver<TickRequests>,
    /// Did not fit into the previous batch.
    next: Option<TickRequests>,
    /// Counts of writes that were not stored, to send with the next: scripts may
    /// still be handling those messages.
    unnoted: InputWatermarks,
}

/// A batch that is being built.
#[derive(Default)]
pub(super) struct Gathered {
    pub batch: StoreBatch,
    /// For writes: the input counts to store with them.
    pub with: InputWatermarks,
    bytes: usize,
}

impl Gathered {
    /// Whether the requests of another tick fit into the batch.
    fn has_room_for(&self, asked: &TickRequests) -> bool {
        let requests = self.batch.requests.len() + asked.requests.len();
        let bytes = self.bytes + asked.bytes();
        let (requests_max, bytes_max) = TOGETHER_MAX;
        self.batch.requests.is_empty() || requests <= requests_max && bytes <= bytes_max
    }

    fn take(&mut self, asked: TickRequests) {
        self.bytes += asked.bytes();
        self.batch.requests.extend(asked.requests);
        self.with.note(asked.with);
    }
}

impl BatchBuilder {
    pub fn new(epoch: u64, waiting: mpsc::UnboundedReceiver<TickRequests>) -> Self {
        Self {
            epoch,
            process: hex::encode(retry::process_name()),
            batches: 0,
            waiting,
            next: None,
            unnoted: InputWatermarks::default(),
        }
    }

    /// Waits for the requests of a tick and adds what else is queued; requests that
    /// waited too long are answered in `late`, and perhaps nothing is left.
    pub async fn next(&mut self, late: &mut Vec<StoreAnswer>) -> Option<Gathered> {
        let mut found = match self.next.take() {
            Some(next) => Some(next),
            None => Some(self.waiting.recv().await?),
        };
        self.batches += 1;
        let mut gathered = Gathered::default();
        gathered.batch.batch = format!("{}-{}", self.process, self.batches);
        gathered.batch.epoch = self.epoch;
        while let Some(mut asked) = found {
            if asked.at.elapsed() > STALE {
                // Its script has received a timeout already; performing it now
                // would be unexpected.
                let ids = asked.requests.iter().map(|request| request.id);
                late.extend(ids.map(|id| refusal(id, "the request waited too long")));
                self.unnoted.note(asked.with);
            } else if gathered.has_room_for(&asked) {
                self.next = asked.split_off();
                gathered.take(asked);
            } else {
                self.next = Some(asked);
            }
            found = match self.next {
                Some(_) => None,
                None => self.waiting.try_recv().ok(),
            };
        }
        // Counts are stored with writes only.
        self.unnoted.note(std::mem::take(&mut gathered.with));
        if gathered.batch.requests.iter().any(|r| r.action.writes()) {
            gathered.with = std::mem::take(&mut self.unnoted);
        }
        Some(gathered)
    }
}

impl TickRequests {
    fn bytes(&self) -> usize {
        self.requests.iter().map(bytes_of).sum()
    }

    /// The part that does not fit into one batch together with the rest. Counts go
    /// with the first part: losing a write with its process is better than applying
    /// it twice.
    fn split_off(&mut self) -> Option<Self> {
        let mut bytes = 0;
        let fitting = self.requests.iter().take_while(|request| {
            bytes += bytes_of(request);
            bytes <= BATCH_BYTES_MAX
        });
        let fitting = fitting.take(BATCH_REQUESTS_MAX).count().max(1);
        let rest = self.requests.split_off(fitting.min(self.requests.len()));
        (!rest.is_empty()).then(|| Self {
            at: self.at,
            requests: rest,
            with: InputWatermarks {
                counts: Vec::new(),
                after_mark: self.with.after_mark,
                newest_op: self.with.newest_op,
            },
        })
    }
}

fn bytes_of(request: &StoreRequest) -> usize {
    request.action.bytes()
}

pub(super) fn refusal(id: u32, text: &str) -> StoreAnswer {
    StoreAnswer {
        id,
        result: Err(text.to_owned()),
    }
}

impl InputWatermarks {
    /// Replaces earlier counts by later ones.
    fn note(&mut self, later: Self) {
        let is_later = |count: &HandledCount| {
            let mut counts = later.counts.iter();
            counts.any(|later| later.player_id == count.player_id)
        };
        self.counts.retain(|count| !is_later(count));
        self.counts.extend(later.counts);
        self.after_mark = self.after_mark.max(later.after_mark);
        self.newest_op = self.newest_op.max(later.newest_op);
    }
}
