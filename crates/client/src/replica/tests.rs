//! Messages that arrive in another order than they were sent, and what the host
//! gets from them.

use std::collections::BTreeSet;

use frolic_protocol::details::Looks;
use frolic_protocol::entity::EntityKind;
use frolic_protocol::packet::{self, CLIENT_MESSAGE_BYTES_MAX};
use frolic_protocol::snapshot::{self, CellKey, CellSource, CellVersion, OwnState, SnapshotHeader};
use frolic_protocol::{ClientMessage, ServerMessage, quantize};
use frolic_sim::CharacterState;

use super::*;
use crate::Client;
use crate::client::tests::joined;

const SCENE: &str = r#"{"format":1,
    "prefabs":{"Wall":{"components":{"Shape":{"type":"box","size":[2,2,2]}}}},
    "entities":[
    {"id":1,"name":"Ground","components":{"Transform":{"position":[0,-0.5,0]},"Shape":{"type":"box","size":[100,1,100]}}},
    {"id":2,"name":"Gate","components":{"Transform":{"position":[4,1,0]},"Shape":{"type":"box","size":[2,2,2]}}},
    {"id":3,"name":"Crate","components":{"Transform":{"position":[8,1,0]},"Shape":{"type":"box","size":[2,2,2]}}},
    {"id":4,"name":"Post","components":{"Transform":{"position":[12,1,0]},"Shape":{"type":"box","size":[2,2,2]}}}]}"#;

const HERE: CellKey = CellKey::Grid { x: 0, z: 0 };
pub(super) const SPAWNED: u32 = 1_000_001;

pub(crate) fn receive(client: &mut Client, packet: Vec<u8>) {
    client.receive(&packet, 0.0).expect("readable");
}

pub(crate) fn scene() -> Vec<u8> {
    packed(SCENE)
}

pub(crate) fn packed(scene: &str) -> Vec<u8> {
    let hash = hash_of(scene.as_bytes());
    let hash = hash.strip_prefix("sha256:").expect("a SHA-256").to_owned();
    let zstd = zstd::bulk::compress(scene.as_bytes(), 1).expect("compresses");
    packet::single(&ServerMessage::Scene { hash, zstd })
}

/// Every entity with details is twice as large.
struct Source;

impl CellSource for Source {
    fn details(&self, _: u32) -> Vec<u8> {
        let looks = Looks {
            scale: Some([2.0; 3]),
            ..Looks::default()
        };
        let details = Details {
            looks,
            ..Details::default()
        };
        details.encode()
    }

    fn cell_of(&self, _: u32) -> Option<(i16, i16)> {
        None
    }
}

/// A packet of a snapshot. The first one has the own character, this far along x;
/// `here` is the content of the cell, or none when it is out of view.
pub(crate) fn snapshot_at(tick: u32, own: Option<f32>, here: Option<&[EntityState]>) -> Vec<u8> {
    snapshot_in(None, tick, own, here)
}

/// The same in a packet of this number, or of none.
fn snapshot_in(
    number: Option<u32>,
    tick: u32,
    own: Option<f32>,
    here: Option<&[EntityState]>,
) -> Vec<u8> {
    let own = own.map(|x| OwnState {
        ack_seq: 0,
        late_ticks: 0,
        queued_inputs: 0,
        character: CharacterState::at(Vec3::new(x, 0.0, 0.0)),
    });
    let header = SnapshotHeader {
        tick,
        scripts: 1,
        number,
        own,
    };
    let bytes = snapshot::write_header(Vec::new(), &header);
    let bytes = match here {
        Some(entities) => {
            let now = CellVersion { tick, entities };
            snapshot::write_cell(bytes, tick, 60, HERE, None, now, &Source)
        }
        None => snapshot::write_dropped_cell(bytes, HERE),
    };
    packet::single(&ServerMessage::Snapshot(bytes))
}

pub(crate) fn thing(id: u32, definition: u16, x: f32) -> EntityState {
    let mut thing = EntityState::new(id, EntityKind::Thing);
    thing.definition = definition;
    thing.position = quantize::position(Vec3::new(x, 1.0, 0.0));
    thing
}

