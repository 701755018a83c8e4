//! Permits for connections: their total, and how many of one address may wait
//! without a player.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::metrics::Metrics;

/// Connections of one address that have no player yet.
const NEWCOMERS_MAX: u32 = 32;
/// The same for this machine, whose address stands for all clients that connect
/// through the platform's port.
const NEWCOMERS_LOOPBACK_MAX: u32 = 256;

/// Identifies a connection: its index, and a generation number that
/// distinguishes the connections that have used this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    place: u32,
    round: u32,
}

impl ConnectionId {
    /// The connection with this index and generation.
    pub fn new(place: u32, round: u32) -> Self {
        Self { place, round }
    }

    /// Its index: small while there are few connections.
    pub fn place(self) -> usize {
        self.place as usize
    }
}

/// The permits for a world's connections.
#[derive(Clone)]
pub struct ConnectionPermits {
    counts: Arc<Counts>,
}

struct Counts {
    metrics: Arc<Metrics>,
    connections_max: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By address, how many have no player yet.
    newcomers: HashMap<IpAddr, u32>,
    /// ConnectionPermits that were used before and are free again.
    free: Vec<u32>,
    /// ConnectionPermits that were ever used.
    places: u32,
    /// Incremented with every connection.
    round: u32,
}

impl Counts {
    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.state.lock();
        state.unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn next_id(&mut self) -> ConnectionId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        });
        self.round = self.round.wrapping_add(1);
        ConnectionId::new(place, self.round)
    }
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PermitError {
    /// No capacity at all.
    #[error("this world has no room for more connections; try again later")]
    Full,
    /// Too many of one address that have no player.
    #[error("too many connections of your address wait for their handshake; try again later")]
    TooManyNewcomers,
}

impl ConnectionPermits {
    /// Capacity for `connections_max` connections, those without a player included.
    pub fn new(connections_max: u32, metrics: Arc<Metrics>) -> Self {
        Self {
            counts: Arc::new(Counts {
                metrics,
                connections_max,
                state: Mutex::default(),
            }),
        }
    }

    /// A permit for one connection, until it is dropped.
    ///
    /// # Errors
    /// When there is none.
    pub fn take(&self, address: IpAddr) -> Result<ConnectionPermit, PermitError> {
        let address = neighbourhood(address);
        let counts = &self.counts;
        let mut state = counts.state();
        if counts.metrics.connections.value() >= counts.connections_max.into() {
            return Err(PermitError::Full);
        }
        let known = state.newcomers.get(&address).copied().unwrap_or(0);
        let max = if address.is_loopback() {
            NEWCOMERS_LOOPBACK_MAX
        } else {
            NEWCOMERS_MAX
        };
        if known >= max {
            return Err(PermitError::TooManyNewcomers);
        }
        state.newcomers.insert(address, known + 1);
        counts.metrics.connections.increment();
        Ok(ConnectionPermit {
            counts: counts.clone(),
            connection_id: state.next_id(),
            address,
            is_newcomer: true,
        })
    }

    /// Connections without a player, of all addresses together.
    pub fn newcomers(&self) -> u32 {
        self.counts.state().newcomers.values().sum()
    }

    /// How many connections there may be.
    pub fn connections_max(&self) -> u32 {
        self.counts.connections_max
    }
}

/// One connection's permit.
pub struct ConnectionPermit {
    counts: Arc<Counts>,
    connection_id: ConnectionId,
    address: IpAddr,
    is_newcomer: bool,
}

impl ConnectionPermit {
    /// The connection that has this permit.
    pub fn connection_id(&self) -> ConnectionId {
        self.connection_id
    }

    /// Its player was admitted.
    pub fn come_in(&mut self) {
        if !std::mem::take(&mut self.is_newcomer) {
            return;
        }
        let newcomers = &mut self.counts.state().newcomers;
        if let Some(count) = newcomers.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                newcomers.remove(&self.address);
            }
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.come_in();
        self.counts
            .state()
            .free
            .push(self.connection_id.place() as u32);
        self.counts.metrics.connections.decrement();
    }
}

/// One household has many IPv6 addresses, but one network.
pub fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let network = u128::from(v6) >> 64 << 64;
            IpAddr::V6(network.into())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newcomers_are_limited_by_address_and_all_by_capacity() {
        let metrics = Arc::new(Metrics::default());
        let permits = ConnectionPermits::new(40, metrics.clone());
        let eve = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, n]);
        let mut waiting: Vec<_> = (0..32).map(|n| permits.take(eve(n)).unwrap()).collect();
        assert_eq!(
            permits.take(eve(77)).err(),
            Some(PermitError::TooManyNewcomers)
        );
        waiting[0].come_in();
        waiting[0].come_in();
        waiting.push(permits.take(eve(77)).expect("one of them was admitted"));
        let others: Vec<_> = (0..7)
            .map(|n| permits.take([192, 0, 2, n].into()).unwrap())
            .collect();
        assert_eq!(
            permits.take([192, 0, 2, 9].into()).err(),
            Some(PermitError::Full)
        );
        assert_eq!(permits.newcomers(), 39);
        let mut places: Vec<_> = waiting
            .iter()
            .map(|permit| permit.connection_id().place())
            .collect();
        places.extend(others.iter().map(|permit| permit.connection_id().place()));
        assert_eq!(places, Vec::from_iter(0..40));
        drop((waiting, others));
        assert_eq!(metrics.connections.value(), 0);
        assert!(permits.counts.state().newcomers.is_empty());
    }

    #[test]
    fn a_slot_is_reused_under_another_id() {
        let permits = ConnectionPermits::new(2, Arc::new(Metrics::default()));
        let take = || permits.take([192, 0, 2, 1].into()).unwrap();
        let (first, second) = (take(), take());
        let gone = first.connection_id();
        drop(first);
        let third = take();
        assert_eq!(third.connection_id().place(), gone.place());
        assert_ne!(third.connection_id(), gone);
        assert_ne!(
            third.connection_id().place(),
            second.connection_id().place()
        );
    }
}
