// Effects of client scripts: particle bursts and beams, a fixed number of each. Above the limit a new one replaces
// the oldest.
import {
  AdditiveBlending,
  BufferAttribute,
  BufferGeometry,
  Color,
  CylinderGeometry,
  DynamicDrawUsage,
  Group,
  Mesh,
  MeshBasicMaterial,
  Points,
  ShaderMaterial,
  Vector3,
} from 'three';

/** Particle options; crates/script/builtin/client/effects.luau validates the ranges. */
export interface ParticleOptions {
  Count?: number;
  Color?: string;
  Size?: number;
  Speed?: number;
  Lifetime?: number;
  Gravity?: number;
  Direction?: Vector3;
  Spread?: number;
}

export interface BeamOptions {
  Color?: string;
  Width?: number;
  Seconds?: number;
}

export const PARTICLES_MAX = 1200;
export const BEAMS_MAX = 32;
const UP = new Vector3(0, 1, 0);

interface Particle {
  velocity: Vector3;
  age: number;
  life: number;
  gravity: number;
  size: number;
}

export class Effects {
  readonly group = new Group();
  readonly #particles: Particle[] = [];
  readonly #positions = new BufferAttribute(new Float32Array(PARTICLES_MAX * 3), 3).setUsage(DynamicDrawUsage);
  readonly #colors = new BufferAttribute(new Float32Array(PARTICLES_MAX * 4), 4).setUsage(DynamicDrawUsage);
  readonly #sizes = new BufferAttribute(new Float32Array(PARTICLES_MAX), 1).setUsage(DynamicDrawUsage);
  readonly #points: Points<BufferGeometry, ShaderMaterial>;
  readonly #beams: { mesh: Mesh<CylinderGeometry, MeshBasicMaterial>; age: number; life: number }[] = [];
  readonly #tube = new CylinderGeometry(0.5, 0.5, 1, 10, 1, true);
  #next = 0;
  #nextBeam = 0;
  #alive = 0;

