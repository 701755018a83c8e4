//! New scripts for the world and its clients.

use std::time::Instant;

use frolic_protocol::ServerMessage;
use frolic_protocol::fleet::{ReloadReply, ReloadRequest};

use super::Host;
use crate::incoming::Encoding;
use crate::scripts::{ClientScripts, ScriptRelease};

impl Host {
    /// Switches the world to the scripts of a package. Scripts that do not compile
    /// change nothing.
    pub(super) fn reload(&mut self, request: &ReloadRequest) -> ReloadReply {
        if self.closing.is_some() {
            // The running scripts must finish in order; the next process has the
            // new ones.
            return ReloadReply {
                version: self.world.script_version(),
                errors: vec!["the world is closing; its next start has the new scripts".into()],
                ..ReloadReply::default()
            };
        }
        let reply = match self.world.reload(&request.revision, &request.scripts) {
            Ok(Some(done)) => {
                let swapped_back = self.world.failed_reload();
                if let Some(reason) = &swapped_back {
                    self.world.swap_back(reason);
                }
                self.restock();
                ReloadReply {
                    version: self.world.script_version(),
                    changed: done.changed,
                    removed: done.removed,
                    errors: Vec::new(),
                    swapped_back,
                }
            }
            Ok(None) => ReloadReply {
                version: self.world.script_version(),
                ..ReloadReply::default()
            },
            Err(errors) => ReloadReply {
                version: self.world.script_version(),
                errors: errors.iter().map(ToString::to_string).collect(),
                ..ReloadReply::default()
            },
        };
        self.write_logs(Instant::now());
        reply
    }

    /// Rolls back to the scripts before the last reload when the new ones perform
    /// worse.
    pub(super) fn judge_scripts(&mut self, script_us: u64) {
        let verdict = self.world.judge_reload(script_us);
        if let Some(reason) = verdict
            && self.world.swap_back(&reason).is_some()
        {
            self.restock();
        }
    }

    /// The world's scripts have changed: clients get them as soon as the platform
    /// has signed the new manifest.
    pub(super) fn restock(&mut self) {
        let settings = &self.settings;
        let (game_id, bundles) = (&settings.game_id, &settings.bundles);
        let client_scripts =
            ClientScripts::new(&self.world, game_id, bundles, Some(&self.client_scripts));
        let press = settings.press.clone();
        let list = press.as_ref().map(|_| client_scripts.press(&self.world));
        self.next_shelf = Some(client_scripts);
        match (press, list) {
            (Some(press), Some(list)) => {
                if press.try_send(list).is_err() {
                    tracing::warn!("too many lists of scripts wait for their signature");
                }
            }
            _ => self.put_up(),
        }
    }

    /// What the platform needs to sign the current manifest.
    pub fn press(&self) -> ScriptRelease {
        self.client_scripts.press(&self.world)
    }

    /// The platform has signed a manifest: of the pending scripts, or of those that
    /// are active since the start.
    pub(super) fn signed(&mut self, hash: &str, signature: String) {
        if let Some(next) = self.next_shelf.as_mut().filter(|next| next.hash() == hash) {
            next.set_signature(signature);
            self.put_up();
        } else if self.client_scripts.hash() == hash {
            self.client_scripts.set_signature(signature);
        }
    }

    /// Activates the pending scripts and notifies all clients.
    fn put_up(&mut self) {
        let Some(next) = self.next_shelf.take() else {
            return;
        };
        self.client_scripts = next;
        for session in self.sessions.iter_mut() {
            let Some(player) = &mut session.player else {
                continue;
            };
            player.verified.clear();
            player.executed = 0;
            let with_list = session.encoding == Encoding::Json;
            let manifest = ServerMessage::ScriptManifest(self.client_scripts.manifest(with_list));
            session.send(&manifest);
        }
    }
}
