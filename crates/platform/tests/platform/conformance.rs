//! Checks that the OpenAPI document matches the server. schemathesis, an independent client, reads
//! the document, sends valid and invalid requests to all operations in it, and checks the
//! responses.

use std::collections::HashSet;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::programs::{SCHEMATHESIS_PYTHON, python};
use crate::support::{ADMIN_TOKEN, TestPlatform};

/// Routes that would end the session of the test.
const LEAVING: &str = "/logout|/api/me/delete|/api/me/password|/api/me/sessions.*";
/// Examples per operation and phase.
const EXAMPLES: &str = "5";

#[tokio::test]
async fn the_document_is_complete() {
    let platform = TestPlatform::start().await;
    let response = platform.get("/api/openapi.json").await;
    let etag = response.headers()["etag"].clone();
    let document: Value = response.json().await.unwrap();
    let again = platform
        .request(reqwest::Method::GET, "/api/openapi.json")
        .header("if-none-match", etag);
    assert_eq!(again.send().await.unwrap().status(), 304);
    let paths = document["paths"].as_object().unwrap();
    let mut ids = HashSet::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{method} {path}");
            let text = |field: &str| operation[field].as_str().unwrap_or_default();
            assert!(
                ids.insert(text("operationId")),
                "{name}: its id is not unique"
            );
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
            // An empty entry means that the operation also works without a token.
            let ways = operation["security"].as_array();
            let secured = ways.is_some_and(|ways| ways.iter().all(|way| *way != json!({})));
            assert!(
                !secured || !operation["responses"]["401"].is_null(),
                "{name} requires a token but documents no 401"
            );
        }
    }
}

/// Runs schemathesis with a token over the matching paths.
async fn conforms(platform: &TestPlatform, token: &str, paths: &str, excluded: &str) {
    let mut command = python(SCHEMATHESIS_PYTHON);
    command.args(["-m", "schemathesis.cli", "run"]);
    command.arg(format!("{}/api/openapi.json", platform.url));
    command.args(["--header", &format!("Authorization: Bearer {token}")]);
    command.args(["--include-path-regex", paths]);
    command.args(["--exclude-path-regex", excluded]);
    command.args(["--max-examples", EXAMPLES]);
    command.args(["--phases", "examples,coverage,fuzzing"]);
    // The same input must give the same result every time.
    command.arg("--generation-deterministic");
    command.args([
        "--request-timeout",
        "20",
        "--continue-on-failure",
        "--no-color",
    ]);
    // Schemas allow more than the rules (names may be reserved, fields may conflict), so valid
    // input may be refused. The responses are checked anyway.
    let unchecked = "unsupported_method,positive_data_acceptance";
    command.args(["--exclude-checks", unchecked]);
    // It writes files into its working directory.
    command.current_dir(&platform.data_dir).stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || command.output());
    let output = ran.await.unwrap().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
}

/// `cargo xtask codegen` makes the site's types of REST calls from this export. Failures are left out:
/// their body is an `ErrorBody` in every operation.
#[tokio::test]
async fn export_bindings_openapi() {
    let Some(file) = std::env::var_os("OPENAPI_EXPORT_FILE") else {
        return;
    };
    let platform = TestPlatform::start().await;
    let mut document: Value = platform.get_json("/api/openapi.json").await;
    let paths = document["paths"].as_object_mut().unwrap();
    let operations = paths.values_mut().flat_map(|path| path.as_object_mut());
    for operation in operations.flat_map(|operations| operations.values_mut()) {
        if let Some(responses) = operation["responses"].as_object_mut() {
            responses.retain(|status, _| status.starts_with('2'));
        }
    }
    std::fs::write(file, document.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs schemathesis, which `cargo xtask test` installs"]
async fn the_server_conforms_to_its_document() {
    let platform = TestPlatform::start_with(|settings| {
        settings.limits.rate_burst = 100_000;
        settings.limits.rate_per_s = 100_000.0;
    })
    .await;
    let ada = platform.login("Ada").await;
    let excluded = format!("^(/admin.*|{LEAVING})$");
    conforms(&platform, &ada.session_token, "^/", &excluded).await;
    conforms(&platform, ADMIN_TOKEN, "^/admin/", "^$").await;
    // The server still works.
    platform.login("Bob").await;
}
