//! Clients can write little into the log of a server.

use std::fmt::Debug;
use std::sync::Mutex;

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::server::TestServer;
use crate::stranger::Stranger;

/// Warnings of this process, all tests together.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listener;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        WARNINGS.lock().expect("whole").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_client_that_verifies_nothing_is_logged_once_and_not_in_its_words() {
    tracing::subscriber::set_global_default(Listener).expect("the only listener");
    let server = TestServer::start().await;
    let mut eve = Stranger::join(&server, "Eve").await;
    let invented = format!("Nothing\nERROR all is lost {}", "x".repeat(60_000));
    let verify = |path: &str| json!({ "path": path, "hash": "", "success": false });
    for _ in 0..3 {
        eve.command("scripts", "verify", verify(&invented)).await;
        let error = eve.next_of("error").await;
        assert_eq!(error["code"], "no_such_script");
        assert!(error["message"].as_str().is_some_and(|m| m.len() < 200));
        eve.command("scripts", "verify", verify("@manifest")).await;
        let asked = eve.seq();
        while eve.next_of("ack").await["seq"] != asked {}
    }
    let warnings = WARNINGS.lock().expect("whole").clone();
    let of_scripts = warnings.iter().filter(|line| line.contains("verify"));
    assert_eq!(of_scripts.count(), 1, "{warnings:?}");
    assert!(!warnings.iter().any(|line| line.contains("all is lost")));
    server.stop().await;
}
