//! Tests of the control plane with real sockets and a real database, in one binary so that it is
//! linked only once.
#![allow(clippy::unwrap_used, reason = "all of this is test code, helpers too")]

mod accounts;
mod admin;
mod blobs;
mod conformance;
mod console;
mod database_outage;
mod datastore;
mod draft;
mod fleet;
mod hostile;
mod hostile_http;
mod identity;
mod join;
mod joining_hostile;
mod keys;
mod login;
mod migrating;
mod moderation;
mod pending_joins;
mod persistence;
mod postgres_disk_full;
mod profiles;
mod publishing;
mod reconnecting;
mod remote_commands;
mod rooms;
mod scripts;
mod session_lifetime;
mod social;
mod socketio;
mod spells;
mod statistics;
mod store;
mod support;
mod tables;
mod tls;
mod uploading;
mod worlds;
