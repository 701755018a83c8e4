// The wasm VM with the builtin Luau, compiled by the server's compiler: what client scripts can do, and what
// hostile ones cannot.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { WireValue } from '../core/events';
import { ScriptRuntime } from './runtime';
import { TestHost, clock } from './testhost';

const WASM = new URL('../../wasm/luau.wasm', import.meta.url);
const ROOT = new URL('../../../..', import.meta.url);

/** One source per script; compiled together because starting the compiler takes longer than compiling. */
const SOURCES: Record<string, string> = {
  'StarterGui/Hud.luau': `
    local label = UI.Label({ Text = "Falls: 0", Anchor = "TopLeft", Size = 24 })
    Network.OnServerEvent("Falls", function(count) label.Text = \`Falls: {count}\` label:Destroy() end)`,
  'StarterGui/Button.luau': `
    local button = UI.Button{ Text = "Go" }
    button.Clicked:Connect(function() Network.FireServer("Clicked", button.Text) button.Visible = false end)`,
  'StarterPlayer/Gun.luau': `
    if Input.IsKeyPressed("Fire") then
        Network.FireServer("FireGun", Camera.Forward)   -- \`camera.Forward\` works too
    end
    assert(camera.Forward == Camera.Forward and Camera.Position == Vector3.new(1, 2, 3))
    Input.OnPressed("Jump", function() Network.FireServer("Jumped") end)
    local me = Players.LocalPlayer.Character
    assert(me.Id == 10 and me.Position == Vector3.new(10, 0, 0) and me.Exists)
    Sound.Play("shoot.wav")`,
  'StarterPlayer/Values.luau': `
    Network.OnServerEvent("Echo", function(...) Network.FireServer("Echo", ...) end)`,
  'StarterPlayer/Invoke.luau': `
    print(Network.InvokeServer("Add", 2, 3))
    print(pcall(Network.InvokeServer, "Fail"))
    print(pcall(Network.InvokeServer, "Silence"))`,
  'StarterPlayer/Bad.luau': `
    local ok, message = pcall(Network.FireServer, "X", print)
    assert(not ok and string.find(message, "cannot be sent"), message)
    local cycle = {} cycle.me = cycle
    assert(not pcall(Network.FireServer, "X", cycle))
    assert(not pcall(Network.FireServer, "X", { 1, 2, a = 3 }))
    assert(not pcall(Network.FireServer, "X", string.rep("x", 20000)))
    assert(not pcall(Network.FireServer, "X", Vector3.new(0/0, 0, 0)))
    assert(not pcall(UI.Label, { Colour = "#ffffff" }) and not pcall(UI.Label, { Color = "red" }))
    assert(not pcall(function() World.Time = 1 end) and not pcall(function() Camera.Forward = 1 end))
    assert(not pcall(loadstring, "x") and getfenv == nil and not pcall(function() return os.getenv end) and host == nil and engine == nil)
    assert(not pcall(function() string.rep = nil end) and not pcall(rawset, math, "floor", nil))
    assert(not pcall(string.rep, "x", 1e9) and not pcall(table.create, 1e9) and not pcall(buffer.create, 1e9))
    print("held")`,
  'StarterPlayer/Error.luau': `
    local function inner()
        local t = nil
        return t.x
    end
    function OnTick() inner() end`,
  'StarterPlayer/UsesModule.luau': `
    print(require("Shared").double(21), require("ReplicatedStorage/Shared") == require("Shared"))`,
  'StarterGui/Count.luau': `
    count = 5 UI.Label({ Text = "old" }) task.spawn(function() while true do task.wait() print("old task") end end)
    function OnSave() return { count = count + 1 } end`,
  'StarterGui/Count2.luau': `
    UI.Label({ Text = "new" }) function OnReload(old) print("got", old.count) end`,
  'StarterGui/UsesLate.luau': 'print("before") print(require("Late"))',
  'ReplicatedStorage/Late.luau': 'return "late"',
  'ReplicatedStorage/Shared.luau': 'print("module runs") return { double = function(n) return n * 2 end }',
  'StarterPlayer/Waits.luau': `
    local t = task.wait(0.5) print("woke", t >= 0.5)
    print(Random.new(42):NextInteger(1, 1000000), Vector3.new(3, 4, 0).Magnitude, typeof(Vector3.one))`,
  'StarterPlayer/Honest.luau': `
    local n = 0 function OnTick() n += 1 end
    Network.OnServerEvent("Count", function() Network.FireServer("Count", n) end)`,
  'StarterPlayer/Short.luau': `
    local n = 0 for i = 1, 4000 do n += i end print(n)`,
  'StarterPlayer/ShortTicks.luau': `
    function OnTick() local n = 0 for i = 1, 4000 do n += i end end`,
  'StarterPlayer/Long.luau': 'while true do end',
  'StarterPlayer/Slow.luau': `
    local s = string.rep("x", 100000) while true do local _ = string.reverse(s) end`,
  'StarterPlayer/Fatal.luau': `
    UI.Label({ Text = "a" }) UI.Button({ Text = "b" })
    Input.BindAction("Dash", "Q", print)
    function OnTick() while true do end end`,
  'Workspace/Lamp.luau':
    'print("lamp", entity.Id, entity.Position.X, entity.Attributes.Team, entity:GetAttribute("None"))',
};

