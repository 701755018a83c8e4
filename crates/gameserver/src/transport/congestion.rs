//! Congestion control: Cubic's window, with a floor where a connection loses
//! packets without being congested.
//!
//! Cubic takes every lost packet for congestion. Where one in twenty is lost
//! regardless, as on wireless networks, its window falls to a few packets: with a
//! round trip of 200 ms 26 KB/s got through, 11 updates a second of 20. With the
//! floor all of them arrive. Without checking round trips the floor would overload
//! a narrow connection: at 8 KB/s two packets of three were lost then, and one of
//! four is with the check. BBR, as implemented in quinn, sends five times the
//! capacity of such a connection.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use wtransport::quinn::congestion::{Controller, ControllerFactory, CubicConfig};

/// What a client is sent in a quarter of a second at the default budget: enough for
/// a round trip of 200 ms. About the initial window of every connection.
const FLOOR_BYTES: u64 = 16 * 1024;
/// A round trip that has grown by more than this, and by more than half, means that
/// packets queue on the way: then the connection is congested, and Cubic is right.
const GROWN_BY: Duration = Duration::from_millis(100);

/// Creates the controllers of connections.
#[derive(Default)]
pub struct LossyCubicConfig(Arc<CubicConfig>);

impl ControllerFactory for LossyCubicConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(LossyCubic {
            cubic: self.0.clone().build(now, current_mtu),
            line_is_full: false,
        })
    }
}

struct LossyCubic {
    cubic: Box<dyn Controller>,
    line_is_full: bool,
}

impl Controller for LossyCubic {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.cubic.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.cubic.on_ack(now, sent, bytes, app_limited, rtt);
        self.line_is_full = has_grown(rtt.min(), rtt.get());
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.cubic
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.cubic
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.cubic.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        let floor = if self.line_is_full { 0 } else { FLOOR_BYTES };
        self.cubic.window().max(floor)
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            cubic: self.cubic.clone_box(),
            line_is_full: self.line_is_full,
        })
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Whether round trips take so much longer than the shortest that packets queue on
/// the way.
fn has_grown(shortest: Duration, now: Duration) -> bool {
    now > shortest + (shortest / 2).max(GROWN_BY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> LossyCubic {
        let now = Instant::now();
        LossyCubic {
            cubic: Arc::new(CubicConfig::default()).build(now, 1200),
            line_is_full: false,
        }
    }

    /// Loses a packet in every round trip.
    fn lose(controller: &mut LossyCubic, times: u64) {
        let start = Instant::now();
        for time in 1..=times {
            let now = start + Duration::from_millis(200 * time);
            controller.on_congestion_event(now, now, false, 1200);
        }
    }

    #[test]
    fn losses_alone_do_not_close_the_window() {
        let mut controller = controller();
        lose(&mut controller, 20);
        assert_eq!(controller.cubic.window(), 2400, "Cubic's least");
        assert_eq!(controller.window(), FLOOR_BYTES);
    }

    #[test]
    fn losses_on_a_congested_connection_do() {
        let mut controller = controller();
        controller.line_is_full = true;
        lose(&mut controller, 20);
        assert_eq!(controller.window(), 2400);
        assert_eq!(controller.clone_box().window(), 2400);
    }

    #[test]
    fn a_connection_is_congested_when_round_trips_grow_beyond_their_jitter() {
        let ms = Duration::from_millis;
        assert!(!has_grown(ms(5), ms(80)), "a busy machine");
        assert!(has_grown(ms(5), ms(200)));
        // 100 ms each way, with a jitter of 30.
        assert!(!has_grown(ms(140), ms(200)));
        assert!(has_grown(ms(200), ms(400)));
        assert!(!has_grown(ms(600), ms(800)), "by satellite");
    }
}
