// The browser's Luau VM against the same VM on this machine, on the same bytecode: `cargo xtask bench vm`.
// Rounds alternate and the best of each counts. Prints one JSON array, as `frolic bench` does.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { launchBrowser } from '../e2e/browser.mjs';

const ROUNDS = 8;
const [frolic] = process.argv.slice(2);

const native = () =>
  JSON.parse(execFileSync(frolic, ['bench', 'compute', '--json'], { maxBuffer: 1 << 26 }).toString());

/** The VM's own TypeScript, for a page without a build. */
const source = readFileSync(new URL('../src/player/luau/vm.ts', import.meta.url), 'utf8');
const options = { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } };
const code = ts.transpileModule(source, options).outputText;
const wasm = readFileSync(new URL('../src/wasm/luau.wasm', import.meta.url)).toString('base64');

const bytes = (hex) => hex.match(/../g).map((pair) => Number.parseInt(pair, 16));

async function inBrowser(page, work) {
  return page.evaluate(
    async ([code, wasm, bytecode]) => {
      const { LuauVm } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
      const module = await WebAssembly.compile(Uint8Array.from(atob(wasm), (c) => c.charCodeAt(0)));
      const vm = await LuauVm.create(module, { memoryBytes: 64 << 20, sliceMs: 60_000, budgetMs: 60_000 });
      vm.pushSlot();
      vm.reference(-1);
      const problem = vm.load('bench', new Uint8Array(bytecode), 0);
      if (problem) throw new Error(problem);
      const chunk = vm.reference(-1);
      let best = Infinity;
      for (let i = 0; i < 3; i++) {
        vm.pushReference(chunk);
        const began = performance.now();
        const outcome = vm.call(0, 1);
        best = Math.min(best, performance.now() - began);
        if (!outcome.ok) throw new Error(JSON.stringify(outcome));
        vm.pop(1);
      }
      vm.close();
      return best;
    },
    [code, wasm, bytes(work.bytecode)],
  );
}

const browser = await launchBrowser();
const page = await (await browser.newContext()).newPage();
const rows = new Map();
for (let round = 0; round < ROUNDS; round++) {
  for (const work of native()) {
    const row = rows.get(work.scene) ?? { scene: work.scene, native_ms: Infinity, browser_ms: Infinity };
    row.native_ms = Math.min(row.native_ms, work.ms);
    row.browser_ms = Math.min(row.browser_ms, await inBrowser(page, work));
    rows.set(work.scene, row);
  }
}
await browser.close();
const figures = [...rows.values()].map((row) => ({ ...row, ratio: row.browser_ms / row.native_ms }));
process.stdout.write(`${JSON.stringify(figures)}\n`);