  constructor() {
    const geometry = new BufferGeometry();
    geometry.setAttribute('position', this.#positions);
    geometry.setAttribute('tint', this.#colors);
    geometry.setAttribute('size', this.#sizes);
    this.#points = new Points(geometry, roundPoints());
    // They are spread over the world, so frustum culling is not worth its cost.
    this.#points.frustumCulled = false;
    this.#points.visible = false;
    this.group.add(this.#points);
    for (let i = 0; i < PARTICLES_MAX; i++)
      this.#particles.push({ velocity: new Vector3(), age: 1, life: 0, gravity: 0, size: 0 });
  }

  /** Number of live particles and beams, for tests. */
  get counts(): { particles: number; beams: number } {
    return { particles: this.#alive, beams: this.#beams.filter((beam) => beam.age < beam.life).length };
  }

  burst(at: Vector3, options: ParticleOptions): void {
    const { Count = 24, Size = 0.18, Speed = 4, Lifetime = 0.8, Gravity = 6, Spread = 20, Direction } = options;
    const color = new Color(options.Color ?? '#ffc53d');
    for (let i = 0; i < Math.min(Count, PARTICLES_MAX); i++) {
      const index = this.#next++ % PARTICLES_MAX;
      const particle = this.#particles[index]!;
      if (particle.age >= particle.life) this.#alive++;
      const way = Direction ? aside(Direction, Spread) : anywhere();
      particle.velocity.copy(way).multiplyScalar(Speed * (0.6 + 0.4 * Math.random()));
      Object.assign(particle, { age: 0, life: Lifetime * (0.7 + 0.3 * Math.random()), gravity: Gravity, size: Size });
      this.#positions.setXYZ(index, at.x, at.y, at.z);
      this.#colors.setXYZW(index, color.r, color.g, color.b, 1);
    }
  }

  beam(from: Vector3, to: Vector3, { Color: color = '#74c0ff', Width = 0.15, Seconds = 0.3 }: BeamOptions): void {
    const beam = this.#beams[this.#nextBeam % BEAMS_MAX] ?? this.#makeBeam();
    this.#nextBeam++;
    const way = to.clone().sub(from);
    const length = Math.max(0.001, way.length());
    beam.mesh.material.color.set(color);
    beam.mesh.position.copy(from).addScaledVector(way, 0.5);
    beam.mesh.quaternion.setFromUnitVectors(UP, way.divideScalar(length));
    beam.mesh.scale.set(Width, length, Width);
    Object.assign(beam, { age: 0, life: Seconds });
  }

  update(dt: number): void {
    for (const beam of this.#beams) {
      beam.age += dt;
      beam.mesh.visible = beam.age < beam.life;
      beam.mesh.material.opacity = Math.max(0, 1 - beam.age / beam.life);
    }
    this.#points.visible = this.#alive > 0;
    if (this.#alive > 0) this.#move(dt);
  }

  clear(): void {
    for (const thing of [...this.#particles, ...this.#beams]) thing.age = thing.life;
    this.update(0);
  }

  dispose(): void {
    this.#points.geometry.dispose();
    this.#points.material.dispose();
    this.#tube.dispose();
    for (const { mesh } of this.#beams) mesh.material.dispose();
  }

  #makeBeam() {
    const material = new MeshBasicMaterial({ transparent: true, depthWrite: false, blending: AdditiveBlending });
    const beam = { mesh: new Mesh(this.#tube, material), age: 0, life: 0 };
    beam.mesh.frustumCulled = false;
    this.#beams.push(beam);
    this.group.add(beam.mesh);
    return beam;
  }

  #move(dt: number): void {
    let alive = 0;
    this.#particles.forEach((particle, i) => {
      particle.age += dt;
      const left = particle.life > 0 ? 1 - particle.age / particle.life : 0;
      this.#sizes.setX(i, left > 0 ? particle.size * (0.4 + 0.6 * left) : 0);
      if (left <= 0) return;
      alive++;
      particle.velocity.y -= particle.gravity * dt;
      const { x, y, z } = particle.velocity;
      this.#positions.setXYZ(
        i,
        this.#positions.getX(i) + x * dt,
        this.#positions.getY(i) + y * dt,
        this.#positions.getZ(i) + z * dt,
      );
      this.#colors.setW(i, Math.min(1, left * 2));
    });
    this.#alive = alive;
    for (const attribute of [this.#positions, this.#colors, this.#sizes]) attribute.needsUpdate = true;
  }
}

function anywhere(): Vector3 {
  return new Vector3().randomDirection();
}

/** A random direction within `degrees` of another one. */
function aside(direction: Vector3, degrees: number): Vector3 {
  const way = direction.lengthSq() > 0 ? direction.clone().normalize() : UP.clone();
  const turn = anywhere().cross(way);
  if (turn.lengthSq() < 1e-9) return way;
  return way.applyAxisAngle(turn.normalize(), (degrees * Math.random() * Math.PI) / 180);
}

/** Soft round points with a size in metres. */
function roundPoints(): ShaderMaterial {
  return new ShaderMaterial({
    transparent: true,
    depthWrite: false,
    vertexShader: `
      attribute vec4 tint;
      attribute float size;
      varying vec4 shade;
      void main() {
        shade = tint;
        vec4 seen = modelViewMatrix * vec4(position, 1.0);
        gl_Position = projectionMatrix * seen;
        gl_PointSize = size <= 0.0 ? 0.0 : clamp(size * projectionMatrix[1][1] * 400.0 / max(0.1, -seen.z), 1.0, 256.0);
      }`,
    fragmentShader: `
      varying vec4 shade;
      void main() {
        float edge = smoothstep(0.5, 0.3, length(gl_PointCoord - 0.5));
        if (edge <= 0.0) discard;
        gl_FragColor = vec4(shade.rgb, shade.a * edge);
        #include <colorspace_fragment>
      }`,
  });
}
