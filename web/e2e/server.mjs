// Starts a real `frolic serve` on a free port with an empty data folder, and
// stops it again. There are no sleeps: the server prints
// its address when it listens.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

/** Known to the tests, so that they can sign tickets. */
export const SECRET_KEY = 'end-to-end-tests-only-0123456789abcdef';

const START_TIMEOUT_MS = 90_000;
const STOP_TIMEOUT_MS = 60_000;

/**
 * @param {Record<string, string>} [env] settings beside the usual ones
 * @returns a server with its `url`, its `log` so far, REST helpers and `stop()`
 */
export async function startServer(env = {}) {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'frolic-e2e-'));
  const child = spawn(binary(), ['serve'], {
    cwd: dataDir,
    env: { ...withoutSettings(process.env), HOST: '127.0.0.1', PORT: '0', DATA_DIR: dataDir, SECRET_KEY, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines = [];
  const url = await addressOf(child, lines).catch(async (error) => {
    child.kill('SIGKILL');
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  });
  await expectOk(await fetch(`${url}/readyz`));

  return {
    url,
    dataDir,
    log: () => lines.join('\n'),
    /** Suspends the platform until `thaw`; its game servers continue. */
    freeze: () => child.kill('SIGSTOP'),
    thaw: () => child.kill('SIGCONT'),
    /** A REST call with a JSON body; returns status and parsed answer. */
    async call(method, target, { body, token } = {}) {
      const headers = { 'content-type': 'application/json' };
      if (token) headers.authorization = `Bearer ${token}`;
      const response = await fetch(url + target, { method, headers, body: body && JSON.stringify(body) });
      const text = await response.text();
      return { status: response.status, body: parseJson(text) };
    },
    /** Logs in as a guest and joins; with no `where`, a world of the default game. */
    async join(where = {}, username = undefined) {
      const login = await this.call('POST', '/login', { body: { username } });
      if (login.status !== 200) throw new Error(`login failed: ${JSON.stringify(login)}`);
      const joined = await this.call('POST', '/join', { body: where, token: login.body.session_token });
      if (joined.status !== 200) throw new Error(`join failed: ${JSON.stringify(joined)}\n${lines.join('\n')}`);
      return { ...joined.body, username: login.body.username };
    },
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        const killer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
        await ended;
        clearTimeout(killer);
      }
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The binary that `cargo xtask test` built, or the one where cargo puts it. */
export function binary() {
  const target = process.env.CARGO_TARGET_DIR ?? path.resolve(import.meta.dirname, '../../target');
  const found = process.env.FROLIC_BIN ?? path.join(target, 'debug', 'frolic');
  if (!existsSync(found)) throw new Error(`no frolic binary at ${found}: run \`cargo xtask test\` first`);
  return found;
}

/** An environment without the developer's own settings: tests must not reach their database. */
export function withoutSettings(env) {
  const list = path.resolve(import.meta.dirname, '../../crates/frolic/src/config/variables.txt');
  const names = readFileSync(list, 'utf8').trim().split('\n');
  const isSetting = (name) =>
    names.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isSetting(name)));
}

/** Waits for the log line with the server's address. */
function addressOf(child, lines) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail('printed no address'), START_TIMEOUT_MS);
    const fail = (why) => {
      clearTimeout(timer);
      reject(new Error(`frolic serve ${why}\n${lines.join('\n')}`));
    };
    child.once('error', (error) => fail(`did not start: ${error.message}`));
    child.once('exit', (code, signal) => fail(`ended with ${code ?? signal}`));
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        const address = line.match(/https?:\/\/127\.0\.0\.1:[1-9]\d*/);
        if (address) {
          clearTimeout(timer);
          resolve(address[0]);
        }
      });
    }
  });
}

async function expectOk(response) {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
