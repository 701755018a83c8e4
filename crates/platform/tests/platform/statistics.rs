//! Statistics of the game store: ranking, tags, pages, and the creator's dashboard.

use std::sync::atomic::Ordering;

use crate::support::{ADMIN_TOKEN, TestPlatform, error_of, game_files};
use frolic_fleet_api::console::{ConsoleLine, ConsoleReport};
use frolic_platform::api::{
    GameDashboard, GameList, LoginResponse, RankingBreakdown, RankingFormula, TagList,
};
use frolic_protocol::client_log::ConsoleLevel;
use reqwest::{Method, StatusCode};
use serde_json::json;

const DAY_MS: i64 = 86_400_000;

async fn breakdown(platform: &TestPlatform, id: &str) -> RankingBreakdown {
    platform.get_json(&format!("/api/games/{id}/ranking")).await
}

#[tokio::test]
async fn the_order_follows_the_public_formula() {
    let platform = TestPlatform::start().await;
    for id in ["alpha", "beta"] {
        platform.publish_sample(&game_files(id, 8)).await;
    }
    let formula: RankingFormula = platform.get_json("/api/ranking").await;
    let weight = |name: &str| {
        formula
            .parts
            .iter()
            .find(|p| p.name == name)
            .unwrap()
            .weight
    };
    for _ in 0..3 {
        platform.join(json!({ "game_id": "alpha" })).await;
    }
    let fan = platform.login("Fan").await;
    let request = platform.request(Method::PUT, "/api/games/beta/like");
    request
        .bearer_auth(&fan.session_token)
        .send()
        .await
        .unwrap();
    let (alpha, beta) = (
        breakdown(&platform, "alpha").await,
        breakdown(&platform, "beta").await,
    );
    assert_eq!((alpha.rank, beta.rank, alpha.of), (Some(1), Some(2), 3));
    assert!(
        (alpha.score - 2.0 * weight("plays")).abs() < 1e-9,
        "{alpha:?}"
    );
    assert!((beta.score - weight("likes")).abs() < 1e-9, "{beta:?}");
    // Plays of a week ago count half and likes decay more slowly, so the order changes.
    platform.clock.advance_ms(14 * DAY_MS);
    let (alpha, beta) = (
        breakdown(&platform, "alpha").await,
        breakdown(&platform, "beta").await,
    );
    assert_eq!(
        (alpha.rank, beta.rank),
        (Some(2), Some(1)),
        "{alpha:?} {beta:?}"
    );
    let plays = alpha
        .parts
        .iter()
        .find(|part| part.name == "plays")
        .unwrap();
    assert!((plays.value - 0.75).abs() < 1e-6, "{plays:?}");
    let sum: f64 = alpha.parts.iter().map(|part| part.points).sum();
    assert!((alpha.score - sum).abs() < 1e-9);
    let list: GameList = platform.get_json("/api/games").await;
    let order: Vec<_> = list.games.iter().map(|game| game.id.as_str()).collect();
    assert_eq!(order, ["beta", "alpha", "sample"]);
    assert_eq!((list.games[1].plays, list.games[0].likes), (3, 1));
    assert_eq!(
        error_of(platform.get("/api/games/none/ranking").await)
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn pages_tags_creators_and_etags() {
    let platform = TestPlatform::start().await;
    for number in 0..5 {
        let mut files = game_files(&format!("game-{number}"), 8);
        let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
        let tags = if number < 2 {
            "[\"race\", \"sky\"]"
        } else {
            "[\"race\"]"
        };
        let manifest = manifest.replace("[\"test\"]", tags);
        files.insert("game.toml".to_owned(), manifest.into_bytes());
        platform.publish_sample(&files).await;
        platform.clock.advance_ms(1_000);
    }
    let ids = async |query: &str| {
        let list: GameList = platform.get_json(&format!("/api/games?{query}")).await;
        let ids = list
            .games
            .into_iter()
            .map(|game| game.id)
            .collect::<Vec<_>>();
        (ids.join(" "), list.total)
    };
    assert_eq!(
        ids("tag=sky&sort=new").await,
        ("game-1 game-0".to_owned(), 2)
    );
    assert_eq!(ids("tag=none").await, (String::new(), 0));
    assert_eq!(
        ids("creator=FROLIC&per_page=1&sort=new&page=2").await,
        ("game-3".to_owned(), 6)
    );
    assert_eq!(ids("creator=unknown").await.1, 0);
    assert_eq!(ids("q=frolic").await.1, 6);
    let tags: TagList = platform.get_json("/api/tags").await;
    let tags: Vec<_> = tags
        .tags
        .iter()
        .map(|tag| (tag.tag.as_str(), tag.games))
        .collect();
    assert_eq!(tags, [("race", 5), ("sky", 2), ("test", 1)]);
    for query in [
        "page=0",
        "per_page=0",
        "per_page=101",
        "page=10001",
        "page=4294967296",
    ] {
        let response = platform.get(&format!("/api/games?{query}")).await;
        assert_eq!(
            error_of(response).await,
            (400, "invalid_query".to_owned()),
            "{query}"
        );
    }
    let response = platform.get("/api/games?sort=new").await;
    let etag = response.headers()["etag"].clone();
    let again = || {
        let request = platform.request(Method::GET, "/api/games?sort=new");
        request.header("if-none-match", etag.clone()).send()
    };
    assert_eq!(again().await.unwrap().status(), StatusCode::NOT_MODIFIED);
    platform.publish_sample(&game_files("newest", 8)).await;
    assert_eq!(again().await.unwrap().status(), StatusCode::OK);
}

async fn join_as(platform: &TestPlatform, who: &LoginResponse, game: &str) {
    let response = platform
        .try_join(&who.session_token, json!({ "game_id": game }))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
}

async fn dashboard(platform: &TestPlatform, who: &LoginResponse, query: &str) -> GameDashboard {
    let path = format!("/api/creator/games/race/dashboard{query}");
    let request = platform
        .request(Method::GET, &path)
        .bearer_auth(&who.session_token);
    let response = request.send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// A platform whose sessions are valid for all days of a test.
async fn platform_of_days() -> TestPlatform {
    TestPlatform::start_with(|settings| {
        settings.session_lifetime = std::time::Duration::from_secs(40 * 24 * 3_600);
    })
    .await
}

async fn publish(platform: &TestPlatform, who: &LoginResponse) {
    let archive = frolic_package::pack(&game_files("race", 8)).unwrap();
    let request = platform.request(Method::POST, "/api/games").body(archive);
    let response = request
        .bearer_auth(&who.session_token)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn the_dashboard_counts_plays_and_returning_players() {
    let platform = platform_of_days().await;
    let ada = platform.login("Ada").await;
    publish(&platform, &ada).await;
    let mut fans = Vec::new();
    for name in ["Ben", "Cleo", "Dan", "Eve"] {
        fans.push(platform.login(name).await);
    }
    // Four new players on the first day, one of them twice.
    for fan in &fans {
        join_as(&platform, fan, "race").await;
    }
    join_as(&platform, &fans[0], "race").await;
    // Two return the day after, one of them twice; another returns after a week.
    platform.clock.advance_ms(DAY_MS);
    for who in [0, 1, 1] {
        join_as(&platform, &fans[who], "race").await;
    }
    platform.clock.advance_ms(6 * DAY_MS);
    join_as(&platform, &fans[3], "race").await;

    let shown = dashboard(&platform, &ada, "?days=8").await;
    assert_eq!(shown.totals.plays, 9);
    assert_eq!(shown.days.len(), 8);
    assert_eq!(
        (shown.days[0].day.as_str(), shown.days[7].day.as_str()),
        ("2025-11-15", "2025-11-22")
    );
    let first = &shown.days[0];
    assert_eq!((first.plays, first.players, first.new_players), (5, 4, 4));
    assert_eq!((first.back_after_1, first.back_after_7), (2, 1));
    let second = &shown.days[1];
    assert_eq!(
        (second.plays, second.players, second.new_players),
        (3, 2, 0)
    );
    assert_eq!(shown.days[2].plays, 0);
    assert_eq!(
        (shown.retention.d1_of, shown.retention.d1_pct),
        (4, Some(50.0))
    );
    assert_eq!(
        (shown.retention.d7_of, shown.retention.d7_pct),
        (4, Some(25.0))
    );
    assert_eq!(
        dashboard(&platform, &ada, "?days=1").await.retention.d1_pct,
        None
    );

    // Only the creator may see the dashboard.
    let path = "/api/creator/games/race/dashboard";
    let request = platform
        .request(Method::GET, path)
        .bearer_auth(&fans[0].session_token);
    assert_eq!(
        error_of(request.send().await.unwrap()).await,
        (403, "forbidden".to_owned())
    );
    for query in ["?days=0", "?days=91", "?days=x"] {
        let request = platform.request(Method::GET, &format!("{path}{query}"));
        let request = request.bearer_auth(&ada.session_token);
        assert_eq!(
            error_of(request.send().await.unwrap()).await.0,
            400,
            "{query}"
        );
    }
}

#[tokio::test]
async fn the_dashboard_plots_concurrent_players() {
    let platform = platform_of_days().await;
    let ada = platform.login("Ada").await;
    publish(&platform, &ada).await;
    join_as(&platform, &ada, "race").await;
    for (players, later_min) in [(3, 2), (5, 10), (1, 0)] {
        platform.stage.players.store(players, Ordering::SeqCst);
        platform.stage.wait_for_heartbeats().await;
        platform.platform.sample_players();
        platform.clock.advance_ms(later_min * 60_000);
    }
    let shown = dashboard(&platform, &ada, "?days=1").await;
    assert_eq!(shown.sample_s, 300);
    assert_eq!(shown.concurrent.len(), 288);
    let last: Vec<u32> = shown
        .concurrent
        .iter()
        .rev()
        .take(4)
        .map(|s| s.players)
        .collect();
    // The maximum of each five minutes, newest first.
    assert_eq!(last, [1, 0, 5, 0]);
    assert_eq!(shown.days[0].peak_players, 5);
    assert_eq!((shown.totals.players_now, shown.totals.worlds_now), (1, 1));
    assert!(
        dashboard(&platform, &ada, "?days=90")
            .await
            .concurrent
            .len()
            <= 400
    );
}

#[tokio::test]
async fn script_errors_are_counted_by_location() {
    let platform = platform_of_days().await;
    let ada = platform.login("Ada").await;
    publish(&platform, &ada).await;
    join_as(&platform, &ada, "race").await;
    let launch = platform.stage.launches.borrow().last().unwrap().clone();
    let line = |level, number: u32, message: &str| ConsoleLine {
        level,
        tick: 1,
        script: "scripts/main.luau".to_owned(),
        line: Some(number),
        message: message.to_owned(),
        source_line: None,
        stack: String::new(),
        revision: String::new(),
        hash: String::new(),
        client: None,
    };
    let error = ConsoleLevel::Error;
    let mut lines = vec![
        line(error, 7, "nil value"),
        line(error, 7, "nil value"),
        line(error, 9, "<script>\0"),
        line(ConsoleLevel::Info, 9, "hello"),
    ];
    for number in 0..40 {
        lines.push(line(
            error,
            number,
            &format!("{number} {}", "x".repeat(2_000)),
        ));
    }
    let report = ConsoleReport {
        lines,
        dropped: 0,
        scripts: Vec::new(),
    };
    let path = format!("/internal/worlds/{}/console", launch.world_id);
    let request = platform
        .request(Method::POST, &path)
        .bearer_auth(&launch.world_token);
    let response = request.json(&report).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let shown = dashboard(&platform, &ada, "").await;
    assert_eq!(shown.days.last().unwrap().script_errors, 43);
    assert_eq!(shown.errors.len(), 42);
    let nil = shown
        .errors
        .iter()
        .find(|error| error.message == "nil value")
        .unwrap();
    assert_eq!(
        (nil.count, nil.line, nil.script.as_str()),
        (2, Some(7), "scripts/main.luau")
    );
    assert!(shown.errors.iter().all(|error| error.message.len() <= 300));
}

#[tokio::test]
async fn moderators_choose_featured_games() {
    let platform = TestPlatform::start().await;
    for id in ["alpha", "beta"] {
        platform.publish_sample(&game_files(id, 8)).await;
    }
    let judge = platform.register("Judge").await;
    let path = format!("/admin/users/{}/role", judge.client_id);
    let request = platform
        .request(Method::POST, &path)
        .bearer_auth(ADMIN_TOKEN);
    let given = request
        .json(&json!({ "role": "moderator" }))
        .send()
        .await
        .unwrap();
    assert_eq!(given.status(), StatusCode::OK);
    let feature = async |token: &str, id: &str, featured: bool| {
        let request = platform.request(Method::PUT, &format!("/api/games/{id}/featured"));
        let request = request.json(&json!({ "featured": featured }));
        request.bearer_auth(token).send().await.unwrap()
    };
    for id in ["alpha", "beta"] {
        let answer = feature(&judge.session_token, id, true).await;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        platform.clock.advance_ms(1_000);
    }
    let featured = async || {
        let list: GameList = platform.get_json("/api/games?sort=featured").await;
        list.games
            .into_iter()
            .map(|game| game.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(featured().await, ["beta", "alpha"], "newest first");
    feature(&judge.session_token, "beta", false).await;
    assert_eq!(featured().await, ["alpha"]);
    let eve = platform.login("Eve").await;
    let refused = feature(&eve.session_token, "beta", true).await;
    assert_eq!(error_of(refused).await, (403, "forbidden".to_owned()));
    let unknown = feature(&judge.session_token, "none", true).await;
    assert_eq!(error_of(unknown).await, (404, "game_not_found".to_owned()));
}
