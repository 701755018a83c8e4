//! Moderation: from a report to a notice, an appeal and the log; and the permissions of each step.

use frolic_fleet_api::persist::{PersistBatch, PlayerState, SavedPlayer};
use frolic_platform::api::{
    AppealList, AppealState, AuditLog, Decided, GameList, JoinResponse, LoginResponse, Notice,
    NoticeList, NoticeState, OwnReport, OwnReportList, Report, ReportList, ReportStatus, RuleList,
    Verdict,
};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::persistence::Process;
use crate::support::{ADMIN_TOKEN, START_MS, TestPlatform, error_of, game_files};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

async fn send(
    platform: &TestPlatform,
    token: &str,
    method: Method,
    path: &str,
    body: Value,
) -> Response {
    let request = platform.request(method, path).bearer_auth(token);
    request.json(&body).send().await.unwrap()
}

async fn read<T: DeserializeOwned>(platform: &TestPlatform, token: &str, path: &str) -> T {
    let answer = platform
        .request(Method::GET, path)
        .bearer_auth(token)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.json().await.unwrap()
}

async fn report(platform: &TestPlatform, by: &LoginResponse, kind: &str, id: &str) -> OwnReport {
    report_in(platform, "world_1", by, kind, id).await
}

async fn report_in(
    platform: &TestPlatform,
    world_id: &str,
    by: &LoginResponse,
    kind: &str,
    id: &str,
) -> OwnReport {
    let evidence = json!({ "world_id": world_id, "lines": [{ "from": "Eve", "text": "buy <b>now</b>\u{202e}" }] });
    let body = json!({ "target_kind": kind, "target_id": id, "rule": "spam", "details": "all day long", "evidence": evidence });
    let answer = send(
        platform,
        &by.session_token,
        Method::POST,
        "/api/reports",
        body,
    )
    .await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    answer.json().await.unwrap()
}

async fn decide(platform: &TestPlatform, report_id: &str, body: Value) -> Response {
    let path = format!("/api/moderation/reports/{report_id}/decide");
    send(platform, ADMIN_TOKEN, Method::POST, &path, body).await
}

