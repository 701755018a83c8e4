// The widgets that client scripts have made. Scripts own them by number; the HUD draws whatever is here.
import { SvelteMap } from 'svelte/reactivity';

export const ANCHORS = [
  'TopLeft', 'Top', 'TopRight', 'Left', 'Center', 'Right', 'BottomLeft', 'Bottom', 'BottomRight',
] as const;
export type Anchor = (typeof ANCHORS)[number];
export type WidgetKind = 'Label' | 'Button' | 'Bar';

export interface Widget {
  id: number;
  kind: WidgetKind;
  text: string;
  anchor: Anchor;
  color: string | null;
  /** Height of the text in pixels; bars and buttons grow with it. */
  size: number;
  visible: boolean;
  /** 0…1, for bars. */
  value: number;
}

/** More than this is a script gone wild. */
export const WIDGETS_MAX = 200;
const TEXT_CHARS_MAX = 500;
const SIZE_DEFAULT_PX = 18;
const SIZE_MIN_PX = 8;
const SIZE_MAX_PX = 96;

export class HudModel {
  widgets = new SvelteMap<number, Widget>();

  /** False when the kind is unknown or there are too many widgets. */
  create(id: number, kind: string, props: Record<string, unknown>): boolean {
    if (kind !== 'Label' && kind !== 'Button' && kind !== 'Bar') return false;
    if (this.widgets.size >= WIDGETS_MAX && !this.widgets.has(id)) return false;
    const blank: Widget = { id, kind, text: '', anchor: 'TopLeft', color: null, size: SIZE_DEFAULT_PX, visible: true, value: 0 };
    this.widgets.set(id, withProps(blank, props));
    return true;
  }

  update(id: number, props: Record<string, unknown>): void {
    const widget = this.widgets.get(id);
    if (widget) this.widgets.set(id, withProps(widget, props));
  }

  remove(id: number): void {
    this.widgets.delete(id);
  }

  clear(): void {
    this.widgets.clear();
  }

  at(anchor: Anchor): Widget[] {
    return [...this.widgets.values()].filter((widget) => widget.anchor === anchor && widget.visible);
  }

  /** Texts on screen, for tests. */
  texts(): string[] {
    return [...this.widgets.values()].filter((widget) => widget.visible && widget.text).map((widget) => widget.text);
  }
}

/** Takes the properties that make sense and leaves the rest: scripts may write anything. */
function withProps(widget: Widget, props: Record<string, unknown>): Widget {
  const next = { ...widget };
  const { Text, Anchor, Color, Size, Visible, Value } = props;
  if (Text !== undefined && Text !== null) next.text = String(Text).slice(0, TEXT_CHARS_MAX);
  const anchor = ANCHORS.find((name) => name === Anchor);
  if (anchor) next.anchor = anchor;
  if (typeof Color === 'string' && /^#[0-9a-f]{6}$/i.test(Color)) next.color = Color;
  if (typeof Size === 'number' && Number.isFinite(Size)) next.size = Math.min(SIZE_MAX_PX, Math.max(SIZE_MIN_PX, Size));
  if (typeof Visible === 'boolean') next.visible = Visible;
  if (typeof Value === 'number' && Number.isFinite(Value)) next.value = Math.min(1, Math.max(0, Value));
  return next;
}
