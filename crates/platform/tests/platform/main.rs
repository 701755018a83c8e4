//! Tests of the control plane with real sockets and a real database, in one binary so that it is
//! linked only once.
#![allow(clippy::unwrap_used, reason = "all of this is test code, helpers too")]

mod accounts;
mod admin;
mod coming_back;
mod conformance;
mod console;
mod datastore;
mod draft;
mod figures;
mod files;
mod fleet;
mod full_postgres;
mod hostile;
mod hostile_http;
mod identity;
mod join;
mod joining_hostile;
mod keys;
mod lasting;
mod login;
mod lost;
mod moderation;
mod profiles;
mod publishing;
mod remote_commands;
mod rooms;
mod scripts;
mod social;
mod socketio;
mod spells;
mod staying;
mod store;
mod support;
mod tables;
mod tls;
mod uploading;
mod waiting;
mod worlds;
