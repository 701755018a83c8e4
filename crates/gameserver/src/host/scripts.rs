//! Scripts for clients: which version they run, and its delivery.

use std::collections::{BTreeMap, BTreeSet};

use frolic_fleet_api::process::{ReloadReply, ReloadRequest};
use frolic_protocol::ServerMessage;
use frolic_protocol::script::{MANIFEST_PATH, RunContext, ScriptManifest};
use frolic_world::{World, input};
use tokio::sync::mpsc;

use super::message::Outcome;
use crate::decoder::Encoding;
use crate::scripts::{ClientScripts, ScriptRelease};
use crate::session::Session;
use crate::sessions::Sessions;

/// Scripts that may be requested at once.
const SCRIPT_PATHS_MAX: usize = 1024;
/// Characters of a requested path that an error repeats.
const PATH_CHARS_MAX: usize = 80;

/// Delivers the client scripts of a world, and switches the world to new ones.
pub(super) struct ScriptServer {
    current: ClientScripts,
    /// Scripts that run in the world already, but are announced to clients only
    /// once the platform has signed them.
    next: Option<ClientScripts>,
    game_id: String,
    /// Scripts that are sent together, by the bundle's name.
    bundles: BTreeMap<String, Vec<String>>,
    /// Sends manifests to the platform, which signs them; none without a platform.
    releases: Option<mpsc::Sender<ScriptRelease>>,
}

impl ScriptServer {
    /// Delivers the scripts that the world has now.
    pub fn new(
        world: &World,
        game_id: String,
        bundles: BTreeMap<String, Vec<String>>,
        releases: Option<mpsc::Sender<ScriptRelease>>,
    ) -> Self {
        Self {
            current: ClientScripts::new(world, &game_id, &bundles, None),
            next: None,
            game_id,
            bundles,
            releases,
        }
    }

    /// What the platform needs to sign the current manifest.
    pub fn release(&self, world: &World) -> ScriptRelease {
        self.current.release(world)
    }

    /// The current manifest. JSON clients get the list with it.
    pub fn manifest(&self, with_list: bool) -> ScriptManifest {
        self.current.manifest(with_list)
    }

    /// Whether clients have a script of this path.
    pub fn has(&self, path: &str) -> bool {
        let mut entries = self.current.entries().iter();
        entries.any(|entry| entry.path == path)
    }

    /// Switches the world to the scripts of a package. Scripts that do not compile
    /// change nothing.
    pub fn reload(
        &mut self,
        request: &ReloadRequest,
        world: &mut World,
        sessions: &mut Sessions,
    ) -> ReloadReply {
        let mut reply = ReloadReply::default();
        let changes = world.changes_to(&request.scripts);
        let revision = request.revision.clone();
        match world.apply(input::Reload { revision, changes }) {
            Ok(Some(done)) => {
                reply.swapped_back = world.failed_reload();
                if let Some(reason) = reply.swapped_back.clone() {
                    world.apply(input::SwapBack { reason });
                }
                self.publish(world, sessions);
                (reply.changed, reply.removed) = (done.changed, done.removed);
            }
            Ok(None) => {}
            Err(errors) => reply.errors = errors.iter().map(ToString::to_string).collect(),
        }
        reply.version = world.script_version();
        reply
    }

    /// Rolls back to the scripts before the last reload when the new ones perform
    /// worse.
    pub fn judge(&mut self, script_us: u64, world: &mut World, sessions: &mut Sessions) {
        let verdict = world.judge_reload(script_us);
        if let Some(reason) = verdict
            && world.apply(input::SwapBack { reason }).is_some()
        {
            self.publish(world, sessions);
        }
    }

    /// The world's scripts have changed: clients get them as soon as the platform
    /// has signed the new manifest.
    pub fn publish(&mut self, world: &World, sessions: &mut Sessions) {
        let old = Some(&self.current);
        let next = ClientScripts::new(world, &self.game_id, &self.bundles, old);
        let Some(releases) = &self.releases else {
            return self.activate(next, sessions);
        };
        if releases.try_send(next.release(world)).is_err() {
            tracing::warn!("too many lists of scripts wait for their signature");
        }
        self.next = Some(next);
    }

