//! Interest management: what is replicated to which client, how often, and in
//! how many bytes.
//!
//! [`replication`] collects the changes of a tick into [`cells`], which have
//! versions; a change is encoded once for all clients that have the same version
//! of a cell. [`visible_cells`] determines which cells a client sees, [`view`]
//! what it has of them and what to send next, [`json_view`] the same for JSON
//! clients, [`budget`] in how many bytes, [`introductions`] what else it must
//! receive about what it sees. The cost of a tick grows with what is visible,
//! not with entities times clients.

mod budget;
pub(crate) mod cells;
mod introductions;
mod json_view;
mod replication;
mod view;
mod visible_cells;

pub use json_view::JsonView;
pub(crate) use replication::{Replication, Source};
pub use view::{ClientView, Delivery};
use view::{Scratch, Sender};