/// The position of a solid along x, and its width, in centimetres and without the
/// margin of bounding boxes.
fn solid(client: &Client, id: u32) -> Option<(i32, i32)> {
    let (low, high) = client.replica().bounds_of(id)?;
    let middle = (low.x + high.x) * 50.0;
    let width = (high.x - low.x) * 100.0;
    Some((middle.round() as i32, (width / 5.0).round() as i32 * 5))
}

/// Coloured entities are replicated, and replicated positions are quantized: at the
/// far end of a ramp that would be visible.
#[test]
fn an_unmoved_entity_is_drawn_and_solid_exactly_where_the_file_has_it() {
    let scene_json = r#"{"format":1,"prefabs":{},"entities":[
        {"id":2,"name":"Ramp","components":{"Transform":{"position":[0.1,-0.53,0],"rotation":[0.05,0,0,0.9987492]},"Shape":{"type":"box","size":[9,1,900]}}}]}"#;
    let home = {
        let scene = frolic_scene::Scene::parse(scene_json.as_bytes(), &Default::default());
        let scene = scene.unwrap_or_else(|report| panic!("{report}"));
        frolic_sim::scene::pose(&scene.world_transforms()[0])
    };
    let mut client = joined();
    receive(&mut client, packed(scene_json));
    let solid = client.replica().bounds_of(2);
    let mut ramp = thing(2, 0, 0.0);
    ramp.position = quantize::position(home.translation);
    ramp.rotation = quantize::rotation(home.rotation);
    assert_ne!(ramp.turn(), home.rotation);
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&[ramp][..])));
    assert_eq!(client.replica().bounds_of(2), solid);
    for flags in [flags::GROUNDED, 0, flags::GROUNDED] {
        // It changed, and is drawn between its old and its new state.
        ramp.flags = flags;
        let tick = client.stats(0.0).tick + 3;
        receive(&mut client, snapshot_at(tick, Some(0.0), Some(&[ramp][..])));
        let drawn = client.frame(f64::from(tick) * 16.0)[0];
        assert_eq!((drawn.id, drawn.position), (2, home.translation));
        assert_eq!(drawn.rotation, home.rotation);
    }
    assert_eq!(client.replica().bounds_of(2), solid);
    ramp.position[0] += 256;
    receive(&mut client, snapshot_at(40, Some(0.0), Some(&[ramp][..])));
    assert_ne!(client.replica().bounds_of(2), solid, "it was moved");
}

#[test]
fn entities_replicated_before_the_scene_are_solid_with_it() {
    let (wall, large, made_up) = (SPAWNED, SPAWNED + 1, SPAWNED + 2);
    let mut states = [
        thing(2, 0, 20.0),
        thing(3, 0, 8.0),
        thing(4, 0, 12.0),
        thing(wall, 1, -6.0),
        thing(large, 1, -12.0),
        thing(made_up, 2, -20.0),
    ];
    states[1].flags |= flags::DESTROYED;
    states[2].details = 1;
    states[4].details = 1;
    let mut client = joined();
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&states[..])));
    let ids = [1, 2, 3, 4, wall, large, made_up];
    assert_eq!(ids.map(|id| solid(&client, id)), [None; 7]);
    receive(&mut client, scene());
    assert_eq!(
        ids.map(|id| solid(&client, id)),
        [
            Some((0, 10_000)),
            Some((2_000, 200)),
            None,
            Some((1_200, 400)),
            Some((-600, 200)),
            Some((-1_200, 400)),
            None,
        ]
    );
    let definition = ServerMessage::Definition {
        index: 2,
        components: r#"{"Shape":{"type":"box","size":[1,1,1]}}"#.to_owned(),
    };
    receive(&mut client, packet::single(&definition));
    assert_eq!(solid(&client, made_up), Some((-2_000, 100)));
}

