//! While nothing can be persisted, players are notified, and no operation is
//! reported as done.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use frolic_fleet_api::remote_commands::{OutsideReply, OutsideRequest};

use crate::server::{Shelf, TestServer};
use crate::stranger::Stranger;

fn shelf() -> Arc<Shelf> {
    Arc::new(Shelf {
        persistent: true,
        ..Shelf::default()
    })
}

/// Whether saving is delayed, as the next message reports it.
async fn saving_delayed(stranger: &mut Stranger) -> bool {
    loop {
        let event = stranger.next_of_feature("session").await;
        if event["action"] == "saving" {
            return event["delayed"].as_bool().expect("true or false");
        }
    }
}

#[tokio::test]
async fn players_are_notified_while_saving_is_delayed() {
    let shelf = shelf();
    let server = TestServer::start_on(&[], shelf.clone()).await;
    let mut ada = Stranger::join(&server, "Ada").await;
    ada.next_of("snapshot").await;
    shelf.busy.store(true, Relaxed);
    assert!(saving_delayed(&mut ada).await);
    let mut ben = Stranger::join(&server, "Ben").await;
    assert!(
        saving_delayed(&mut ben).await,
        "a player who joins meanwhile is notified, too"
    );
    shelf.busy.store(false, Relaxed);
    assert!(!saving_delayed(&mut ada).await);
    assert!(!saving_delayed(&mut ben).await);
    server.stop().await;
}

#[tokio::test]
async fn what_is_asked_from_outside_is_acknowledged_once_it_is_stored() {
    let shelf = shelf();
    let server = TestServer::start_on(&[], shelf.clone()).await;
    shelf.busy.store(true, Relaxed);
    let request = reqwest::Client::new()
        .post(format!("http://{}/internal/outside", server.address))
        .bearer_auth("token")
        .json(&OutsideRequest::Clear { by: "ada".into() });
    let mut answer = pin!(request.send());
    tokio::select! {
        answer = &mut answer => panic!("{answer:?} before it is stored"),
        () = shelf.more_persist_tries(3) => {}
    }
    assert!(shelf.saved.lock().expect("whole").world.ops.is_empty());
    shelf.busy.store(false, Relaxed);
    let answer = answer.await.expect("an answer");
    let reply: OutsideReply = answer.json().await.expect("a reply");
    assert!(matches!(reply, OutsideReply::Done), "{reply:?}");
    assert_eq!(shelf.saved.lock().expect("whole").world.ops.len(), 1);
    server.stop().await;
}
