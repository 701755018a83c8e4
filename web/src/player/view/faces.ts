// The faces, each drawn once onto a small canvas.
import { CanvasTexture, SRGBColorSpace } from 'three';
import type { Face } from '../../generated/Face';

export const FACES: readonly Face[] = ['smile', 'grin', 'wink', 'cool', 'surprised', 'sleepy', 'fierce'];

const WIDTH = 128;
const HEIGHT = 104;
const INK = '#1d1b2e';
const EYES = [38, 90] as const;

type Pen = CanvasRenderingContext2D;

export function faceTexture(face: Face): CanvasTexture {
  const canvas = document.createElement('canvas');
  drawFace(canvas, face);
  const texture = new CanvasTexture(canvas);
  texture.colorSpace = SRGBColorSpace;
  return texture;
}

/** Draws a face on a canvas of any size; also used by the character editor. */
export function drawFace(canvas: HTMLCanvasElement, face: Face): void {
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  const pen = canvas.getContext('2d');
  if (!pen) return;
  pen.strokeStyle = pen.fillStyle = INK;
  pen.lineWidth = 6;
  pen.lineCap = 'round';
  DRAWINGS[face](pen);
}

const DRAWINGS: Record<Face, (pen: Pen) => void> = {
  smile: (pen) => {
    for (const x of EYES) eye(pen, x);
    arc(pen, 64, 64, 18, 0.15, 0.85);
  },
  grin: (pen) => {
    for (const x of EYES) eye(pen, x);
    pen.beginPath();
    pen.arc(64, 64, 24, 0, Math.PI);
    pen.closePath();
    pen.fill();
    pen.fillStyle = '#ffffff';
    pen.fillRect(46, 65, 36, 8);
  },
  wink: (pen) => {
    eye(pen, EYES[0]);
    arc(pen, EYES[1], 44, 12, 1.1, 1.9);
    arc(pen, 68, 62, 18, 0.05, 0.8);
  },
  cool: (pen) => {
    line(pen, 8, 30, 120, 30);
    for (const x of EYES) {
      pen.beginPath();
      pen.roundRect(x - 24, 28, 48, 30, [4, 4, 16, 16]);
      pen.fill();
    }
    pen.save();
    pen.strokeStyle = '#6f86ff';
    pen.lineWidth = 5;
    for (const x of EYES) line(pen, x - 10, 38, x + 2, 38);
    pen.restore();
    arc(pen, 66, 62, 20, 0.2, 0.7);
  },
  surprised: (pen) => {
    for (const x of EYES) {
      eye(pen, x);
      arc(pen, x, 22, 14, 1.2, 1.8);
    }
    pen.beginPath();
    pen.ellipse(64, 84, 10, 13, 0, 0, Math.PI * 2);
    pen.fill();
  },
  sleepy: (pen) => {
    for (const x of EYES) arc(pen, x, 36, 13, 0.1, 0.9);
    pen.beginPath();
    pen.ellipse(64, 82, 7, 5, 0, 0, Math.PI * 2);
    pen.fill();
  },
  fierce: (pen) => {
    for (const x of EYES) eye(pen, x);
    line(pen, 22, 16, 50, 28);
    line(pen, 106, 16, 78, 28);
    arc(pen, 64, 96, 18, 1.2, 1.8);
  },
};

function eye(pen: Pen, x: number): void {
  pen.fillStyle = INK;
  pen.beginPath();
  pen.ellipse(x, 40, 10, 14, 0, 0, Math.PI * 2);
  pen.fill();
  pen.fillStyle = '#ffffff';
  pen.beginPath();
  pen.arc(x + 3, 34, 4, 0, Math.PI * 2);
  pen.fill();
  pen.fillStyle = INK;
}

/** Angles in half turns. */
function arc(pen: Pen, x: number, y: number, radius: number, from: number, to: number): void {
  pen.beginPath();
  pen.arc(x, y, radius, from * Math.PI, to * Math.PI);
  pen.stroke();
}

function line(pen: Pen, x0: number, y0: number, x1: number, y1: number): void {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}
