// A third-party client: only a WebSocket and the JSON format of the
// messages, written from the documentation alone.

/** One connection. Unconsumed messages are buffered. */
export class JsonClient {
  #socket;
  #messages = [];
  #waiting = [];
  #seq = 0;
  #inputSeq = 0;

  /**
   * Opens `address`. The ticket goes into the URL, unless `handshake` is set:
   * then it goes into the first message.
   */
  static async open(address, { ticket, handshake = false, resumeToken = null } = {}) {
    const url = new URL(address);
    if (ticket !== undefined && !handshake) url.searchParams.set('ticket', ticket);
    const client = new JsonClient(new WebSocket(url, ['frolic.v2.json']));
    await client.#opened();
    if (handshake) client.send('session', 'handshake', { ticket, resumeToken });
    return client;
  }

  constructor(socket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => {
      socket.addEventListener('close', (event) => {
        resolve({ code: event.code, reason: event.reason });
        this.#settle();
      });
    });
    socket.addEventListener('message', (event) => {
      this.#messages.push(JSON.parse(event.data));
      this.#settle();
    });
  }

  #opened() {
    return new Promise((resolve, reject) => {
      this.#socket.addEventListener('open', resolve, { once: true });
      this.#socket.addEventListener('error', (event) => reject(new Error(`refused: ${event.message ?? 'no reason'}`)), {
        once: true,
      });
    });
  }

  /** Sends a command and returns its `seq`. */
  send(feature, action, payload = {}) {
    this.#seq += 1;
    const command = { v: 2, kind: 'command', seq: this.#seq, feature, action, clientTime: performance.now(), payload };
    this.sendRaw(JSON.stringify(command));
    return this.#seq;
  }

  sendRaw(text) {
    this.#socket.send(text);
  }

  /** Sends one input per tick of `count` ticks, all holding the same keys. */
  walk(count, keys) {
    const released = { up: false, down: false, left: false, right: false, jump: false, run: false, yaw: 0, pitch: 0 };
    const inputs = Array.from({ length: count }, () => ({ seq: ++this.#inputSeq, ...released, ...keys }));
    this.send('movement', 'input_batch', { inputs });
    return this.#inputSeq;
  }

  /**
   * The first matching message, past or future, each returned once; rejects
   * when the connection closes first. Other messages stay buffered: a snapshot must not get
   * lost while waiting for an ack.
   */
  next(fits, what = fits.toString(), timeoutMs = 60_000) {
    const wanted = typeof fits === 'string' ? (message) => message.kind === fits : fits;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((entry) => entry !== waiter);
        reject(new Error(`no message for: ${what}; last ${JSON.stringify(this.#messages.slice(-3))}`));
      }, timeoutMs);
      const waiter = { wanted, resolve, reject, timer, what };
      this.#waiting.push(waiter);
      this.#settle();
    });
  }

  close() {
    this.#socket.close();
    return this.closed;
  }

  #settle() {
    for (const waiter of [...this.#waiting]) {
      const index = this.#messages.findIndex(waiter.wanted);
      const ended = this.#socket.readyState === WebSocket.CLOSED;
      if (index < 0 && !ended) continue;
      this.#waiting = this.#waiting.filter((entry) => entry !== waiter);
      clearTimeout(waiter.timer);
      if (index < 0) waiter.reject(new Error(`closed while waiting for: ${waiter.what}`));
      else waiter.resolve(this.#messages.splice(index, 1)[0]);
    }
  }
}

/**
 * The world state of a client that never acknowledges: each snapshot
 * is applied to the previous one.
 */
export class Replica {
  entities = new Map();
  players = new Map();
  ackSeq = 0;
  tick = 0;

  apply(snapshot) {
    if (snapshot.mode === 'full') {
      this.entities.clear();
    }
    for (const entity of snapshot.features.movement?.entities ?? []) {
      this.entities.set(entity.id, { ...this.entities.get(entity.id), ...entity });
    }
    for (const id of snapshot.features.movement?.removed ?? []) this.entities.delete(id);
    for (const player of snapshot.features.presence?.players ?? []) this.players.set(player.id, player);
    this.ackSeq = snapshot.ackSeq ?? this.ackSeq;
    this.tick = snapshot.tick;
  }

  /** Applies snapshots of `client` until `holds(this)` is true. */
  async until(client, holds, what = holds.toString(), timeoutMs = 60_000) {
    const deadline = performance.now() + timeoutMs;
    while (!holds(this)) {
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`never true: ${what}; entities ${JSON.stringify([...this.entities.values()])}`);
      this.apply(await client.next('snapshot', what, left));
    }
    return this;
  }
}
