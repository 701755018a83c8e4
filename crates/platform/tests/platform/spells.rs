//! Spells over REST: drafts, the build queue, revisions, channels, and refused requests.

use std::time::Duration;

use frolic_platform::api::{
    BuildStarted, Decided, DraftCreated, JobInfo, JobStatus, LoginResponse, OwnReport,
    RevisionList, SpellInfo, SpellList, SpellManifest, SpellPublished,
};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{ADMIN_TOKEN, TestPlatform, error_of};

const CODE: &str = "function on_cast(ctx)\n\tctx.world.sound(\"hit\")\nend\n";

async fn send(
    test: &TestPlatform,
    method: Method,
    path: &str,
    who: &LoginResponse,
    body: Option<Value>,
) -> Response {
    let mut request = test.request(method, path).bearer_auth(&who.session_token);
    if let Some(body) = body {
        request = request.json(&body);
    }
    request.send().await.unwrap()
}

async fn ok<T: DeserializeOwned>(response: Response) -> T {
    let status = response.status();
    let text = response.text().await.unwrap();
    assert!(status.is_success(), "{status}: {text}");
    serde_json::from_str(&text).unwrap()
}

async fn build(test: &TestPlatform, who: &LoginResponse, id: &str, body: Value) -> BuildStarted {
    let path = format!("/api/spells/{id}/build");
    let response = send(test, Method::POST, &path, who, Some(body)).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    ok(response).await
}

