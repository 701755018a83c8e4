// Both example clients against a real server, in one world: each walks, is
// seen by the other, and reconnects when the test cuts its connection or kills
// the world's server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { startServer } from '../web/e2e/server.mjs';
import { openTunnel } from '../web/e2e/tunnel.mjs';

const SECONDS = 8;
/** Commands whose answers an example may miss because it leaves right behind them. */
const LAST_WORDS = 10;
const ADMIN_TOKEN = 'the admin token of the example tests';
const here = import.meta.dirname;

let server;
before(async () => {
  server = await startServer({ ADMIN_TOKEN });
});
after(() => server?.stop());

/** One example at work; `line(fits)` waits for a line it prints. */
class Walker {
  lines = [];
  #waiting = [];

  constructor(program, args) {
    this.child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = once(this.child, 'close').then(([code]) => {
      for (const waiter of this.#waiting) waiter.reject(new Error(`ended without ${waiter.fits}:\n${this.lines.join('\n')}`));
      return code;
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => this.#print(line));
    }
  }

  #print(line) {
    this.lines.push(line);
    for (const waiter of this.#waiting) {
      const found = line.match(waiter.fits);
      if (found) waiter.resolve(found);
    }
  }

  line(fits) {
    const found = this.lines.map((line) => line.match(fits)).find((match) => match);
    if (found) return Promise.resolve(found);
    return new Promise((resolve, reject) => this.#waiting.push({ fits, resolve, reject }));
  }

  /** Waits for the end, and reads what it says about itself. */
  async result() {
    const code = await this.ended;
    const said = this.lines.join('\n');
    assert.equal(code, 0, said);
    const last = said.match(/walked ([\d.]+) m, got (\d+) acks for (\d+) commands, met (\d+), ping (\d+) ms/);
    assert.ok(last, said);
    assert.doesNotMatch(said, /^error: (?!kick goodbye)/m);
    const [walked, acks, commands, met, ping] = last.slice(1).map(Number);
    return { walked, acks, commands, met, ping, said };
  }
}

const python = (...args) => new Walker(process.env.PYTHON ?? 'python3', [path.join(here, 'python/walk.py'), ...args]);
const javascript = (...args) => new Walker(process.execPath, [path.join(here, 'javascript/walk.mjs'), ...args]);

/** `first` goes to the world's own port, `second` through the room address over a line that breaks. */
async function walkTogether([adaName, first], [benName, second]) {
  const line = await openTunnel(server.url);
  const ada = first(server.url, adaName, String(SECONDS));
  const [, room] = await ada.line(/^in as \d+ in room (\w+)/);
  const ben = second(line.url, benName, String(SECONDS), room);
  const [, character] = await ben.line(/^in as (\d+) in room/);
  await Promise.all([
    ada.line(new RegExp(`^near: ${benName}`)),
    ben.line(new RegExp(`^near: ${adaName}`)),
  ]);
  line.cut();
  const [, again] = await ben.line(/^back as (\d+) in room/);
  assert.equal(again, character, 'the same character comes back');
  for (const walker of [ada, ben]) {
    const { walked, acks, commands, met, ping, said } = await walker.result();
    assert.ok(walked > 5, `walked ${walked} m:\n${said}`);
    // A cut connection loses the acks in flight; otherwise only the last few are not waited for.
    const unanswered = walker === ada ? LAST_WORDS : commands / 2;
    assert.ok(acks >= commands - unanswered, `${acks} acks for ${commands} commands:\n${said}`);
    assert.equal(met, 1, said);
    assert.ok(ping < 5000, `a ping of ${ping} ms:\n${said}`);
  }
  assert.equal(ben.lines.filter((text) => text === 'connection lost').length, 1, ben.lines.join('\n'));
  line.close();
}

/** Ends the process of a world at once, as a crash does. */
async function killWorld(room) {
  const { body } = await server.call('GET', '/admin/servers', { token: ADMIN_TOKEN });
  const world = body.servers.find((one) => one.room_code === room);
  assert.ok(world?.pid, JSON.stringify(body));
  process.kill(world.pid, 'SIGKILL');
}

/** The next process of the world listens at another port, which only the platform knows. */
async function walkOn(name, example) {
  const walker = example(server.url, name, String(2 * SECONDS));
  const [, room] = await walker.line(/^in as \d+ in room (\w+)/);
  await killWorld(room);
  const [, again] = await walker.line(/^back as \d+ in room (\w+)/);
  assert.equal(again, room, 'the same world');
  const { walked, said } = await walker.result();
  assert.ok(walked > 5, `walked ${walked} m:\n${said}`);
}

test('the example in Python walks, and the one in JavaScript comes back after a lost line', () =>
  walkTogether(['Ada', python], ['Ben', javascript]));

test('the example in JavaScript walks, and the one in Python comes back after a lost line', () =>
  walkTogether(['Cleo', javascript], ['Dora', python]));

test('the example in Python goes on when its server was killed', () => walkOn('Eli', python));

test('the example in JavaScript goes on when its server was killed', () => walkOn('Fay', javascript));

for (const [language, example] of [['Python', python], ['JavaScript', javascript]]) {
  test(`the example in ${language} stops when its time is over, although there is no world`, async () => {
    const walker = example(server.url, 'Gus', '2', 'ABCDEF');
    await walker.line(/404/);
    const { walked } = await walker.result();
    assert.equal(walked, 0);
  });
}
