//! The store queue, and which requests share a batch.

use frolic_fleet_api::store::{BATCH_REQUESTS_MAX, StoreAction, StoreKey};

use super::worker::Gathered;
use super::*;

fn write(id: u32) -> StoreRequest {
    let at = StoreKey {
        player: None,
        key: format!("key {id}"),
    };
    let action = StoreAction::Increment { at, by: 1.0 };
    StoreRequest { id, action }
}

fn read(id: u32) -> StoreRequest {
    let at = StoreKey {
        player: None,
        key: "key".into(),
    };
    let action = StoreAction::Get(at);
    StoreRequest { id, action }
}

fn handled(player_id: &str, received: u32) -> InputWatermarks {
    let counts = vec![HandledCount {
        player_id: player_id.into(),
        session: "session".into(),
        received,
        sent: 0,
        undelivered: Vec::new(),
        calls: Vec::new(),
    }];
    InputWatermarks {
        counts,
        ..InputWatermarks::default()
    }
}

struct TestQueue {
    queue: Queue,
    gathering: BatchBuilder,
}

impl TestQueue {
    fn new() -> Self {
        let (queue, waiting) = Queue::new();
        let gathering = BatchBuilder::new(1, waiting);
        Self { queue, gathering }
    }

    async fn next(&mut self) -> Gathered {
        let next = self.gathering.next(&mut Vec::new()).await;
        next.expect("something waits")
    }
}

fn counts(gathered: &Gathered) -> Vec<(&str, u32)> {
    let counts = gathered.with.counts.iter();
    counts
        .map(|count| (count.player_id.as_str(), count.received))
        .collect()
}

#[tokio::test]
async fn writes_of_one_tick_carry_the_input_counts_behind_them() {
    let mut tested = TestQueue::new();
    tested.queue.ask(vec![write(1)], || handled("ada", 1));
    let many = (2..=66).map(write).collect();
    tested.queue.ask(many, || handled("ben", 1));
    tested.queue.ask(vec![read(67)], InputWatermarks::default);
    tested.queue.ask(vec![write(68)], || handled("ben", 2));
    let first = tested.next().await;
    assert_eq!(
        (first.batch.requests.len(), counts(&first)),
        (1, vec![("ada", 1)])
    );
    let second = tested.next().await;
    assert_eq!(
        (second.batch.requests.len(), counts(&second)),
        (65, vec![("ben", 1)])
    );
    let third = tested.next().await;
    assert_eq!(
        (third.batch.requests.len(), counts(&third)),
        (2, vec![("ben", 2)])
    );

    // More than any batch takes: the counts are with the first part of it.
    let many = (0..=BATCH_REQUESTS_MAX as u32).map(write).collect();
    tested.queue.ask(many, || handled("ada", 2));
    let first = tested.next().await;
    assert_eq!(first.batch.requests.len(), BATCH_REQUESTS_MAX);
    assert_eq!(counts(&first), [("ada", 2)]);
    let rest = tested.next().await;
    assert_eq!((rest.batch.requests.len(), counts(&rest)), (1, vec![]));
}

#[tokio::test]
async fn a_full_queue_refuses_requests_and_no_counts() {
    let mut tested = TestQueue::new();
    let almost = QUEUE_MAX as u32 - 1;
    tested
        .queue
        .ask((0..almost).map(read).collect(), InputWatermarks::default);
    let last = vec![write(almost), write(almost + 1)];
    let refused = tested.queue.ask(last, || handled("ada", 1));
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].id, almost + 1);
    let mut asked = 0;
    let noted = loop {
        let gathered = tested.next().await;
        asked += gathered.batch.requests.len();
        let writes = gathered.batch.requests.iter().any(|r| r.action.writes());
        if writes {
            break counts(&gathered).len();
        }
    };
    assert_eq!((asked, noted), (QUEUE_MAX as usize, 1));
    let refused = tested.queue.ask(vec![write(9)], || handled("ada", 2));
    assert_eq!(refused.len(), 1, "until there are answers");
}
