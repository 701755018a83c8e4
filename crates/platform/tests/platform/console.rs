//! The creator's console: reports of game servers, and who may read them.

use frolic_fleet_api::console::{ConsoleLine, ConsoleReport, FromClients, ScriptFigures};
use frolic_platform::api::{ConsolePage, GameDashboard};
use frolic_platform::fleet::LaunchRequest;
use frolic_protocol::client_log::ConsoleLevel;
use reqwest::{Method, Response, StatusCode};
use serde_json::json;

use crate::support::{ADMIN_TOKEN, TestPlatform, error_of, game_files};

fn line(message: &str) -> ConsoleLine {
    ConsoleLine {
        level: ConsoleLevel::Error,
        tick: 60,
        script: "ServerScriptService/Main.luau".to_owned(),
        line: Some(3),
        message: message.to_owned(),
        source_line: Some("error('no')".to_owned()),
        stack: "ServerScriptService/Main.luau:3".to_owned(),
        revision: "r".repeat(64),
        hash: "h".repeat(64),
        client: None,
    }
}

fn figures(path: &str) -> ScriptFigures {
    ScriptFigures {
        path: path.to_owned(),
        hash: String::new(),
        cpu_ms_per_s: 1.5,
        cpu_us: 2_000_000,
        memory_bytes: 4096,
        instances: 1,
        errors: 2,
        stops: 1,
        disabled: 0,
    }
}

async fn report(platform: &TestPlatform, launch: &LaunchRequest, report: &ConsoleReport) {
    let path = format!("/internal/worlds/{}/console", launch.world_id);
    let request = platform.request(Method::POST, &path);
    let request = request.bearer_auth(&launch.world_token).json(report);
    let status = request.send().await.unwrap().status();
    assert_eq!(status, StatusCode::NO_CONTENT);
}

async fn read(platform: &TestPlatform, path: &str, token: &str) -> Response {
    let request = platform.request(Method::GET, path).bearer_auth(token);
    request.send().await.unwrap()
}

