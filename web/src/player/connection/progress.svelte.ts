// Progress of joining for the loading screen: the steps, their completion and the current activity.

import { SvelteSet } from 'svelte/reactivity';
import type { JoinProgress } from '../../generated/rest';
import { waitText } from '../../lib/joining';

export type StepId = 'login' | 'join' | 'engine' | 'connect' | 'scene' | 'scripts';

interface Step {
  id: StepId;
  label: string;
  /** Share of the bar, from measured times on a laptop. */
  weight: number;
}

const SCRIPTS_WEIGHT = 5;

const STEPS: Step[] = [
  { id: 'login', label: 'Saying hello', weight: 5 },
  { id: 'join', label: 'Finding a world', weight: 30 },
  { id: 'engine', label: 'Loading the engine', weight: 25 },
  { id: 'connect', label: 'Connecting', weight: 15 },
  { id: 'scene', label: 'Building the world', weight: 20 },
  { id: 'scripts', label: 'Starting scripts', weight: SCRIPTS_WEIGHT },
];

export class LoadProgress {
  #done = new SvelteSet<StepId>();
  #scripts = $state.raw<{ have: number; total: number; name: string } | null>(null);
  #wait = $state.raw<JoinProgress | null>(null);

  /** Why the join is waiting. */
  waiting(wait: JoinProgress): void {
    this.#wait = wait;
  }

  /** Why the join is waiting, if it is. */
  get wait(): JoinProgress | null {
    return this.#done.has('join') ? null : this.#wait;
  }

  done(id: StepId): void {
    this.#done.add(id);
  }

  reset(): void {
    this.#done.clear();
    this.#scripts = null;
    this.#wait = null;
  }

  /** Loaded and total script bytes, and the script loaded last. */
  scripts(haveBytes: number, totalBytes: number, name: string): void {
    this.#scripts = { have: haveBytes, total: totalBytes, name };
  }

  /** 0…1. */
  get fraction(): number {
    const total = STEPS.reduce((sum, step) => sum + step.weight, 0);
    const reached = STEPS.filter((step) => this.#done.has(step.id)).reduce((sum, step) => sum + step.weight, 0);
    const scripts = this.#scripts;
    const part =
      scripts && !this.#done.has('scripts') ? (scripts.have / Math.max(scripts.total, 1)) * SCRIPTS_WEIGHT : 0;
    return (reached + part) / total;
  }

  /** The first step that is not done yet. */
  get label(): string {
    const step = STEPS.find((step) => !this.#done.has(step.id));
    if (step?.id === 'join' && this.#wait) return waitText(this.#wait);
    const scripts = this.#scripts;
    if (step?.id === 'scripts' && scripts && scripts.have < scripts.total) {
      const name = scripts.name.replace(/^@bundle\/@?/, '');
      return `Loading scripts: ${kilobytes(scripts.have)} of ${kilobytes(scripts.total)} KB ${name}`.trimEnd();
    }
    return step?.label ?? 'Ready';
  }
}

const kilobytes = (bytes: number): number => Math.ceil(bytes / 1000);
