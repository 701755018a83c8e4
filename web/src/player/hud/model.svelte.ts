// The widgets created by client scripts. Scripts refer to them by number; the HUD draws all of them.
import { SvelteMap } from 'svelte/reactivity';

export const ANCHORS = [
  'TopLeft',
  'Top',
  'TopRight',
  'Left',
  'Center',
  'Right',
  'BottomLeft',
  'Bottom',
  'BottomRight',
] as const;
export type Anchor = (typeof ANCHORS)[number];
export const KINDS = ['Label', 'Button', 'Image', 'Bar', 'List', 'Panel'] as const;
export type WidgetKind = (typeof KINDS)[number];

export interface Widget {
  id: number;
  kind: WidgetKind;
  text: string;
  anchor: Anchor;
  /** Fractions of the screen; null: laid out at its anchor. */
  position: { x: number; y: number } | null;
  color: string | null;
  background: string | null;
  /** Height of the text in pixels; bars and buttons grow with it. */
  size: number;
  /** Up to 1: a fraction of the screen; above: pixels; null: the size of the content. */
  width: number | null;
  height: number | null;
  opacity: number;
  order: number;
  visible: boolean;
  /** 0…1, for bars. */
  value: number;
  /** A path in the game's package, for images and buttons. */
  image: string | null;
  items: readonly string[];
  layout: 'Column' | 'Row';
  /** Id of the parent panel, or 0. */
  parent: number;
}

/** Limit against runaway scripts. */
export const WIDGETS_MAX = 200;
const TEXT_CHARS_MAX = 500;
const SIZE_DEFAULT_PX = 18;
const SIZE_MIN_PX = 8;
const SIZE_MAX_PX = 96;
const ITEMS_MAX = 100;
const LENGTH_MAX = 4000;

export class HudModel {
  widgets = new SvelteMap<number, Widget>();

  /** False when the kind is unknown or there are too many widgets. */
  create(id: number, kind: string, props: Record<string, unknown>): boolean {
    const known = KINDS.find((name) => name === kind);
    if (!known) return false;
    if (this.widgets.size >= WIDGETS_MAX && !this.widgets.has(id)) return false;
    this.widgets.set(id, withProps(blank(id, known), props));
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

  /** Widgets laid out at an anchor. */
  at(anchor: Anchor): Widget[] {
    return this.#sorted((widget) => widget.anchor === anchor && !widget.position && widget.parent === 0);
  }

  /** Widgets with an explicit position. */
  placed(): Widget[] {
    return this.#sorted((widget) => widget.position !== null && widget.parent === 0);
  }

  /** Widgets in a panel. */
  within(panel: number): Widget[] {
    return this.#sorted((widget) => widget.parent === panel);
  }

  #sorted(wanted: (widget: Widget) => boolean): Widget[] {
    const found = [...this.widgets.values()].filter((widget) => widget.visible && wanted(widget));
    return found.sort((a, b) => a.order - b.order);
  }

  /** Visible texts, for tests. */
  texts(): string[] {
    return [...this.widgets.values()].filter((widget) => widget.visible && widget.text).map((widget) => widget.text);
  }
}

function blank(id: number, kind: WidgetKind): Widget {
  return {
    id,
    kind,
    text: '',
    anchor: 'TopLeft',
    position: null,
    color: null,
    background: null,
    size: SIZE_DEFAULT_PX,
    width: null,
    height: null,
    opacity: 1,
    order: 0,
    visible: true,
    value: 0,
    image: null,
    items: [],
    layout: 'Column',
    parent: 0,
  };
}

const isColor = (value: unknown): value is string => typeof value === 'string' && /^#[0-9a-f]{6}$/i.test(value);
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const within = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** Applies valid properties and ignores the rest: scripts may pass anything. */
function withProps(widget: Widget, props: Record<string, unknown>): Widget {
  const next = { ...widget };
  const { Text, Anchor, Color, Background, Size, Visible, Value, Image, Items, Layout, Parent, Position } = props;
  if (Text !== undefined && Text !== null) next.text = String(Text).slice(0, TEXT_CHARS_MAX);
  const anchor = ANCHORS.find((name) => name === Anchor);
  if (anchor) next.anchor = anchor;
  if (isColor(Color)) next.color = Color;
  if (isColor(Background)) next.background = Background;
  else if (Background === 'none') next.background = 'transparent';
  if (isNumber(Size)) next.size = within(Size, SIZE_MIN_PX, SIZE_MAX_PX);
  if (isNumber(props.Width)) next.width = props.Width > 0 ? Math.min(props.Width, LENGTH_MAX) : null;
  if (isNumber(props.Height)) next.height = props.Height > 0 ? Math.min(props.Height, LENGTH_MAX) : null;
  if (isNumber(props.Opacity)) next.opacity = within(props.Opacity, 0, 1);
  if (isNumber(props.Order)) next.order = props.Order;
  if (typeof Visible === 'boolean') next.visible = Visible;
  if (isNumber(Value)) next.value = within(Value, 0, 1);
  if (typeof Image === 'string') next.image = Image.slice(0, 200);
  if (Array.isArray(Items)) next.items = Items.slice(0, ITEMS_MAX).map((item) => String(item).slice(0, TEXT_CHARS_MAX));
  else if (Items === '') next.items = [];
  if (Layout === 'Column' || Layout === 'Row') next.layout = Layout;
  if (isNumber(Parent)) next.parent = Parent;
  next.position = place(Position) ?? next.position;
  return next;
}

/** A vector in its wire format. */
function place(value: unknown): { x: number; y: number } | null {
  const vector = (value as { $v?: unknown } | null | undefined)?.$v;
  if (!Array.isArray(vector)) return null;
  const [x, y] = vector as unknown[];
  return isNumber(x) && isNumber(y) ? { x: within(x, -4, 4), y: within(y, -4, 4) } : null;
}