/** Each runs beside Honest.luau. */
const HOSTILE = [
  'while true do end',
  'while true do pcall(function() while true do end end) end',
  'pcall(function() while true do end end) print("escaped")',
  'xpcall(function() while true do end end, function() while true do end end) print("escaped")',
  'function OnTick() while true do end end',
  'local s = "x" while true do s ..= s end',
  'local t = {} while true do t[#t + 1] = {} end',
  'held = {} while true do held[#held + 1] = table.create(1000, 1) end',
  'held = {} function OnTick() for _ = 1, 10 do held[#held + 1] = table.create(30000, 1) end end',
  'local t = {} while true do t[#t + 1] = coroutine.create(print) end',
  'local function f() return 1 + f() end f()',
  'local function f() coroutine.wrap(f)() end f()',
  'local function f() task.spawn(f) end f()',
  'local function again() task.defer(again) end again()',
  'local s = Signal.new() s:Connect(function() s:Fire() s:Fire() end) s:Fire()',
  'string.find(string.rep("a", 200000), string.rep("a*", 100) .. "b")',
];
HOSTILE.forEach((body, i) => (SOURCES[`StarterPlayer/Hostile${i}.luau`] = body));

interface Compiled {
  builtin: [string, string][];
  scripts: Record<string, string>;
}
let compiled: Compiled;
let module: WebAssembly.Module;

beforeAll(async () => {
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now());
  if (!existsSync(WASM)) throw new Error('web/src/wasm/luau.wasm is missing: run `cargo xtask luau`');
  module = await WebAssembly.compile(readFileSync(WASM));
  // `cargo xtask test` has built the compiler and says where; alone, cargo builds it.
  const built = process.env.LUAUC;
  const args = built ? [] : ['run', '--quiet', '--package', 'frolic-script', '--example', 'luauc'];
  const output = execFileSync(built ?? 'cargo', args, {
    cwd: ROOT,
    input: JSON.stringify(SOURCES),
    maxBuffer: 64 << 20,
  });
  compiled = JSON.parse(output.toString()) as Compiled;
}, 900_000);

const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));

let host: TestHost;
beforeEach(() => {
  host = new TestHost();
});

async function start(...paths: string[]): Promise<ScriptRuntime> {
  const runtime = await ScriptRuntime.create(module, host);
  for (const [path, code] of compiled.builtin) runtime.run(path, bytes(code));
  for (const path of paths) runtime.run(path, bytes(compiled.scripts[path]!));
  return runtime;
}

function ticks(runtime: ScriptRuntime, count: number): void {
  for (let i = 0; i < count; i++) runtime.tick(1 / 60);
}

test('the HUD shows values from the server', async () => {
  const runtime = await start('StarterGui/Hud.luau');
  runtime.dispatchEvent('Falls', [3]);
  runtime.dispatchEvent('Unknown', [3]);
  runtime.dispatchEvent('Unknown', [4]);
  expect(host.logs).toEqual([
    'warn @network: "Unknown" came from the server, and nothing listens to it: Network.OnServerEvent("Unknown", …)',
  ]);
  expect(host.screen[0]).toMatch(/^create 1 Label /);
  expect(JSON.parse(host.screen[0]!.slice('create 1 Label '.length))).toEqual({
    Text: 'Falls: 0',
    Anchor: 'TopLeft',
    Size: 24,
  });
  expect(host.screen.slice(1)).toEqual(['update 1 {"Text":"Falls: 3"}', 'remove 1']);
  runtime.dispose();
});

test('a click reaches its handler', async () => {
  const runtime = await start('StarterGui/Button.luau');
  runtime.uiEvent(1, 'Click');
  runtime.uiEvent(99, 'Click');
  expect(host.sent).toEqual([['Clicked', ['Go'], true]]);
  expect(host.screen.at(-1)).toBe('update 1 {"Visible":false}');
});