#[tokio::test]
async fn a_suspension_has_a_reason_and_an_appeal_ends_it() {
    let platform = TestPlatform::start().await;
    let (ada, eve) = (platform.login("Ada").await, platform.login("Eve").await);
    let rules: RuleList = platform.get_json("/api/rules").await;
    assert!(rules.rules.iter().any(|rule| rule.id == "spam"));
    let made = report(&platform, &ada, "chat", &eve.client_id).await;
    assert_eq!(made.status, ReportStatus::Open);

    let queue: ReportList = read(&platform, ADMIN_TOKEN, "/api/moderation/reports").await;
    assert_eq!(
        (queue.total, queue.reports[0].subject_name.as_str()),
        (1, "Eve")
    );
    assert_eq!(queue.reports[0].evidence.lines[0].text, "buy <b>now</b>");

    let body = json!({ "verdict": "suspend", "days": 3, "reason": "Flooded the chat" });
    let decided: Decided = decide(&platform, &made.report_id, body.clone())
        .await
        .json()
        .await
        .unwrap();
    let notice_id = decided.notice_id.unwrap();
    let again = decide(&platform, &made.report_id, body).await;
    assert_eq!(error_of(again).await, (409, "already_decided".to_owned()));

    let refused = platform.try_join(&eve.session_token, json!({})).await;
    assert_eq!(error_of(refused).await, (403, "suspended".to_owned()));
    // A suspended user cannot create content either, nor continue an upload.
    let part = "/api/uploads/upload_1/part?offset=0";
    for (method, path, body) in [
        (Method::POST, "/worlds", json!({})),
        (Method::POST, "/api/spells", json!({ "spell_id": "fire" })),
        (Method::POST, "/api/uploads", json!({ "size_bytes": 10 })),
        (Method::PUT, part, json!({})),
        (Method::POST, "/api/uploads/upload_1/finish", json!({})),
    ] {
        let refused = send(&platform, &eve.session_token, method, path, body).await;
        assert_eq!(error_of(refused).await.1, "suspended", "{path}");
    }
    let notices: NoticeList = read(&platform, &eve.session_token, "/api/notices").await;
    let notice = &notices.notices[0];
    assert_eq!(
        (notices.unseen, notice.notice_id.as_str()),
        (1, notice_id.as_str())
    );
    assert_eq!(
        (notice.verdict, notice.state),
        (Verdict::Suspend, NoticeState::Active)
    );
    assert_eq!(
        (notice.rule.id.as_str(), notice.reason.as_str()),
        ("spam", "Flooded the chat")
    );
    assert!(!notice.advice.is_empty() && notice.evidence.lines.len() == 1);
    let seen = format!("/api/notices/{notice_id}/seen");
    send(
        &platform,
        &eve.session_token,
        Method::POST,
        &seen,
        json!({}),
    )
    .await;
    let notices: NoticeList = read(&platform, &eve.session_token, "/api/notices").await;
    assert_eq!(notices.unseen, 0);

    // Other users cannot read the notice or appeal against it.
    let others: NoticeList = read(&platform, &ada.session_token, "/api/notices").await;
    assert_eq!(others.total, 0);
    let path = format!("/api/notices/{notice_id}/appeal");
    let text = json!({ "text": "It was my little brother." });
    let foreign = send(
        &platform,
        &ada.session_token,
        Method::POST,
        &path,
        text.clone(),
    )
    .await;
    assert_eq!(error_of(foreign).await.0, 404);
    let appealed = send(
        &platform,
        &eve.session_token,
        Method::POST,
        &path,
        text.clone(),
    )
    .await;
    assert_eq!(appealed.status(), StatusCode::CREATED);
    let twice = send(&platform, &eve.session_token, Method::POST, &path, text).await;
    assert_eq!(error_of(twice).await, (409, "cannot_appeal".to_owned()));

    let appeals: AppealList = read(&platform, ADMIN_TOKEN, "/api/moderation/appeals").await;
    let appeal = appeals.appeals[0].notice.appeal.clone().unwrap();
    assert_eq!(
        (appeal.state, appeals.appeals[0].subject_name.as_str()),
        (AppealState::Open, "Eve")
    );
    let path = format!("/api/moderation/appeals/{}/decide", appeal.appeal_id);
    let body = json!({ "grant": true, "answer": "Fair enough." });
    let answer = send(&platform, ADMIN_TOKEN, Method::POST, &path, body.clone()).await;
    assert_eq!(
        answer.json::<Notice>().await.unwrap().state,
        NoticeState::Overturned
    );
    let again = send(&platform, ADMIN_TOKEN, Method::POST, &path, body).await;
    assert_eq!(error_of(again).await, (409, "already_decided".to_owned()));
    let back = platform.try_join(&eve.session_token, json!({})).await;
    assert_eq!(back.status(), StatusCode::OK);

    let log: AuditLog = read(&platform, ADMIN_TOKEN, "/api/moderation/log?per_page=100").await;
    let mut actions: Vec<_> = log
        .entries
        .iter()
        .map(|entry| entry.action.as_str())
        .collect();
    actions.sort_unstable();
    assert_eq!(actions, ["appeal", "grant", "report", "suspend"]);
    let mine: OwnReportList = read(&platform, &ada.session_token, "/api/reports").await;
    assert_eq!(mine.reports[0].status, ReportStatus::Acted);
}

#[tokio::test]
async fn a_suspension_expires_and_is_sent_to_game_servers() {
    let platform = TestPlatform::start_with(|settings| {
        settings.session_lifetime = std::time::Duration::from_secs(3 * 24 * 60 * 60);
    })
    .await;
    let (ada, eve) = (platform.login("Ada").await, platform.login("Eve").await);
    let joined = platform.try_join(&eve.session_token, json!({})).await;
    assert_eq!(joined.status(), StatusCode::OK);
    let bob = platform.login("Bob").await;
    let first = report(&platform, &bob, "user", &eve.client_id).await;
    let body = json!({ "verdict": "warn", "reason": "Careful" });
    let warned = decide(&platform, &first.report_id, body).await;
    let warned: Decided = warned.json().await.unwrap();
    let made = report(&platform, &ada, "user", &eve.client_id).await;
    let body = json!({ "verdict": "suspend", "days": 1, "reason": "No" });
    assert_eq!(
        decide(&platform, &made.report_id, body).await.status(),
        StatusCode::OK
    );
    // A lifted warning does not end the suspension.
    let warning = warned.notice_id.expect("a notice");
    let path = format!("/api/moderation/notices/{warning}/lift");
    let body = json!({ "reason": "Not needed" });
    let lifted = send(&platform, ADMIN_TOKEN, Method::POST, &path, body).await;
    assert_eq!(lifted.status(), StatusCode::NO_CONTENT);
    let launch = platform.stage.launches.borrow()[0].clone();
    let path = format!("/internal/worlds/{}/heartbeat", launch.world_id);
    let beat = json!({ "players": 1, "tick": 5, "tick_ms_p99": 1.0, "script_errors": 0 });
    let answer = send(&platform, &launch.world_token, Method::POST, &path, beat).await;
    let reply: Value = answer.json().await.unwrap();
    assert_eq!(reply["expelled"][0]["player_id"], json!(eve.client_id));
    platform.clock.advance_ms(DAY_MS + 1);
    let back = platform.try_join(&eve.session_token, json!({})).await;
    assert_eq!(back.status(), StatusCode::OK);
    let notices: NoticeList = read(&platform, &eve.session_token, "/api/notices").await;
    let suspension = notices.notices.iter();
    let mut suspension = suspension.filter(|one| one.notice_id != warning);
    assert_eq!(suspension.next().unwrap().state, NoticeState::Expired);
}

