//! Reaching a world from outside of it: its server is started when none runs,
//! without a place for anybody.

use std::net::SocketAddr;
use std::sync::Arc;

use super::{Fleet, FleetError, Phase, WorldProcess, WorldSpec};

/// Where the process of a world is asked, and with which token.
#[derive(Clone, Debug)]
pub struct Door {
    /// `http://…` of its routes for the control plane.
    pub url: String,
    /// Bearer for them.
    pub token: String,
}

impl Fleet {
    /// Waits until `spec`'s world runs, starting it when it does not.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn wake(&self, spec: &WorldSpec) -> Result<Arc<WorldProcess>, FleetError> {
        let deadline = self.join_deadline();
        loop {
            let server = self.server_or_start(spec).await?;
            if super::wait_until_ready(&server, deadline).await?.is_some() {
                return Ok(server);
            }
            // It stopped while we waited: the next one is ours to start.
        }
    }

    /// How to ask the process of a world that is ready.
    pub fn door(&self, server: &WorldProcess) -> Option<Door> {
        let Phase::Ready(endpoints) = server.phase() else {
            return None;
        };
        let local = crate::address::local_ip(self.host());
        let address = SocketAddr::new(local, endpoints.websocket_port);
        Some(Door {
            url: format!("http://{address}/internal"),
            token: server.token()?,
        })
    }

    /// The worlds that run now.
    pub fn running(&self) -> Vec<Arc<WorldProcess>> {
        let all = self.all().into_iter();
        all.filter(|server| matches!(server.phase(), Phase::Ready(_)))
            .collect()
    }
}
