//! What one client has, and what it is sent next.

use std::collections::VecDeque;
use std::ops::Range;

use frolic_protocol::PacketAck;
use frolic_protocol::snapshot::{self, SnapshotHeader};

use super::InterestPolicy;
use super::cells::{Cells, Version};
use super::watch::{Background, Viewer, Watch};
use crate::player::PlayerNumber;
use crate::state::WorldState;

/// How snapshots travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In order, and all of them: what was sent is known.
    Ordered,
    /// As numbered packets that may be lost: what was acknowledged is known.
    Lossy,
}

/// Longest packet of a lossy line; larger ones are cut by the transport.
/// QUIC starts with packets of 1,200 bytes, of which heads take some.
const PACKET_BYTES: usize = 1100;
/// Packets whose acknowledgement is still waited for.
const UNACKNOWLEDGED_MAX: usize = 256;
/// Updates after which something unacknowledged is sent again.
const RESEND_UPDATES: u16 = 5;
/// Updates after which a version that was acknowledged, and nothing since, is
/// not built on any more.
const TRUST_UPDATES: u32 = 100;
/// Updates' worth of bytes that may be saved up; also what a new client gets
/// at once.
const SAVED_UPDATES: f32 = 10.0;

/// One client's view of the world.
pub struct ClientView {
    player: PlayerNumber,
    delivery: Delivery,
    watch: Watch,
    /// Counts what was sent.
    updates: u32,
    /// Bytes that may be sent; below nothing after a large cell.
    allowance: Option<f32>,
    next_number: u32,
    unacknowledged: VecDeque<Packet>,
    /// Lists of packets that are not waited for any more, for the next ones.
    spare: Vec<Vec<Told>>,
}

/// A packet that is on its way.
struct Packet {
    number: u32,
    cells: Vec<Told>,
}

/// What a packet tells of a cell; no version means that it is out of view.
#[derive(Clone, Copy)]
struct Told {
    slot: u32,
    born: u32,
    version: Version,
}

/// A cell that could be sent.
struct Candidate {
    /// Which of the watched.
    index: usize,
    /// Updates since it was last told of, and those it may wait; none if it
    /// was never told of.
    waited: Option<(u16, u16)>,
    record: Range<usize>,
}

impl Candidate {
    fn urgency(&self, watch: &Watch) -> f32 {
        match self.waited {
            // New squares wait for nobody, the near ones least of all.
            None => 1e3 / (1.0 + watch.backgrounds[self.index].distance),
            Some((waited, interval)) => f32::from(waited) / f32::from(interval.max(1)),
        }
    }
}

/// Buffers that all clients share, so that sending allocates nothing.
#[derive(Default)]
pub(crate) struct Scratch {
    candidates: Vec<Candidate>,
    packet: Vec<u8>,
}

/// What a snapshot is made from, the client aside.
pub(crate) struct Sender<'a> {
    pub cells: &'a mut Cells,
    pub state: &'a WorldState,
    pub policy: InterestPolicy,
    pub snapshot_hz: u32,
    pub pressure: u8,
    pub scratch: &'a mut Scratch,
}

