// The shapes of hats. Each is one geometry with its origin on top of the hair, looking along -z like the head; its
// colours multiply with the colour that the player chose, so a band is a darker shade of it.
import {
  type BufferGeometry,
  BoxGeometry,
  Color,
  ConeGeometry,
  CylinderGeometry,
  Float32BufferAttribute,
  SphereGeometry,
} from 'three';
import { mergeGeometries } from 'three/examples/jsm/utils/BufferGeometryUtils.js';
import type { Hat } from '../../generated/Hat';

export const HATS: readonly Exclude<Hat, 'none'>[] = ['cap', 'beanie', 'top_hat', 'crown', 'party', 'straw', 'horns'];

/** A piece of a hat with a brightness factor: 1 is the chosen colour. */
interface Piece {
  shape: BufferGeometry;
  shade?: string;
}

export function hatGeometry(hat: Exclude<Hat, 'none'>, round: boolean): BufferGeometry {
  const pieces = PIECES[hat](round ? 24 : 10);
  const shaded = pieces.map(({ shape, shade }) => {
    const plain = shape.index ? shape.toNonIndexed() : shape;
    const tone = new Color(shade ?? '#ffffff');
    const colors = Array.from({ length: plain.attributes.position?.count ?? 0 }, () => [tone.r, tone.g, tone.b]).flat();
    plain.setAttribute('color', new Float32BufferAttribute(colors, 3));
    plain.deleteAttribute('uv');
    return plain;
  });
  const merged = mergeGeometries(shaded);
  for (const piece of shaded) piece.dispose();
  return merged;
}

const dome = (radius: number, height: number, around: number) =>
  new SphereGeometry(radius, around, Math.max(5, around / 3), 0, Math.PI * 2, 0, Math.PI / 2).scale(
    1,
    height / radius,
    0.94,
  );
const disc = (radius: number, height: number, y: number, around: number, top = radius) =>
  new CylinderGeometry(top, radius, height, around).translate(0, y, 0);
const ball = (radius: number, y: number, around: number) =>
  new SphereGeometry(radius, around, Math.max(6, around / 2)).translate(0, y, 0);

const PIECES: Record<Exclude<Hat, 'none'>, (around: number) => Piece[]> = {
  cap: (n) => [
    { shape: dome(0.39, 0.3, n).translate(0, -0.14, 0.01) },
    { shape: new BoxGeometry(0.5, 0.05, 0.34).translate(0, -0.11, -0.46), shade: '#cfcfcf' },
    { shape: ball(0.045, 0.16, 8), shade: '#cfcfcf' },
  ],
  beanie: (n) => [
    { shape: dome(0.38, 0.36, n).translate(0, -0.1, 0.01) },
    { shape: disc(0.41, 0.13, -0.1, n), shade: '#d0d0d0' },
    { shape: ball(0.11, 0.32, n) },
  ],
  top_hat: (n) => [
    { shape: disc(0.52, 0.05, -0.02, n) },
    { shape: disc(0.32, 0.5, 0.24, n, 0.36) },
    { shape: disc(0.335, 0.1, 0.06, n, 0.34), shade: '#ffffff' },
  ],
  crown: (n) => [
    { shape: disc(0.33, 0.16, 0.05, n, 0.36) },
    ...Array.from({ length: 6 }, (_, i): Piece => {
      const angle = (i / 6) * Math.PI * 2;
      return { shape: new ConeGeometry(0.1, 0.24, 5).translate(Math.sin(angle) * 0.29, 0.22, -Math.cos(angle) * 0.29) };
    }),
    { shape: ball(0.05, 0.06, 8).translate(0, 0, -0.34), shade: '#ff8d8d' },
  ],
  party: (n) => [
    { shape: new ConeGeometry(0.28, 0.62, n).translate(0, 0.28, 0) },
    { shape: disc(0.2, 0.07, 0.21, n, 0.17), shade: '#a9a9a9' },
    { shape: ball(0.09, 0.62, n), shade: '#fff7d6' },
  ],
  straw: (n) => [
    { shape: disc(0.64, 0.04, -0.03, n, 0.6) },
    { shape: dome(0.36, 0.3, n).translate(0, -0.02, 0) },
    { shape: disc(0.365, 0.08, 0.03, n), shade: '#b5503f' },
  ],
  horns: (n) =>
    [-1, 1].flatMap((side): Piece[] => [
      {
        shape: new ConeGeometry(0.11, 0.24, n)
          .translate(0, 0.12, 0)
          .rotateZ(-side * 0.55)
          .translate(side * 0.25, -0.06, 0),
        shade: '#d9d0c0',
      },
      {
        shape: new ConeGeometry(0.075, 0.3, n)
          .translate(0, 0.15, 0)
          .rotateZ(-side * 0.1)
          .translate(side * 0.36, 0.1, 0),
      },
    ]),
};
