//! People: accounts, profiles with characters, and who blocks whom. Knows no games and no worlds.

pub mod accounts;
pub mod expulsions;
pub mod profiles;
pub mod social;
