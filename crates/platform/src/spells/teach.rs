//! Delivers spells to running worlds, and records what each world has learned, so
//! that its next process loads it too.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use frolic_fleet_api::remote_commands::{LEARNED_MAX, LearnSpell, OutsideReply, OutsideRequest};
use futures_util::StreamExt as _;
use sqlx::Row;

use super::content::{self, ENTRY};
use crate::api::{RevisionInfo, SpellChannel};
use crate::core::error::ApiError;
use crate::fleet::WorldProcess;
use crate::spells::Spells;
use crate::worlds::internal::Caller;
use crate::worlds::remote_commands;

/// Maximum number of worlds that are contacted concurrently.
const CONCURRENT_WORLDS_MAX: usize = 16;

/// The spell's name in worlds. A draft or beta revision has its own name, so that it
/// does not replace the stable one.
pub fn name_in_worlds(spell_id: &str, channel: SpellChannel) -> String {
    match channel {
        SpellChannel::Stable => spell_id.to_owned(),
        SpellChannel::Beta | SpellChannel::Draft => format!("{spell_id}@{}", channel.name()),
    }
}

/// Makes a running world learn a revision.
///
/// # Errors
/// When the world rejects it or cannot be reached.
pub async fn teach(
    spells: &Spells,
    server: &WorldProcess,
    revision: &RevisionInfo,
    channel: SpellChannel,
) -> Result<(), ApiError> {
    let spell = lesson(spells, revision, channel).await?;
    let name = spell.name.clone();
    let request = OutsideRequest::Learn {
        spells: vec![spell],
    };
    match remote_commands::send(&spells.worlds, server, &request).await? {
        OutsideReply::Done => {}
        OutsideReply::Refused { code, message } => {
            return Err(remote_commands::refused(&code, message));
        }
    }
    sqlx::query(
        "INSERT INTO world_spells (world_id, name, revision_id, learned_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (world_id, name) DO UPDATE SET revision_id = excluded.revision_id,
           learned_at = excluded.learned_at",
    )
    .bind(&server.spec.world_id)
    .bind(name)
    .bind(&revision.revision_id)
    .bind(spells.core.clock.now_ms())
    .execute(&spells.core.db)
    .await?;
    Ok(())
}

async fn lesson(
    spells: &Spells,
    revision: &RevisionInfo,
    channel: SpellChannel,
) -> Result<LearnSpell, ApiError> {
    let (_, code) = content::file(spells, revision, ENTRY).await?;
    let manifest = &revision.manifest;
    Ok(LearnSpell {
        name: name_in_worlds(&revision.spell_id, channel),
        revision_id: revision.revision_id.clone(),
        display_name: manifest.name.clone(),
        cooldown_s: manifest.cooldown_s,
        cost: manifest.cost,
        range_m: manifest.range_m,
        code: String::from_utf8_lossy(&code).into_owned(),
    })
}

/// After publication: makes all running worlds, and so their clients, learn the
/// revision. Drafts are delivered only when they are cast.
pub fn teach_running_worlds(spells: &Arc<Spells>, revision: &RevisionInfo, channel: SpellChannel) {
    if channel == SpellChannel::Draft {
        return;
    }
    let revision = revision.clone();
    for_each_running(spells, move |spells, server| {
        let revision = revision.clone();
        async move { teach(&spells, &server, &revision, channel).await }
    });
}

/// After a take-down: makes all running worlds forget the spell.
pub fn forget_everywhere(spells: &Arc<Spells>, spell_id: &str) {
    let channels = [
        SpellChannel::Stable,
        SpellChannel::Beta,
        SpellChannel::Draft,
    ];
    let names = channels.map(|channel| name_in_worlds(spell_id, channel));
    let request = OutsideRequest::Forget {
        spells: names.to_vec(),
    };
    for_each_running(spells, move |spells, server| {
        let request = request.clone();
        async move {
            remote_commands::send(&spells.worlds, &server, &request).await?;
            Ok(())
        }
    });
}

/// Runs `work` for every running world, in the background.
fn for_each_running<F, W>(spells: &Arc<Spells>, work: F)
where
    F: Fn(Arc<Spells>, Arc<WorldProcess>) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(), ApiError>> + Send,
{
    let spells = spells.clone();
    tokio::spawn(async move {
        let running = spells.fleet.running();
        futures_util::stream::iter(running)
            .for_each_concurrent(CONCURRENT_WORLDS_MAX, |server| {
                let world = server.spec.world_id.clone();
                let working = work(spells.clone(), server);
                async move {
                    if let Err(error) = working.await {
                        // Most worlds do not allow spells; a later cast reports the reason.
                        tracing::debug!(%error, world, "could not deliver a spell to a world");
                    }
                }
            })
            .await;
    });
}

/// `GET /internal/worlds/{id}/spells`: the spells that earlier processes of this
/// world learned, each in its active revision.
///
/// # Errors
/// When the database fails.
pub async fn learned(
    State(spells): State<Arc<Spells>>,
    Caller(server): Caller,
) -> Result<Json<Vec<LearnSpell>>, ApiError> {
    let limit = i64::try_from(LEARNED_MAX).unwrap_or(i64::MAX);
    let rows = sqlx::query(
        "SELECT w.name, w.revision_id, s.active_stable_rev, s.active_beta_rev
         FROM world_spells w JOIN revisions r ON r.revision_id = w.revision_id
         JOIN spells s ON s.spell_id = r.spell_id
         WHERE w.world_id = $1 AND s.taken_down = 0 ORDER BY w.learned_at DESC, w.name LIMIT $2",
    )
    .bind(&server.spec.world_id)
    .bind(limit)
    .fetch_all(&spells.core.db)
    .await?;
    let mut lessons = Vec::new();
    for row in rows {
        let name: String = row.try_get("name")?;
        let (channel, active) = match name.rsplit_once('@') {
            None => (
                SpellChannel::Stable,
                row.try_get::<String, _>("active_stable_rev")?,
            ),
            Some((_, "beta")) => (SpellChannel::Beta, row.try_get("active_beta_rev")?),
            // A draft is learned again when its creator casts it.
            Some(_) => continue,
        };
        let Some(revision) = content::find(&spells.core.db, &active).await? else {
            continue;
        };
        match lesson(&spells, &revision, channel).await {
            Ok(lesson) => lessons.push(lesson),
            Err(error) => tracing::warn!(%error, name, "could not load a learned spell"),
        }
    }
    // Order from oldest to newest: the world forgets the oldest first.
    lessons.reverse();
    Ok(Json(lessons))
}