/// Polls until the build has finished.
async fn finish(test: &TestPlatform, who: &LoginResponse, job_id: &str) -> JobInfo {
    for _ in 0..600 {
        let path = format!("/api/jobs/{job_id}");
        let job: JobInfo = ok(send(test, Method::GET, &path, who, None).await).await;
        if !matches!(job.status, JobStatus::Queued | JobStatus::Running) {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the build does not finish");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spell_is_drafted_built_published_and_read() {
    let test = TestPlatform::start().await;
    let (ada, bob) = (test.login("Ada").await, test.login("Bob").await);
    let body = json!({ "spell_id": "fire", "display_name": "Fire\u{202e} <b>" });
    let made = send(&test, Method::POST, "/api/spells", &ada, Some(body.clone())).await;
    assert_eq!(made.status(), StatusCode::CREATED);
    let made: DraftCreated = ok(made).await;
    assert_eq!(
        (made.created, made.spell.display_name.as_str()),
        (true, "Fire <b>")
    );
    let again: DraftCreated =
        ok(send(&test, Method::POST, "/api/spells", &ada, Some(body)).await).await;
    assert!(!again.created);

    let options = json!({ "cooldown_s": 2, "cost": 30, "range_m": 20, "name": "Fire" });
    let started = build(
        &test,
        &ada,
        "fire",
        json!({ "code": CODE, "options": options }),
    )
    .await;
    let job = finish(&test, &ada, &started.job_id).await;
    assert_eq!(
        (job.status, job.stage.as_str(), job.progress_pct),
        (JobStatus::Done, "done", 100),
        "{job:?}"
    );
    assert!(
        job.logs.iter().any(|line| line.contains("compiles")),
        "{:?}",
        job.logs
    );
    let revision = job.result_revision_id.unwrap();

    // A draft is visible only to its creator.
    let path = format!("/api/spells/fire/revisions/{revision}/manifest");
    assert_eq!(
        error_of(send(&test, Method::GET, &path, &bob, None).await)
            .await
            .0,
        404
    );
    let list: SpellList = test.get_json("/api/spells").await;
    assert_eq!(list.total, 0);
    let mine: SpellList =
        ok(send(&test, Method::GET, "/api/spells?mine=true", &ada, None).await).await;
    assert_eq!(mine.total, 1);

    let publish = json!({ "revision_id": revision, "channel": "stable" });
    let path = "/api/spells/fire/publish";
    assert_eq!(
        error_of(send(&test, Method::POST, path, &bob, Some(publish.clone())).await)
            .await
            .0,
        404
    );
    let published: SpellPublished =
        ok(send(&test, Method::POST, path, &ada, Some(publish.clone())).await).await;
    assert_eq!(
        published.spell.active_stable_rev.as_deref(),
        Some(revision.as_str())
    );
    assert_eq!(
        (published.manifest.cost, published.manifest.version),
        (30.0, 1)
    );
    let refused = send(&test, Method::POST, path, &bob, Some(publish)).await;
    assert_eq!(error_of(refused).await.0, 403);

    // Every user can read it now, and it is cacheable.
    let spell: SpellInfo = test.get_json("/api/spells/fire").await;
    assert_eq!(spell.version, 1);
    let list: RevisionList = test.get_json("/api/spells/fire/revisions").await;
    assert_eq!((list.total, list.revisions[0].version), (1, 1));
    let path = format!("/api/spells/fire/revisions/{revision}/manifest");
    let manifest: SpellManifest = test.get_json(&path).await;
    let paths: Vec<&str> = manifest
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(paths, ["spell.luau", "spell.toml"]);
    let path = format!("/api/spells/fire/revisions/{revision}/files/spell.luau");
    let file = test.get(&path).await;
    let tag = file.headers()["etag"].clone();
    assert_eq!(file.text().await.unwrap(), CODE);
    let again = test
        .request(Method::GET, &path)
        .header("if-none-match", tag);
    assert_eq!(
        again.send().await.unwrap().status(),
        StatusCode::NOT_MODIFIED
    );
    for trick in ["..%2f..%2fgame.toml", "spell.luau%00", "x"] {
        let path = format!("/api/spells/fire/revisions/{revision}/files/{trick}");
        assert!(matches!(error_of(test.get(&path).await).await.0, 400 | 404));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_reported() {
    let test = TestPlatform::start().await;
    let (ada, bob) = (test.login("Ada").await, test.login("Bob").await);
    let started = build(
        &test,
        &ada,
        "broken",
        json!({ "code": "function on_cast(ctx)\n\tif\nend" }),
    )
    .await;
    let job = finish(&test, &ada, &started.job_id).await;
    assert_eq!(job.status, JobStatus::Failed);
    let message = job.error_message.unwrap();
    assert!(message.contains("spell.luau:"), "{message}");
    let started = build(&test, &ada, "broken", json!({ "code": "print(1)" })).await;
    let job = finish(&test, &ada, &started.job_id).await;
    assert!(job.error_message.unwrap().contains("on_cast"));

    let long = "x".repeat(60_000);
    for (body, status, code) in [
        (json!({}), 409, "nothing_to_build"),
        (json!({ "code": "  " }), 409, "nothing_to_build"),
        (json!({ "code": 7 }), 400, "invalid_field"),
        (json!({ "code": long }), 413, "too_long"),
        (
            json!({ "code": CODE, "options": { "cost": -1 } }),
            400,
            "invalid_options",
        ),
        (
            json!({ "code": CODE, "parent_revision_id": "rev_none" }),
            404,
            "revision_not_found",
        ),
        (json!([1]), 400, "invalid_field"),
    ] {
        let response = send(
            &test,
            Method::POST,
            "/api/spells/mine/build",
            &ada,
            Some(body),
        )
        .await;
        assert_eq!(error_of(response).await, (status, code.to_owned()));
    }
    for id in ["UPPER", "a%2Fb", "x%20y"] {
        let path = format!("/api/spells/{id}/build");
        let response = send(
            &test,
            Method::POST,
            &path,
            &ada,
            Some(json!({ "code": CODE })),
        )
        .await;
        assert_eq!(error_of(response).await.0, 404, "{id}");
    }
    // The id of another user's spell.
    let response = send(
        &test,
        Method::POST,
        "/api/spells/broken/build",
        &bob,
        Some(json!({ "code": CODE })),
    )
    .await;
    assert_eq!(error_of(response).await, (409, "spell_id_taken".to_owned()));
    let path = format!("/api/jobs/{}", started.job_id);
    // Everyone who knows the id of a build can poll its status, but not read its log.
    let own: JobInfo = ok(send(&test, Method::GET, &path, &ada, None).await).await;
    let responses = [
        send(&test, Method::GET, &path, &bob, None).await,
        test.get(&path).await,
    ];
    for response in responses {
        let job: JobInfo = ok(response).await;
        assert_eq!((job.status, &job.stage), (own.status, &own.stage));
        assert!(job.logs.is_empty() && !own.logs.is_empty());
        assert_eq!(job.error_message.as_deref(), Some("The build failed."));
        assert_ne!(job.error_message, own.error_message);
    }
    let cancel = send(&test, Method::POST, &format!("{path}/cancel"), &bob, None).await;
    assert_eq!(error_of(cancel).await.0, 404);
    let response = test
        .request(Method::POST, "/api/spells")
        .json(&json!({}))
        .send()
        .await
        .unwrap();
    assert_eq!(error_of(response).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_does_not_overwrite_a_newer_revision() {
    let test = TestPlatform::start().await;
    let ada = test.login("Ada").await;
    let first = build(&test, &ada, "fire", json!({ "code": CODE })).await;
    let first = finish(&test, &ada, &first.job_id)
        .await
        .result_revision_id
        .unwrap();
    let next = json!({ "code": CODE, "parent_revision_id": first });
    let second = build(&test, &ada, "fire", next.clone()).await;
    let second = finish(&test, &ada, &second.job_id)
        .await
        .result_revision_id
        .unwrap();
    let response = send(
        &test,
        Method::POST,
        "/api/spells/fire/build",
        &ada,
        Some(next),
    )
    .await;
    assert_eq!(error_of(response).await, (409, "draft_changed".to_owned()));
    let list: RevisionList = ok(send(
        &test,
        Method::GET,
        "/api/spells/fire/revisions?per_page=1",
        &ada,
        None,
    )
    .await)
    .await;
    assert_eq!((list.total, list.revisions.len()), (2, 1));
    assert_eq!(list.revisions[0].revision_id, second);
    assert_eq!(
        list.revisions[0].parent_revision_id.as_deref(),
        Some(first.as_str())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spell_is_taken_down_and_restored() {
    let test = TestPlatform::start().await;
    let (ada, bob) = (test.login("Ada").await, test.login("Bob").await);
    let started = build(&test, &ada, "fire", json!({ "code": CODE })).await;
    let job = finish(&test, &ada, &started.job_id).await;
    let revision = job.result_revision_id.unwrap();
    let publish = json!({ "revision_id": revision, "channel": "stable" });
    let publishing = || {
        let path = "/api/spells/fire/publish";
        send(&test, Method::POST, path, &ada, Some(publish.clone()))
    };
    let _: SpellPublished = ok(publishing().await).await;
    let body = json!({ "target_kind": "spell", "target_id": "fire", "rule": "spam" });
    let report: OwnReport =
        ok(send(&test, Method::POST, "/api/reports", &bob, Some(body)).await).await;

    let judge = |path: String, body: Value| {
        let request = test.request(Method::POST, &path).bearer_auth(ADMIN_TOKEN);
        request.json(&body).send()
    };
    let path = format!("/api/moderation/reports/{}/decide", report.report_id);
    let verdict = json!({ "verdict": "takedown", "reason": "It covers the screen." });
    let decided: Decided = ok(judge(path, verdict).await.unwrap()).await;

    // Only its creator can still read it, is notified, and cannot publish it again.
    let manifest = format!("/api/spells/fire/revisions/{revision}/manifest");
    for path in ["/api/spells/fire", "/api/spells/fire/revisions", &manifest] {
        let answer = send(&test, Method::GET, path, &bob, None).await;
        assert_eq!(error_of(answer).await.0, 404, "{path}");
    }
    let list: SpellList = test.get_json("/api/spells").await;
    assert_eq!(list.total, 0);
    let own: SpellInfo = ok(send(&test, Method::GET, "/api/spells/fire", &ada, None).await).await;
    assert!(own.taken_down);
    let refused = publishing().await;
    assert_eq!(
        error_of(refused).await,
        (403, "spell_taken_down".to_owned())
    );

    let path = format!(
        "/api/moderation/notices/{}/lift",
        decided.notice_id.unwrap()
    );
    let lifted = judge(path, json!({ "reason": "It was a mistake." })).await;
    assert_eq!(lifted.unwrap().status(), StatusCode::NO_CONTENT);
    let spell: SpellInfo = test.get_json("/api/spells/fire").await;
    assert!(!spell.taken_down);
    let _: SpellPublished = ok(publishing().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_failure_is_retried_and_can_be_cancelled() {
    let test = TestPlatform::start().await;
    let ada = test.login("Ada").await;
    let started = build(&test, &ada, "words", json!({ "prompt": "busy" })).await;
    let path = format!("/api/jobs/{}", started.job_id);
    let mut tried = 0;
    for _ in 0..600 {
        let job: JobInfo = ok(send(&test, Method::GET, &path, &ada, None).await).await;
        tried = job.attempts;
        if tried >= 2 {
            break;
        }
        // The second attempt waits for the test's clock.
        test.clock.advance_ms(5_000);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(tried >= 2);
    let cancel = format!("{path}/cancel");
    // The job may be running at this moment; then it ends before its next stage.
    let _ = send(&test, Method::POST, &cancel, &ada, None).await;
    let job = finish(&test, &ada, &started.job_id).await;
    assert!(
        matches!(job.status, JobStatus::Cancelled | JobStatus::Failed),
        "{job:?}"
    );
    assert_eq!(job.result_revision_id, None);
    let over = send(&test, Method::POST, &cancel, &ada, None).await;
    assert_eq!(error_of(over).await, (409, "job_over".to_owned()));
    // A build from a prompt, when the model is available.
    let started = build(&test, &ada, "words", json!({ "prompt": "a small hit" })).await;
    let job = finish(&test, &ada, &started.job_id).await;
    assert_eq!(job.status, JobStatus::Done, "{job:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_for_operators_are_hidden_from_players() {
    let test = TestPlatform::start().await;
    let ada = test.login("Ada").await;
    let listed: SpellList = test.get_json("/api/spells").await;
    assert!(listed.prompts);
    let started = build(&test, &ada, "words", json!({ "prompt": "operator" })).await;
    let job = finish(&test, &ada, &started.job_id).await;
    assert_eq!(job.status, JobStatus::Failed);
    let shown = format!("{:?} {:?}", job.error_message, job.logs);
    assert!(shown.contains("Write the code instead."), "{shown}");
    assert!(!shown.contains("SOUL_API_KEY"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_keeps_the_metadata_of_its_build() {
    let test = TestPlatform::start().await;
    let ada = test.login("Ada").await;
    let metadata = json!({ "name": "Frost", "icon": "snow", "tags": ["ice"] });
    let body = json!({ "prompt": "", "code": CODE, "options": { "metadata": metadata } });
    let started = build(&test, &ada, "frost", body).await;
    let job = finish(&test, &ada, &started.job_id).await;
    let revision = job.result_revision_id.unwrap();
    let path = format!("/api/spells/frost/revisions/{revision}/manifest");
    let manifest: SpellManifest = ok(send(&test, Method::GET, &path, &ada, None).await).await;
    assert_eq!(manifest.name, "Frost");
    assert_eq!(manifest.metadata, Some(metadata));
    for bad in [json!("text"), json!({ "x": "y".repeat(5000) })] {
        let body = json!({ "code": CODE, "options": { "metadata": bad } });
        let path = "/api/spells/frost/build";
        let refused = send(&test, Method::POST, path, &ada, Some(body)).await;
        assert_eq!(error_of(refused).await, (400, "invalid_options".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_survives_a_restart_of_the_platform() {
    let test = TestPlatform::start().await;
    let ada = test.login("Ada").await;
    // The retry is due at a time that this process never reaches.
    let started = build(&test, &ada, "words", json!({ "prompt": "busy" })).await;
    let path = format!("/api/jobs/{}", started.job_id);
    for _ in 0..200 {
        let job: JobInfo = ok(send(&test, Method::GET, &path, &ada, None).await).await;
        if job.attempts >= 1 && job.status == JobStatus::Queued {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let data_dir = test.data_dir.clone();
    test.stop().await;
    let test = TestPlatform::start_in(data_dir, |_| {}).await;
    let job: JobInfo = ok(send(&test, Method::GET, &path, &ada, None).await).await;
    assert_eq!((job.status, job.attempts), (JobStatus::Queued, 1));
    for _ in 0..600 {
        test.clock.advance_ms(10_000);
        let job: JobInfo = ok(send(&test, Method::GET, &path, &ada, None).await).await;
        if job.status == JobStatus::Failed {
            assert_eq!(job.attempts, 4);
            assert!(job.error_message.unwrap().contains("busy"));
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the build was lost");
}
