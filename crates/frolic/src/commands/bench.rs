//! `frolic bench`: the benchmarks, and the control plane that one of them measures.

mod listings_server;

use anyhow::Result;
use clap::{Args, Subcommand};
use frolic_bench::Benchmark;

/// Measure this machine and this build
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    #[command(flatten)]
    Benchmark(Benchmark),
    #[command(hide = true)]
    ListingsServer(listings_server::ServerArgs),
}

/// Runs one benchmark.
pub async fn run(args: BenchArgs) -> Result<()> {
    match args.what {
        What::Benchmark(benchmark) => frolic_bench::run(benchmark).await,
        What::ListingsServer(args) => listings_server::run(args).await,
    }
}
