//! The floor: what it costs to move the same messages with nothing behind them.
//!
//! One thread, epoll, every socket read once per tick and written once per
//! update: the cheapest form we know. A real server is measured against it.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

/// Serve messages of a fixed size
#[derive(Args, Debug)]
pub struct ServerArgs {
    #[arg(long)]
    tick_hz: u32,
    #[arg(long)]
    update_hz: u32,
    #[arg(long)]
    bytes: usize,
}

/// Be the clients of the floor
#[derive(Args, Debug)]
pub struct ClientArgs {
    #[arg(long)]
    port: u16,
    #[arg(long)]
    players: u32,
    #[arg(long)]
    input_hz: u32,
    #[arg(long)]
    bytes: usize,
    #[arg(long)]
    seconds: u64,
}

const LISTENER: Token = Token(usize::MAX);

/// Reads each socket once per tick and writes each once per update, for ever.
pub fn serve(args: ServerArgs) -> Result<()> {
    let mut listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
    let mut poll = Poll::new()?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("{}", listener.local_addr()?.port());
    let mut events = Events::with_capacity(4096);
    let mut clients: Vec<Option<TcpStream>> = Vec::new();
    let message = vec![7u8; args.bytes];
    let step = Duration::from_secs(1) / args.tick_hz.max(1);
    let update_ticks = u64::from(args.tick_hz / args.update_hz.max(1)).max(1);
    let mut next = Instant::now();
    let mut buffer = vec![0u8; 64 * 1024];
    for tick in 0u64.. {
        next += step;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        poll.poll(&mut events, Some(Duration::ZERO))?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let token = Token(clients.len());
                    poll.registry()
                        .register(&mut stream, token, Interest::READABLE)?;
                    clients.push(Some(stream));
                }
            } else if let Some(client) = clients.get_mut(event.token().0) {
                drain(client, &mut buffer);
            }
        }
        if tick.is_multiple_of(update_ticks) {
            for client in &mut clients {
                let gone = client.as_mut().is_some_and(|stream| {
                    matches!(stream.write(&message), Err(error) if error.kind() != ErrorKind::WouldBlock)
                });
                if gone {
                    *client = None;
                }
            }
        }
    }
    Ok(())
}

/// Reads what is there; epoll is edge-triggered, so until nothing is left.
fn drain(client: &mut Option<TcpStream>, buffer: &mut [u8]) {
    let Some(stream) = client else {
        return;
    };
    loop {
        match stream.read(buffer) {
            Ok(count) if count == buffer.len() => {}
            Ok(count) if count > 0 => return,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            _ => {
                *client = None;
                return;
            }
        }
    }
}

/// Connects, sends inputs, reads updates, and ends after the given time.
pub fn clients(args: ClientArgs) -> Result<()> {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], args.port));
    let mut poll = Poll::new()?;
    let mut sockets = Vec::new();
    for index in 0..args.players as usize {
        let stream = std::net::TcpStream::connect(address).context("connecting to the floor")?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry()
            .register(&mut stream, Token(index), Interest::READABLE)?;
        sockets.push(Some(stream));
    }
    println!("settled");
    let message = vec![3u8; args.bytes];
    let mut buffer = vec![0u8; 64 * 1024];
    let mut events = Events::with_capacity(4096);
    let step = Duration::from_secs(1) / args.input_hz.max(1);
    let mut next = Instant::now();
    let end = next + Duration::from_secs(args.seconds);
    while Instant::now() < end {
        next += step;
        for socket in sockets.iter_mut().flatten() {
            let _ = socket.write(&message);
        }
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            poll.poll(&mut events, Some(wait))?;
            for event in &events {
                if let Some(socket) = sockets.get_mut(event.token().0) {
                    drain(socket, &mut buffer);
                }
            }
            if Instant::now() >= next {
                break;
            }
        }
    }
    Ok(())
}
