// The sky: a gradient dome with a sun, soft clouds, and the fog that meets the dome at the horizon.
import { BackSide, Color, Fog, IcosahedronGeometry, Mesh, ShaderMaterial, type Vector3 } from 'three';
import { atDusk, dusk } from './dusk';

const ZENITH = new Color('#2f86e0');
const PALE = new Color('#9fd2ff');
const HORIZON = new Color('#ffeeda');
const GROUND = new Color('#a9d3f0');
const SUN = new Color('#fff1c9');
const EVENING = {
  zenith: new Color('#27306e'),
  pale: new Color('#8c6bb0'),
  horizon: new Color('#f2a07c'),
  ground: new Color('#4c4a78'),
  sun: new Color('#ffb27a'),
} as const;

const vertexShader = /* glsl */ `
  varying vec3 direction;
  void main() {
    direction = normalize(position);
    // The dome travels with the camera and always lies on the far plane.
    vec4 clip = projectionMatrix * vec4(mat3(viewMatrix) * position, 1.0);
    gl_Position = clip.xyww;
  }`;

const fragmentShader = /* glsl */ `
  uniform vec3 zenith, pale, horizon, ground, sunColor, sunDirection;
  varying vec3 direction;
  void main() {
    vec3 d = normalize(direction);
    float up = d.y;
    float height = clamp(up, 0.0, 1.0);
    // A cream rim, pale blue above it, deep blue overhead.
    vec3 color = mix(horizon, pale, smoothstep(0.0, 0.16, height));
    color = mix(color, zenith, smoothstep(0.08, 0.75, height));
    color = mix(color, ground, smoothstep(0.0, -0.35, up));
    float toSun = max(dot(d, sunDirection), 0.0);
    // Warm haze around the sun, a glow, then the disc itself.
    color = mix(color, sunColor, 0.35 * pow(toSun, 6.0));
    color += sunColor * (0.25 * pow(toSun, 60.0) + 1.5 * smoothstep(0.9985, 0.9992, toSun));
    gl_FragColor = vec4(color, 1.0);
    #include <tonemapping_fragment>
    #include <colorspace_fragment>
  }`;

/** Disposes the GPU resources of a dome. */
export function disposeSky(dome: Mesh<IcosahedronGeometry, ShaderMaterial>): void {
  dome.geometry.dispose();
  dome.material.dispose();
}

/** The dome; added to the scene once. */
export function makeSky(sunDirection: Vector3): Mesh<IcosahedronGeometry, ShaderMaterial> {
  const evening = dusk(sunDirection);
  const material = new ShaderMaterial({
    vertexShader,
    fragmentShader,
    uniforms: {
      zenith: { value: atDusk(ZENITH, EVENING.zenith, evening) },
      pale: { value: atDusk(PALE, EVENING.pale, evening) },
      horizon: { value: atDusk(HORIZON, EVENING.horizon, evening) },
      ground: { value: atDusk(GROUND, EVENING.ground, evening) },
      sunColor: { value: atDusk(SUN, EVENING.sun, evening) },
      sunDirection: { value: sunDirection },
    },
    side: BackSide,
    depthWrite: false,
    fog: false,
  });
  const dome = new Mesh(new IcosahedronGeometry(10, 4), material);
  dome.frustumCulled = false;
  // Drawn after the solid parts: only the pixels that stay sky are shaded.
  dome.renderOrder = 1;
  return dome;
}

/** Fog to the horizon colour, so that far parts melt into the dome. */
export function makeFog(viewDistance: number, sunDirection: Vector3): Fog {
  return new Fog(atDusk(HORIZON, EVENING.horizon, dusk(sunDirection)), viewDistance * 0.25, viewDistance);
}
