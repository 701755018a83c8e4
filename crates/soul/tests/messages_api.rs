//! The compiler against a real HTTP server that speaks the Messages API, in
//! its good and its bad moods.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use frolic_soul::{ApiSettings, MessagesApi, ModelError, SoulError, compile};
use serde_json::{Value, json};

const GOOD: &str =
    "Here you are.\n```luau\nfunction OnTriggerEnter(other)\n\tprint(other.Name)\nend\n```";
const BAD: &str = "```luau\nlocal = 5\n```";

/// The server's response to the next request.
#[derive(Clone)]
enum Mood {
    Say(&'static str),
    Status(u16, &'static str),
    Garbage,
    CutOff,
    Huge,
    Hang,
}

/// Requests as they came.
type Seen = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

struct Server {
    url: String,
    seen: Seen,
    /// Short only where the model never answers.
    patience: Duration,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    /// Goes through its moods; the last one stays.
    fn start(moods: Vec<Mood>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Seen::default();
        let hangs = moods.iter().any(|mood| matches!(mood, Mood::Hang));
        let patience = Duration::from_millis(if hangs { 700 } else { 60_000 });
        let noted = seen.clone();
        let handler = move |headers: HeaderMap, body: String| {
            let (noted, moods) = (noted.clone(), moods.clone());
            async move {
                let body = serde_json::from_str(&body).unwrap_or_default();
                let count = {
                    let mut noted = noted.lock().unwrap();
                    noted.push((headers, body));
                    noted.len()
                };
                react(&moods[(count - 1).min(moods.len() - 1)]).await
            }
        };
        let app = Router::new().route("/v1/messages", post(handler));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self {
            url,
            seen,
            patience,
            _runtime: runtime,
        }
    }

    fn compile(&self, path: &str, soul: &str) -> Result<frolic_soul::Generated, SoulError> {
        let settings = ApiSettings {
            url: self.url.clone(),
            key: "the-key".to_owned(),
            model: "a-model".to_owned(),
            patience: self.patience,
            rests: vec![Duration::from_millis(1); 2],
        };
        compile(&MessagesApi::new(settings).unwrap(), path, soul)
    }

    fn seen(&self) -> Vec<(HeaderMap, Value)> {
        self.seen.lock().unwrap().clone()
    }
}

async fn react(mood: &Mood) -> Response {
    let message = |text: &str, reason: &str| {
        let block = json!({ "type": "text", "text": text });
        let body = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "a-model",
            "content": [block], "stop_reason": reason, "usage": { "output_tokens": 5 },
        });
        axum::Json(body).into_response()
    };
    match mood {
        Mood::Say(text) => message(text, "end_turn"),
        Mood::CutOff => message("```luau\nlocal a", "max_tokens"),
        Mood::Garbage => "<html>not the API</html>".into_response(),
        Mood::Huge => message(&"x".repeat(2_000_000), "end_turn"),
        Mood::Hang => std::future::pending().await,
        Mood::Status(status, text) => {
            let body = json!({ "type": "error", "error": { "type": "e", "message": text } });
            let status = StatusCode::from_u16(*status).unwrap();
            (status, axum::Json(body)).into_response()
        }
    }
}

const PATH: &str = "Workspace/Door.soul";
const SOUL: &str = "Say the name of each player who enters.\n";

#[test]
fn a_description_becomes_luau_that_knows_its_text() {
    let server = Server::start(vec![Mood::Say(GOOD)]);
    let made = server.compile(PATH, SOUL).unwrap();
    assert_eq!(
        (made.path.as_str(), made.rounds),
        ("Workspace/Door.soul.luau", 1)
    );
    let soul = frolic_package::soul::is_current(SOUL.as_bytes(), made.luau.as_bytes());
    assert!(soul, "{}", made.luau);
    assert!(made.luau.contains("print(other.Name)"));
    let (headers, body) = server.seen().remove(0);
    assert_eq!(headers["x-api-key"], "the-key");
    assert_eq!(headers["anthropic-version"], "2023-06-01");
    assert_eq!(body["model"], "a-model");
    assert!(body["max_tokens"].as_u64().unwrap() > 0);
    let system = body["system"].as_str().unwrap();
    for part in ["Workspace", "OnTriggerEnter", "Store.Get", "task.wait"] {
        assert!(system.contains(part), "{part} is not in {system}");
    }
    let request = body["messages"][0]["content"].as_str().unwrap();
    assert!(request.contains("Say the name of each player who enters."));
}

