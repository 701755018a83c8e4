// The script tests of crates/script/tests in the browser's VM, and the definition of the API against what is there.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test, vi } from 'vitest';
import type { Page } from '../../generated/api';
import type { Cast, WireValue } from '../core/events';
import { ScriptRuntime } from './runtime';
import { TestHost, clock } from './testhost';

const WASM = new URL('../../wasm/luau.wasm', import.meta.url);
const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const TESTS = `${ROOT}/crates/script/tests`;
const PAGES = JSON.parse(readFileSync(new URL('../../generated/api.json', import.meta.url), 'utf8')) as Page[];
const FINISHED = '@finished';

const isScript = (name: string) => name.endsWith('.luau') || name.endsWith('.lua');

/** As in crates/script/tests/api.rs, without server-only tests. */
const MODULES: Record<string, string> = {
  ...Object.fromEntries(
    readdirSync(`${TESTS}/modules`, { recursive: true, encoding: 'utf8' })
      .filter((name) => isScript(name) && !name.startsWith('Server'))
      .map((name) => [name, readFileSync(`${TESTS}/modules/${name}`, 'utf8')]),
  ),
  'ReplicatedStorage/Counter.luau': 'local n = 0\nreturn { next = function() n += 1 return n end }',
  'ReplicatedStorage/A.luau': "return require('B')",
  'ReplicatedStorage/B.luau': "return require('ReplicatedStorage/A')",
  'ReplicatedStorage/Waits.luau': 'task.wait(1) return 1',
  'ReplicatedStorage/Broken.luau': "error('no luck')",
  'spells/agree/spell.luau': readFileSync(`${TESTS}/spells/agree.luau`, 'utf8'),
};

/** The entities of crates/script/tests/api.rs, as replicated by the server. */
function cast(): Cast {
  const [draws, answers] = readFileSync(`${TESTS}/spells/answers.txt`, 'utf8').trim().split(/ (.*)/s);
  const [caster, seed, tick] = [10, 8_123_456_789, 1];
  const target: Cast['target'] = [1, 2, 3];
  return {
    spellId: 'agree',
    revisionId: '',
    caster,
    target,
    params: [{ power: 3 }],
    seed,
    draws: Number(draws),
    answers: JSON.parse(answers!) as WireValue[],
    tick,
  };
}

const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.luau') && !/^(spells|modules|hostile)\//.test(name))
  .map((name) => ({ name, source: readFileSync(`${TESTS}/${name}`, 'utf8') }))
  .filter(({ source }) => /^--@test (client|both)\n/.test(source));
const pathOf = (name: string) => `StarterPlayer/${name}`;

interface Compiled {
  builtin: [string, string][];
  scripts: Record<string, string>;
}
let compiled: Compiled;
let module: WebAssembly.Module;

beforeAll(async () => {
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now());
  module = await WebAssembly.compile(readFileSync(WASM));
  const own = files.map(({ name, source }) => [pathOf(name), `${source}\nprint("${FINISHED}")`]);
  const built = process.env.LUAUC;
  const args = built ? [] : ['run', '--quiet', '--package', 'frolic-script', '--example', 'luauc'];
  const input = JSON.stringify({ ...MODULES, ...Object.fromEntries(own) });
  compiled = JSON.parse(
    execFileSync(built ?? 'cargo', args, { cwd: ROOT, input, maxBuffer: 64 << 20 }).toString(),
  ) as Compiled;
}, 900_000);

const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));

async function start(host: TestHost): Promise<ScriptRuntime> {
  const runtime = await ScriptRuntime.create(module, host);
  for (const [path, code] of compiled.builtin) runtime.run(path, bytes(code));
  for (const path of Object.keys(MODULES)) runtime.run(path, bytes(compiled.scripts[path]!));
  return runtime;
}

