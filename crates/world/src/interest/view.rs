//! The view of one client: what it has, and what it is sent next.

use std::collections::VecDeque;

use frolic_protocol::snapshot::{self, SnapshotHeader};
use frolic_protocol::{PacketAck, ServerMessage};

use super::budget::{BandwidthBudget, Side, Turns};
use super::cells::{Cells, Extent, Version};
use super::introductions::Introductions;
use super::replication::Source;
use super::visible_cells::{Background, Viewer, Watch, Watched};
use crate::player::PlayerNumber;
use crate::policy::InterestPolicy;
use crate::state::WorldState;

/// How snapshots are transported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Reliable and in order: what was sent is known.
    Ordered,
    /// As numbered packets that may be lost: what was acknowledged is known.
    Lossy,
}

/// Longest packet of a lossy connection; the transport would split larger ones.
/// QUIC starts with packets of 1,200 bytes, part of which are headers.
const PACKET_BYTES: usize = 1100;
/// Packets waiting for acknowledgement.
const UNACKNOWLEDGED_MAX: usize = 256;
/// Turns after which an unacknowledged cell is sent again. On a connection with
/// a round trip of 200 ms and 30 ms of jitter an acknowledgement takes up to
/// five turns at 20 updates a second, including the ticks and frames it waits
/// for. A shorter value would send whole cells twice.
const RESEND_TURNS: u16 = 8;
/// Updates after which a version is no longer used as a baseline if nothing
/// sent after it is acknowledged.
const TRUST_UPDATES: u32 = 100;
/// Updates' worth of the saved bytes that are reserved for competing cells.
const CONTESTED_UPDATES: f32 = 5.0;

/// One client's view of the world.
pub struct ClientView {
    player: PlayerNumber,
    delivery: Delivery,
    watch: Watch,
    /// Counts updates.
    updates: u32,
    /// Bytes that may be sent; none before the first update.
    purse: Option<BandwidthBudget>,
    turns: Turns,
    next_number: u32,
    unacknowledged: VecDeque<Packet>,
    /// Lists of packets that are no longer in flight, for reuse.
    spare: Vec<Vec<SentCell>>,
    introduced: Introductions,
}

/// A packet in flight.
struct Packet {
    number: u32,
    cells: Vec<SentCell>,
}

/// A cell in a packet; no version means that it left the view.
#[derive(Clone, Copy)]
struct SentCell {
    slot: u32,
    born: u32,
    version: Version,
}

/// A cell that competes with others for the bytes of an update.
struct Candidate {
    /// Index among the watched cells.
    index: u32,
    /// Turns since it was last sent, or came into view.
    waited: u16,
    /// Turns that it may wait; none if it was never sent.
    interval: u16,
    record: Extent,
    /// Whether it is sent in this update.
    goes: bool,
}

impl Candidate {
    /// New cells compete with new cells.
    fn side(&self) -> Side {
        match self.interval {
            0 => Side::New,
            _ => Side::Known,
        }
    }

    fn urgency(&self, watch: &Watch) -> f32 {
        let waited = f32::from(self.waited);
        match self.interval {
            // Nearest first, with a bonus for waiting, so that distant cells
            // are not starved.
            0 => waited + 1e3 / (1.0 + watch.backgrounds[self.index as usize].distance),
            interval => waited / f32::from(interval),
        }
    }
}

/// Buffers shared by all clients, so that sending does not allocate.
#[derive(Default)]
pub(crate) struct Scratch {
    candidates: Vec<Candidate>,
    packet: Vec<u8>,
}

