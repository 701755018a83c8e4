//! Blocks and invitations.

use serde::{Deserialize, Serialize};

/// A user whom you have blocked.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Block {
    /// User id.
    pub user_id: String,
    /// Name.
    pub username: String,
    /// RFC 3339.
    pub blocked_at: String,
}

/// `GET /api/blocks`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BlockList {
    /// This page, the newest first.
    pub blocks: Vec<Block>,
    /// Number of blocks on all pages.
    pub total: u32,
    /// Page number, from 1.
    pub page: u32,
    /// Page size.
    pub per_page: u32,
}

/// `POST /api/invites`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NewInvite {
    /// The world you are in.
    pub world_id: String,
}

/// Response of `POST /api/invites`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Invite {
    /// Invitation code, for `POST /join`.
    pub code: String,
    /// Path to append to the site's origin.
    pub path: String,
    /// RFC 3339.
    pub expires_at: String,
}

/// `GET /api/invites/{code}`: the invitation as the friend sees it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct InviteInfo {
    /// The code.
    pub code: String,
    /// Name of the inviting user.
    pub inviter: String,
    /// Appearance of their character.
    pub looks: super::CharacterLooks,
    /// The game.
    pub game_id: String,
    /// Its title.
    pub game_name: String,
    /// Its thumbnail, if it has one.
    #[schema(required)]
    pub thumbnail_url: Option<String>,
    /// Whether the world is running; joining starts it otherwise.
    pub running: bool,
    /// Current players.
    pub players: u32,
    /// Maximum number of players.
    pub max_players: u32,
    /// RFC 3339.
    pub expires_at: String,
}
