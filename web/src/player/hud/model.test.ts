// What scripts may do to the HUD.
import { expect, test } from 'vitest';
import { HudModel, WIDGETS_MAX } from './model.svelte';

test('a label is created, updated and removed', () => {
  const hud = new HudModel();
  expect(hud.create(1, 'Label', { Text: 'Falls: 0', Anchor: 'TopRight' })).toBe(true);
  hud.update(1, { Text: 'Falls: 1' });
  expect(hud.at('TopRight').map((w) => w.text)).toEqual(['Falls: 1']);
  hud.update(1, { Visible: false });
  expect(hud.texts()).toEqual([]);
  hud.remove(1);
  expect(hud.widgets.size).toBe(0);
});

test('a label can lose its background and return to its automatic width', () => {
  const hud = new HudModel();
  hud.create(1, 'Label', { Text: '+', Background: 'none', Width: 0.6 });
  expect(hud.widgets.get(1)).toMatchObject({ background: 'transparent', width: 0.6 });
  hud.update(1, { Width: 0, Background: '#102030' });
  expect(hud.widgets.get(1)).toMatchObject({ background: '#102030', width: null });
});

test('invalid values are clamped or ignored', () => {
  const hud = new HudModel();
  expect(hud.create(1, 'Iframe', {})).toBe(false);
  hud.create(1, 'Bar', { Value: 7, Size: 1e9, Color: 'url(x)', Anchor: 'Middle', Text: 'x'.repeat(9999) });
  const bar = hud.widgets.get(1);
  expect(bar).toMatchObject({ value: 1, size: 96, color: null, anchor: 'TopLeft' });
  expect(bar?.text.length).toBe(500);
  for (let id = 2; id <= WIDGETS_MAX + 10; id++) hud.create(id, 'Label', {});
  expect(hud.widgets.size).toBe(WIDGETS_MAX);
});

test('panels contain widgets, positions are fractions of the screen, lists are bounded', () => {
  const hud = new HudModel();
  hud.create(1, 'Panel', { Layout: 'Row', Anchor: 'Center' });
  hud.create(2, 'Label', { Text: 'second', Parent: 1, Order: 2 });
  hud.create(3, 'Label', { Text: 'first', Parent: 1, Order: 1 });
  hud.create(4, 'Label', { Text: 'free', Position: { $v: [0.5, 99, 0] } });
  hud.create(5, 'List', { Items: Array.from({ length: 500 }, (_, i) => i) });
  expect(hud.within(1).map((w) => w.text)).toEqual(['first', 'second']);
  expect(hud.at('TopLeft').map((w) => w.id)).toEqual([5]);
  expect(hud.placed().map((w) => w.position)).toEqual([{ x: 0.5, y: 4 }]);
  expect(hud.widgets.get(5)?.items.length).toBe(100);
  hud.update(5, { Items: '' });
  hud.update(2, { Parent: 0 });
  expect([hud.widgets.get(5)?.items.length, hud.at('TopLeft').map((w) => w.id)]).toEqual([0, [5, 2]]);
});
