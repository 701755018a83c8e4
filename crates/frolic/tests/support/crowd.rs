//! Hundreds of players with the whole client core.

use std::time::{Duration, Instant};

use frolic_protocol::json::BINARY_SUBPROTOCOL;
use serde_json::Value as Json;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// Between two tries.
const REST: Duration = Duration::from_millis(100);

/// Sends a request, and again while the platform asks for patience.
pub async fn ask(request: reqwest::RequestBuilder, patience: Duration) -> Result<Json, String> {
    let began = Instant::now();
    loop {
        let again = request.try_clone().expect("can be repeated");
        let answer = again.send().await.map_err(|error| error.to_string())?;
        if answer.status().is_success() {
            return answer.json().await.map_err(|error| error.to_string());
        }
        let busy = matches!(answer.status().as_u16(), 429 | 503);
        if !busy || began.elapsed() > patience {
            return Err(answer.text().await.unwrap_or_default());
        }
        tokio::time::sleep(REST).await;
    }
}

/// Opens a connection to a world's server that speaks the binary form.
pub async fn open(address: &str) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, String> {
    let mut request = address.into_client_request().map_err(|e| e.to_string())?;
    let protocol = BINARY_SUBPROTOCOL.parse().expect("a header");
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let connected = tokio_tungstenite::connect_async(request).await;
    let (socket, _) = connected.map_err(|error| error.to_string())?;
    Ok(socket)
}