/// The inputs of a snapshot, apart from the client.
pub(crate) struct Sender<'a> {
    pub cells: &'a mut Cells,
    pub state: &'a WorldState,
    pub policy: InterestPolicy,
    pub snapshot_hz: u32,
    /// Counts the world's updates: the same for all clients.
    pub turn: u16,
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
            purse: None,
            turns: Turns::default(),
            next_number: 1,
            unacknowledged: VecDeque::new(),
            spare: Vec::new(),
            introduced: Introductions::default(),
        }
    }

    /// Whose view it is.
    pub fn player(&self) -> PlayerNumber {
        self.player
    }

    /// Prefetch: reads the memory that the next snapshot uses. The result is
    /// meaningless; see the caller.
    pub fn glance(&self) -> u32 {
        // One read per cache line.
        let apart = self.watch.cells.iter().step_by(4);
        apart.fold(0, |seen, watched| seen ^ watched.slot)
    }

    /// Sends what the client must receive before its next snapshot.
    pub(crate) fn introduce_from(&mut self, source: Source, send: &mut dyn FnMut(&ServerMessage)) {
        let Some(eye) = source.feet_of(self.player) else {
            return;
        };
        if !self.introduced.may_lack(source) {
            return;
        }
        let viewer = Viewer {
            player: self.player,
            eye,
            number: self.next_number,
            turn: source.turn(),
        };
        self.watch.refresh(source.cells(), source.policy(), viewer);
        self.introduced
            .send(source, (self.player, &self.watch), send);
    }

    /// Whether nothing was sent yet.
    pub fn is_new(&self) -> bool {
        self.updates == 0
    }

    /// Records which packets the client has; returns how many were lost.
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
                for sent in &packet.cells {
                    note_known(watch, packet.number, sent, updates);
                }
            } else if packet.number.saturating_add(32) >= ack.newest {
                return true;
            } else {
                lost += 1;
            }
            // Acknowledged, or too old to be acknowledged any more.
            put_away(spare, std::mem::take(&mut packet.cells));
            false
        });
        lost
    }

    /// Encodes the next snapshot and passes each of its packets to `send`.
    pub(crate) fn send(&mut self, with: &mut Sender, send: &mut dyn FnMut(&[u8])) {
        let Some(player) = with.state.space.players.get(&self.player) else {
            return;
        };
        let eye = with.state.space.feet_of(player);
        let viewer = Viewer {
            player: self.player,
            eye,
            number: self.next_number,
            turn: with.turn,
        };
        self.watch.refresh(with.cells, &with.policy, viewer);
        self.updates = self.updates.wrapping_add(1);
        let mut header = SnapshotHeader {
            tick: with.cells.tick(),
            scripts: with.state.script_version,
            number: None,
            own: Some(player.own_state(eye)),
        };
        let mut packet = std::mem::take(&mut with.scratch.packet);
        packet.clear();
        packet = snapshot::write_header(packet, &self.numbered(header));
        header.own = None;
        let lossy = self.delivery == Delivery::Lossy;
        // On an ordered connection nothing needs to be remembered.
        let mut sent = match lossy {
            true => self.spare.pop().unwrap_or_default(),
            false => Vec::new(),
        };
        if self.watch.leaving {
            packet = self.drop_cells(packet, &mut sent, with.turn);
        }
        self.choose(with, &mut packet);
        for at in 0..with.scratch.candidates.len() {
            let candidate = &with.scratch.candidates[at];
            let (index, record) = (candidate.index as usize, candidate.record);
            if lossy && packet.len() + record.len() > PACKET_BYTES && !sent.is_empty() {
                send(&packet);
                let next = self.spare.pop().unwrap_or_default();
                self.expect(std::mem::replace(&mut sent, next));
                packet.clear();
                packet = snapshot::write_header(packet, &self.numbered(header));
            }
            with.cells.append(record, &mut packet);
            let watched = &mut self.watch.cells[index];
            let version = with.cells.newest(watched.slot);
            let settled = watched.known == watched.sent;
            watched.sent = version;
            watched.sent_turn = with.turn;
            if lossy {
                let background = &mut self.watch.backgrounds[index];
                if settled {
                    // No acknowledgement was pending until now.
                    background.known_update = self.updates;
                }
                sent.push(background.sent_cell(watched.slot, version));
            } else {
                watched.known = version;
            }
        }
        send(&packet);
        if lossy {
            self.expect(sent);
        } else if self.watch.leaving {
            // Not earlier: candidates are indices into the watched cells.
            self.watch.forget_leaving();
        }
        with.scratch.packet = packet;
    }

    /// Writes the cells that left the view.
    fn drop_cells(&mut self, mut packet: Vec<u8>, sent: &mut Vec<SentCell>, turn: u16) -> Vec<u8> {
        let lossy = self.delivery == Delivery::Lossy;
        let watched = self.watch.cells.iter_mut().zip(&self.watch.backgrounds);
        for (watched, background) in watched.filter(|(watched, _)| watched.leaving) {
            let waited = turn.wrapping_sub(watched.sent_turn);
            let just_sent = watched.sent == Version::NONE && waited < RESEND_TURNS;
            if lossy && just_sent {
                continue;
            }
            watched.sent = Version::NONE;
            watched.sent_turn = turn;
            packet = snapshot::write_dropped_cell(packet, background.key);
            if lossy {
                sent.push(background.sent_cell(watched.slot, Version::NONE));
            }
        }
        packet
    }

    fn numbered(&self, header: SnapshotHeader) -> SnapshotHeader {
        let number = (self.delivery == Delivery::Lossy).then_some(self.next_number);
        SnapshotHeader { number, ..header }
    }

    /// Remembers the content of the packet just sent.
    fn expect(&mut self, cells: Vec<SentCell>) {
        if self.unacknowledged.len() == UNACKNOWLEDGED_MAX
            && let Some(oldest) = self.unacknowledged.pop_front()
        {
            put_away(&mut self.spare, oldest.cells);
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.unacknowledged.push_back(Packet { number, cells });
    }

    /// Writes the due records of known cells for a client on an ordered
    /// connection while the budget allows: usually all of them. New cells, and
    /// the rest when bytes are short, become candidates in the scratch.
    fn choose(&mut self, with: &mut Sender, packet: &mut Vec<u8>) {
        let candidates = &mut with.scratch.candidates;
        candidates.clear();
        let lossy = self.delivery == Delivery::Lossy;
        let most = with.cells.updates_retained(with.snapshot_hz);
        let stretch = Stretch::under(with.pressure, most);
        let mut purse = BandwidthBudget::refill(self.purse, &with.policy, with.snapshot_hz);
        let uncontested =
            |purse: &BandwidthBudget| purse.ready() - purse.per_update() * CONTESTED_UPDATES;
        let mut room = match lossy {
            true => 0.0,
            false => purse.as_ref().map_or(f32::INFINITY, uncontested),
        };
        let (room_before, mut bytes) = (room, 0);
        for (index, watched) in self.watch.cells.iter_mut().enumerate() {
            let interval = stretch.interval(watched);
            let its_turn = is_its_turn(watched, with.turn, interval);
            let settled = watched.sent != Version::NONE && watched.known == watched.sent;
            // Most cells end here, having read only the client's own memory.
            if settled && !its_turn || watched.leaving {
                continue;
            }
            let newest = with.cells.newest(watched.slot);
            let waited = with.turn.wrapping_sub(watched.sent_turn);
            let (interval, is_due) = match watched.sent {
                Version::NONE => (0, true),
                sent if sent != newest => (interval, its_turn),
                _ => (RESEND_TURNS, !settled && waited >= RESEND_TURNS),
            };
            if !is_due {
                continue;
            }
            let mut baseline = watched.known;
            if lossy && !settled {
                let known_update = self.watch.backgrounds[index].known_update;
                if self.updates.wrapping_sub(known_update) > TRUST_UPDATES {
                    // Nothing that builds on it seems to arrive.
                    baseline = Version::NONE;
                }
            }
            let record = with.cells.record(watched.slot, baseline, with.state);
            if room > 0.0 && watched.sent != Version::NONE {
                room -= record.len() as f32;
                with.cells.append(record, packet);
                watched.sent = newest;
                watched.sent_turn = with.turn;
                watched.known = newest;
                continue;
            }
            bytes += record.len();
            candidates.push(Candidate {
                index: index as u32,
                waited,
                interval,
                record,
                goes: true,
            });
        }
        if let Some(purse) = &mut purse {
            purse.pay(room_before - room);
            self.stay_within(purse, candidates, bytes as f32);
        }
        self.purse = purse;
    }

    /// Selects the candidates that the budget allows. If not all of them fit,
    /// known and new ones alternate: visible movement continues while a large
    /// world arrives.
    fn stay_within(
        &mut self,
        purse: &mut BandwidthBudget,
        candidates: &mut Vec<Candidate>,
        bytes: f32,
    ) {
        if bytes <= purse.ready() {
            purse.pay(bytes);
            self.turns.end();
            return;
        }
        candidates.sort_unstable_by(|a, b| {
            let order = b.urgency(&self.watch).total_cmp(&a.urgency(&self.watch));
            let sides = a.side().cmp(&b.side());
            sides.then(order).then(a.index.cmp(&b.index))
        });
        self.turns.share_out(
            purse,
            candidates,
            |candidate| (candidate.side(), candidate.record.len() as f32),
            |candidate, goes| candidate.goes = goes,
        );
        candidates.retain(|candidate| candidate.goes);
    }
}

