// All avatars of the world, drawn by a handful of instanced meshes.
import {
  type BufferGeometry, CanvasTexture, Color, Group, InstancedMesh, type Material, Matrix4, MeshBasicMaterial,
  MeshLambertMaterial, MeshStandardMaterial, type Object3D, PlaneGeometry, SRGBColorSpace,
} from 'three';
import { RoundedBoxGeometry } from 'three/examples/jsm/geometries/RoundedBoxGeometry.js';
import { type Avatar, BODY } from './avatar';
import { softBox } from './geometry';
import type { AvatarLook } from './look';

type PartName = 'head' | 'hair' | 'torso' | 'arms' | 'legs' | 'face';

interface PartMesh {
  mesh: InstancedMesh;
  joints: (avatar: Avatar) => readonly Object3D[];
  color: (look: AvatarLook) => Color;
}

const HIDDEN = new Matrix4().makeScale(0, 0, 0);
const WHITE = new Color('#ffffff');

export class Crowd {
  readonly group = new Group();
  #avatars: Avatar[] = [];
  #capacity = 8;
  #parts: PartMesh[] = [];
  #hidden = new Set<number>();

  constructor(
    private readonly round: boolean,
    private readonly physical: boolean,
  ) {
    this.#build();
  }

  add(avatar: Avatar): void {
    this.#avatars.push(avatar);
    if (this.#avatars.length > this.#capacity) {
      this.#capacity *= 2;
      this.dispose();
      this.#build();
    }
    this.#paint();
  }

  remove(avatar: Avatar): void {
    this.#avatars = this.#avatars.filter((other) => other !== avatar);
    this.#paint();
  }

  /** Leaves an avatar out of the picture: the own one in first person. */
  setHidden(id: number, hidden: boolean): void {
    if (hidden) this.#hidden.add(id);
    else this.#hidden.delete(id);
  }

  /** Copies this frame's joints to the graphics card. */
  update(): void {
    for (const { mesh, joints } of this.#parts) {
      let index = 0;
      for (const avatar of this.#avatars) {
        const hidden = this.#hidden.has(avatar.id);
        for (const joint of joints(avatar)) mesh.setMatrixAt(index++, hidden ? HIDDEN : joint.matrixWorld);
      }
      mesh.count = index;
      mesh.instanceMatrix.needsUpdate = true;
    }
  }

  dispose(): void {
    for (const { mesh } of this.#parts) {
      mesh.geometry.dispose();
      (mesh.material as Material).dispose();
      mesh.dispose();
    }
    this.group.clear();
    this.#parts = [];
  }

  #build(): void {
    const cloth = this.physical ? new MeshStandardMaterial({ roughness: 0.75 }) : new MeshLambertMaterial();
    if (this.round) addRim(cloth);
    const face = new MeshBasicMaterial({ map: faceTexture(), transparent: true, depthWrite: false });
    const add = (name: PartName, perAvatar: number, geometry: BufferGeometry, joints: PartMesh['joints'], color: PartMesh['color']) => {
      const mesh = new InstancedMesh(geometry, name === 'face' ? face : cloth, this.#capacity * perAvatar);
      mesh.castShadow = mesh.receiveShadow = name !== 'face';
      mesh.frustumCulled = false; // instances stand all over the world
      mesh.count = 0;
      this.group.add(mesh);
      this.#parts.push({ mesh, joints, color });
    };
    const { leg, arm, torso, head, hair } = BODY;
    add('legs', 2, this.#box(leg, 0.07).translate(0, -leg[1] / 2, 0), (a) => a.legs, (look) => look.trousers);
    add('torso', 1, this.#box(torso, 0.1), (a) => [a.torso], (look) => look.shirt);
    add('arms', 2, this.#box(arm, 0.07).translate(0, -arm[1] / 2 + 0.08, 0), (a) => a.arms, (look) => look.skin);
    add('head', 1, this.#box(head, 0.16).translate(0, head[1] / 2, 0), (a) => [a.head], (look) => look.skin);
    add('hair', 1, this.#box(hair, 0.09), (a) => [a.hair], (look) => look.hair);
    add('face', 1, new PlaneGeometry(0.42, 0.34), (a) => [a.face], () => WHITE);
  }

  #box(size: readonly [number, number, number], radius: number): BufferGeometry {
    return this.round ? new RoundedBoxGeometry(...size, 3, radius) : softBox([...size], radius);
  }

  #paint(): void {
    for (const { mesh, joints, color } of this.#parts) {
      let index = 0;
      for (const avatar of this.#avatars) for (const _ of joints(avatar)) mesh.setColorAt(index++, color(avatar.look));
      if (mesh.instanceColor) mesh.instanceColor.needsUpdate = true;
    }
  }
}

/** A soft warm edge of light, so that players stand out from the world behind them. */
function addRim(material: Material): void {
  material.onBeforeCompile = (shader) => {
    shader.fragmentShader = shader.fragmentShader.replace(
      '#include <opaque_fragment>',
      /* glsl */ `
      float rim = 1.0 - saturate(dot(normalize(vViewPosition), normal));
      outgoingLight += vec3(1.0, 0.93, 0.8) * 0.45 * rim * rim * rim;
      #include <opaque_fragment>`,
    );
  };
}

/** Two eyes with a glint and a smile. */
function faceTexture(): CanvasTexture {
  const canvas = document.createElement('canvas');
  canvas.width = 128;
  canvas.height = 104;
  const c = canvas.getContext('2d');
  if (c) {
    for (const x of [38, 90]) {
      c.fillStyle = '#1d1b2e';
      c.beginPath();
      c.ellipse(x, 40, 10, 14, 0, 0, Math.PI * 2);
      c.fill();
      c.fillStyle = '#ffffff';
      c.beginPath();
      c.arc(x + 3, 34, 4, 0, Math.PI * 2);
      c.fill();
    }
    c.strokeStyle = '#1d1b2e';
    c.lineWidth = 6;
    c.lineCap = 'round';
    c.beginPath();
    c.arc(64, 64, 18, 0.15 * Math.PI, 0.85 * Math.PI);
    c.stroke();
  }
  const texture = new CanvasTexture(canvas);
  texture.colorSpace = SRGBColorSpace;
  return texture;
}
