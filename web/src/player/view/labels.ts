// Labels of parts: text that faces the camera and fades out at its distance.
import { CanvasTexture, Group, Sprite, SpriteMaterial, SRGBColorSpace, type Vector3, type Vector3Like } from 'three';
import type { Part, PartLabel } from '../core/parts';
import { plainText } from '../model/plaintext';

const LINE_PX = 64;
const MARGIN_PX = 12;
/** Longest line in pixels; longer ones are compressed. */
const WIDTH_PX_MAX = 2048;
/** Share of the distance over which a label fades. */
const FADE = 0.25;

interface Shown {
  sprite: Sprite;
  label: PartLabel;
  /** Metres between the part's position and the centre of the text. */
  lift: number;
}

export class LabelsView {
  readonly group = new Group();
  #shown = new Map<number, Shown>();

  addAll(parts: Iterable<Part>): void {
    for (const part of parts) this.add(part);
  }

  add({ id, label, position: [x, y, z] }: Part): void {
    if (!label) return;
    const lines = labelLines(label.text);
    const canvas = paint(lines, label.color);
    const map = new CanvasTexture(canvas);
    map.colorSpace = SRGBColorSpace;
    const sprite = new Sprite(
      new SpriteMaterial({ map, transparent: true, depthWrite: false, fog: false, toneMapped: false }),
    );
    const height = (label.size * canvas.height) / LINE_PX;
    sprite.scale.set((height * canvas.width) / canvas.height, height, 1);
    const shown = { sprite, label, lift: label.height + height / 2 };
    this.#shown.set(id, shown);
    this.group.add(sprite);
    this.move(id, { x, y, z });
  }

  move(id: number, { x, y, z }: Vector3Like): void {
    const shown = this.#shown.get(id);
    shown?.sprite.position.set(x, y + shown.lift, z);
  }

  remove(id: number): void {
    const shown = this.#shown.get(id);
    if (!shown) return;
    this.group.remove(shown.sprite);
    shown.sprite.material.map?.dispose();
    shown.sprite.material.dispose();
    this.#shown.delete(id);
  }

  update(eye: Vector3): void {
    for (const { sprite, label } of this.#shown.values()) {
      const opacity = labelOpacity(sprite.position.distanceTo(eye), label.distance);
      sprite.visible = opacity > 0.02;
      sprite.material.opacity = opacity;
    }
  }

  dispose(): void {
    for (const id of [...this.#shown.keys()]) this.remove(id);
  }
}

/** The lines of a label, without characters that change the direction of text. */
export function labelLines(text: string): string[] {
  return text.split('\n').map(plainText);
}

/** 1 up to most of the distance, 0 beyond it. */
export function labelOpacity(distance: number, readable: number): number {
  return Math.min(1, Math.max(0, (readable - distance) / (readable * FADE)));
}

function paint(lines: string[], color: string): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  const font = `800 ${LINE_PX * 0.75}px 'Nunito Variable', sans-serif`;
  const measure = canvas.getContext('2d');
  if (!measure) return canvas;
  measure.font = font;
  const widest = Math.max(...lines.map((line) => measure.measureText(line).width));
  canvas.width = Math.ceil(Math.min(widest, WIDTH_PX_MAX)) + 2 * MARGIN_PX;
  canvas.height = lines.length * LINE_PX;
  // Resizing resets the context.
  const c = canvas.getContext('2d') ?? measure;
  c.font = font;
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  c.lineJoin = 'round';
  c.lineWidth = 8;
  c.strokeStyle = 'rgb(29 27 46 / 75%)';
  c.fillStyle = color;
  for (const [index, line] of lines.entries()) {
    const at = [canvas.width / 2, (index + 0.5) * LINE_PX, WIDTH_PX_MAX] as const;
    c.strokeText(line, ...at);
    c.fillText(line, ...at);
  }
  return canvas;
}