/// Whether a cell is due since it was last sent. The schedule is the same for
/// all clients with the same interval, whenever they joined, so they have the
/// same versions and share encoded records. A client that was late is back in
/// step with the next update.
fn is_its_turn(watched: &Watched, turn: u16, interval: u16) -> bool {
    debug_assert!(interval.is_power_of_two());
    // Spreads cells evenly over the turns.
    let count = |turn: u16| turn.wrapping_add(watched.slot as u16);
    // Counts that differ above the interval's bit are in different rounds.
    interval == 1 || count(turn) ^ count(watched.sent_turn) >= interval
}

/// Lengthens intervals under pressure: first those of distant cells, finally
/// all.
struct Stretch {
    near: u16,
    far: u16,
    /// Limit of an interval: beyond it the baseline would no longer be stored,
    /// and a whole record is more work than all those that were saved.
    most: u16,
}

impl Stretch {
    fn under(pressure: u8, most: u16) -> Self {
        let (near, far) = match pressure {
            0 => (1, 1),
            1 => (1, 2),
            2 => (1, 4),
            _ => (4, 4),
        };
        Self { near, far, most }
    }

    /// Turns between two records of a cell.
    fn interval(&self, watched: &Watched) -> u16 {
        let interval = match u16::from(watched.interval) {
            1 => self.near,
            far => far * self.far,
        };
        interval.min(self.most)
    }
}

/// Returns a list to the pool for the next packet.
fn put_away(spare: &mut Vec<Vec<SentCell>>, mut cells: Vec<SentCell>) {
    cells.clear();
    spare.push(cells);
}

fn note_known(watch: &mut Watch, number: u32, sent: &SentCell, updates: u32) {
    let Some(index) = watch.find(sent.slot, sent.born) else {
        return;
    };
    let (watched, background) = (&mut watch.cells[index], &mut watch.backgrounds[index]);
    let leaves = sent.version == Version::NONE;
    if number < background.since || leaves != watched.leaving {
        return;
    }
    if leaves {
        watch.forget(index);
    } else {
        watched.known = watched.known.max(sent.version);
        background.known_update = updates;
    }
}

impl Background {
    fn sent_cell(&self, slot: u32, version: Version) -> SentCell {
        SentCell {
            slot,
            born: self.born,
            version,
        }
    }
}

#[cfg(test)]
mod tests;
