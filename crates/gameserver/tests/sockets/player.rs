//! Our own client, on a connection that the test can cut.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use frolic_client::{Client, ClientEvent};
use frolic_protocol::message::Resumption;
use frolic_protocol::{Args, Value};

use crate::connection::{Connection, Transport};
use crate::server::TestServer;

pub struct Player {
    pub client: Client,
    /// How each welcome came about, and whose it was.
    pub welcomes: Vec<Resumption>,
    pub players: Vec<String>,
    /// The ticks of which a snapshot came, each as it came.
    pub shown: BTreeSet<u32>,
    /// Whether the server said that something was lost.
    pub lost: bool,
    name: String,
    connection: Option<Connection>,
    /// Connections that are no longer read and that the server believes to be
    /// alive.
    dead: Vec<Connection>,
    began: Instant,
    received: BTreeMap<String, Vec<u32>>,
}

impl Player {
    pub fn new(name: &str) -> Self {
        Self {
            client: Client::new(),
            welcomes: Vec::new(),
            players: Vec::new(),
            shown: BTreeSet::new(),
            lost: false,
            name: name.to_owned(),
            connection: None,
            dead: Vec::new(),
            began: Instant::now(),
            received: BTreeMap::new(),
        }
    }

    pub async fn connect(&mut self, server: &TestServer, transport: Transport) {
        let connection = Connection::open(server, transport).await;
        self.introduce(server, connection).await;
    }

    /// Connects by WebTransport as soon as the server has room for it.
    pub async fn connect_when_admitted(&mut self, server: &TestServer) {
        let port = server.webtransport.port;
        let connection = loop {
            if let Ok(connection) = Connection::try_open_webtransport(server, port).await {
                break connection;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        self.introduce(server, connection).await;
    }

    /// Connects by WebTransport through a relay that listens at a port.
    pub async fn connect_at(&mut self, server: &TestServer, port: u16) {
        let connection = Connection::open_webtransport(server, port).await;
        self.introduce(server, connection).await;
    }

    async fn introduce(&mut self, server: &TestServer, connection: Connection) {
        self.connection = Some(connection);
        let ticket = server.ticket("world_test", &self.name, 60);
        self.client.handshake(Some(ticket), None, None);
        self.flush().await;
    }

    /// Closes the connection and discards everything in flight.
    pub fn cut(&mut self) {
        self.connection = None;
        self.client.reconnect();
    }

    /// The connection is dead, but the server has not noticed.
    pub fn vanish(&mut self) {
        self.dead.extend(self.connection.take());
        self.client.reconnect();
    }

    pub fn played(&self) -> Duration {
        self.began.elapsed()
    }

    /// The numbers that came with events of a name.
    pub fn received(&self, name: &str) -> &[u32] {
        self.received.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn fire(&mut self, name: &str, number: u32) {
        let args = Args(vec![Value::Number(f64::from(number))]);
        self.client.fire_server(name.into(), args);
    }

    pub async fn flush(&mut self) {
        self.try_flush().await.expect("the connection is open");
    }

    /// Sends what is due.
    ///
    /// # Errors
    /// Fails when the connection has ended; the error is the reason.
    pub async fn try_flush(&mut self) -> Result<(), String> {
        match &mut self.connection {
            Some(connection) => connection.send(&mut self.client).await,
            None => Ok(()),
        }
    }

    /// The tick of the newest snapshot that came.
    pub fn newest_tick(&self) -> u32 {
        self.client.stats(self.now_ms()).tick
    }

    /// Bytes that came in all.
    pub fn bytes_in(&self) -> u64 {
        self.client.stats(self.now_ms()).bytes_in
    }

    fn now_ms(&self) -> f64 {
        self.began.elapsed().as_secs_f64() * 1000.0
    }

    /// Reads for a few milliseconds and says what is due.
    pub async fn play(&mut self, time: Duration) {
        self.play_with(time, &mut |_| ()).await;
    }

    /// Like `play`, and passes each event to `watch`.
    pub async fn play_with(
        &mut self,
        time: Duration,
        watch: &mut (dyn FnMut(&ClientEvent) + Send),
    ) {
        let until = tokio::time::Instant::now() + time;
        loop {
            match tokio::time::timeout_at(until, self.read()).await {
                Ok(Ok(())) => {
                    self.shown.insert(self.newest_tick());
                }
                Ok(Err(reason)) => panic!("the server closed: {reason}"),
                Err(_) => break,
            }
        }
        self.client.advance(self.now_ms());
        self.flush().await;
        while let Some(event) = self.client.take_event() {
            watch(&event);
            self.note(event);
        }
    }

    /// Reads once.
    ///
    /// # Errors
    /// Fails when the connection has ended; the error is the reason.
    pub async fn read(&mut self) -> Result<(), String> {
        let now_ms = self.now_ms();
        match &mut self.connection {
            Some(connection) => connection.receive(&mut self.client, now_ms).await,
            None => std::future::pending().await,
        }
    }

    fn note(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Remote { name, args } => {
                if let [Value::Number(number)] = args.0.as_slice() {
                    self.received.entry(name).or_default().push(*number as u32);
                }
            }
            ClientEvent::Welcome(welcome) => {
                self.welcomes.push(welcome.resumption);
                self.players.push(welcome.player_id);
            }
            ClientEvent::Error { code, message } => {
                self.lost |= code == "messages_lost";
                assert_ne!(code, "events_dropped", "{message}");
            }
            ClientEvent::Kick { reason } => panic!("kicked: {reason}"),
            _ => {}
        }
    }
}
