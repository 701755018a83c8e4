//! A player's inputs between the network and the simulation.
//!
//! One input is used per tick, in order. If none has arrived the last one is
//! repeated, and an input that arrives too late counts as that repeat: it is
//! acknowledged and applies to the next tick, but gets no tick of its own. The
//! client's prediction is then right without a correction, as long as the
//! player held the same keys.
//!
//! A burst after a longer stall of the connection is different: nothing was
//! simulated in its place, so it is queued. A client that continues with one
//! input per tick would never drain that queue, and all its input would stay
//! delayed; so inputs that have been too many for a second are acknowledged two
//! per tick, with one step between them.

use frolic_protocol::NumberedInput;
use frolic_sim::{Buttons, CharacterInput};
use smallvec::SmallVec;

use crate::fingerprint::Fingerprint;

/// Queued inputs: as many as one JSON batch may hold. A client that fills the
/// queue delays only itself.
const QUEUE_MAX: usize = 128;
/// Inputs that are usually queued at most.
const WAITING_USUALLY: usize = 4;
/// Repeats that late inputs may still stand for; after that the client was
/// suspended.
const LATE_TICKS_MAX: u8 = 20;
/// Ticks for which the last input is repeated before the character stops.
const REPEAT_TICKS_MAX: u32 = 20;
/// Missing sequence numbers that are bridged by repeats, tick by tick.
const GAP_MAX: u32 = 8;
/// Queue length that counts as a surplus: above what our own client ever aims
/// at, so that its clock control and this rule do not work against each other.
const SURPLUS_ABOVE: usize = 8;
/// Inputs left after a surplus is drained: enough for a connection with jitter.
const SURPLUS_LEAVES: usize = 3;
/// Ticks for which the queue must have been too long.
const SURPLUS_TICKS: u8 = 60;

/// Inputs of one player.
#[derive(Default)]
pub struct InputQueue {
    /// In order. Rarely more than a few, so they are stored inline.
    waiting: SmallVec<[NumberedInput; WAITING_USUALLY]>,
    /// None until the first input: any sequence number may be the first.
    last_seq: Option<u32>,
    late_ticks: u8,
    silent_ticks: u32,
    current: CharacterInput,
    /// Buttons of inputs that arrived too late for a tick of their own; pressed
    /// in the next one.
    missed_buttons: Buttons,
    /// Ticks for which the queue has been too long.
    full_ticks: u8,
    /// Whether a surplus is being drained, by acknowledging inputs that get no
    /// tick of their own.
    surplus: bool,
}

impl InputQueue {
    /// Queues inputs; duplicates and old ones are ignored. Returns how many new
    /// inputs were dropped because the queue was full.
    pub fn push(&mut self, inputs: &[NumberedInput]) -> usize {
        let mut refused = 0;
        for input in inputs {
            if self.last_seq.is_some_and(|last| input.seq <= last) {
                continue;
            }
            // Nearly always the newest input.
            let place = match self.waiting.last() {
                Some(last) if last.seq >= input.seq => {
                    self.waiting.partition_point(|other| other.seq < input.seq)
                }
                _ => self.waiting.len(),
            };
            if self
                .waiting
                .get(place)
                .is_some_and(|other| other.seq == input.seq)
            {
                continue;
            }
            // Only inputs that arrive on top of a full queue indicate a
            // surplus: a client that sends one batch per second needs its queue
            // until the next batch.
            self.surplus |= self.full_ticks >= SURPLUS_TICKS;
            if self.waiting.len() >= QUEUE_MAX {
                refused += 1;
                continue;
            }
            self.waiting.insert(place, *input);
        }
        refused
    }

    /// Returns the input of the next tick.
    pub fn next_tick(&mut self) -> CharacterInput {
        self.absorb_late();
        self.absorb_surplus();
        match self.waiting.first().copied() {
            Some(next) if self.bridges(next.seq) => {
                self.last_seq = self.last_seq.map(|last| last + 1);
                self.silent_ticks = 0;
            }
            Some(next) => {
                self.waiting.remove(0);
                self.last_seq = Some(next.seq);
                self.current = next.input;
                self.silent_ticks = 0;
            }
            None => {
                self.silent_ticks = self.silent_ticks.saturating_add(1);
                self.late_ticks = if self.last_seq.is_none() || self.late_ticks >= LATE_TICKS_MAX {
                    0
                } else {
                    self.late_ticks + 1
                };
                if self.silent_ticks > REPEAT_TICKS_MAX {
                    self.late_ticks = 0;
                    self.current = CharacterInput {
                        yaw: self.current.yaw,
                        pitch: self.current.pitch,
                        ..CharacterInput::default()
                    };
                }
            }
        }
        self.note_waiting();
        let mut input = self.current;
        input.buttons = input.buttons.with(std::mem::take(&mut self.missed_buttons));
        input
    }

    /// Whether the next sequence number is missing and lost, because a later
    /// one has arrived. The missing tick is bridged with the last input.
    fn bridges(&self, next_seq: u32) -> bool {
        let gap = self.last_seq.map_or(1, |last| next_seq - last);
        gap > 1 && gap <= GAP_MAX
    }