#[tokio::test]
async fn a_takedown_removes_a_game_until_it_is_lifted() {
    let platform = TestPlatform::start().await;
    platform.publish_sample(&game_files("bad", 8)).await;
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let playing: JoinResponse = platform.join(json!({ "game_id": "bad" })).await;
    let first = report(&platform, &ada, "game", "bad").await;
    report(&platform, &bob, "game", "bad").await;
    let queue: ReportList = read(&platform, ADMIN_TOKEN, "/api/moderation/reports").await;
    assert_eq!(queue.reports[0].open_on_target, 2);

    let body = json!({ "verdict": "takedown", "reason": "Copies another game", "rule": "copyright", "all_on_target": true });
    let decided: Decided = decide(&platform, &first.report_id, body)
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(decided.reports, 2);
    platform.stage.wait_for_alive(0).await;
    let listed: GameList = platform.get_json("/api/games").await;
    assert!(listed.games.iter().all(|game| game.id != "bad"));
    assert_eq!(
        platform.get("/api/games/bad").await.status(),
        StatusCode::NOT_FOUND
    );
    for body in [
        json!({ "game_id": "bad" }),
        json!({ "world_id": playing.world_id }),
    ] {
        let answer = platform.try_join(&ada.session_token, body.clone()).await;
        let (status, code) = error_of(answer).await;
        assert!(
            matches!(
                (status, code.as_str()),
                (403, "game_taken_down") | (404, "game_not_found" | "world_not_found")
            ),
            "{body} {code}"
        );
    }

    let path = format!(
        "/api/moderation/notices/{}/lift",
        decided.notice_id.unwrap()
    );
    let body = json!({ "reason": "It was theirs" });
    let lifted = send(&platform, ADMIN_TOKEN, Method::POST, &path, body.clone()).await;
    assert_eq!(lifted.status(), StatusCode::NO_CONTENT);
    let twice = send(&platform, ADMIN_TOKEN, Method::POST, &path, body).await;
    assert_eq!(error_of(twice).await, (409, "not_active".to_owned()));
    let listed: GameList = platform.get_json("/api/games").await;
    assert!(listed.games.iter().any(|game| game.id == "bad"));
    platform.join(json!({ "game_id": "bad" })).await;
}

