//! Updates the running worlds of a game to its folder: new scripts are loaded
//! into running worlds, everything else restarts them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use frolic_fleet_api::process::{ReloadReply, ReloadRequest};
use frolic_package::{Limits, Package};
use frolic_platform::Platform;
use frolic_platform::fleet::{Phase, ReloadTarget};

use super::{Build, notes, read};
use crate::folder::FolderState;

/// How often the folder is looked at. A file counts as saved when two looks
/// in a row find it the same, so that no half-written one is taken.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The running game and where it comes from.
pub struct Workshop {
    folder: PathBuf,
    platform: Platform,
    http: reqwest::Client,
    creator_id: String,
    /// The current build.
    build: Build,
    /// Revisions that differ from `build` in nothing but scripts: worlds that
    /// run one of them can be brought to it without a restart.
    reloadable: BTreeSet<String>,
    /// The revision that each world was last offered. One that refused it is not
    /// asked again.
    offered: BTreeMap<String, String>,
}

impl Workshop {
    /// `build` was published for `creator_id`.
    pub fn new(folder: PathBuf, platform: Platform, creator_id: String, build: Build) -> Self {
        Self {
            folder,
            platform,
            http: reqwest::Client::new(),
            creator_id,
            reloadable: BTreeSet::from([build.package.revision.clone()]),
            build,
            offered: BTreeMap::new(),
        }
    }

    /// Follows the folder for ever.
    pub async fn watch(mut self, mut taken: FolderState) {
        let mut last = taken.clone();
        let mut every = tokio::time::interval(CHECK_INTERVAL);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            let folder = self.folder.clone();
            let state =
                tokio::task::spawn_blocking(move || FolderState::at(&folder, &Limits::default()));
            // A folder that is being moved or written cannot be read now and then.
            if let Ok(Ok(state)) = state.await {
                let settled = state == last;
                last = state;
                if settled && last != taken {
                    taken = last.clone();
                    if let Err(error) = self.take_in().await {
                        eprintln!("nothing changed: {error:#}");
                    }
                }
            }
            // Every time, not only after a save: a world that was starting
            // meanwhile began with what was there before.
            self.bring_up_to_date(Instant::now()).await;
        }
    }

    /// Publishes what the folder holds now; nothing changes when it has errors.
    async fn take_in(&mut self) -> Result<()> {
        let began = Instant::now();
        let folder = self.folder.clone();
        let build = match tokio::task::spawn_blocking(move || read(&folder)).await?? {
            Ok(build) => build,
            Err(report) => {
                notes::print_problems(&self.folder, &report);
                eprintln!("nothing changed; players stay on the previous version");
                return Ok(());
            }
        };
        if build.package.files == self.build.package.files {
            return Ok(());
        }
        notes::print_problems(&self.folder, &build.package.warnings);
        let (id_was, id_is) = (
            &self.build.package.manifest.game.id,
            &build.package.manifest.game.id,
        );
        if id_was != id_is {
            bail!(
                "game.toml has another id now ({id_is}, before {id_was}); start `frolic dev` again"
            );
        }
        let old = std::mem::replace(&mut self.build, build);
        let package = &self.build.package;
        let game_id = &package.manifest.game.id;
        let archive = self.build.archive.clone();
        self.platform
            .publish_draft(archive.into(), game_id, &self.creator_id)
            .await?;
        let changed = changed_files(&old.package, package);
        if !changed.is_empty() {
            self.reloadable.clear();
            // Before any world stops: players who reconnect start it with this.
            self.platform
                .move_worlds(game_id, &package.revision)
                .await?;
            println!(
                "{} changed: worlds restart, players reconnect",
                changed.join(", ")
            );
        }
        self.reloadable.insert(package.revision.clone());
        if self.bring_up_to_date(began).await == 0 {
            println!("saved; no one is playing");
        }
        Ok(())
    }

    /// Gives every world of the game that runs something else the newest
    /// version. Returns how many there were.
    async fn bring_up_to_date(&mut self, began: Instant) -> usize {
        let (game_id, revision) = {
            let package = &self.build.package;
            (package.manifest.game.id.clone(), package.revision.clone())
        };
        let fleet = self.platform.fleet();
        let mut stale = 0;
        let mut reload = BTreeSet::new();
        for server in fleet.all() {
            let running = server.revision();
            if server.spec.game_id != game_id || running == revision {
                continue;
            }
            let world_id = &server.spec.world_id;
            match server.phase() {
                Phase::Stopping | Phase::Ended(_) => {}
                _ if !self.reloadable.contains(&running) => {
                    fleet.stop(world_id);
                    stale += 1;
                }
                Phase::Ready(_) if self.offered.get(world_id) != Some(&revision) => {
                    reload.insert(world_id.clone());
                }
                _ => {}
            }
        }
        if reload.is_empty() {
            return stale;
        }
        let targets = fleet.reload_targets(&game_id).into_iter();
        for target in targets.filter(|target| reload.contains(&target.world_id)) {
            self.offered
                .insert(target.world_id.clone(), revision.clone());
            self.reload(&target, began).await;
            stale += 1;
        }
        stale
    }

    /// Only scripts have changed: a running world takes them in.
    async fn reload(&self, target: &ReloadTarget, began: Instant) {
        let package = &self.build.package;
        let request = ReloadRequest {
            revision: package.revision.clone(),
            scripts: package
                .scripts()
                .map(|(path, source)| (path.to_owned(), source.to_owned()))
                .collect(),
        };
        let answer = self
            .http
            .post(&target.url)
            .bearer_auth(&target.token)
            .json(&request)
            .send()
            .await
            .and_then(reqwest::Response::error_for_status);
        let reply = match answer {
            Ok(answer) => answer.json::<ReloadReply>().await,
            Err(error) => Err(error),
        };
        match reply {
            Ok(reply) if reply.errors.is_empty() => {
                let adopted = self
                    .platform
                    .adopt_revision(&target.world_id, &package.revision)
                    .await;
                if let Err(error) = adopted {
                    eprintln!("the platform did not record the new version: {error}");
                }
                let took = began.elapsed();
                println!("{}", notes::reload_summary(&reply, &package.revision, took));
            }
            Ok(reply) => reply.errors.iter().for_each(|error| eprintln!("{error}")),
            Err(error) => eprintln!("a world rejected the change: {error}"),
        }
    }
}

/// Files that no running world can take in: everything but scripts.
fn changed_files(old: &Package, new: &Package) -> Vec<String> {
    let paths: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
    paths
        .into_iter()
        .filter(|path| !path.starts_with("scripts/"))
        .filter(|path| old.files.get(*path) != new.files.get(*path))
        .cloned()
        .collect()
}
