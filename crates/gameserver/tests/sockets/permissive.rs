//! A world without tickets, for development: on this machine only.

use std::net::IpAddr;

use frolic_gameserver::{GameServerConfig, GameServerError, WorldSource};
use frolic_package::{Limits, Package};

use crate::server::sample_files;

fn config(host: impl Into<IpAddr>) -> GameServerConfig {
    let limits = Limits::default();
    let package = Package::from_files(sample_files(), &limits).expect("the sample game is valid");
    GameServerConfig {
        world_id: "world_local".into(),
        host: host.into(),
        port: 0,
        webtransport: false,
        source: WorldSource::Package(Box::new(package)),
        tick_hz: None,
        snapshot_hz: None,
        interest: None,
        client_bytes_per_s: None,
        players_max: None,
        close_limit_s: frolic_fleet_api::process::CLOSE_LIMIT_S,
        blame: None,
        confined: false,
        script_folder: None,
        record_folder: None,
    }
}

#[tokio::test]
async fn a_world_without_tickets_is_for_this_machine_only() {
    for public in [
        IpAddr::from([0, 0, 0, 0]),
        [192, 168, 1, 7].into(),
        IpAddr::from([0u16; 8]),
    ] {
        let ended = frolic_gameserver::run(config(public), |_| panic!("it listens")).await;
        match ended {
            Err(GameServerError::PublicWithoutTickets(address)) => assert_eq!(address, public),
            other => panic!("{other:?}"),
        }
    }
}
