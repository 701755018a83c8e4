// Low, medium or high, by measured frame time. One slow frame changes nothing; a slow second does.

export type Quality = 'low' | 'medium' | 'high';
export const QUALITIES: readonly Quality[] = ['low', 'medium', 'high'];

/** Settings of each level. */
export interface QualityLevel {
  shadowMapSize: number; // 0: no shadows
  physicalMaterials: boolean;
  roundShapes: boolean;
  antialias: boolean;
  pixelRatioMax: number;
  pointLightsMax: number;
  viewDistance: number;
  /** Draw distance of voxel terrain. */
  groundDistance: number;
}

export const LEVELS: Record<Quality, QualityLevel> = {
  low: {
    shadowMapSize: 0,
    physicalMaterials: false,
    roundShapes: false,
    antialias: false,
    pixelRatioMax: 0.75,
    pointLightsMax: 0,
    viewDistance: 220,
    groundDistance: 120,
  },
  medium: {
    shadowMapSize: 1024,
    physicalMaterials: false,
    roundShapes: true,
    antialias: true,
    pixelRatioMax: 1,
    pointLightsMax: 4,
    viewDistance: 320,
    groundDistance: 200,
  },
  high: {
    shadowMapSize: 2048,
    physicalMaterials: true,
    roundShapes: true,
    antialias: true,
    pixelRatioMax: 2,
    pointLightsMax: 8,
    viewDistance: 450,
    groundDistance: 300,
  },
};

export function parseQuality(text: string | null): Quality | null {
  return QUALITIES.find((quality) => quality === text) ?? null;
}

const WINDOW_FRAMES_MIN = 12;
const WINDOW_MS = 1500;
const TOO_SLOW_MS = 28;
const FAST_MS = 11;
/** Windows of fast frames before the level rises; not tried again after a failure. */
const FAST_WINDOWS = 4;

/** Monitors frame times and decides when the level changes. */
export class QualityGovernor {
  #frames: number[] = [];
  #total = 0;
  #fastWindows = 0;
  #ceiling: Quality = 'high';

  constructor(public quality: Quality) {}

  /** Records one frame time; returns the new level when it changes. */
  frame(ms: number): Quality | null {
    if (ms > 1000) return null; // the tab was hidden
    this.#frames.push(ms);
    this.#total += ms;
    if (this.#total < WINDOW_MS || this.#frames.length < WINDOW_FRAMES_MIN) return null;
    const sorted = this.#frames.sort((a, b) => a - b);
    const median = sorted[sorted.length >> 1] ?? 0;
    this.#frames = [];
    this.#total = 0;
    return this.#judge(median);
  }

  #judge(median: number): Quality | null {
    const level = QUALITIES.indexOf(this.quality);
    if (median > TOO_SLOW_MS) {
      this.#fastWindows = 0;
      const lower = QUALITIES[level - 1];
      if (!lower) return null;
      this.#ceiling = lower;
      return (this.quality = lower);
    }
    this.#fastWindows = median < FAST_MS ? this.#fastWindows + 1 : 0;
    const higher = QUALITIES[level + 1];
    if (this.#fastWindows < FAST_WINDOWS || !higher || level >= QUALITIES.indexOf(this.#ceiling)) return null;
    this.#fastWindows = 0;
    return (this.quality = higher);
  }
}

/** Initial level from the name of the GPU: software rendering starts low instead of stuttering first. */
export function startingQuality(rendererName: string): Quality {
  return /swiftshader|llvmpipe|software|basic render/i.test(rendererName) ? 'low' : 'medium';
}
