//! Publishes the client scripts of running worlds: signs their lists and serves their
//! content below `/cdn`.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use frolic_fleet_api::process::{PublishScripts, PublishedScripts};
use frolic_protocol::script::{RunContext, ScriptList};

use crate::core::error::ApiError;
use crate::core::extract::ApiJson;
use crate::core::ids;
use crate::worlds::Worlds;
use crate::worlds::internal::Caller;

/// Maximum size of a list.
const LIST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum size of one script or bundle, uncompressed.
const CONTENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// `POST /internal/worlds/{id}/scripts`: signs a world's script list for its own game
/// and stores the content that the list names. A compromised game server can have
/// only lists of its own game signed.
///
/// # Errors
/// 400 for a list of another game, or content that the list does not name.
pub async fn publish(
    State(worlds): State<Arc<Worlds>>,
    Caller(server): Caller,
    ApiJson(request): ApiJson<PublishScripts>,
) -> Result<Json<PublishedScripts>, ApiError> {
    let bad = |message: &str| ApiError::bad_request("bad_scripts", message);
    if request.list.len() > LIST_BYTES_MAX {
        return Err(bad("the script list is too large"));
    }
    let list: ScriptList =
        serde_json::from_str(&request.list).map_err(|error| bad(&error.to_string()))?;
    if list.game_id != server.spec.game_id {
        return Err(bad("the script list is of another game"));
    }
    // The source of server scripts must never reach clients, even by mistake.
    let is_secret = |context| context == RunContext::Server;
    if list.scripts.iter().any(|s| is_secret(s.run_context)) {
        return Err(bad("the script list names a server script"));
    }
    let of_scripts = list.scripts.iter().map(|script| &script.hash);
    let of_bundles = list.bundles.iter().map(|bundle| &bundle.hash);
    let named: BTreeSet<&str> = of_scripts.chain(of_bundles).map(String::as_str).collect();
    for content in &request.contents {
        let content = unpack(content).ok_or_else(|| bad("the content is not a zstd frame"))?;
        let hash = format!("sha256:{}", ids::sha256_hex(&content));
        if !named.contains(hash.as_str()) {
            return Err(bad("the script list does not name this content"));
        }
        worlds.catalog.script_blobs.put(&content).await?;
    }
    worlds
        .catalog
        .script_blobs
        .put(request.list.as_bytes())
        .await?;
    let mut missing = Vec::new();
    for hash in named {
        let hex = hash.strip_prefix("sha256:").unwrap_or("");
        if !worlds.catalog.script_blobs.has(hex).await? {
            missing.push(hash.to_owned());
        }
    }
    let hash = format!("sha256:{}", ids::sha256_hex(request.list.as_bytes()));
    Ok(Json(PublishedScripts {
        signature: worlds.signer.sign(&list.game_id, &hash),
        missing,
    }))
}

fn unpack(text: &str) -> Option<Vec<u8>> {
    let compressed = BASE64.decode(text).ok()?;
    let decoder = zstd::stream::read::Decoder::new(compressed.as_slice()).ok()?;
    let mut content = Vec::new();
    decoder
        .take(CONTENT_BYTES_MAX + 1)
        .read_to_end(&mut content)
        .ok()?;
    (content.len() as u64 <= CONTENT_BYTES_MAX).then_some(content)
}