#[tokio::test]
async fn only_moderators_decide_and_reports_are_limited() {
    let platform = TestPlatform::start().await;
    let (ada, eve) = (platform.login("Ada").await, platform.login("Eve").await);
    for path in [
        "/api/moderation/reports",
        "/api/moderation/appeals",
        "/api/moderation/log",
    ] {
        let anonymous = platform.get(path).await;
        assert_eq!(error_of(anonymous).await.0, 401, "{path}");
        let player = send(&platform, &eve.session_token, Method::GET, path, json!({})).await;
        assert_eq!(
            error_of(player).await,
            (403, "forbidden".to_owned()),
            "{path}"
        );
    }
    let made = report(&platform, &ada, "user", &eve.client_id).await;
    let path = format!("/api/moderation/reports/{}/decide", made.report_id);
    let body = json!({ "verdict": "dismiss" });
    let player = send(
        &platform,
        &eve.session_token,
        Method::POST,
        &path,
        body.clone(),
    )
    .await;
    assert_eq!(error_of(player).await.0, 403);
    for (body, code) in [
        (json!({ "verdict": "warn" }), "reason_missing"),
        (
            json!({ "verdict": "suspend", "reason": "x" }),
            "days_missing",
        ),
        (
            json!({ "verdict": "suspend", "reason": "x", "days": 0 }),
            "days_missing",
        ),
        (json!({ "verdict": "takedown", "reason": "x" }), "not_made"),
        (
            json!({ "verdict": "warn", "reason": "x", "rule": "none" }),
            "unknown_rule",
        ),
        (json!({ "verdict": "ban" }), "invalid_field"),
    ] {
        let answer = send(&platform, ADMIN_TOKEN, Method::POST, &path, body.clone()).await;
        assert_eq!(error_of(answer).await, (400, code.to_owned()), "{body}");
    }
    let dismissed = send(&platform, ADMIN_TOKEN, Method::POST, &path, body).await;
    assert_eq!(dismissed.json::<Decided>().await.unwrap().notice_id, None);

    let reporting = |kind: &str, id: &str, rule: &str| {
        let body = json!({ "target_kind": kind, "target_id": id, "rule": rule });
        let token = ada.session_token.clone();
        let platform = &platform;
        async move { send(platform, &token, Method::POST, "/api/reports", body).await }
    };
    for (kind, id, rule, expected) in [
        ("user", ada.client_id.as_str(), "spam", (400, "own_target")),
        ("user", "user_none", "spam", (404, "target_not_found")),
        ("game", "../sample", "spam", (404, "target_not_found")),
        (
            "user",
            eve.client_id.as_str(),
            "none",
            (400, "unknown_rule"),
        ),
        (
            "person",
            eve.client_id.as_str(),
            "spam",
            (400, "invalid_field"),
        ),
    ] {
        let (status, code) = error_of(reporting(kind, id, rule).await).await;
        assert_eq!((status, code.as_str()), expected, "{kind} {id} {rule}");
    }
    // Repeating an open report returns the same report.
    let first = reporting("user", &eve.client_id, "hate").await;
    assert_eq!(first.status(), StatusCode::CREATED);
    let same = reporting("user", &eve.client_id, "hate").await;
    assert_eq!(same.status(), StatusCode::OK);
    let lines = vec![json!({ "from": "x", "text": "y" }); 21];
    let body = json!({ "target_kind": "chat", "target_id": eve.client_id, "rule": "scam", "evidence": { "lines": lines } });
    let answer = send(
        &platform,
        &ada.session_token,
        Method::POST,
        "/api/reports",
        body,
    )
    .await;
    assert_eq!(
        error_of(answer).await,
        (400, "too_much_evidence".to_owned())
    );
}

/// Lets a user join and the process of the world store a checkpoint of the player; returns the id
/// of the world.
async fn enter(platform: &TestPlatform, who: &LoginResponse) -> String {
    let joining = json!({ "game_id": "sample" });
    let joined = platform.try_join(&who.session_token, joining).await;
    let joined: JoinResponse = joined.json().await.unwrap();
    let player = SavedPlayer {
        player_id: who.client_id.clone(),
        state: PlayerState {
            health: [100.0, 100.0],
            ..PlayerState::default()
        },
        online: true,
        session: "nonce".into(),
        received: 0,
        sent: 0,
        undelivered: Vec::new(),
    };
    let process = Process::newest(platform).await;
    let batch = PersistBatch {
        players: vec![player],
        ..process.batch([])
    };
    process.keep(&batch).await.unwrap();
    joined.world_id
}

/// Names of the recordings that were stored for reports.
fn stored_recordings(folder: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(folder.join("reported"));
    let files = files.into_iter().flatten().flatten();
    files
        .map(|file| file.file_name().into_string().unwrap())
        .collect()
}

async fn recording_platform() -> TestPlatform {
    TestPlatform::start_with(|settings| {
        settings.record_dir = Some(settings.data_dir.join("recordings"));
    })
    .await
}

