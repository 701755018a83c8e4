//! A network between two ends, on a virtual clock.

use frolic_sim::random::Random;

/// How bad a connection is.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    pub delay_ms: f64,
    pub jitter_ms: f64,
    pub loss: f32,
    pub duplicated: f32,
}

impl Quality {
    /// A room away.
    pub const GOOD: Quality = Quality {
        delay_ms: 10.0,
        jitter_ms: 3.0,
        loss: 0.0,
        duplicated: 0.0,
    };
    /// 200 ms round trip, 30 ms jitter, 5 % loss.
    pub const BAD: Quality = Quality {
        delay_ms: 85.0,
        jitter_ms: 30.0,
        loss: 0.05,
        duplicated: 0.01,
    };
    /// A phone in a lift.
    pub const AWFUL: Quality = Quality {
        delay_ms: 150.0,
        jitter_ms: 120.0,
        loss: 0.3,
        duplicated: 0.1,
    };
}

/// One direction of a connection.
pub struct Lane {
    pub quality: Quality,
    random: Random,
    in_flight: Vec<(f64, u64, Vec<u8>)>,
    count: u64,
    last_reliable_ms: f64,
}

impl Lane {
    pub fn new(quality: Quality, seed: u64) -> Self {
        Self {
            quality,
            random: Random::new(seed),
            in_flight: Vec::new(),
            count: 0,
            last_reliable_ms: 0.0,
        }
    }

    fn way_ms(&mut self) -> f64 {
        self.quality.delay_ms + self.quality.jitter_ms * f64::from(self.random.unit())
    }

    fn fly(&mut self, arrives_ms: f64, bytes: Vec<u8>) {
        self.count += 1;
        self.in_flight.push((arrives_ms, self.count, bytes));
    }

    /// May be lost, repeated, overtaken.
    pub fn datagram(&mut self, now_ms: f64, bytes: Vec<u8>) {
        if self.random.unit() < self.quality.duplicated {
            let arrives = now_ms + self.way_ms();
            self.fly(arrives, bytes.clone());
        }
        if self.random.unit() >= self.quality.loss {
            let arrives = now_ms + self.way_ms();
            self.fly(arrives, bytes);
        }
    }

    /// Arrives in order; a loss costs a round trip.
    pub fn reliable(&mut self, now_ms: f64, bytes: Vec<u8>) {
        let mut arrives = now_ms + self.way_ms();
        while self.random.unit() < self.quality.loss {
            arrives += self.way_ms() * 2.0;
        }
        self.last_reliable_ms = arrives.max(self.last_reliable_ms);
        self.fly(self.last_reliable_ms, bytes);
    }

    /// Reliable messages arrive no earlier than this from now on: the stream is
    /// busy, or waits for a retransmission.
    pub fn hold_back(&mut self, until_ms: f64) {
        self.last_reliable_ms = self.last_reliable_ms.max(until_ms);
    }

    /// The packets that have arrived by now, in the order of arrival.
    pub fn arrived(&mut self, now_ms: f64) -> Vec<Vec<u8>> {
        let mut due: Vec<_> = Vec::new();
        self.in_flight.retain_mut(|(at, count, bytes)| {
            let here = *at <= now_ms;
            if here {
                due.push((*at, *count, std::mem::take(bytes)));
            }
            !here
        });
        due.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        due.into_iter().map(|(_, _, bytes)| bytes).collect()
    }

    pub fn random_bytes(&mut self) -> Vec<u8> {
        let length = self.random.below(80);
        (0..length).map(|_| self.random.below(256) as u8).collect()
    }
}
