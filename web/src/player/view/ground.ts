// Voxel terrain in three.js: one mesh per chunk, built by the worker, with vertex colours.
import {
  BufferAttribute,
  BufferGeometry,
  DoubleSide,
  FrontSide,
  Group,
  type Material,
  Mesh,
  MeshLambertMaterial,
  MeshStandardMaterial,
  Sphere,
  Vector3,
} from 'three';
import { type ChunkKey, type ChunkMesh, type ChunkPlace, keyOf } from '../terrain/messages';
import { drawWater } from './water';

/** Blocks along a chunk. */
const SIDE = 32;
/** Opacity of water and glass. */
const CLEAR_OPACITY = 0.62;

export class GroundView {
  readonly group = new Group();
  #meshes = new Map<ChunkKey, Mesh<BufferGeometry, Material[]>>();
  #materials: Material[] = [];
  #chunkM = SIDE;
  #shadows = false;
  /** When the last mesh arrived, for tests. */
  drawnAt = 0;

  get chunkCount(): number {
    return this.#meshes.size;
  }

  /** Metres along a chunk. */
  setChunkSize(metres: number): void {
    this.#chunkM = metres;
  }

  setQuality(physical: boolean, shadows: boolean): void {
    for (const material of this.#materials) material.dispose();
    this.#shadows = shadows;
    this.#materials = [ground(physical, false), ground(physical, true)];
    for (const mesh of this.#meshes.values()) this.#dress(mesh);
  }

  put({ place, positions, normals, colors, indices, clearFrom }: ChunkMesh): void {
    this.drop(place);
    const geometry = new BufferGeometry();
    geometry.setAttribute('position', new BufferAttribute(positions, 3));
    geometry.setAttribute('normal', new BufferAttribute(normals, 3, true));
    geometry.setAttribute('color', new BufferAttribute(colors, 3, true));
    const narrow = positions.length / 3 < 65536;
    geometry.setIndex(new BufferAttribute(narrow ? new Uint16Array(indices) : indices, 1));
    if (clearFrom > 0) geometry.addGroup(0, clearFrom, 0);
    if (clearFrom < indices.length) geometry.addGroup(clearFrom, indices.length - clearFrom, 1);
    geometry.boundingSphere = new Sphere(new Vector3(SIDE / 2, SIDE / 2, SIDE / 2), (SIDE / 2) * Math.sqrt(3));
    const mesh = new Mesh(geometry, this.#materials);
    mesh.scale.setScalar(this.#chunkM / SIDE);
    mesh.position.set(...place).multiplyScalar(this.#chunkM);
    mesh.updateMatrixWorld();
    mesh.matrixAutoUpdate = false;
    this.#dress(mesh);
    this.#meshes.set(keyOf(place), mesh);
    this.group.add(mesh);
    this.drawnAt = Date.now();
  }

  drop(place: ChunkPlace): void {
    const key = keyOf(place);
    const mesh = this.#meshes.get(key);
    if (!mesh) return;
    this.#meshes.delete(key);
    this.group.remove(mesh);
    mesh.geometry.dispose();
    this.drawnAt = Date.now();
  }

  clear(): void {
    for (const mesh of this.#meshes.values()) mesh.geometry.dispose();
    this.#meshes.clear();
    this.group.clear();
  }

  dispose(): void {
    this.clear();
    for (const material of this.#materials) material.dispose();
  }

  #dress(mesh: Mesh<BufferGeometry, Material[]>): void {
    mesh.material = this.#materials;
    mesh.castShadow = this.#shadows;
    mesh.receiveShadow = this.#shadows;
  }
}

function ground(physical: boolean, clear: boolean): Material {
  // Water and glass are double-sided: a lake's surface is visible from below as well.
  const side = clear ? DoubleSide : FrontSide;
  const shared = {
    vertexColors: true,
    transparent: clear,
    opacity: clear ? CLEAR_OPACITY : 1,
    depthWrite: !clear,
    side,
    forceSinglePass: true,
  };
  const material = physical
    ? new MeshStandardMaterial({ ...shared, roughness: clear ? 0.35 : 0.95 })
    : new MeshLambertMaterial(shared);
  material.onBeforeCompile = (shader) => {
    (clear ? drawWater : mottle)(shader);
    meetNeighbours(shader);
  };
  return material;
}

/** A vertex shared by two chunks maps to exactly the same screen position: world positions are exact (block sizes are
 *  powers of two), while each chunk's own model-view matrix rounds differently and would leave cracks at the borders. */
function meetNeighbours(shader: { vertexShader: string }): void {
  shader.vertexShader = shader.vertexShader.replace(
    '#include <project_vertex>',
    `vec4 mvPosition = viewMatrix * (modelMatrix * vec4(transformed, 1.0));
    gl_Position = projectionMatrix * mvPosition;`,
  );
}

/** Varies the brightness of each block slightly: large uniform faces would look like plastic. */
function mottle(shader: { vertexShader: string; fragmentShader: string }): void {
  shader.vertexShader = shader.vertexShader
    .replace('#include <common>', '#include <common>\nvarying vec3 vBlock;')
    .replace('#include <begin_vertex>', '#include <begin_vertex>\nvBlock = position - normal * 0.5;');
  shader.fragmentShader = shader.fragmentShader
    .replace('#include <common>', '#include <common>\nvarying vec3 vBlock;')
    .replace(
      '#include <color_fragment>',
      `#include <color_fragment>
      vec3 blockAt = mod(floor(vBlock + 0.001), 61.0);
      float blockShade = fract(sin(dot(blockAt, vec3(12.9898, 78.233, 37.719))) * 4375.85);
      diffuseColor.rgb *= 0.93 + 0.14 * blockShade;`,
    );
}