#[tokio::test]
async fn a_report_contains_the_recording_of_its_world() {
    let platform = recording_platform().await;
    let folder = platform.data_dir.join("recordings");
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let eve = platform.login("Eve").await;
    let world_id = enter(&platform, &ada).await;
    assert_eq!(enter(&platform, &bob).await, world_id);

    let early = report_in(&platform, &world_id, &bob, "user", &eve.client_id).await;
    let path = format!("/api/moderation/reports/{}", early.report_id);
    let shown: Report = read(&platform, ADMIN_TOKEN, &path).await;
    assert!(shown.recording.is_none(), "there is no recording yet");
    let fetch = |token: &str, report_id: &str| {
        let path = format!("/api/moderation/reports/{report_id}/recording");
        let request = platform.request(Method::GET, &path).bearer_auth(token);
        async move { request.send().await.unwrap() }
    };
    let answer = fetch(ADMIN_TOKEN, &early.report_id).await;
    assert_eq!(error_of(answer).await, (404, "no_recording".to_owned()));

    let started = START_MS - 61_500;
    let file = format!("{world_id}-{started}.replay");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(&file), b"so far").unwrap();
    let made = report_in(&platform, &world_id, &ada, "user", &eve.client_id).await;
    let path = format!("/api/moderation/reports/{}", made.report_id);
    let shown: Report = read(&platform, ADMIN_TOKEN, &path).await;
    let recording = shown.recording.unwrap();
    assert_eq!(
        (recording.file.as_str(), recording.reported_after_s),
        (file.as_str(), 61)
    );

    let refused = fetch(&ada.session_token, &made.report_id).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    // A reported recording stays after the operator deletes the original.
    std::fs::remove_file(folder.join(&file)).unwrap();
    let answer = fetch(ADMIN_TOKEN, &made.report_id).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let name = answer.headers()["content-disposition"].to_str().unwrap();
    assert_eq!(name, format!("attachment; filename=\"{file}\""));
    assert_eq!(answer.bytes().await.unwrap(), "so far");
    let log: AuditLog = read(&platform, ADMIN_TOKEN, "/api/moderation/log").await;
    let looked = log.entries.iter().find(|entry| entry.action == "recording");
    assert_eq!(
        looked.map(|entry| entry.summary.as_str()),
        Some(file.as_str())
    );

    std::fs::remove_dir_all(folder.join("reported")).unwrap();
    let answer = fetch(ADMIN_TOKEN, &made.report_id).await;
    assert_eq!(error_of(answer).await, (404, "recording_gone".to_owned()));
}

#[tokio::test]
async fn only_a_report_by_a_player_of_the_world_stores_a_recording() {
    let platform = recording_platform().await;
    let folder = platform.data_dir.join("recordings");
    let (ada, bob) = (platform.login("Ada").await, platform.login("Bob").await);
    let eve = platform.login("Eve").await;
    let world_id = enter(&platform, &ada).await;
    let file = format!("{world_id}-{}.replay", START_MS - 61_500);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(&file), b"so far").unwrap();

    // Bob was never in the world; his report is accepted without a recording.
    let made = report_in(&platform, &world_id, &bob, "user", &eve.client_id).await;
    let path = format!("/api/moderation/reports/{}", made.report_id);
    let shown: Report = read(&platform, ADMIN_TOKEN, &path).await;
    assert!(shown.recording.is_none());
    assert!(stored_recordings(&folder).is_empty());

    let again = |rule: &str, lines: usize| {
        let lines = vec![json!({ "from": "Eve", "text": "hello" }); lines];
        let evidence = json!({ "world_id": world_id, "lines": lines });
        let body = json!({ "target_kind": "user", "target_id": eve.client_id, "rule": rule, "evidence": evidence });
        let (platform, token) = (&platform, ada.session_token.clone());
        async move { send(platform, &token, Method::POST, "/api/reports", body).await }
    };
    // A refused or repeated report stores no recording.
    let refused = again("spam", 21).await;
    assert_eq!(error_of(refused).await.0, 400);
    assert!(stored_recordings(&folder).is_empty());
    let made = again("spam", 1).await;
    assert_eq!(made.status(), StatusCode::CREATED);
    assert_eq!(stored_recordings(&folder), std::slice::from_ref(&file));
    std::fs::remove_dir_all(folder.join("reported")).unwrap();
    let same = again("spam", 1).await;
    assert_eq!(same.status(), StatusCode::OK);
    assert!(stored_recordings(&folder).is_empty());

    // She left the world long ago.
    platform.clock.advance_ms(11 * 60 * 1000);
    let late = again("hate", 1).await;
    assert_eq!(late.status(), StatusCode::CREATED);
    assert!(stored_recordings(&folder).is_empty());
}

#[tokio::test]
async fn reports_are_rate_limited_per_address() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.rate_burst = 4;
        settings.limits.rate_per_s = 0.001;
    })
    .await;
    let (ada, eve) = (platform.login("Ada").await, platform.login("Eve").await);
    let body = json!({ "target_kind": "user", "target_id": eve.client_id, "rule": "spam" });
    let reporting = || {
        let request = platform.request(Method::POST, "/api/reports");
        let request = request.bearer_auth(&ada.session_token).json(&body);
        // From another address, because this machine has higher limits.
        request.header("x-forwarded-for", "192.0.2.1").send()
    };
    for _ in 0..4 {
        assert!(reporting().await.unwrap().status().is_success());
    }
    let refused = reporting().await.unwrap();
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(error_of(refused).await, (429, "rate_limited".to_owned()));
}
