// Sends output of client scripts to the game's creator: errors always, prints when the server requests
// them. Repeated lines are counted, and messages are rate limited.
import { CLIENT_LOG_LINES_MAX, CLIENT_LOG_MESSAGE_CHARS_MAX, CLIENT_LOG_STACK_CHARS_MAX } from '../../generated/limits';
import type { ClientLog } from '../../generated/ClientLog';
import type { ClientLogLine } from '../../generated/ClientLogLine';

export type LogLevel = ClientLogLine['level'];

/** Maximum queued lines; further ones are dropped. */
const WAITING_MAX = 64;
const SEND_EVERY_MS = 250;

export class ScriptLogs {
  /** Whether prints are sent as well. */
  prints = false;
  #waiting = new Map<string, ClientLogLine>();
  #sentAt = -Infinity;

  constructor(
    private readonly send: (log: ClientLog) => void,
    private readonly revision: () => string,
    private readonly browser = browserName(globalThis.navigator?.userAgent ?? ''),
  ) {}

  /** Adds a console line: location, text, and the stack after the first line. */
  add(level: LogLevel, text: string): void {
    if (level !== 'error' && !this.prints) return;
    const line = parseLine(level, text);
    const key = `${level} ${line.script}:${line.line} ${line.message}`;
    const known = this.#waiting.get(key);
    if (known) known.count += 1;
    else if (this.#waiting.size < WAITING_MAX) this.#waiting.set(key, line);
  }

  /** Sends queued lines; call it every frame. */
  flush(nowMs: number): void {
    if (this.#waiting.size === 0 || nowMs - this.#sentAt < SEND_EVERY_MS) return;
    this.#sentAt = nowMs;
    const next = [...this.#waiting].slice(0, CLIENT_LOG_LINES_MAX);
    for (const [key] of next) this.#waiting.delete(key);
    this.send({ revision: this.revision(), browser: this.browser, lines: next.map(([, line]) => line) });
  }
}

/** `StarterGui/Hud.luau:3: text`, and the stack below it. */
export function parseLine(level: LogLevel, text: string): ClientLogLine {
  const [first = '', ...stack] = text.split('\n');
  const found = /^(\S+?\.luau?)(?::(\d+))?: ?(.*)$/.exec(first);
  const line = Number(found?.[2] ?? 0);
  return {
    level,
    script: found?.[1] ?? '',
    line: Number.isSafeInteger(line) && line < 2 ** 32 ? line : 0,
    message: (found?.[3] ?? first).slice(0, CLIENT_LOG_MESSAGE_CHARS_MAX),
    stack: stack.join('\n').slice(0, CLIENT_LOG_STACK_CHARS_MAX),
    count: 1,
  };
}

/** "Firefox on Linux": all that a creator learns about the player's browser. */
export function browserName(agent: string): string {
  const first = (names: readonly (readonly [string, string])[]) => names.find(([mark]) => agent.includes(mark))?.[1];
  // User agents contain the names of other browsers, so the most specific comes first.
  const browser = first([
    ['Firefox/', 'Firefox'],
    ['Edg/', 'Edge'],
    ['OPR/', 'Opera'],
    ['Chrome/', 'Chrome'],
    ['Safari/', 'Safari'],
  ]);
  const system = first([
    ['iPhone', 'iPhone'],
    ['iPad', 'iPad'],
    ['Android', 'Android'],
    ['Windows', 'Windows'],
    ['Mac OS X', 'macOS'],
    ['CrOS', 'ChromeOS'],
    ['Linux', 'Linux'],
  ]);
  return [browser ?? 'a browser', system].filter(Boolean).join(' on ');
}