#[test]
fn a_later_packet_of_a_snapshot_does_not_hide_where_we_are() {
    let mut client = joined();
    receive(&mut client, scene());
    let x = |client: &Client| client.own_state().map(|state| state.feet.x);
    receive(&mut client, snapshot_at(10, None, None));
    assert_eq!(x(&client), None, "not known yet");
    receive(&mut client, snapshot_at(10, Some(1.0), None));
    assert_eq!(x(&client), Some(1.0));
    receive(&mut client, snapshot_at(13, None, None));
    receive(&mut client, snapshot_at(13, Some(2.0), None));
    assert_eq!(x(&client), Some(2.0));
    receive(&mut client, snapshot_at(10, Some(1.0), None));
    assert_eq!(x(&client), Some(2.0), "from before");
    assert_eq!(client.stats(0.0).snapshots, 2);
    assert_eq!(client.stats(0.0).loss, 0.0);
}

#[test]
fn a_part_of_the_scene_that_left_view_goes_nowhere() {
    let mut gate = thing(2, 0, 4.0);
    gate.velocity = quantize::velocity(Vec3::X * 10.0);
    let mut client = joined();
    receive(&mut client, scene());
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&[gate][..])));
    receive(&mut client, snapshot_at(13, Some(0.0), None));
    for frame in 1..=300 {
        client.advance(f64::from(frame) * 16.0);
    }
    assert_eq!(solid(&client, 2), Some((400, 200)));
}

/// A player who joins later has only the scene file to go by, and that is wrong.
#[test]
fn a_part_of_the_scene_that_is_elsewhere_is_not_solid_where_the_file_has_it() {
    let missing = [EntityState::elsewhere(2)];
    for overtakes in [false, true] {
        let mut client = joined();
        let snapshot = snapshot_at(10, Some(0.0), Some(&missing[..]));
        let packets = match overtakes {
            true => [snapshot, scene()],
            false => [scene(), snapshot],
        };
        for packet in packets {
            receive(&mut client, packet);
        }
        assert_eq!(solid(&client, 2), None);
        assert_eq!(client.take_removed(), [2]);
        // It comes back, larger than it was.
        let mut gate = thing(2, 0, 5.0);
        gate.details = 1;
        receive(&mut client, snapshot_at(13, Some(0.0), Some(&[gate][..])));
        assert_eq!(solid(&client, 2), Some((500, 400)));
        assert!(client.take_removed().is_empty());
        // And stays as it was while it is not replicated.
        receive(&mut client, snapshot_at(16, Some(0.0), None));
        assert_eq!(solid(&client, 2), Some((500, 400)));
        receive(&mut client, snapshot_at(19, Some(0.0), Some(&missing[..])));
        assert_eq!(solid(&client, 2), None);
        assert_eq!(client.take_removed(), [2]);
    }
}

/// A page that draws the last connection's world while it reconnects asks before it
/// has the scene.
#[test]
fn a_host_that_asks_before_the_scene_gets_the_missing_parts_again() {
    let mut destroyed = thing(3, 0, 8.0);
    destroyed.flags |= flags::DESTROYED;
    let states = [EntityState::elsewhere(2), destroyed];
    let mut client = joined();
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&states[..])));
    assert_eq!(client.take_removed(), [2, 3]);
    receive(&mut client, scene());
    assert_eq!(client.take_removed(), [2, 3]);
    assert!(client.take_removed().is_empty());
}

/// A hidden tab receives everything and asks for nothing.
#[test]
fn an_entity_that_is_back_when_asked_was_not_removed() {
    let (stays, goes) = (thing(SPAWNED, 1, 1.0), thing(SPAWNED + 1, 1, 2.0));
    let mut client = joined();
    receive(
        &mut client,
        snapshot_at(10, Some(0.0), Some(&[stays, goes][..])),
    );
    for tick in [13, 19] {
        receive(&mut client, snapshot_at(tick, None, None));
        receive(&mut client, snapshot_at(tick + 3, None, Some(&[stays][..])));
    }
    assert_eq!(client.take_removed(), [goes.id]);
    assert!(client.take_removed().is_empty());
    // Destroyed entities are still reported.
    let mut destroyed = thing(3, 0, 8.0);
    destroyed.flags |= flags::DESTROYED;
    receive(
        &mut client,
        snapshot_at(25, None, Some(&[destroyed, stays][..])),
    );
    assert_eq!(client.take_removed(), [3]);
}

