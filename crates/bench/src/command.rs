//! `frolic bench`: measurements, as ratios against a floor taken in the same run.

use anyhow::Result;
use clap::Subcommand;

use crate::{
    compute, crowd, floor, join, listings, npcs, package, physics, projectiles, script, snapshot,
    soak, sockets, stages, step, terrain,
};

/// The benchmarks.
#[derive(Subcommand, Debug)]
#[expect(
    missing_docs,
    reason = "each is documented at its arguments, for --help"
)]
pub enum Benchmark {
    Compute(compute::ComputeArgs),
    Crowd(crowd::CrowdArgs),
    Join(join::JoinArgs),
    Listings(listings::ListingsArgs),
    Npcs(npcs::NpcsArgs),
    Package(package::PackageArgs),
    Projectiles(projectiles::ProjectilesArgs),
    Physics(physics::PhysicsArgs),
    Script(script::ScriptArgs),
    Snapshot(snapshot::SnapshotArgs),
    Soak(soak::SoakArgs),
    Sockets(sockets::SocketsArgs),
    Stages(stages::StagesArgs),
    Step(step::StepArgs),
    Terrain(terrain::TerrainArgs),
    #[command(hide = true)]
    ListingsLoad(listings::load::LoadArgs),
    #[command(hide = true)]
    FloorServer(floor::ServerArgs),
    #[command(hide = true)]
    FloorClients(floor::ClientArgs),
}

/// Runs one benchmark.
///
/// # Errors
/// When it could not be measured.
pub async fn run(benchmark: Benchmark) -> Result<()> {
    match benchmark {
        Benchmark::Compute(args) => compute::run(args),
        Benchmark::Crowd(args) => crowd::run(args),
        Benchmark::Join(args) => join::run(args).await,
        Benchmark::Listings(args) => listings::run(&args),
        Benchmark::ListingsLoad(args) => listings::load::run(args).await,
        Benchmark::Npcs(args) => npcs::run(args),
        Benchmark::Package(args) => package::run(args),
        Benchmark::Projectiles(args) => projectiles::run(args),
        Benchmark::Physics(args) => physics::run(args),
        Benchmark::Script(args) => script::run(args),
        Benchmark::Snapshot(args) => snapshot::run(args),
        Benchmark::Soak(args) => soak::run(args),
        Benchmark::Sockets(args) => sockets::run(args).await,
        Benchmark::Stages(args) => stages::run(args),
        Benchmark::Step(args) => step::run(args),
        Benchmark::Terrain(args) => terrain::run(args),
        Benchmark::FloorServer(args) => floor::serve(args),
        Benchmark::FloorClients(args) => floor::clients(args),
    }
}
