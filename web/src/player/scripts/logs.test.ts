// Log lines of client scripts: what is sent, how often, and how it is parsed.
import { describe, expect, test } from 'vitest';
import type { ClientLog } from '../../generated/ClientLog';
import { browserName, parseLine, ScriptLogs } from './logs';

function logs(): { sent: ClientLog[]; logs: ScriptLogs } {
  const sent: ClientLog[] = [];
  return {
    sent,
    logs: new ScriptLogs(
      (log) => sent.push(log),
      () => 'rev',
      'Firefox on Linux',
    ),
  };
}

describe('what is sent', () => {
  test('errors always, prints on request', () => {
    const { sent, logs: relay } = logs();
    relay.add('info', 'StarterGui/Hud.luau:1: hello');
    relay.add('error', 'StarterGui/Hud.luau:2: oh no');
    relay.flush(0);
    relay.prints = true;
    relay.add('info', 'StarterGui/Hud.luau:1: hello');
    relay.flush(1000);
    expect(sent.map((log) => log.lines.map((line) => line.message))).toEqual([['oh no'], ['hello']]);
    expect(sent[0]).toMatchObject({ revision: 'rev', browser: 'Firefox on Linux' });
  });

  test('repeated lines are counted, and messages are rate limited and bounded', () => {
    const { sent, logs: relay } = logs();
    for (let i = 0; i < 1000; i++) relay.add('error', 'StarterGui/Hud.luau:2: again');
    for (let i = 0; i < 1000; i++) relay.add('error', `StarterGui/Hud.luau:3: ${i} ${'x'.repeat(5000)}`);
    for (let now = 0; now < 1000; now += 10) relay.flush(now);
    expect(sent).toHaveLength(4);
    expect(sent[0]!.lines[0]).toMatchObject({ message: 'again', count: 1000 });
    expect(Math.max(...sent.flatMap((log) => log.lines.map((line) => line.message.length)))).toBe(500);
    expect(sent.flatMap((log) => log.lines)).toHaveLength(64);
  });
});

test('lines are parsed', () => {
  expect(parseLine('error', 'StarterGui/A/Hud.luau:12: attempt to index nil\nStarterGui/A/Hud.luau:12\nx')).toEqual({
    level: 'error',
    script: 'StarterGui/A/Hud.luau',
    line: 12,
    message: 'attempt to index nil',
    stack: 'StarterGui/A/Hud.luau:12\nx',
    count: 1,
  });
  expect(parseLine('error', 'StarterGui/Hud.luau: disabled')).toMatchObject({
    script: 'StarterGui/Hud.luau',
    line: 0,
    message: 'disabled',
  });
  expect(parseLine('error', 'the script VM crashed: x')).toMatchObject({
    script: '',
    line: 0,
    message: 'the script VM crashed: x',
  });
});

test('browsers have readable names', () => {
  expect(browserName('Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0')).toBe(
    'Firefox on Linux',
  );
  expect(browserName('Mozilla/5.0 (Linux; Android 15) Chrome/130.0 Mobile Safari/537.36')).toBe('Chrome on Android');
  expect(browserName('')).toBe('a browser');
});
