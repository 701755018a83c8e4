// What scripts may do to the HUD.
import { expect, test } from 'vitest';
import { HudModel, WIDGETS_MAX } from './model.svelte';

test('a label appears, changes and goes', () => {
  const hud = new HudModel();
  expect(hud.create(1, 'Label', { Text: 'Falls: 0', Anchor: 'TopRight' })).toBe(true);
  hud.update(1, { Text: 'Falls: 1' });
  expect(hud.at('TopRight').map((w) => w.text)).toEqual(['Falls: 1']);
  hud.update(1, { Visible: false });
  expect(hud.texts()).toEqual([]);
  hud.remove(1);
  expect(hud.widgets.size).toBe(0);
});

test('nonsense is bounded or left out', () => {
  const hud = new HudModel();
  expect(hud.create(1, 'Iframe', {})).toBe(false);
  hud.create(1, 'Bar', { Value: 7, Size: 1e9, Color: 'url(x)', Anchor: 'Middle', Text: 'x'.repeat(9999) });
  const bar = hud.widgets.get(1);
  expect(bar).toMatchObject({ value: 1, size: 96, color: null, anchor: 'TopLeft' });
  expect(bar?.text.length).toBe(500);
  for (let id = 2; id <= WIDGETS_MAX + 10; id++) hud.create(id, 'Label', {});
  expect(hud.widgets.size).toBe(WIDGETS_MAX);
});
