// A name tag above a character: a canvas on a sprite that fades with distance.
import { CanvasTexture, type Vector3, Sprite, SpriteMaterial, SRGBColorSpace } from 'three';
import { plainText } from '../model/plaintext';

const FADE_FROM_M = 18;
const FADE_TO_M = 42;
const HEIGHT_ABOVE_FEET_M = 2.12;
const NAME_CHARS_MAX = 24;
/** Opacity of the tag of a disconnected player. */
const AWAY_OPACITY = 0.6;
const CANVAS_H = 64;

export class NameTag {
  readonly sprite: Sprite;
  #material: SpriteMaterial;
  #texture: CanvasTexture;

  constructor(
    name: string,
    private readonly away = false,
  ) {
    const canvas = paint(tagText(name, away));
    this.#texture = new CanvasTexture(canvas);
    this.#texture.colorSpace = SRGBColorSpace;
    this.#material = new SpriteMaterial({
      map: this.#texture,
      transparent: true,
      depthWrite: false,
      fog: false,
      toneMapped: false,
    });
    this.sprite = new Sprite(this.#material);
    const height = 0.34;
    this.sprite.scale.set((height * canvas.width) / canvas.height, height, 1);
    this.sprite.renderOrder = 5;
  }

  update(feet: Vector3, camera: Vector3): void {
    const distance = feet.distanceTo(camera);
    const near = 1 - Math.min(1, Math.max(0, (distance - FADE_FROM_M) / (FADE_TO_M - FADE_FROM_M)));
    const opacity = near * (this.away ? AWAY_OPACITY : 1);
    this.sprite.visible = opacity > 0.02;
    this.#material.opacity = opacity;
    this.sprite.position.set(feet.x, feet.y + HEIGHT_ABOVE_FEET_M, feet.z);
  }

  dispose(): void {
    this.#texture.dispose();
    this.#material.dispose();
  }
}

/** The text of a name tag. */
export function tagText(name: string, away: boolean): string {
  const plain = plainText(name);
  const short = plain.length > NAME_CHARS_MAX ? `${plain.slice(0, NAME_CHARS_MAX - 1)}…` : plain;
  return away ? `${short} · away` : short;
}

function paint(text: string): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  const font = `800 36px 'Nunito Variable', sans-serif`;
  const measure = canvas.getContext('2d');
  if (!measure) return canvas;
  measure.font = font;
  canvas.width = Math.ceil(measure.measureText(text).width) + 44;
  canvas.height = CANVAS_H;
  const c = canvas.getContext('2d') ?? measure;
  c.fillStyle = 'rgb(29 27 46 / 62%)';
  c.beginPath();
  c.roundRect(2, 6, canvas.width - 4, CANVAS_H - 12, 26);
  c.fill();
  c.font = font;
  c.fillStyle = '#ffffff';
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  c.fillText(text, canvas.width / 2, CANVAS_H / 2 + 2);
  return canvas;
}