    /// Acknowledges inputs for ticks that were already simulated with a repeat.
    fn absorb_late(&mut self) {
        while self.late_ticks > 0
            && let Some(last) = self.last_seq
            && let Some(next) = self.waiting.first().copied()
        {
            let stands_for = (next.seq - last).min(u32::from(self.late_ticks));
            self.late_ticks -= stands_for as u8;
            let last = last + stands_for;
            self.last_seq = Some(last);
            if last == next.seq || next.seq - last > GAP_MAX {
                self.absorb(next);
            }
        }
    }

    /// Acknowledges one input more than this tick needs while there is a
    /// surplus.
    fn absorb_surplus(&mut self) {
        if self.surplus
            && let Some(next) = self.waiting.first().copied()
        {
            self.absorb(next);
        }
    }

    /// Acknowledges the first queued input without a tick of its own.
    fn absorb(&mut self, next: NumberedInput) {
        self.last_seq = Some(next.seq);
        self.waiting.remove(0);
        self.current = next.input;
        self.missed_buttons = self.missed_buttons.with(next.input.buttons);
    }

    fn note_waiting(&mut self) {
        let waiting = self.waiting.len();
        self.surplus &= waiting > SURPLUS_LEAVES;
        self.full_ticks = if waiting > SURPLUS_ABOVE {
            (self.full_ticks + 1).min(SURPLUS_TICKS)
        } else {
            0
        };
    }

    /// Whether an input with this sequence number would be queued, given
    /// capacity.
    pub fn is_new(&self, seq: u32) -> bool {
        self.last_seq.is_none_or(|last| seq > last)
            && self
                .waiting
                .binary_search_by_key(&seq, |input| input.seq)
                .is_err()
    }