test('the example runs unchanged, input and camera work', async () => {
  host.keys.add('Fire');
  const runtime = await start('StarterPlayer/Gun.luau');
  expect(host.logs).toEqual([]);
  expect(host.sent).toEqual([['FireGun', [{ $v: [0, 0, -1] }], true]]);
  expect(host.screen).toEqual(['sound shoot.wav']);
  host.keys.add('Jump');
  ticks(runtime, 3);
  expect(host.sent.slice(1)).toEqual([['Jumped', [], true]]);
});

test('values round-trip unchanged', async () => {
  const runtime = await start('StarterPlayer/Values.luau');
  const args: WireValue[] = [1.5, 'grün', true, { $v: [1, 2, 3] }, { $e: 5 }, [1, [2, 'x']], { a: { b: false } }];
  runtime.dispatchEvent('Echo', args);
  expect(host.sent).toEqual([['Echo', args, true]]);
});

test('a call waits for its result, its error, or its timeout', async () => {
  const runtime = await start('StarterPlayer/Invoke.luau');
  expect(host.calls[0]).toEqual([1, 'Add', [2, 3]]);
  runtime.dispatchResult(1, { ok: true, values: [5] });
  runtime.dispatchResult(2, { ok: false, error: 'no coins' });
  runtime.dispatchResult(99, { ok: true, values: [] }); // no call waits for it
  ticks(runtime, 700);
  expect(host.logs[0]).toMatch(/: 5$/);
  expect(host.logs[1]).toMatch(/false .*no coins$/);
  expect(host.logs[2]).toMatch(/false .*did not answer within 10 seconds$/);
});

test('invalid and hostile values are refused', async () => {
  await start('StarterPlayer/Bad.luau');
  expect(host.logs).toEqual([expect.stringMatching(/held$/)]);
  expect(host.sent).toEqual([]);
});

test('an error shows its line and stack', async () => {
  const runtime = await start('StarterPlayer/Error.luau');
  ticks(runtime, 1);
  expect(host.logs[0]).toMatch(/^error StarterPlayer\/Error\.luau:4: .*nil/);
  expect(host.logs[0]).toMatch(/Error\.luau:6/);
  expect(host.logs[0]).not.toContain('@builtin');
});

test('a busy machine does not prevent a script of a large game from starting', async () => {
  const runtime = await start();
  const shared = bytes(compiled.scripts['ReplicatedStorage/Shared.luau']!);
  for (let i = 0; i < 400; i++) runtime.run(`ReplicatedStorage/Packages/Module${i}.luau`, shared);
  // The machine is so slow that the builtin part exceeds a script's time slice.
  let now = 0;
  clock.now = () => (now += 2);
  try {
    runtime.run('StarterPlayer/Bad.luau', bytes(compiled.scripts['StarterPlayer/Bad.luau']!));
  } finally {
    clock.now = clock.cpu;
  }
  ticks(runtime, 2);
  expect(now).toBeGreaterThan(100);
  expect(host.logs).toEqual([expect.stringMatching(/held$/)]);
});

/** Runs a script on a clock of its own; returns how much time passed on it. */
async function onClock(path: string, next: (now: number) => number): Promise<number> {
  const runtime = await start();
  let now = 0;
  clock.now = () => (now = next(now));
  try {
    runtime.run(path, bytes(compiled.scripts[path]!));
  } finally {
    clock.now = clock.cpu;
  }
  return now;
}

test('a machine that pauses does not stop a script with little work', async () => {
  // Another program has the core at each look at the clock, as long as it likes.
  expect(await onClock('StarterPlayer/Short.luau', (now) => now + 25)).toBeGreaterThan(50);
  expect(host.logs).toEqual([expect.stringMatching(/8002000$/)]);
});

test('a script that is slow in every tick is stopped after ten of them', async () => {
  const runtime = await start('StarterPlayer/ShortTicks.luau');
  let now = 0;
  clock.now = () => (now += 25);
  try {
    ticks(runtime, 9);
    expect(host.logs).toEqual([]);
    ticks(runtime, 1);
  } finally {
    clock.now = clock.cpu;
  }
  expect(host.logs).toEqual([expect.stringMatching(/ShortTicks.*stopped after 50 ms/)]);
});

test('a suspended computer does not stop a script', async () => {
  let reads = 0;
  const now = await onClock('StarterPlayer/Short.luau', (now) => now + (++reads === 4 ? 3_600_000 : 0.02));
  expect(now).toBeGreaterThan(3_600_000);
  expect(host.logs).toEqual([expect.stringMatching(/8002000$/)]);
});