    /// The platform has signed a manifest: of the pending scripts, or of those that
    /// are active since the start.
    pub fn signed(&mut self, hash: &str, signature: String, sessions: &mut Sessions) {
        if let Some(mut next) = self.next.take_if(|next| next.hash() == hash) {
            next.set_signature(signature);
            self.activate(next, sessions);
        } else if self.current.hash() == hash {
            self.current.set_signature(signature);
        }
    }

    /// Makes scripts the current ones and notifies all clients.
    fn activate(&mut self, scripts: ClientScripts, sessions: &mut Sessions) {
        self.current = scripts;
        for session in sessions.iter_mut() {
            let Some(player) = &mut session.player else {
                continue;
            };
            player.verified = BTreeSet::new();
            player.executed = 0;
            let with_list = session.encoding == Encoding::Json;
            let manifest = ServerMessage::ScriptManifest(self.current.manifest(with_list));
            session.send(&manifest);
        }
    }

    /// Sends the requested scripts, each from chunk `from` on.
    pub fn send(&self, session: &mut Session, paths: &[String], from: u32) -> Outcome {
        if paths.len() > SCRIPT_PATHS_MAX {
            return Err((
                "too_many",
                format!("ask for at most {SCRIPT_PATHS_MAX} scripts"),
            ));
        }
        // Repeated requests for the same script count once.
        let mut sent = BTreeSet::new();
        for path in paths.iter().filter(|path| sent.insert(path.as_str())) {
            let Some(unit) = self.current.unit(path) else {
                return Err(no_such_script(path));
            };
            if session.is_clogged() {
                let advice = "too much waits for you already; read it and ask again".into();
                return Err(("slow_reader", advice));
            }
            match session.encoding {
                Encoding::Binary => {
                    for packet in unit.packets(from) {
                        session.send_packet(packet);
                    }
                }
                Encoding::Json => unit.messages(from).for_each(|piece| session.send(&piece)),
            }
        }
        Ok(())
    }

    /// Scripts run in the order of the manifest, each once all before it are there;
    /// or all at once, when a client reports that it has them all.
    pub fn verified(
        &self,
        session: &mut Session,
        path: String,
        hash: &str,
        success: bool,
    ) -> Outcome {
        if path != MANIFEST_PATH && !self.has(&path) {
            return Err(no_such_script(&path));
        }
        let Some(player) = &mut session.player else {
            return Ok(());
        };
        if !success {
            // Once: repeated reports must not fill the log.
            if !std::mem::replace(&mut player.verify_failed, true) {
                tracing::warn!(%path, "a client could not verify a script");
            }
            return Ok(());
        }
        if path == MANIFEST_PATH {
            // For a manifest that has changed meanwhile: the next one is on its
            // way.
            if hash == self.current.hash() {
                let run_context = RunContext::Client;
                session.send(&ServerMessage::ExecuteScript { path, run_context });
            }
            return Ok(());
        }
        player.verified.insert(path);
        let entries = self.current.entries().iter();
        let scripts = entries.filter(|entry| !entry.lazy).skip(player.executed);
        let due: Vec<_> = scripts
            .take_while(|entry| player.verified.contains(&entry.path))
            .collect();
        player.executed += due.len();
        for entry in due {
            debug_assert_ne!(entry.run_context, RunContext::Server);
            session.send(&ServerMessage::ExecuteScript {
                path: entry.path.clone(),
                run_context: entry.run_context,
            });
        }
        Ok(())
    }
}

/// The path is untrusted: only as much is repeated as identifies it.
fn no_such_script(path: &str) -> (&'static str, String) {
    let path: String = path.chars().take(PATH_CHARS_MAX).collect();
    ("no_such_script", format!("{path} is not in the manifest"))
}
