//! Data that scripts persist, over the real HTTP interface and a real database.

use frolic_fleet_api::store::{
    BATCH_REQUESTS_MAX, Best, RankKey, StoreAction, StoreAnswers, StoreBatch, StoreKey,
    StoreRequest,
};
use frolic_platform::fleet::LaunchRequest;
use frolic_protocol::{Args, Value};
use reqwest::{Method, Response, StatusCode};
use serde_json::json;

use crate::persistence::Process;
use crate::support::{TestPlatform, error_of, game_files};

/// A game server as seen by the data store.
struct World<'a> {
    platform: &'a TestPlatform,
    launch: LaunchRequest,
    epoch: u64,
    batches: std::cell::Cell<u32>,
}

impl<'a> World<'a> {
    async fn join(platform: &'a TestPlatform, game_id: &str) -> Self {
        let joined = platform.join(json!({ "game_id": game_id })).await;
        let launches = platform.stage.launches.borrow().clone();
        let mut launches = launches.into_iter().rev();
        let launch = launches.find(|launch| launch.world_id == joined.world_id);
        let launch = launch.expect("the world was launched");
        let process = Process::of(platform, &launch).await;
        Self {
            platform,
            launch,
            epoch: process.epoch,
            batches: Default::default(),
        }
    }

    async fn post(&self, batch: &StoreBatch) -> Response {
        let path = format!("/internal/worlds/{}/store", self.launch.world_id);
        let request = self.platform.request(Method::POST, &path);
        let request = request.bearer_auth(&self.launch.world_token).json(batch);
        request.send().await.unwrap()
    }

    async fn batch(&self, name: &str, actions: Vec<StoreAction>) -> Vec<Result<Args, String>> {
        let requests = actions.into_iter().zip(1..);
        let batch = StoreBatch {
            batch: name.to_owned(),
            epoch: self.epoch,
            requests: requests
                .map(|(action, id)| StoreRequest { id, action })
                .collect(),
            ..StoreBatch::default()
        };
        let response = self.post(&batch).await;
        assert_eq!(response.status(), StatusCode::OK);
        let answers: StoreAnswers = response.json().await.unwrap();
        let ids: Vec<u32> = answers.answers.iter().map(|answer| answer.id).collect();
        assert_eq!(ids, (1..=ids.len() as u32).collect::<Vec<_>>());
        answers.answers.into_iter().map(|a| a.result).collect()
    }

    async fn ask(&self, action: StoreAction) -> Result<Vec<Value>, String> {
        self.batches.set(self.batches.get() + 1);
        let name = format!("b{}", self.batches.get());
        let mut results = self.batch(&name, vec![action]).await;
        results.remove(0).map(|args| args.0)
    }
}

fn at(key: &str) -> StoreKey {
    StoreKey {
        player: None,
        key: key.to_owned(),
    }
}

fn of(player: &str, key: &str) -> StoreKey {
    StoreKey {
        player: Some(player.to_owned()),
        ..at(key)
    }
}

fn set(key: StoreKey, value: Value) -> StoreAction {
    let value = Args(vec![value]);
    StoreAction::Set { at: key, value }
}

fn add(key: &str, by: f64) -> StoreAction {
    StoreAction::Increment { at: at(key), by }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

const NUMBER: fn(f64) -> Value = Value::Number;

#[tokio::test]
async fn values_survive_a_restart_and_belong_to_one_game() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("other", 8)).await;
    let world = World::join(&platform, "sample").await;
    world.ask(set(at("k"), text("game"))).await.unwrap();
    world
        .ask(set(of("user_1", "k"), text("one")))
        .await
        .unwrap();
    for (key, expected) in [
        (at("k"), text("game")),
        (of("user_1", "k"), text("one")),
        (of("user_2", "k"), Value::Nil),
        (at("K"), Value::Nil),
    ] {
        let answer = world.ask(StoreAction::Get(key)).await.unwrap();
        assert_eq!(answer[0], expected);
    }
    // Another game has another data store; another world of this game has the same.
    let other = World::join(&platform, "other").await;
    let nothing = vec![Value::Nil, NUMBER(0.0)];
    assert_eq!(other.ask(StoreAction::Get(at("k"))).await, Ok(nothing));
    let mut stolen = World::join(&platform, "other").await;
    stolen.launch.world_id = world.launch.world_id.clone();
    let batch = StoreBatch {
        batch: "x".into(),
        requests: vec![StoreRequest {
            id: 1,
            action: StoreAction::Get(at("k")),
        }],
        ..StoreBatch::default()
    };
    let refused = error_of(stolen.post(&batch).await).await;
    assert_eq!(refused, (401, "not_your_world".to_owned()));

    let data_dir = platform.data_dir.clone();
    platform.stop().await;
    let platform = TestPlatform::start_in(data_dir, |_| {}).await;
    let world = World::join(&platform, "sample").await;
    let answer = world.ask(StoreAction::Get(of("user_1", "k"))).await;
    assert_eq!(answer.unwrap()[0], text("one"));
}

