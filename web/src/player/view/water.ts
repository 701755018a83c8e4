// Water rendering: an animated surface from above and below, and blue fog while the camera
// is under water.
import { Color, Fog, type Mesh, type Scene } from 'three';

const HAZE = new Color('#2c86c9');
/** Visibility under water in metres. */
const HAZE_NEAR = 0.5;
const HAZE_FAR = 24;

/** Seconds, shared by every material that draws water. */
export const waterTime = { value: 0 };

/** Patches the transparent material: its water (marked by a dark red vertex colour) is animated and paler from below. */
export function drawWater(shader: {
  vertexShader: string;
  fragmentShader: string;
  uniforms: Record<string, { value: unknown }>;
}): void {
  shader.uniforms.waterTime = waterTime;
  shader.vertexShader = shader.vertexShader
    .replace('#include <common>', '#include <common>\nvarying vec3 vPlace;\nvarying float vLevel;')
    .replace(
      '#include <begin_vertex>',
      '#include <begin_vertex>\nvPlace = (modelMatrix * vec4(position, 1.0)).xyz;\nvLevel = abs(normal.y);',
    );
  shader.fragmentShader = shader.fragmentShader
    .replace(
      '#include <common>',
      '#include <common>\nuniform float waterTime;\nvarying vec3 vPlace;\nvarying float vLevel;',
    )
    .replace(
      '#include <color_fragment>',
      `#include <color_fragment>
      if (vColor.r < 0.2 && vLevel > 0.5) {
        vec2 p = vPlace.xz;
        float swell = sin(p.x * 0.7 + waterTime * 0.9) + sin(p.y * 0.9 - waterTime * 0.7) + sin((p.x + p.y) * 1.3 + waterTime * 1.3);
        float glint = sin(p.x * 2.3 + sin(p.y * 1.7 + waterTime) * 1.4) * sin(p.y * 2.1 + sin(p.x * 1.9 - waterTime * 1.2) * 1.4);
        diffuseColor.rgb *= 0.94 + 0.05 * swell;
        diffuseColor.rgb += vec3(0.25, 0.32, 0.3) * smoothstep(0.55, 0.95, glint);
        diffuseColor.a = 0.72 + 0.2 * smoothstep(0.55, 0.95, glint);
        if (!gl_FrontFacing) {
          // The sun is behind it.
          totalEmissiveRadiance += vec3(0.22, 0.5, 0.66) + vec3(0.3) * smoothstep(0.45, 0.95, glint);
          diffuseColor.a = 0.85;
        }
      }`,
    );
}

/** The fog around the camera while it is under water. */
export class Underwater {
  #air: Fog | null = null;
  readonly #haze = new Fog(HAZE, HAZE_NEAR, HAZE_FAR);

  get active(): boolean {
    return this.#air !== null;
  }

  /** Drops the stored fog, because a rebuilt scene has its own. */
  reset(): void {
    this.#air = null;
  }

  update(scene: Scene, sky: Mesh | null, under: boolean, dt: number): void {
    waterTime.value += dt;
    if (under === this.active) return;
    if (under) {
      this.#air = scene.fog as Fog;
      scene.fog = this.#haze;
      scene.background = HAZE;
    } else {
      scene.fog = this.#air;
      scene.background = null;
      this.#air = null;
    }
    if (sky) sky.visible = !under;
  }
}
