// Search and completion over the real definition.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Page } from '../generated/api';
import { completions, search } from './api-docs';

const pages = JSON.parse(readFileSync(new URL('../generated/api.json', import.meta.url), 'utf8')) as Page[];
const names = (found: Page[]) => found.flatMap((page) => page.member.map((member) => `${page.name}.${member.name}`));

test('a member is found by its name, its library and its description', () => {
  expect(names(search(pages, 'World.Spawn', 'all'))).toContain('World.Spawn');
  expect(names(search(pages, 'raycast', 'all'))).toContain('World.Raycast');
  expect(names(search(pages, 'spawn point', 'all'))).toContain('Player.Respawn');
  expect(names(search(pages, 'effects', 'all'))).toEqual(
    expect.arrayContaining(['Effects.Particles', 'Effects.Beam', 'Effects.Shake']),
  );
  expect(search(pages, 'no such thing', 'all')).toEqual([]);
  expect(names(search(pages, '', 'all')).length).toBe(pages.reduce((sum, page) => sum + page.member.length, 0));
});

test('a side lists the API of its scripts', () => {
  const client = names(search(pages, '', 'client'));
  expect(client).toContain('UI.Label');
  expect(client).toContain('World.Find');
  expect(client).not.toContain('World.Spawn');
});

test('completions have label, kind, type, documentation and side', () => {
  const items = completions(pages);
  expect(items).toContainEqual(
    expect.objectContaining({ label: 'Spawn', kind: 'function', side: 'server', of: 'World', onObject: false }),
  );
  expect(items).toContainEqual(
    expect.objectContaining({ label: 'MoveTo', kind: 'method', of: 'Entity', onObject: true }),
  );
  expect(items).toContainEqual(expect.objectContaining({ label: 'Color3', kind: 'library', of: null }));
  expect(items).toContainEqual(expect.objectContaining({ label: 'print', kind: 'function', of: null }));
  expect(items.every((item) => item.label !== '' && item.doc !== '')).toBe(true);
});
