//! Retries requests to the control plane until it answers. Shared by the clients
//! for the Store and for persistence.

use std::future::Future;
use std::time::Duration;

use crate::control_plane::ControlPlaneError;

/// Timeout of one attempt.
pub const TRY: Duration = Duration::from_secs(3);

/// Why there is no answer.
pub enum Failure {
    /// The control plane refused; a retry would be refused again.
    Refused(ControlPlaneError),
    /// It cannot be reached, or not in time.
    Unreachable,
}

/// Retries until there is an answer, with these delays between the attempts. The
/// request must be idempotent.
pub async fn ask<T, F>(
    what: &str,
    rests: impl IntoIterator<Item = Duration>,
    mut call: impl FnMut() -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, ControlPlaneError>>,
{
    let mut rests = rests.into_iter();
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        tracing::warn!(%error, what, "a control-plane request failed");
        if error.is_refusal() {
            return Err(Failure::Refused(error));
        }
        let Some(rest) = rests.next() else {
            return Err(Failure::Unreachable);
        };
        tokio::time::sleep(rest).await;
    }
}

/// Delays that grow up to a second, without end.
pub fn for_ever() -> impl Iterator<Item = Duration> {
    let growing = (0..5).map(|step| Duration::from_millis(50 << step));
    growing.chain(std::iter::repeat(Duration::from_secs(1)))
}

/// Distinguishes the processes of a world, so that their batches are never
/// confused.
pub fn process_name() -> [u8; 12] {
    let mut bytes = [0; 12];
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = now.map_or(0, |since| since.as_nanos() as u64);
        bytes[..8].copy_from_slice(&nanos.to_le_bytes());
        bytes[8..].copy_from_slice(&std::process::id().to_le_bytes());
    }
    bytes
}