#[test]
fn code_that_does_not_compile_goes_back_with_its_error() {
    let server = Server::start(vec![Mood::Say(BAD), Mood::Say("Sorry?"), Mood::Say(GOOD)]);
    assert_eq!(server.compile(PATH, SOUL).unwrap().rounds, 3);
    let messages = server.seen()[2].1["messages"].clone();
    let roles: Vec<&str> = (0..5)
        .map(|i| messages[i]["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert!(
        messages[1]["content"]
            .as_str()
            .unwrap()
            .contains("local = 5")
    );
    let complaint = messages[2]["content"].as_str().unwrap();
    // The heading is one line, so the code's first line is the second.
    assert!(complaint.contains("Line 2:"), "{complaint}");
    assert!(
        messages[4]["content"]
            .as_str()
            .unwrap()
            .contains("no Luau code block")
    );
}

#[test]
fn a_model_that_never_gets_it_right_is_given_up() {
    let server = Server::start(vec![Mood::Say(BAD)]);
    let error = server.compile(PATH, SOUL).unwrap_err();
    let SoulError::Broken { error, code, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((error.line, code.as_str()), (2, "local = 5\n"));
    assert_eq!(server.seen().len(), 3);
    let server = Server::start(vec![Mood::Say("")]);
    let error = server.compile(PATH, SOUL).unwrap_err();
    assert!(matches!(error, SoulError::NoCode { .. }), "{error}");
}

#[test]
fn a_busy_api_is_asked_again_and_not_for_ever() {
    let busy = Mood::Status(429, "slow down");
    let server = Server::start(vec![
        busy.clone(),
        Mood::Status(529, "full"),
        Mood::Say(GOOD),
    ]);
    assert_eq!(server.compile(PATH, SOUL).unwrap().rounds, 1);
    let server = Server::start(vec![busy]);
    let error = server.compile(PATH, SOUL).unwrap_err();
    assert!(matches!(
        error,
        SoulError::Model(ModelError::Busy { status: 429 })
    ));
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn every_other_failure_has_its_own_error() {
    let error_for = |mood: Mood| {
        let server = Server::start(vec![mood]);
        let error = server.compile(PATH, SOUL).unwrap_err();
        assert_eq!(server.seen().len(), 1, "it is not asked again: {error}");
        match error {
            SoulError::Model(error) => error,
            other => panic!("{other}"),
        }
    };
    let error = error_for(Mood::Status(401, "invalid x-api-key"));
    assert!(matches!(error, ModelError::WrongKey { status: 401, .. }));
    assert!(error.to_string().contains("invalid x-api-key"));
    assert!(!error.to_string().contains("the-key"));
    let error = error_for(Mood::Status(400, "no such model"));
    assert!(error.to_string().contains("no such model"), "{error}");
    assert!(matches!(
        error_for(Mood::Status(500, "oops")),
        ModelError::Refused { .. }
    ));
    assert!(matches!(
        error_for(Mood::Garbage),
        ModelError::Unreadable(_)
    ));
    assert!(matches!(error_for(Mood::CutOff), ModelError::CutOff));
    assert!(matches!(error_for(Mood::Huge), ModelError::TooLarge(_)));
    assert!(matches!(error_for(Mood::Hang), ModelError::Late(_)));
    let mut settings = ApiSettings::new("k".into());
    settings.url = "http://127.0.0.1:1".into();
    let unreachable = compile(&MessagesApi::new(settings).unwrap(), PATH, SOUL);
    assert!(matches!(
        unreachable,
        Err(SoulError::Model(ModelError::Unreachable { .. }))
    ));
}

#[test]
fn invalid_input_is_refused_before_the_model_is_asked() {
    let server = Server::start(vec![Mood::Say(GOOD)]);
    let long = "x".repeat(40_000);
    for (path, soul, expected) in [
        (PATH, " \n", "is empty"),
        (PATH, "--@context server\n", "is empty"),
        (PATH, long.as_str(), "at most"),
        ("Door.soul", SOUL, "not a .soul file"),
        ("Workspace/Door.luau", SOUL, "not a .soul file"),
        (
            "StarterGui/Hud.soul",
            "--@context server\nCount.",
            "client only",
        ),
    ] {
        let error = server.compile(path, soul).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(server.seen().is_empty());
    // A directive stays, and the prompt is that of the narrower context.
    let made = server
        .compile(PATH, "--@context client\nShow a hint.")
        .unwrap();
    assert!(made.luau.starts_with("--@context client\n"));
    let system = server.seen()[0].1["system"].as_str().unwrap().to_owned();
    assert!(system.contains("in each player's browser"));
    assert!(!system.contains("Store.Get"));
}