    /// Adds the whole queue to a fingerprint.
    pub(crate) fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        let Self {
            waiting,
            last_seq,
            late_ticks,
            silent_ticks,
            current,
            missed_buttons,
            full_ticks,
            surplus,
        } = self;
        fingerprint.word(waiting.len() as u64);
        for input in waiting {
            fingerprint.word(u64::from(input.seq));
            fingerprint.input(&input.input);
        }
        fingerprint.word(last_seq.map_or(u64::MAX, u64::from));
        fingerprint.word(u64::from(*silent_ticks) << 8 | u64::from(*late_ticks));
        fingerprint.input(current);
        fingerprint.word(u64::from(missed_buttons.0));
        fingerprint.word(u64::from(*full_ticks) << 1 | u64::from(*surplus));
    }

    /// Sequence number of the last input that was used.
    pub fn ack_seq(&self) -> u32 {
        self.last_seq.unwrap_or(0)
    }

    /// Ticks simulated since then without a new input.
    pub fn late_ticks(&self) -> u8 {
        self.late_ticks
    }

    /// Number of queued inputs.
    pub fn queued(&self) -> u8 {
        self.waiting.len() as u8
    }

    /// The input in use.
    pub fn current(&self) -> CharacterInput {
        self.current
    }

    /// Sets the view direction before the first input.
    pub(crate) fn look_at(&mut self, input: CharacterInput) {
        self.current = input;
    }

    /// Resets the queue after the player reconnected.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn input(seq: u32) -> NumberedInput {
        NumberedInput {
            seq,
            input: CharacterInput {
                forward: (seq % 100) as i8,
                ..CharacterInput::default()
            },
        }
    }

    #[test]
    fn one_input_per_tick_in_order_whatever_the_arrival() {
        let mut queue = InputQueue::default();
        queue.push(&[input(10), input(12), input(11), input(10)]);
        let used: Vec<i8> = (0..3).map(|_| queue.next_tick().forward).collect();
        assert_eq!(used, [10, 11, 12]);
        assert_eq!((queue.ack_seq(), queue.late_ticks()), (12, 0));
        assert_eq!(queue.push(&[input(5), input(12)]), 0);
        assert_eq!(queue.queued(), 0, "old and repeated ones are ignored");
    }

    #[test]
    fn any_number_may_be_the_first() {
        for first in [0, 1, 77, u32::MAX - 3] {
            let mut queue = InputQueue::default();
            queue.push(&[input(first)]);
            queue.next_tick();
            queue.push(&[input(first + 1)]);
            queue.next_tick();
            assert_eq!((queue.ack_seq(), queue.queued()), (first + 1, 0));
        }
        let mut queue = InputQueue::default();
        queue.push(&[input(u32::MAX), input(0)]);
        (0..60).for_each(|_| {
            queue.next_tick();
        });
        queue.push(&[input(3)]);
        assert_eq!(queue.queued(), 0, "the last number there is ends the count");
    }

    #[test]
    fn a_late_input_is_confirmed_without_a_tick_of_its_own() {
        let mut queue = InputQueue::default();
        queue.push(&[input(1)]);
        queue.next_tick();
        assert_eq!(queue.next_tick().forward, 1, "repeats");
        assert_eq!((queue.ack_seq(), queue.late_ticks()), (1, 1));
        queue.push(&[input(2), input(3)]);
        assert_eq!(queue.next_tick().forward, 3, "2 stood for the repeat");
        assert_eq!((queue.ack_seq(), queue.late_ticks()), (3, 0));
    }

    #[test]
    fn a_press_that_came_late_is_not_lost() {
        let mut queue = InputQueue::default();
        queue.push(&[input(1)]);
        queue.next_tick();
        queue.next_tick();
        let mut jump = input(2);
        jump.input.buttons = Buttons::JUMP;
        queue.push(&[jump, input(3)]);
        assert!(queue.next_tick().buttons.contains(Buttons::JUMP));
        assert!(!queue.next_tick().buttons.contains(Buttons::JUMP));
    }

    #[test]
    fn a_silent_player_stops_and_a_slow_client_still_steers() {
        let mut queue = InputQueue::default();
        queue.push(&[input(1)]);
        for _ in 0..100 {
            queue.next_tick();
        }
        assert_eq!(queue.next_tick().forward, 0);
        // A third-party client at 10 inputs a second: each takes effect at
        // once.
        for seq in 2..20 {
            queue.push(&[input(seq)]);
            assert_eq!(queue.next_tick().forward, (seq % 100) as i8);
            assert_eq!(queue.ack_seq(), seq);
            (0..5).for_each(|_| {
                queue.next_tick();
            });
        }
    }

    #[test]
    fn a_flood_is_refused_and_a_gap_is_bridged() {
        let mut queue = InputQueue::default();
        let flood: Vec<_> = (1..=500).map(input).collect();
        assert_eq!(queue.push(&flood), 500 - QUEUE_MAX);
        let mut queue = InputQueue::default();
        queue.push(&[input(1), input(4)]);
        let used: Vec<i8> = (0..4).map(|_| queue.next_tick().forward).collect();
        assert_eq!(used, [1, 1, 1, 4]);
        queue.push(&[input(4_000_000)]);
        assert_eq!(
            queue.next_tick().forward,
            0,
            "a jump in numbers is not waited out"
        );
        assert_eq!(queue.ack_seq(), 4_000_000);
    }

    /// A connection that delivers one input per tick, except for a stall of
    /// `stall` ticks.
    fn after_a_stall(queue: &mut InputQueue, stall: u32) -> u32 {
        let mut seq = 0;
        for tick in 0..120 {
            seq += 1;
            if tick < 60 {
                queue.push(&[input(seq)]);
            } else if tick == 59 + stall {
                let held_back: Vec<_> = (61..=seq).map(input).collect();
                queue.push(&held_back);
                break;
            }
            queue.next_tick();
        }
        seq
    }

    #[test]
    fn the_queue_of_a_stalled_line_is_gone_within_two_seconds() {
        let mut queue = InputQueue::default();
        let mut seq = after_a_stall(&mut queue, 36);
        assert!(queue.queued() > 30, "{}", queue.queued());
        for _ in 0..120 {
            queue.next_tick();
            seq += 1;
            queue.push(&[input(seq)]);
        }
        assert!(queue.queued() <= 4, "{} wait", queue.queued());
        // The remaining inputs are used one per tick again.
        let before = queue.ack_seq();
        queue.next_tick();
        assert_eq!(queue.ack_seq(), before + 1);
    }

    #[test]
    fn a_press_among_too_many_inputs_is_not_lost() {
        let mut queue = InputQueue::default();
        let mut seq = after_a_stall(&mut queue, 40);
        let (mut presses, mut pressed_before) = (0, false);
        for tick in 0..150 {
            let jumps = queue.next_tick().buttons.contains(Buttons::JUMP);
            presses += u32::from(jumps && !pressed_before);
            pressed_before = jumps;
            seq += 1;
            let mut next = input(seq);
            if tick % 10 == 0 && tick < 100 {
                next.input.buttons = Buttons::JUMP;
            }
            queue.push(&[next]);
        }
        assert_eq!(presses, 10);
    }

    #[test]
    fn what_our_own_client_lets_wait_is_left_alone() {
        let mut queue = InputQueue::default();
        queue.push(&(1..=8).map(input).collect::<Vec<_>>());
        for seq in 9..600 {
            queue.push(&[input(seq)]);
            queue.next_tick();
            assert_eq!(queue.ack_seq(), seq - 8);
        }
    }

    #[test]
    fn who_sends_two_seconds_at_a_time_gets_a_tick_for_every_input() {
        let mut queue = InputQueue::default();
        for batch in 0..5 {
            let seqs = batch * 120 + 1..=batch * 120 + 120;
            queue.push(&seqs.clone().map(input).collect::<Vec<_>>());
            for seq in seqs {
                queue.next_tick();
                assert_eq!(queue.ack_seq(), seq);
            }
        }
    }

    proptest! {
        #[test]
        fn the_count_never_goes_back(arrivals in prop::collection::vec(prop::collection::vec(1u32..200, 0..6), 1..100)) {
            let mut queue = InputQueue::default();
            let mut acked = 0;
            for seqs in arrivals {
                queue.push(&seqs.into_iter().map(input).collect::<Vec<_>>());
                queue.next_tick();
                prop_assert!(queue.ack_seq() >= acked);
                acked = queue.ack_seq();
            }
        }
    }
}