async fn page(platform: &TestPlatform, path: &str, token: &str) -> ConsolePage {
    let response = read(platform, path, token).await;
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

#[tokio::test]
async fn only_the_creator_and_operators_read_the_console() {
    let platform = TestPlatform::start().await;
    let creator = platform.login("Creator").await;
    let archive = frolic_package::pack(&game_files("mine", 8)).unwrap();
    let upload = platform.request(Method::POST, "/api/games").body(archive);
    let upload = upload.bearer_auth(&creator.session_token);
    assert_eq!(upload.send().await.unwrap().status(), StatusCode::CREATED);
    let joined = platform.join(json!({ "game_id": "mine" })).await;
    let launch = platform.stage.launches.borrow()[0].clone();
    let sent = ConsoleReport {
        lines: vec![line("first"), line("second")],
        dropped: 0,
        scripts: vec![figures("ServerScriptService/Main.luau")],
    };
    report(&platform, &launch, &sent).await;

    let path = "/api/games/mine/console";
    for token in [creator.session_token.as_str(), ADMIN_TOKEN] {
        let first = page(&platform, path, token).await;
        let messages: Vec<&str> = first.lines.iter().map(|l| l.message.as_str()).collect();
        assert_eq!(messages, ["first", "second"]);
        let shown = &first.lines[0];
        assert_eq!((shown.level.as_str(), shown.line), ("error", Some(3)));
        assert_eq!(shown.source_line.as_deref(), Some("error('no')"));
        assert_eq!((shown.hash.len(), shown.revision.len()), (64, 64));
        assert_eq!(shown.world_id, joined.world_id);
        let world = &first.worlds[0];
        assert!(world.running);
        assert_eq!(world.scripts[0].memory_bytes, 4096);
        // Only newer lines are returned.
        let next = page(&platform, &format!("{path}?after={}", first.last), token).await;
        assert!(next.lines.is_empty());
        // A number of an earlier process reads from the start.
        let restarted = page(&platform, &format!("{path}?after=999999"), token).await;
        assert_eq!(restarted.lines.len(), 2);
    }
    let stranger = platform.login("Stranger").await.session_token;
    let refused = error_of(read(&platform, path, &stranger).await).await;
    assert_eq!(refused, (403, "forbidden".to_owned()));
    let sample = "/api/games/sample/console";
    let refused = error_of(read(&platform, sample, &creator.session_token).await).await;
    assert_eq!(refused, (403, "forbidden".to_owned()));
    assert!(page(&platform, sample, ADMIN_TOKEN).await.lines.is_empty());
    let refused = error_of(platform.get(path).await).await;
    assert_eq!(refused, (401, "missing_token".to_owned()));
    let none = error_of(read(&platform, "/api/games/none/console", &stranger).await).await;
    assert_eq!(none, (404, "game_not_found".to_owned()));

    // Metrics per script are for operators only, because they contain names of server scripts.
    let name = "frolic_script_cpu_seconds_total";
    let open = platform.get("/metrics").await.text().await.unwrap();
    assert!(!open.contains(name));
    let own = read(&platform, "/metrics", ADMIN_TOKEN).await.text().await;
    let own = own.unwrap();
    assert!(
        own.lines()
            .any(|l| l.starts_with(name) && l.ends_with(" 2")),
        "{own}"
    );
}

#[tokio::test]
async fn a_world_that_logs_too_much_is_limited() {
    let platform = TestPlatform::start().await;
    platform.join(json!({ "game_id": "sample" })).await;
    let launch = platform.stage.launches.borrow()[0].clone();
    let long = "x".repeat(3_000);
    let mut many = ConsoleReport {
        lines: vec![line(&long); 190],
        dropped: 7,
        scripts: vec![figures(&"p".repeat(900)); 600],
    };
    many.lines
        .iter_mut()
        .for_each(|line| line.stack = long.clone());
    many.lines.truncate(100);
    for _ in 0..10 {
        report(&platform, &launch, &many).await;
    }
    let page = page(&platform, "/api/games/sample/console", ADMIN_TOKEN).await;
    let bytes: usize = page
        .lines
        .iter()
        .map(|l| l.message.len() + l.stack.len())
        .sum();
    assert!(bytes <= 256 * 1024, "{bytes}");
    assert_eq!(page.last, 1010);
    assert!(page.lines.iter().all(|line| line.message.len() <= 1100));
    assert_eq!(page.worlds[0].scripts.len(), 512);
    assert_eq!(page.worlds[0].scripts[0].path.len(), 200);
    // A report without the world's token is refused.
    let path = format!("/internal/worlds/{}/console", launch.world_id);
    let request = platform.request(Method::POST, &path).bearer_auth("guess");
    let response = request.json(&many).send().await.unwrap();
    assert_eq!(error_of(response).await, (401, "not_your_world".to_owned()));
}

#[tokio::test]
async fn lines_of_browsers_are_marked_and_their_errors_are_counted() {
    let platform = TestPlatform::start().await;
    let creator = platform.login("Creator").await;
    let archive = frolic_package::pack(&game_files("mine", 8)).unwrap();
    let upload = platform.request(Method::POST, "/api/games").body(archive);
    let upload = upload.bearer_auth(&creator.session_token);
    assert_eq!(upload.send().await.unwrap().status(), StatusCode::CREATED);
    platform.join(json!({ "game_id": "mine" })).await;
    let launch = platform.stage.launches.borrow()[0].clone();
    let of_clients = |message: &str, count| ConsoleLine {
        client: Some(FromClients {
            browser: "Firefox on Linux".to_owned(),
            count,
            players: 2,
        }),
        ..line(message)
    };
    let sent = ConsoleReport {
        lines: vec![line("same"), of_clients("same", 5), of_clients("same", 2)],
        ..ConsoleReport::default()
    };
    report(&platform, &launch, &sent).await;
    // Lines invented by a client do not displace those of the server.
    for round in 0..4 {
        let lines = (0..100).map(|i| of_clients(&format!("made up {round} {i}"), 1));
        let flood = ConsoleReport {
            lines: lines.collect(),
            ..ConsoleReport::default()
        };
        report(&platform, &launch, &flood).await;
    }
    let token = &creator.session_token;
    let shown = page(&platform, "/api/games/mine/console", token).await;
    let client = shown.lines[1].client.as_ref().unwrap();
    assert!(shown.lines[0].client.is_none());
    assert_eq!((client.count, client.players), (5, 2));
    let response = read(&platform, "/api/creator/games/mine/dashboard", token).await;
    let dashboard: GameDashboard = response.json().await.unwrap();
    let of_server = dashboard
        .errors
        .iter()
        .find(|error| error.browser.is_none());
    assert_eq!(of_server.unwrap().count, 1);
    // The charts count only errors of servers.
    let counted: u32 = dashboard.days.iter().map(|day| day.script_errors).sum();
    assert_eq!(counted, 1);
}