/** Implements `Network.InvokeServer("Test.…")` of the tests. Returns its result, or undefined for no answer. */
function happen(host: TestHost, runtime: ScriptRuntime, name: string, args: WireValue[]): WireValue[] | undefined {
  const key = (kind: 'Keyboard' | 'Mouse' | 'Gamepad' | 'Action' | 'Tap', down: boolean, x = 5, y = 6) =>
    runtime.inputEvent({ down, key: String(args[0]), kind, x, y });
  switch (name) {
    case 'Test.Key':
      if (args[1]) host.keys.add(String(args[0]));
      else host.keys.delete(String(args[0]));
      key((args[2] as 'Keyboard' | undefined) ?? 'Keyboard', args[1] === true);
      return [];
    case 'Test.Hold':
      host.keys.add(String(args[0]));
      runtime.tick(1 / 60);
      return [];
    case 'Test.Action':
      key('Action', args[1] === true);
      return [];
    case 'Test.Tap':
      key('Tap', true, Number(args[0]), Number(args[1]));
      return [];
    case 'Test.Click':
      runtime.uiEvent(Number(args[0]), args[1] === undefined ? 'Click' : 'Select', Number(args[1] ?? 0));
      return [];
    case 'Test.Player':
      runtime.playerEvent(args[0] === true, Number(args[1]));
      return [];
    case 'Test.Cast':
      runtime.cast(cast());
      return [];
    case 'Test.Casts':
      return [host.casts.map(([spell]) => spell)];
    case 'Test.Refuse':
      runtime.castRefused(String(args[0]));
      return [];
    case 'Test.Event':
      runtime.dispatchEvent(String(args[0]), args.slice(1));
      return [];
    case 'Test.Terrain':
      runtime.terrainEvent([1, 2, 3], [4, 5, 6]);
      runtime.happened('terrainRefused', ['protected', 'This place is protected.']);
      return [];
    case 'Test.Npc':
      runtime.happened('npc', [args[0]!, 'chase', 'alert']);
      return [];
    case 'Test.Shot':
      runtime.happened('shot', ['Blaster', { $e: 10 }, { $v: [1, 2, 3] }, { $v: [0, 0, -90] }]);
      runtime.happened('impact', ['Blaster', true, { $e: 10 }, { $v: [1, 2, -3] }, { $v: [0, 0, 1] }]);
      runtime.happened('impact', ['Blaster', false, null, { $v: [4, 5, 6] }, { $v: [0, 1, 0] }]);
      return [];
    case 'Test.Actions':
      return [[...host.actions]];
    case 'Test.Screen':
      return [[...host.screen]];
    case 'Test.Sent':
      return [host.sent.map(([event, , reliable]) => `${event}:${reliable}`)];
    default:
      return undefined;
  }
}

test.each(files.map(({ name }) => name))('%s', async (name) => {
  const host = new TestHost();
  const runtime = await start(host);
  runtime.run(pathOf(name), bytes(compiled.scripts[pathOf(name)]!));
  for (let tick = 0; tick < 300; tick++) {
    runtime.tick(1 / 60);
    for (const [call, wanted, args] of host.calls.splice(0)) {
      const values = happen(host, runtime, wanted, args);
      if (values) runtime.dispatchResult(call, { ok: true, values });
      else if (wanted === 'Test.Fail') runtime.dispatchResult(call, { ok: false, error: 'no luck' });
    }
  }
  runtime.dispose();
  expect(host.logs.filter((line) => line.startsWith('error'))).toEqual([]);
  expect(
    host.logs.some((line) => line.endsWith(FINISHED)),
    'it reaches its end',
  ).toBe(true);
});

test('a spell runs identically on both sides', async () => {
  const host = new TestHost();
  const runtime = await start(host);
  runtime.cast(cast());
  for (let tick = 0; tick < 30; tick++) runtime.tick(1 / 60);
  runtime.dispose();
  // crates/script/tests/api.rs compares the server's VM with the same text; a warning would indicate a divergence.
  const said = readFileSync(`${TESTS}/spells/expected.txt`, 'utf8').trim();
  expect(host.logs.map((line) => line.replace(/^info .*?: /, ''))).toEqual([said]);
});

test('client scripts have exactly the defined API', async () => {
  const runtime = await start(new TestHost());
  const luau = new Set(
    '_VERSION assert bit32 buffer coroutine error getmetatable ipairs math next pairs pcall rawequal rawget rawlen rawset select setmetatable string table tonumber tostring type unpack utf8 vector xpcall'.split(
      ' ',
    ),
  );
  const aliases = PAGES.flatMap((page) => page.aliases);
  const there = new Set(
    runtime
      .members()
      .filter((name) => !luau.has(name) && !aliases.includes(name.split('.')[0]! === name ? '' : name.split('.')[0]!)),
  );
  const wanted = new Set<string>();
  for (const page of PAGES.filter(({ side }) => side !== 'server')) {
    if (page.kind === 'record' && page.name !== 'PlayingSound') continue;
    if (page.kind === 'library' || page.member.some((member) => member.static))
      [page.name, ...page.aliases].forEach((name) => wanted.add(name));
    for (const member of page.member) {
      if (member.kind === 'callback' || (member.side ?? page.side) === 'server') continue;
      wanted.add(page.kind === 'globals' ? member.name : `${page.name}.${member.name}`);
    }
  }
  expect(
    [...there].filter((name) => !wanted.has(name)),
    'there, but not defined in crates/script/api',
  ).toEqual([]);
  expect(
    [...wanted].filter((name) => !there.has(name)),
    'defined in crates/script/api, but not there',
  ).toEqual([]);
});