#[test]
fn a_host_that_never_asks_does_not_fill_the_memory() {
    let many: Vec<EntityState> = (0..40_000)
        .map(|number| thing(SPAWNED + number, 1, 1.0))
        .collect();
    let mut client = joined();
    receive(&mut client, snapshot_at(10, Some(0.0), Some(&many[..])));
    receive(&mut client, snapshot_at(13, None, None));
    let removed = client.take_removed();
    assert_eq!((removed.len(), removed[0]), (REMOVED_MAX, SPAWNED));
}

/// The input datagrams of a client: what they acknowledge, and the numbers of the
/// inputs.
fn said(client: &mut Client) -> Vec<(Option<u32>, Vec<u32>)> {
    let mut said = Vec::new();
    while let Some(datagram) = client.take_datagram() {
        let read = packet::read::<ClientMessage>(&datagram, CLIENT_MESSAGE_BYTES_MAX);
        for message in read.expect("whole messages") {
            if let ClientMessage::Inputs { ack, inputs, .. } = message {
                let numbers = inputs.iter().map(|input| input.seq).collect();
                said.push((ack.map(|ack| ack.newest), numbers));
            }
        }
    }
    said
}

/// Otherwise every lost packet would be a tick without an input.
#[test]
fn each_input_is_in_six_datagrams_in_a_row() {
    let mut client = joined();
    receive(&mut client, scene());
    receive(&mut client, snapshot_at(10, Some(0.0), None));
    let mut datagrams = Vec::new();
    for frame in 0..60 {
        client.advance(f64::from(frame) * 16.0);
        datagrams.extend(said(&mut client).into_iter().map(|(_, inputs)| inputs));
    }
    assert!(datagrams.len() > 50, "{} datagrams", datagrams.len());
    for (at, newest) in (1u32..).zip(&datagrams) {
        let six: Vec<u32> = (at.saturating_sub(5).max(1)..=at).collect();
        assert_eq!(*newest, six, "the last six, newest last");
    }
}

/// A large scene takes its time on a narrow connection, and unacknowledged packets
/// would be sent again and again beside it.
#[test]
fn packets_before_the_scene_are_acknowledged() {
    let mut client = joined();
    let mut at_ms = 0.0;
    let mut receive_and_send = |client: &mut Client, packet: Option<Vec<u8>>| {
        at_ms += 17.0;
        if let Some(packet) = packet {
            client.receive(&packet, at_ms).expect("readable");
        }
        client.advance(at_ms);
        said(client)
    };
    assert_eq!(
        receive_and_send(&mut client, None),
        [],
        "there is nothing yet"
    );
    // The own position is not known yet.
    let first = snapshot_in(Some(1), 10, None, None);
    let acknowledged = |number: u32| [(Some(number), Vec::new())];
    assert_eq!(receive_and_send(&mut client, Some(first)), acknowledged(1));
    assert_eq!(receive_and_send(&mut client, None), [], "once is enough");
    let more = snapshot_in(Some(2), 13, Some(0.0), None);
    assert_eq!(receive_and_send(&mut client, Some(more)), acknowledged(2));
    // A stream loses nothing, and numbers nothing.
    let on_stream = snapshot_in(None, 16, Some(0.0), None);
    assert_eq!(receive_and_send(&mut client, Some(on_stream)), []);
    let with_inputs = receive_and_send(&mut client, Some(scene()));
    assert_eq!(with_inputs.len(), 1);
    assert_eq!((with_inputs[0].0, with_inputs[0].1.len()), (Some(2), 1));
}

#[test]
fn every_input_leaves_after_a_hitch() {
    let mut client = joined();
    receive(&mut client, scene());
    receive(&mut client, snapshot_at(10, Some(0.0), None));
    let mut now_ms = 0.0;
    let mut left = BTreeSet::new();
    for frame in 0..40 {
        now_ms += if frame == 20 { 130.0 } else { 16.0 };
        client.advance(now_ms);
        left.extend(said(&mut client).into_iter().flat_map(|(_, inputs)| inputs));
    }
    let made = client.stats(now_ms).input_seq;
    assert!(made > 40, "{made} steps");
    assert_eq!(left, (1..=made).collect::<BTreeSet<u32>>());
}
