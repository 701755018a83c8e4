//! The two servers of `frolic bench listings`: a route that says hello, and a platform
//! with many games in its store.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::get;
use clap::Args;
use frolic_platform::{Platform, Settings, bind, ids};
use sqlx::{AnyPool, Column, Row};
use tokio::net::TcpListener;

use crate::commands::serve;

/// Serve for the benchmark of listings
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// Only say hello
    #[arg(long)]
    hello: bool,
    /// Games in the store
    #[arg(long, default_value_t = 0)]
    games: u32,
}

/// The data of this run; it goes with the process.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Prints its port and serves until it is killed.
pub async fn run(args: ServerArgs) -> Result<()> {
    if args.hello {
        let app = Router::new().route("/", get(|| async { "Hello, World!" }));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?.port());
        return Ok(axum::serve(listener, app).await?);
    }
    let folder = Folder(std::env::temp_dir().join(ids::new_id("frolic-bench")));
    // The first opening makes the tables and the samples to copy.
    let (listener, platform) = open(&folder.0).await?;
    serve::publish_samples(&platform).await;
    platform.serve(listener, std::future::ready(())).await;
    fill(&folder.0, args.games).await?;
    let (listener, platform) = open(&folder.0).await?;
    println!("{}", listener.local_addr()?.port());
    platform.serve(listener, serve::stop_requested()).await;
    Ok(())
}

async fn open(folder: &Path) -> Result<(TcpListener, Platform)> {
    let settings = Settings::new(folder.to_owned(), vec![7; 32]);
    let listener = bind(settings.host, 0).await?;
    let address = listener.local_addr()?;
    let platform = serve::open(settings, address).await?;
    Ok((listener, platform))
}

/// Copies a sample many times, with other names, times and figures.
async fn fill(folder: &Path, games: u32) -> Result<()> {
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}", folder.join("frolic.db").display());
    let db = AnyPool::connect(&url).await?;
    let sample = sqlx::query("SELECT * FROM games ORDER BY game_id LIMIT 1")
        .fetch_one(&db)
        .await
        .context("there is no sample game to copy")?;
    let columns: Vec<&str> = sample.columns().iter().map(Column::name).collect();
    let values = columns.iter().map(|column| match *column {
        "game_id" => "'bench-' || CAST($1 AS TEXT)",
        "name" => "name || ' ' || CAST($1 AS TEXT)",
        "created_at" | "updated_at" => "created_at - $1 * 60000",
        "plays" => "($1 * 7919) % 5000",
        "likes" => "($1 * 104729) % 700",
        "featured" => "CASE WHEN $1 % 100 = 0 THEN 1 ELSE 0 END",
        other => other,
    });
    let statement = format!(
        "INSERT INTO games ({}) SELECT {} FROM games WHERE game_id = $2",
        columns.join(", "),
        values.collect::<Vec<_>>().join(", ")
    );
    let sample: String = sample.try_get("game_id")?;
    let mut transaction = db.begin_with("BEGIN").await?;
    for number in 0..games {
        sqlx::query(sqlx::AssertSqlSafe(statement.clone()))
            .bind(i64::from(number))
            .bind(&sample)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    db.close().await;
    Ok(())
}
