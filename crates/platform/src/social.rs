//! Who wants nothing to do with whom, and who invites whom where.
//! Worlds hide chat between players of whom one has blocked the other, and put
//! those who were invited beside their friend.

mod blocks;
mod invites;

pub use invites::{Invitation, resolve, sweep, unknown_invite};

use utoipa_axum::router::OpenApiRouter;

use crate::Platform;

/// What the rest of the platform mounts.
pub fn routes() -> OpenApiRouter<Platform> {
    blocks::routes().merge(invites::routes())
}

pub use blocks::for_world as blocks_for_world;
