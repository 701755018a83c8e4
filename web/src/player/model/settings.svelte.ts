// The player's settings from the pause menu, stored in the browser.
import { parseQuality, type Quality } from '../view/quality';

const KEY = 'frolic.settings';

class Settings {
  /** Factor on mouse and touch look. */
  sensitivity = $state(1);
  invertY = $state(false);
  /** 0…1. */
  volume = $state(0.6);
  /** null: chosen by measured frame time. */
  quality = $state<Quality | null>(null);
  /** Whether the leaderboard is expanded. */
  leaderboard = $state(true);

  constructor() {
    try {
      const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
      if (typeof stored !== 'object' || stored === null) return;
      const { sensitivity, invertY, volume, quality, leaderboard } = stored as Record<string, unknown>;
      this.sensitivity = inRange(sensitivity, 0.1, 4, this.sensitivity);
      this.volume = inRange(volume, 0, 1, this.volume);
      this.invertY = invertY === true;
      this.leaderboard = leaderboard !== false;
      this.quality = parseQuality(typeof quality === 'string' ? quality : null);
    } catch {
      // Storage is blocked or holds something else: defaults.
    }
  }

  save(): void {
    const { sensitivity, invertY, volume, quality, leaderboard } = this;
    try {
      localStorage.setItem(KEY, JSON.stringify({ sensitivity, invertY, volume, quality, leaderboard }));
    } catch {
      // The settings last for this visit only.
    }
  }
}

function inRange(value: unknown, min: number, max: number, fallback: number): number {
  return typeof value === 'number' && value >= min && value <= max ? value : fallback;
}

export const settings = new Settings();