#[tokio::test]
async fn a_swap_requires_the_current_version() {
    let platform = TestPlatform::start().await;
    let world = World::join(&platform, "sample").await;
    let swap = |value: f64, version: u64| StoreAction::Swap {
        at: at("k"),
        value: Args(vec![NUMBER(value)]),
        version,
    };
    assert_eq!(world.ask(swap(1.0, 0)).await.unwrap(), [Value::Bool(true)]);
    let first = world.ask(StoreAction::Get(at("k"))).await.unwrap();
    let Value::Number(version) = first[1] else {
        panic!("{first:?}");
    };
    // A writer that assumes that the key does not exist.
    let conflict = world.ask(swap(9.0, 0)).await.unwrap();
    assert_eq!(conflict, [Value::Bool(false), NUMBER(1.0), NUMBER(version)]);
    let done = world.ask(swap(2.0, version as u64)).await.unwrap();
    assert_eq!(done, [Value::Bool(true)]);
    let late = world.ask(swap(3.0, version as u64)).await.unwrap();
    assert_eq!(late[..2], [Value::Bool(false), NUMBER(2.0)]);
    // A key that was removed and written again has a new version.
    world.ask(StoreAction::Remove(at("k"))).await.unwrap();
    world.ask(set(at("k"), NUMBER(2.0))).await.unwrap();
    let stale = world.ask(swap(3.0, version as u64 + 1)).await.unwrap();
    assert_eq!(stale[0], Value::Bool(false));
}

#[tokio::test]
async fn a_repeated_batch_is_not_applied_twice() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("single", 1)).await;
    let world = World::join(&platform, "single").await;
    let actions = vec![
        add("n", 5.0),
        StoreAction::Get(at("n")),
        StoreAction::Remove(at("missing")),
        add("n", 1.0),
    ];
    let first = world.batch("same", actions.clone()).await;
    let again = world.batch("same", actions.clone()).await;
    assert_eq!(first[3], Ok(Args(vec![NUMBER(6.0)])));
    assert_eq!(again[3], first[3], "the stored outcome is returned");
    assert_eq!(again[0], first[0]);
    let now = world.ask(StoreAction::Get(at("n"))).await.unwrap();
    assert_eq!(now[0], NUMBER(6.0));
    // Batch names are separate per world.
    let other = World::join(&platform, "single").await;
    assert_ne!(other.launch.world_id, world.launch.world_id);
    let result = other.batch("same", vec![add("n", 1.0)]).await;
    assert_eq!(result[0], Ok(Args(vec![NUMBER(7.0)])));
}

#[tokio::test]
async fn concurrent_increments_are_exact() {
    let platform = TestPlatform::start().await;
    let world = World::join(&platform, "sample").await;
    let requests = (0..40).map(|number| {
        let world = &world;
        async move {
            let name = format!("n{number}");
            let actions = vec![add("total", 1.0); 5];
            world.batch(&name, actions).await
        }
    });
    futures_util::future::join_all(requests).await;
    let total = world.ask(StoreAction::Get(at("total"))).await.unwrap();
    assert_eq!(total[0], NUMBER(200.0));
}

#[tokio::test]
async fn rankings_are_ordered_and_have_ranks() {
    let platform = TestPlatform::start().await;
    let world = World::join(&platform, "sample").await;
    let whose = |key: &str| RankKey {
        ranking: "points".to_owned(),
        key: key.to_owned(),
        name: (key == "user_1").then(|| "Ada".to_owned()),
    };
    for (key, score) in [("user_1", 10.0), ("b", 30.0), ("c", 30.0), ("d", -1.5)] {
        platform.clock.advance_ms(1);
        let at = whose(key);
        world.ask(StoreAction::RankSet { at, score }).await.unwrap();
    }
    // Setting the same score again does not lower its rank.
    platform.clock.advance_ms(1);
    let at = whose("b");
    world
        .ask(StoreAction::RankSet { at, score: 30.0 })
        .await
        .unwrap();
    let top = |best, count| StoreAction::RankTop {
        ranking: "points".to_owned(),
        best,
        count,
    };
    let keys = |answer: Vec<Value>| -> Vec<String> {
        let Value::List(places) = &answer[0] else {
            panic!("{answer:?}");
        };
        let place = |place: &Value| {
            let Value::Map(place) = place else {
                panic!("{place:?}");
            };
            let (Value::Number(rank), Value::String(name)) = (&place["Rank"], &place["Name"])
            else {
                panic!("{place:?}");
            };
            format!("{rank} {name}")
        };
        places.iter().map(place).collect()
    };
    let highest = world.ask(top(Best::Highest, 3)).await.unwrap();
    assert_eq!(keys(highest), ["1 b", "2 c", "3 Ada"]);
    let lowest = world.ask(top(Best::Lowest, 2)).await.unwrap();
    assert_eq!(keys(lowest), ["1 d", "2 Ada"]);
    for (key, best, place) in [
        ("c", Best::Highest, 2.0),
        ("user_1", Best::Highest, 3.0),
        ("user_1", Best::Lowest, 2.0),
    ] {
        let at = whose(key);
        let answer = world.ask(StoreAction::RankOf { at, best }).await.unwrap();
        assert_eq!(answer[0], NUMBER(place), "{key}");
    }
    let at = whose("d");
    let sum = world.ask(StoreAction::RankIncrement { at, by: 100.0 });
    assert_eq!(sum.await.unwrap(), [NUMBER(98.5)]);
    let removed = world.ask(StoreAction::RankRemove(whose("d"))).await;
    assert_eq!(removed.unwrap(), [Value::Bool(true)]);
    let at = whose("d");
    let best = Best::Highest;
    let gone = world.ask(StoreAction::RankOf { at, best }).await;
    assert_eq!(gone.unwrap(), []);
}

