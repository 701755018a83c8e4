//! The OpenAPI document and the server say the same. schemathesis, a client
//! that knows nothing of us, reads the document, calls everything in it with
//! right and wrong input, and compares what comes back.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::programs::{SCHEMATHESIS_PYTHON, python};
use crate::support::{ADMIN_TOKEN, TestPlatform};

/// Calls that would end the session they are tried with.
const LEAVING: &str = "/logout|/api/me/delete|/api/me/password|/api/me/sessions.*";
/// Tried inputs per call and phase.
const EXAMPLES: &str = "5";

#[tokio::test]
async fn the_document_is_whole() {
    let platform = TestPlatform::start().await;
    let response = platform.get("/api/openapi.json").await;
    let etag = response.headers()["etag"].clone();
    let document: Value = response.json().await.unwrap();
    let again = platform
        .request(reqwest::Method::GET, "/api/openapi.json")
        .header("if-none-match", etag);
    assert_eq!(again.send().await.unwrap().status(), 304);
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{method} {path}");
            let text = |field: &str| operation[field].as_str().unwrap_or_default();
            assert!(!text("summary").is_empty(), "{name} has no summary");
            let tagged = operation["tags"].as_array().is_some_and(|t| !t.is_empty());
            assert!(tagged, "{name} has no tag");
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let failed = status.starts_with('4') || status.starts_with('5');
                let schema = &answer["content"]["application/json"]["schema"]["$ref"];
                assert!(
                    !failed || *schema == "#/components/schemas/ErrorBody",
                    "{name}: {status} is not in the error form"
                );
            }
            // An empty way in means that it also answers without a token.
            let ways = operation["security"].as_array();
            let secured = ways.is_some_and(|ways| ways.iter().all(|way| *way != json!({})));
            assert!(
                !secured || !operation["responses"]["401"].is_null(),
                "{name} wants a token and does not say what happens without"
            );
        }
    }
}

/// Runs schemathesis as the holder of a token over the paths that match.
async fn conforms(platform: &TestPlatform, token: &str, paths: &str, excluded: &str) {
    let mut command = python(SCHEMATHESIS_PYTHON);
    command.args(["-m", "schemathesis.cli", "run"]);
    command.arg(format!("{}/api/openapi.json", platform.url));
    command.args(["--header", &format!("Authorization: Bearer {token}")]);
    command.args(["--include-path-regex", paths]);
    command.args(["--exclude-path-regex", excluded]);
    command.args(["--max-examples", EXAMPLES]);
    command.args(["--phases", "examples,coverage,fuzzing"]);
    // The same input must give the same verdict each time.
    command.arg("--generation-deterministic");
    command.args([
        "--request-timeout",
        "20",
        "--continue-on-failure",
        "--no-color",
    ]);
    // Schemas are wider than rules (which names may be taken, what fits
    // together), so what a schema allows may be refused. What comes back is
    // compared all the same.
    let unchecked = "unsupported_method,positive_data_acceptance";
    command.args(["--exclude-checks", unchecked]);
    // It leaves notes where it runs.
    command.current_dir(&platform.data_dir).stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || command.output());
    let output = ran.await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs schemathesis, which `cargo xtask test` installs"]
async fn the_server_does_what_its_document_says() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.rate_burst = 100_000;
        settings.limits.rate_per_s = 100_000.0;
    })
    .await;
    let ada = platform.login("Ada").await;
    let excluded = format!("^(/admin.*|{LEAVING})$");
    conforms(&platform, &ada.session_token, "^/", &excluded).await;
    conforms(&platform, ADMIN_TOKEN, "^/admin/", "^$").await;
    // It is still there, and still makes sense.
    platform.login("Bob").await;
}
