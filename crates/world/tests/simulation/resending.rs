//! What is resent on a lossy connection, and what is not.

use std::collections::VecDeque;

use frolic_protocol::PacketAck;
use frolic_world::{ClientView, Delivery, World, WorldOptions, input};

use crate::harness::{Run, package};
use crate::network::Quality;

/// A cell full of balls at rest, without players.
const SCENE: &str = r##"{"format":1,"prefabs":{"Ball":{"components":{"Shape":{"type":"sphere","radius":0.2}}}},
    "entities":[
    {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[800,1,800]}}},
    {"id":2,"name":"Spawn","components":{"Transform":{"position":[0,0.1,0]},"SpawnPoint":{}}}]}"##;
const BALLS: (&str, &str) = (
    "scripts/ServerScriptService/Balls.luau",
    r#"for i = 1, 120 do World.Spawn("Ball", Vector3.new(40 + i % 10, 1, 2 + i // 10)) end"#,
);

/// Number of packets in which all of them arrive within four seconds, when an
/// acknowledgement takes `ack_ticks`, or never comes.
fn packets_sent(ack_ticks: Option<usize>) -> usize {
    let game = package(SCENE, &[BALLS]);
    let mut world = World::load(&game, WorldOptions::default()).expect("the world loads");
    let player = world.apply(input::Join::new("p", "P"));
    let mut view = ClientView::new(player, Delivery::Lossy);
    let mut on_the_way = VecDeque::from(vec![None; ack_ticks.unwrap_or(0)]);
    let (mut newest, mut sent) = (None, 0);
    for _ in 0..4 * 60 {
        on_the_way.push_back(newest);
        if let Some(Some(newest)) = on_the_way.pop_front().filter(|_| ack_ticks.is_some()) {
            let earlier = u32::MAX;
            view.acknowledge(PacketAck { newest, earlier });
        }
        world.apply(input::Step);
        world.collect_changes();
        if world.update_is_due(player) {
            world.snapshot(&mut view, 0, &mut |packet| {
                let header = frolic_protocol::snapshot::header(packet).expect("a snapshot");
                newest = header.number;
                sent += usize::from(packet.len() > 1_000);
            });
        }
    }
    sent
}

/// 200 ms there and back, 30 ms of jitter each way, and some ticks and
/// frames that it waits for at either end.
#[test]
fn what_rests_is_sent_once_while_its_acknowledgement_is_on_the_way() {
    assert_eq!(packets_sent(Some(17)), 1);
}

#[test]
fn what_is_never_acknowledged_is_sent_again() {
    let times = packets_sent(None);
    assert!((4..=20).contains(&times), "{times}");
}

/// Snapshots are datagrams and overtake a large scene: their contents must not
/// be resent again and again beside it.
#[test]
fn what_comes_before_the_scene_is_sent_once() {
    let many = BALLS.1.replace("120", "250");
    let game = package(SCENE, &[(BALLS.0, &many)]);
    let mut run = Run::new(&game, 5, Quality::GOOD);
    run.scene_late_ms = 4_000.0;
    let player = run.join("Ada");
    run.for_ms(3_900);
    let known = run.client(player).replica().entities().count();
    assert!(known > 250, "{known} are known");
    assert_eq!(
        run.client(player).replica().bounds_of(1),
        None,
        "no scene yet"
    );
    let large = run.cut_snapshots(player);
    assert!((1..=3).contains(&large), "{large} snapshots had to be cut");
}
