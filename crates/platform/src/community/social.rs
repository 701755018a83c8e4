//! Blocks and invitations. Worlds hide the chat between players of whom one has blocked the other,
//! and spawn invited players next to their friend.

mod blocks;
mod invites;

pub use invites::{Invitation, delete_expired, resolve, unknown_invite};

use utoipa_axum::router::OpenApiRouter;

use crate::Platform;

/// Routes of blocks and invitations.
pub fn routes() -> OpenApiRouter<Platform> {
    blocks::routes().merge(invites::routes())
}

pub use blocks::for_world as blocks_for_world;
