//! `frolic bench sockets`: what idle Socket.IO clients cost a real control
//! plane, in memory and processor time.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures_util::stream::{self, StreamExt as _};
use futures_util::{SinkExt, TryStreamExt as _};
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::join::platform::Platform;

/// Connections that are made at the same time.
const AT_ONCE: usize = 64;
/// Longest wait for one step of a handshake.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long all clients are idle before and during the measurement of the
/// platform.
const IDLE: Duration = Duration::from_secs(5);

/// Measure what idle Socket.IO clients cost
#[derive(Args, Debug)]
pub struct SocketsArgs {
    /// How many clients connect
    #[arg(long, default_value_t = 5000)]
    clients: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct SocketsReport {
    clients: usize,
    connect_s: f64,
    rss_mb_before: f64,
    rss_mb_after: f64,
    kb_per_client: f64,
    cpu_percent_idle: f64,
}

const PING: &str = "2";
const PONG: &str = "3";

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Runs it.
///
/// # Errors
/// Fails when the platform does not start, or a client cannot connect.
pub async fn run(args: SocketsArgs) -> Result<()> {
    let platform = Platform::start().await?;
    let url = platform.url().replacen("http", "ws", 1);
    let url = format!("{url}/socket.io/?EIO=4&transport=websocket");
    let mut clients = JoinSet::new();
    // The first one makes what is made once.
    clients.spawn(stay(connect(&url).await.context("the first client")?));
    let rss_mb_before = platform.rss_mb()?;
    let began = Instant::now();
    let mut connecting = stream::iter(1..args.clients)
        .map(|_| connect(&url))
        .buffer_unordered(AT_ONCE);
    while let Some(socket) = connecting.try_next().await? {
        clients.spawn(stay(socket));
    }
    let connect_s = began.elapsed().as_secs_f64();
    tokio::time::sleep(IDLE).await;
    let (before, since) = (platform.cpu()?, Instant::now());
    tokio::time::sleep(IDLE).await;
    let used_s = platform.cpu()?.s_since(&before)?;
    let cpu_percent_idle = used_s / since.elapsed().as_secs_f64() * 100.0;
    let rss_mb_after = platform.rss_mb()?;
    if let Some(lost) = clients.try_join_next() {
        lost??;
        bail!("a client was let go");
    }
    let report = SocketsReport {
        clients: clients.len(),
        connect_s,
        rss_mb_before,
        rss_mb_after,
        kb_per_client: (rss_mb_after - rss_mb_before) * 1024.0 / args.clients.max(1) as f64,
        cpu_percent_idle,
    };
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print_table(&report);
    }
    Ok(())
}

fn print_table(report: &SocketsReport) {
    println!("idle Socket.IO clients        {:>10}", report.clients);
    println!("time until all are in         {:>8.1} s", report.connect_s);
    println!(
        "control plane before      {:>10.1} MB",
        report.rss_mb_before
    );
    println!("control plane with them   {:>10.1} MB", report.rss_mb_after);
    println!(
        "per client                {:>10.1} KB",
        report.kb_per_client
    );
    println!(
        "processor while idle      {:>10.1} %",
        report.cpu_percent_idle
    );
}

/// A client that has received its welcome.
async fn connect(url: &str) -> Result<Socket> {
    let connecting = tokio::time::timeout(PATIENCE, connect_async(url));
    let (mut socket, _) = connecting.await.context("no answer")??;
    expect(&mut socket, "0").await?;
    socket.send(Message::text("40")).await?;
    expect(&mut socket, "40").await?;
    expect(&mut socket, "42[\"connected\"").await?;
    Ok(socket)
}

async fn expect(socket: &mut Socket, start: &str) -> Result<()> {
    let text = tokio::time::timeout(PATIENCE, next(socket));
    let text = text.await.context("no answer")??;
    if !text.starts_with(start) {
        bail!("the platform said {text} and not {start}…");
    }
    Ok(())
}

/// Waits for the platform's next message; answers pings.
async fn next(socket: &mut Socket) -> Result<String> {
    loop {
        let message = socket.next().await.context("closed")??;
        let text = message.into_text()?;
        if text == PING {
            socket.send(Message::text(PONG)).await?;
            continue;
        }
        return Ok(text.to_string());
    }
}

/// Stays connected and says nothing by itself.
async fn stay(mut socket: Socket) -> Result<()> {
    loop {
        next(&mut socket).await?;
    }
}
