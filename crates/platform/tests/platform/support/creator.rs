//! A user who publishes games: uploads, channels, edits.

use std::collections::BTreeMap;

use super::{TestPlatform, game_files};
use frolic_platform::api::{
    CreatorGame, GameChannels, JoinResponse, LoginResponse, PublishResponse,
};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A package with the given game id, version number and player limit.
pub fn version(id: &str, number: &str, max_players: u32) -> Vec<u8> {
    let mut files: BTreeMap<String, Vec<u8>> = game_files(id, max_players);
    let manifest = String::from_utf8(files["game.toml"].clone()).unwrap();
    let manifest = manifest.replace("1.0.0", number);
    files.insert("game.toml".to_owned(), manifest.into_bytes());
    frolic_package::pack(&files).unwrap()
}

/// A user who publishes games.
pub struct Creator<'a> {
    pub platform: &'a TestPlatform,
    pub login: LoginResponse,
}

impl<'a> Creator<'a> {
    pub async fn new(platform: &'a TestPlatform, name: &str) -> Self {
        let login = platform.login(name).await;
        Self { platform, login }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.platform.request(method, path);
        request.bearer_auth(&self.login.session_token)
    }

    pub async fn send(&self, method: Method, path: &str, body: Value) -> Response {
        self.request(method, path).json(&body).send().await.unwrap()
    }

    pub async fn ok<T: DeserializeOwned>(&self, method: Method, path: &str, body: Value) -> T {
        let response = self.send(method, path, body).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let response = self.request(Method::GET, path).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub async fn bytes(&self, method: Method, path: &str, body: Vec<u8>) -> Response {
        self.request(method, path).body(body).send().await.unwrap()
    }

    pub async fn upload(&self, query: &str, archive: Vec<u8>) -> PublishResponse {
        let path = format!("/api/games{query}");
        let response = self.bytes(Method::POST, &path, archive).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, StatusCode::CREATED, "{text}");
        self.platform.clock.advance_ms(1_000);
        serde_json::from_str(&text).unwrap()
    }

    pub async fn game(&self, id: &str) -> CreatorGame {
        self.get(&format!("/api/creator/games/{id}")).await
    }

    pub async fn edition(&self, id: &str) -> u32 {
        self.game(id).await.edition
    }

    pub async fn set(&self, id: &str, channel: &str, revision: &str, pct: u32) -> GameChannels {
        let body = json!({
            "edition": self.edition(id).await, "revision": revision, "rollout_pct": pct
        });
        let path = format!("/api/games/{id}/channels/{channel}");
        self.ok(Method::PUT, &path, body).await
    }

    pub async fn join(&self, body: Value) -> JoinResponse {
        let response = self
            .platform
            .try_join(&self.login.session_token, body)
            .await;
        assert_eq!(response.status(), StatusCode::OK);
        response.json().await.unwrap()
    }
}
