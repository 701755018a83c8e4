//! Client scripts of running worlds: signed lists, and content under `/cdn`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use frolic_fleet_api::process::{PublishScripts, PublishedScripts};
use frolic_platform::ids;
use frolic_protocol::script::{RunContext, ScriptEntry, ScriptList, content_url};
use frolic_protocol::signature;
use reqwest::{Method, Response, StatusCode};
use serde_json::json;

use crate::support::{TestPlatform, error_of};

const CODE: &[u8] = b"compiled";

fn list(game_id: &str, run_context: RunContext) -> ScriptList {
    let hash = format!("sha256:{}", ids::sha256_hex(CODE));
    ScriptList {
        game_id: game_id.into(),
        revision: "ab".into(),
        scripts: vec![ScriptEntry {
            path: "StarterGui/Hud.luau".into(),
            url: content_url(&hash),
            hash,
            size_bytes: CODE.len() as u32,
            run_context,
            service: "StarterGui".into(),
            lazy: false,
            module: false,
            entities: Vec::new(),
        }],
        bundles: Vec::new(),
    }
}

fn packed(content: &[u8]) -> String {
    BASE64.encode(zstd::bulk::compress(content, 1).unwrap())
}

/// Posts a script list as a game server does.
async fn publish(
    platform: &TestPlatform,
    world_id: &str,
    token: &str,
    list: &ScriptList,
    contents: Vec<String>,
) -> Response {
    let list = serde_json::to_string(list).unwrap();
    platform
        .request(
            Method::POST,
            &format!("/internal/worlds/{world_id}/scripts"),
        )
        .bearer_auth(token)
        .json(&PublishScripts { list, contents })
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_script_list_is_signed_and_its_content_is_served() {
    let platform = TestPlatform::start().await;
    let joined = platform.join(json!({ "game_id": "sample" })).await;
    let token = platform.stage.launches.borrow()[0].world_token.clone();
    let list = list("sample", RunContext::Client);
    let (world, url) = (&joined.world_id, &list.scripts[0].url);
    assert_eq!(platform.get(url).await.status(), StatusCode::NOT_FOUND);

    let answer = publish(&platform, world, &token, &list, Vec::new()).await;
    let first: PublishedScripts = answer.json().await.unwrap();
    assert_eq!(first.missing, [list.scripts[0].hash.clone()]);
    let answer = publish(&platform, world, &token, &list, vec![packed(CODE)]).await;
    let second: PublishedScripts = answer.json().await.unwrap();
    assert_eq!(second.missing, Vec::<String>::new());

    let text = serde_json::to_string(&list).unwrap();
    let hash = format!("sha256:{}", ids::sha256_hex(text.as_bytes()));
    let key = signature::from_hex(&joined.script_key).expect("a key in hex");
    assert!(signature::verify(&key, "sample", &hash, &second.signature));
    assert!(!signature::verify(&key, "other", &hash, &second.signature));

    let served = platform.get(url).await;
    let cache = served.headers()["cache-control"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(cache.contains("immutable"), "{cache}");
    assert_eq!(served.bytes().await.unwrap(), CODE);
    let served = platform.get(&content_url(&hash)).await;
    assert_eq!(served.text().await.unwrap(), text);
}

#[tokio::test]
async fn scripts_are_compressed_as_the_browser_accepts() {
    let platform = TestPlatform::start().await;
    let joined = platform.join(json!({ "game_id": "sample" })).await;
    let token = platform.stage.launches.borrow()[0].world_token.clone();
    let code = b"local function step() return 1 end\n".repeat(200);
    let mut list = list("sample", RunContext::Client);
    let hash = format!("sha256:{}", ids::sha256_hex(&code));
    list.scripts[0].url = content_url(&hash);
    list.scripts[0].hash = hash;
    let answer = publish(
        &platform,
        &joined.world_id,
        &token,
        &list,
        vec![packed(&code)],
    );
    assert_eq!(answer.await.status(), StatusCode::OK);

    let url = &list.scripts[0].url;
    for (accepted, encoding) in [
        ("gzip, deflate, br, zstd", Some("zstd")),
        ("gzip, deflate", Some("gzip")),
        ("identity", None),
    ] {
        let request = platform.request(Method::GET, url);
        let response = request.header("accept-encoding", accepted).send().await;
        let response = response.unwrap();
        let headers = response.headers().clone();
        let given = headers.get("content-encoding");
        assert_eq!(given.map(|name| name.to_str().unwrap()), encoding);
        assert_eq!(headers["vary"], "Accept-Encoding");
        let cache = headers["cache-control"].to_str().unwrap();
        assert!(cache.contains("immutable"), "{cache}");
        let body = response.bytes().await.unwrap();
        let plain = match encoding {
            Some("zstd") => zstd::bulk::decompress(&body, code.len()).unwrap(),
            Some(_) => {
                let mut plain = Vec::new();
                let mut decoder = flate2::read::GzDecoder::new(&body[..]);
                std::io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
                plain
            }
            None => body.to_vec(),
        };
        assert_eq!(plain, code);
        let small = body.len() < code.len() / 10;
        assert_eq!(small, encoding.is_some());
        let again = platform.request(Method::GET, url);
        let again = again.header("accept-encoding", accepted);
        let again = again.header("if-none-match", headers["etag"].clone());
        assert_eq!(
            again.send().await.unwrap().status(),
            StatusCode::NOT_MODIFIED
        );
    }
}

#[tokio::test]
async fn a_game_server_can_sign_only_its_own_client_scripts() {
    let platform = TestPlatform::start().await;
    let joined = platform.join(json!({ "game_id": "sample" })).await;
    let token = platform.stage.launches.borrow()[0].world_token.clone();
    let world = &joined.world_id;
    let good = list("sample", RunContext::Client);
    let bomb = packed(&vec![0; 64 << 20]);
    let refused = (400, "bad_scripts".to_owned());
    for (list, contents) in [
        (list("other", RunContext::Client), Vec::new()),
        (list("sample", RunContext::Server), Vec::new()),
        (good.clone(), vec![packed(b"something else")]),
        (good.clone(), vec!["not base64!".to_owned()]),
        (good.clone(), vec![bomb]),
    ] {
        let answer = publish(&platform, world, &token, &list, contents).await;
        assert_eq!(error_of(answer).await, refused);
    }
    let answer = publish(&platform, world, "guessed", &good, Vec::new()).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn the_key_survives_a_restart() {
    let first = TestPlatform::start().await;
    let key = first.join(json!({ "game_id": "sample" })).await.script_key;
    let data_dir = first.data_dir.clone();
    first.stop().await;
    let second = TestPlatform::start_in(data_dir, |_| {}).await;
    let again = second.join(json!({ "game_id": "sample" })).await.script_key;
    assert_eq!(key, again);
}