test('an endless loop is stopped after its slice, and on a busy machine after a bounded time', async () => {
  expect(await onClock('StarterPlayer/Long.luau', (now) => now + 0.02)).toBeLessThan(60);
  expect(host.logs[0]).toMatch(/stopped after 50 ms/);
  expect(await onClock('StarterPlayer/Long.luau', (now) => now + 30)).toBeLessThan(1200);
  expect(host.logs.at(-1)).toMatch(/stopped after 50 ms/);
});

test('slow operations in an endless loop are stopped', async () => {
  await start('StarterPlayer/Slow.luau');
  expect(host.logs[0]).toMatch(/stopped after 50 ms/);
});

test('modules run once, when required', async () => {
  await start('ReplicatedStorage/Shared.luau', 'StarterPlayer/UsesModule.luau');
  expect(host.logs.map((line) => line.replace(/^.*?: /, ''))).toEqual(['module runs', '42 true']);
});

const code = (path: string, as = path) => ({
  path: as,
  bytecode: bytes(compiled.scripts[path]!),
  entities: [],
  module: path.startsWith('ReplicatedStorage/'),
});
const texts = () => host.logs.map((line) => line.replace(/^.*?: /, ''));

test('a changed script restarts with its state, and its widgets are removed', async () => {
  const runtime = await start('StarterGui/Count.luau');
  runtime.reload([code('StarterGui/Count2.luau', 'StarterGui/Count.luau')], []);
  ticks(runtime, 2);
  expect(texts()).toEqual(['got 6']);
  expect(host.screen.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
    'create 1',
    'remove 1',
    'create 2',
  ]);
  runtime.reload([], ['StarterGui/Count.luau']);
  expect(host.screen.at(-1)).toBe('remove 2');
});

test('a changed module restarts the scripts that required it', async () => {
  const runtime = await start('ReplicatedStorage/Shared.luau', 'StarterPlayer/UsesModule.luau');
  runtime.reload([code('ReplicatedStorage/Shared.luau')], []);
  expect(texts()).toEqual(['module runs', '42 true', 'module runs', '42 true']);
});

test('a script waits for a module that arrives later', async () => {
  const runtime = await start('StarterGui/UsesLate.luau');
  ticks(runtime, 2);
  expect(texts()).toEqual(['before']);
  runtime.provide('ReplicatedStorage/Late.luau', bytes(compiled.scripts['ReplicatedStorage/Late.luau']!));
  expect(texts()).toEqual(['before', 'late']);
});

test('waiting, and the same random numbers as on the server', async () => {
  const runtime = await start('StarterPlayer/Waits.luau');
  ticks(runtime, 29);
  expect(host.logs).toEqual([]);
  ticks(runtime, 3);
  // crates/script/tests/random/new.luau expects the same number.
  expect(host.logs.map((line) => line.replace(/^.*?: /, ''))).toEqual(['woke true', '56366 5 Vector3']);
});

test('an attached script sees its entity', async () => {
  const runtime = await start();
  runtime.run('Workspace/Lamp.luau', bytes(compiled.scripts['Workspace/Lamp.luau']!), [2]);
  expect(host.logs[0]).toMatch(/lamp 2 2 red nil$/);
});

test.each(HOSTILE.map((body, i) => [body, i] as const))(
  'hostile: %s',
  async (_body, i) => {
    const runtime = await start(`StarterPlayer/Hostile${i}.luau`, 'StarterPlayer/Honest.luau');
    ticks(runtime, 10);
    runtime.dispatchEvent('Count', []);
    expect(host.sent.at(-1)).toEqual(['Count', [10], true]);
    expect(host.logs.join('\n')).not.toContain('escaped');
    expect(runtime.memoryBytes).toBeLessThan(48 << 20);
    runtime.dispose();
  },
  20_000,
);

test('the widgets and actions of a stopped script are removed', async () => {
  const runtime = await start('StarterPlayer/Fatal.luau');
  expect(host.screen.length).toBe(2);
  expect(host.actions).toEqual(['Dash']);
  ticks(runtime, 12);
  expect(host.logs.at(-1)).toContain('disabled');
  expect(host.screen.slice(2)).toEqual(['remove 1', 'remove 2']);
  expect(host.actions).toEqual([]);
}, 20_000);

test('scripts before the built-in ones, and after them, are refused', async () => {
  const runtime = await ScriptRuntime.create(module, host);
  expect(() => runtime.run('StarterGui/Hud.luau', bytes(compiled.scripts['StarterGui/Hud.luau']!))).toThrow(/before/);
  const complete = await start();
  expect(() => complete.run(compiled.builtin[0]![0], bytes(compiled.builtin[0]![1]))).toThrow(/complete/);
});
