// All avatars of the world, drawn by a handful of instanced meshes.
import {
  type BufferGeometry,
  Color,
  Group,
  InstancedMesh,
  type Material,
  Matrix4,
  MeshBasicMaterial,
  MeshLambertMaterial,
  MeshStandardMaterial,
  type Object3D,
  PlaneGeometry,
} from 'three';
import { RoundedBoxGeometry } from 'three/examples/jsm/geometries/RoundedBoxGeometry.js';
import { type Avatar, BODY } from './avatar';
import { FACES, faceTexture } from './faces';
import { softBox } from './geometry';
import { hatGeometry, HATS } from './hats';
import type { AvatarLook } from './look';

interface PartMesh {
  mesh: InstancedMesh;
  joints: (avatar: Avatar) => readonly Object3D[];
  color: (look: AvatarLook) => Color;
}

const HIDDEN = new Matrix4().makeScale(0, 0, 0);
const WHITE = new Color('#ffffff');
const NOTHING: readonly Object3D[] = [];

export class Crowd {
  readonly group = new Group();
  #avatars: Avatar[] = [];
  #capacity = 8;
  #parts: PartMesh[] = [];
  #hidden = new Set<number>();

  /** `opacity` below 1 draws disconnected players translucently. */
  constructor(
    private readonly round: boolean,
    private readonly physical: boolean,
    private readonly opacity = 1,
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

  /** Updates the instances after an avatar's looks changed. */
  repaint(): void {
    this.#paint();
  }

  /** Hides an avatar: the own one in first person. */
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
      if (mesh.material instanceof MeshBasicMaterial) mesh.material.map?.dispose();
      (mesh.material as Material).dispose();
      mesh.dispose();
    }
    this.group.clear();
    this.#parts = [];
  }

  #build(): void {
    const solid = this.opacity >= 1;
    const shared = { transparent: !solid, opacity: this.opacity };
    const cloth = this.physical
      ? new MeshStandardMaterial({ ...shared, roughness: 0.75 })
      : new MeshLambertMaterial(shared);
    if (this.round) addRim(cloth);
    const worn = { ...shared, vertexColors: true };
    const felt = this.physical ? new MeshStandardMaterial({ ...worn, roughness: 0.8 }) : new MeshLambertMaterial(worn);
    if (this.round) addRim(felt);
    const add = (
      material: Material,
      perAvatar: number,
      geometry: BufferGeometry,
      joints: PartMesh['joints'],
      color: PartMesh['color'],
    ) => {
      const mesh = new InstancedMesh(geometry, material, this.#capacity * perAvatar);
      mesh.castShadow = mesh.receiveShadow = solid && !(material instanceof MeshBasicMaterial);
      mesh.frustumCulled = false; // instances stand all over the world
      mesh.count = 0;
      this.group.add(mesh);
      this.#parts.push({ mesh, joints, color });
    };
    const { leg, arm, torso, head, hair } = BODY;
    add(
      cloth,
      2,
      this.#box(leg, 0.07).translate(0, -leg[1] / 2, 0),
      (a) => a.legs,
      (look) => look.trousers,
    );
    add(
      cloth,
      1,
      this.#box(torso, 0.1),
      (a) => [a.torso],
      (look) => look.shirt,
    );
    add(
      cloth,
      2,
      this.#box(arm, 0.07).translate(0, -arm[1] / 2 + 0.08, 0),
      (a) => a.arms,
      (look) => look.skin,
    );
    add(
      cloth,
      1,
      this.#box(head, 0.16).translate(0, head[1] / 2, 0),
      (a) => [a.head],
      (look) => look.skin,
    );
    add(
      cloth,
      1,
      this.#box(hair, 0.09),
      (a) => [a.hair],
      (look) => look.hair,
    );
    // One mesh per kind: unused kinds have no instances and cost nothing to draw.
    for (const kind of FACES) {
      const skin = new MeshBasicMaterial({
        map: faceTexture(kind),
        transparent: true,
        depthWrite: false,
        opacity: this.opacity,
      });
      add(
        skin,
        1,
        new PlaneGeometry(0.42, 0.34),
        (a) => (a.look.face === kind ? [a.face] : NOTHING),
        () => WHITE,
      );
    }
    for (const kind of HATS)
      add(
        felt,
        1,
        hatGeometry(kind, this.round),
        (a) => (a.look.hat === kind ? [a.hat] : NOTHING),
        (look) => look.accent,
      );
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

/** A soft warm rim light, so that players stand out from the background. */
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
