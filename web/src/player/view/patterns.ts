// The drawn surfaces of Material.pattern as small grey-scale canvas textures, multiplied with the part's colour.
import { CanvasTexture, LinearMipmapLinearFilter, RepeatWrapping, SRGBColorSpace, type Texture } from 'three';
import type { PartPattern } from '../core/parts';

const SIZE = 128;
/** How many metres one tile of the texture covers. */
const TILE_M: Record<PartPattern, number> = { plain: 1, studs: 1, checker: 2, grass: 4, planks: 2 };

type Painter = (c: CanvasRenderingContext2D) => void;

const painters: Partial<Record<PartPattern, Painter>> = {
  studs: (c) => {
    const half = SIZE / 2;
    for (const [x, y] of [
      [0, 0],
      [half, 0],
      [0, half],
      [half, half],
    ] as const) {
      const [cx, cy] = [x + half / 2, y + half / 2];
      c.fillStyle = '#c8c8c8';
      disc(c, cx + 2, cy + 4, half * 0.3);
      c.fillStyle = '#ffffff';
      disc(c, cx, cy, half * 0.29);
      c.fillStyle = '#efefef';
      disc(c, cx, cy + 1, half * 0.24);
    }
  },
  checker: (c) => {
    c.fillStyle = '#d6d6d6';
    c.fillRect(0, 0, SIZE / 2, SIZE / 2);
    c.fillRect(SIZE / 2, SIZE / 2, SIZE / 2, SIZE / 2);
  },
  grass: (c) => {
    const random = seeded(7);
    for (let i = 0; i < 520; i++) {
      const shade = 222 + Math.floor(random() * 33);
      c.strokeStyle = `rgb(${shade} ${shade} ${Math.floor(shade * 0.95)})`;
      c.lineWidth = 1;
      const [x, y] = [random() * SIZE, random() * SIZE];
      const [dx, dy] = [(random() - 0.5) * 3, 1 + random() * 3];
      // Blades wrap around the edges, so that the tiles join.
      for (const ox of [-SIZE, 0, SIZE]) {
        for (const oy of [-SIZE, 0, SIZE]) {
          c.beginPath();
          c.moveTo(x + ox, y + oy);
          c.lineTo(x + dx + ox, y - dy + oy);
          c.stroke();
        }
      }
    }
  },
  planks: (c) => {
    const boards = 4;
    const width = SIZE / boards;
    for (let i = 0; i < boards; i++) {
      const shade = [238, 250, 230, 244][i] ?? 240;
      c.fillStyle = `rgb(${shade} ${shade} ${shade})`;
      c.fillRect(0, i * width, SIZE, width);
      c.fillStyle = '#b9b9b9';
      c.fillRect(0, i * width, SIZE, 2);
      c.fillRect(((i * 53) % SIZE) | 0, i * width, 2, width);
      c.fillStyle = 'rgb(0 0 0 / 5%)';
      for (let line = 1; line < 4; line++) c.fillRect(0, i * width + line * 8, SIZE, 1);
    }
  },
};

const cache = new Map<PartPattern, Texture>();

/** The texture of a pattern, created on first use and shared; null for plain surfaces. */
export function patternTexture(pattern: PartPattern): Texture | null {
  const paint = painters[pattern];
  if (!paint) return null;
  const known = cache.get(pattern);
  if (known) return known;
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = SIZE;
  const c = canvas.getContext('2d');
  if (!c) return null;
  c.fillStyle = '#f4f4f4';
  c.fillRect(0, 0, SIZE, SIZE);
  paint(c);
  const texture = new CanvasTexture(canvas);
  texture.wrapS = texture.wrapT = RepeatWrapping;
  texture.repeat.setScalar(1 / TILE_M[pattern]);
  texture.colorSpace = SRGBColorSpace;
  texture.minFilter = LinearMipmapLinearFilter;
  texture.anisotropy = 4;
  cache.set(pattern, texture);
  return texture;
}

function disc(c: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  c.beginPath();
  c.arc(x, y, radius, 0, Math.PI * 2);
  c.fill();
}

/** A tiny generator, so that the grass looks the same on every visit. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