impl ClientView {
    /// The view of a client that has nothing yet.
    pub fn new(player: PlayerNumber, delivery: Delivery) -> Self {
        Self {
            player,
            delivery,
            watch: Watch::default(),
            updates: 0,
            allowance: None,
            next_number: 1,
            unacknowledged: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Whose view it is.
    pub fn player(&self) -> PlayerNumber {
        self.player
    }

    /// Whether nothing was sent yet.
    pub fn is_new(&self) -> bool {
        self.updates == 0
    }

    /// Notes which packets the client has; returns how many are lost.
    pub fn acknowledge(&mut self, ack: PacketAck) -> usize {
        let has = |number: u32| match ack.newest.checked_sub(number) {
            Some(0) => true,
            Some(back) if back <= 32 => ack.earlier >> (back - 1) & 1 == 1,
            _ => false,
        };
        let (watch, updates) = (&mut self.watch, self.updates);
        let spare = &mut self.spare;
        let mut lost = 0;
        self.unacknowledged.retain_mut(|packet| {
            if has(packet.number) {
                for told in &packet.cells {
                    note_known(watch, packet.number, told, updates);
                }
            } else if packet.number.saturating_add(32) >= ack.newest {
                return true;
            } else {
                lost += 1;
            }
            // Known now, or too old to be acknowledged any more.
            put_away(spare, std::mem::take(&mut packet.cells));
            false
        });
        lost
    }

    /// Makes the next snapshot and hands each of its packets to `send`.
    pub(crate) fn send(&mut self, with: &mut Sender, send: &mut dyn FnMut(&[u8])) {
        let Some(player) = with.state.players.get(&self.player) else {
            return;
        };
        let eye = player.character.feet;
        let viewer = Viewer {
            player: self.player,
            eye,
            number: self.next_number,
        };
        self.watch.refresh(with.cells, &with.policy, viewer);
        self.updates = self.updates.wrapping_add(1);
        self.choose(with);
        let mut header = SnapshotHeader {
            tick: with.cells.tick(),
            scripts: with.state.script_version,
            number: None,
            own: Some(player.own_state()),
        };
        let mut packet = std::mem::take(&mut with.scratch.packet);
        packet.clear();
        packet = snapshot::write_header(packet, &self.numbered(header));
        header.own = None;
        let mut told = self.spare.pop().unwrap_or_default();
        let lossy = self.delivery == Delivery::Lossy;
        if self.watch.leaving {
            packet = self.drop_cells(packet, &mut told);
        }
        for at in 0..with.scratch.candidates.len() {
            let candidate = &with.scratch.candidates[at];
            let (index, record) = (candidate.index, candidate.record.clone());
            if lossy && packet.len() + record.len() > PACKET_BYTES && !told.is_empty() {
                send(&packet);
                let next = self.spare.pop().unwrap_or_default();
                self.expect(std::mem::replace(&mut told, next));
                packet.clear();
                packet = snapshot::write_header(packet, &self.numbered(header));
            }
            packet.extend_from_slice(with.cells.bytes(record));
            let watched = &mut self.watch.cells[index];
            let version = with.cells.newest(watched.slot);
            watched.sent = version;
            watched.sent_update = self.updates as u16;
            if lossy {
                let background = &self.watch.backgrounds[index];
                told.push(background.told(watched.slot, version));
            } else {
                watched.known = version;
            }
        }
        send(&packet);
        if lossy {
            self.expect(told);
        } else {
            put_away(&mut self.spare, told);
            if self.watch.leaving {
                // Not before: candidates count the cells that were watched.
                self.watch.forget_leaving();
            }
        }
        with.scratch.packet = packet;
    }

    /// Tells of the cells that went out of view.
    fn drop_cells(&mut self, mut packet: Vec<u8>, told: &mut Vec<Told>) -> Vec<u8> {
        let (updates, lossy) = (self.updates as u16, self.delivery == Delivery::Lossy);
        let watched = self.watch.cells.iter_mut().zip(&self.watch.backgrounds);
        for (watched, background) in watched.filter(|(watched, _)| watched.leaving) {
            let waited = updates.wrapping_sub(watched.sent_update);
            let just_told = watched.sent == Version::NONE && waited < RESEND_UPDATES;
            if lossy && just_told {
                continue;
            }
            watched.sent = Version::NONE;
            watched.sent_update = updates;
            packet = snapshot::write_dropped_cell(packet, background.key);
            told.push(background.told(watched.slot, Version::NONE));
        }
        packet
    }

    fn numbered(&self, header: SnapshotHeader) -> SnapshotHeader {
        let number = (self.delivery == Delivery::Lossy).then_some(self.next_number);
        SnapshotHeader { number, ..header }
    }

    /// Remembers what the packet just sent tells.
    fn expect(&mut self, cells: Vec<Told>) {
        if self.unacknowledged.len() == UNACKNOWLEDGED_MAX
            && let Some(oldest) = self.unacknowledged.pop_front()
        {
            put_away(&mut self.spare, oldest.cells);
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.unacknowledged.push_back(Packet { number, cells });
    }

    /// Fills the scratch's candidates with what is sent now.
    fn choose(&mut self, with: &mut Sender) {
        let candidates = &mut with.scratch.candidates;
        candidates.clear();
        let lossy = self.delivery == Delivery::Lossy;
        let mut bytes = 0;
        for (index, watched) in self.watch.cells.iter().enumerate() {
            let newest = with.cells.newest(watched.slot);
            if watched.sent == newest && watched.known == newest || watched.leaving {
                continue;
            }
            let waited = (self.updates as u16).wrapping_sub(watched.sent_update);
            let interval = match watched.sent {
                Version::NONE => 0,
                sent if sent == newest => RESEND_UPDATES,
                _ => under_pressure(watched.interval, with.pressure),
            };
            if waited < interval {
                continue;
            }
            let mut baseline = watched.known;
            if lossy {
                let known_update = self.watch.backgrounds[index].known_update;
                if self.updates.wrapping_sub(known_update) > TRUST_UPDATES {
                    // Nothing that builds on it seems to arrive.
                    baseline = Version::NONE;
                }
            }
            let record = with.cells.record(watched.slot, baseline, with.state);
            bytes += record.len();
            candidates.push(Candidate {
                index,
                waited: (watched.sent != Version::NONE).then_some((waited, interval)),
                record,
            });
        }
        self.stay_within_budget(with, bytes);
    }

    fn stay_within_budget(&mut self, with: &mut Sender, bytes: usize) {
        let Some(bytes_per_s) = with.policy.bytes_per_s else {
            return;
        };
        let per_update = bytes_per_s as f32 / with.snapshot_hz.max(1) as f32;
        let saved_max = per_update * SAVED_UPDATES;
        let saved = self.allowance.unwrap_or(saved_max);
        let mut allowance = (saved + per_update).min(saved_max);
        let candidates = &mut with.scratch.candidates;
        if bytes as f32 > allowance {
            candidates.sort_unstable_by(|a, b| {
                let order = b.urgency(&self.watch).total_cmp(&a.urgency(&self.watch));
                order.then(a.index.cmp(&b.index))
            });
            let mut left = allowance;
            let mut count = 0;
            for candidate in candidates.iter() {
                if left <= 0.0 {
                    break;
                }
                left -= candidate.record.len() as f32;
                count += 1;
            }
            candidates.truncate(count);
        }
        let spent: usize = candidates.iter().map(|c| c.record.len()).sum();
        allowance -= spent as f32;
        self.allowance = Some(allowance);
    }
}

/// Updates between two records of a cell. Under pressure the far ones wait
/// longer first, in the end all of them.
fn under_pressure(interval: u8, pressure: u8) -> u16 {
    let interval = u16::from(interval);
    match pressure {
        0 => interval,
        1 | 2 if interval == 1 => 1,
        1 => interval * 2,
        _ => interval * 4,
    }
}

/// Keeps a list's memory for the next packet.
fn put_away(spare: &mut Vec<Vec<Told>>, mut cells: Vec<Told>) {
    cells.clear();
    spare.push(cells);
}

fn note_known(watch: &mut Watch, number: u32, told: &Told, updates: u32) {
    let Some(index) = watch.find(told.slot, told.born) else {
        return;
    };
    let (watched, background) = (&mut watch.cells[index], &mut watch.backgrounds[index]);
    let tells_of_leaving = told.version == Version::NONE;
    if tells_of_leaving && watched.leaving {
        watch.forget(index);
    } else if !tells_of_leaving && !watched.leaving && number >= background.since {
        watched.known = watched.known.max(told.version);
        background.known_update = updates;
    }
}

impl Background {
    fn told(&self, slot: u32, version: Version) -> Told {
        Told {
            slot,
            born: self.born,
            version,
        }
    }
}
