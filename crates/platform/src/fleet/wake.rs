//! Starts a world without a joining player, for requests that reach it through the platform.

use std::net::SocketAddr;
use std::sync::Arc;

use super::{Fleet, FleetError, Phase, WorldProcess, WorldSpec};

/// Address of a world's process for requests of the control plane.
#[derive(Clone, Debug)]
pub struct InternalEndpoint {
    /// Base URL of its internal routes.
    pub url: String,
    /// Bearer token for the routes.
    pub token: String,
}

impl Fleet {
    /// Waits until the world `spec` runs; starts it if necessary.
    ///
    /// # Errors
    /// [`FleetError`] when the world cannot run now.
    pub async fn wake(&self, spec: &WorldSpec) -> Result<Arc<WorldProcess>, FleetError> {
        let deadline = self.join_deadline();
        loop {
            let server = self.server_or_start(spec).await?;
            if super::wait_until_ready(&server, deadline).await?.is_some() {
                return Ok(server);
            }
            // It stopped in the meantime; start it again.
        }
    }

    /// Address for requests to the process of a world that is ready.
    pub fn internal_endpoint(&self, server: &WorldProcess) -> Option<InternalEndpoint> {
        let Phase::Ready(endpoints) = server.phase() else {
            return None;
        };
        let local = crate::fleet::address::local_ip(self.host());
        let address = SocketAddr::new(local, endpoints.websocket_port);
        Some(InternalEndpoint {
            url: format!("http://{address}/internal"),
            token: server.token()?,
        })
    }

    /// The worlds that are ready.
    pub fn running(&self) -> Vec<Arc<WorldProcess>> {
        let all = self.all().into_iter();
        all.filter(|server| matches!(server.phase(), Phase::Ready(_)))
            .collect()
    }
}