#[tokio::test]
async fn lists_filter_by_prefix_and_paginate() {
    let platform = TestPlatform::start().await;
    let world = World::join(&platform, "sample").await;
    for chunk in 0..3 {
        let keys = (0..50).map(|i| format!("a_{:03}", chunk * 50 + i));
        let sets = keys.map(|key| set(at(&key), Value::Bool(true))).collect();
        world.batch(&format!("w{chunk}"), sets).await;
    }
    // Wildcards of the database are ordinary characters in a prefix.
    for key in ["aX001", "b", "a%1", "é/1"] {
        world.ask(set(at(key), Value::Bool(true))).await.unwrap();
    }
    let list = |prefix: &str, after: Option<&str>| StoreAction::List {
        prefix: at(prefix),
        after: after.map(str::to_owned),
    };
    let first = world.ask(list("a_", None)).await.unwrap();
    assert_eq!(first[1], text("a_099"));
    let second = world.ask(list("a_", Some("a_099"))).await.unwrap();
    let Value::List(keys) = &second[0] else {
        panic!("{second:?}");
    };
    assert_eq!((keys.len(), &keys[49]), (50, &text("a_149")));
    assert_eq!(second[1], Value::Nil);
    for (prefix, count) in [("a%", 1), ("é", 1), ("zzz", 0), ("a", 100)] {
        let answer = world.ask(list(prefix, None)).await.unwrap();
        let Value::List(keys) = &answer[0] else {
            panic!("{answer:?}");
        };
        assert_eq!(keys.len(), count, "{prefix}");
    }
}

#[tokio::test]
async fn limits_are_named_and_affect_only_their_request() {
    let platform = TestPlatform::start_with(|settings| {
        settings.datastore.keys_per_game = 3;
        settings.datastore.bytes_per_game = 1000;
    })
    .await;
    let world = World::join(&platform, "sample").await;
    let results = world
        .batch(
            "one",
            vec![
                set(at("a"), NUMBER(1.0)),
                set(at("b"), Value::Nil),
                set(of("user_1", "a"), NUMBER(1.0)),
                set(at("d"), NUMBER(1.0)),
                set(at("a"), NUMBER(2.0)),
                set(at("a"), text(&"x".repeat(1000))),
                add("b", 1.0),
                set(at("e\u{7}"), NUMBER(1.0)),
                set(at("a"), Value::Entity(5)),
            ],
        )
        .await;
    let refusal = |index: usize| results[index].clone().unwrap_err();
    assert!(refusal(3).contains("3 keys"), "{}", refusal(3));
    assert!(results[4].is_ok(), "an existing key can be changed");
    assert!(refusal(5).contains("1000 bytes"), "{}", refusal(5));
    assert!(refusal(6).contains("does not hold a number"));
    assert!(refusal(7).contains("printable"));
    assert!(refusal(8).contains("entity"));
    let removed = world.ask(StoreAction::Remove(at("b"))).await;
    assert_eq!(removed.unwrap(), [Value::Bool(true)]);
    assert!(world.ask(set(at("d"), NUMBER(1.0))).await.is_ok());

    // Batches that a correct game server does not send.
    for requests in [0, BATCH_REQUESTS_MAX as u32 + 1] {
        let action = StoreAction::Get(at("a"));
        let request = |id| StoreRequest {
            id,
            action: action.clone(),
        };
        let batch = StoreBatch {
            batch: "x".into(),
            requests: (0..requests).map(request).collect(),
            ..StoreBatch::default()
        };
        let response = world.post(&batch).await;
        assert_eq!(error_of(response).await, (400, "invalid_batch".to_owned()));
    }
    // A game server that sends too many requests is refused.
    let mut refused = 0;
    for number in 0..30 {
        let reads = vec![StoreAction::Get(at("a")); 64];
        let results = world.batch(&format!("r{number}"), reads).await;
        refused += results.iter().filter(|result| result.is_err()).count();
    }
    assert!(refused > 1000, "{refused}");
}
