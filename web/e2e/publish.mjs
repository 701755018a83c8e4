// Publishes a game defined in a test.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { binary } from './server.mjs';

/** Packs the files (path to text or bytes) with `frolic pack` and uploads them as a guest. */
export async function publish(server, files) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'frolic-game-'));
  try {
    for (const [name, content] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
      await writeFile(path.join(folder, name), content);
    }
    const archive = path.join(folder, 'test.game');
    await promisify(execFile)(binary(), ['pack', folder, '--output', archive]);
    const login = await server.call('POST', '/login', { body: {} });
    const answer = await fetch(`${server.url}/api/games`, {
      method: 'POST',
      headers: { authorization: `Bearer ${login.body.session_token}` },
      body: await readFile(archive),
    });
    assert.equal(answer.status, 201, await answer.text());
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
