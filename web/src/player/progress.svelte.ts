// What the loading screen shows: the real steps to the world, how far they are, and what is happening now.

import { SvelteSet } from 'svelte/reactivity';

export type StepId = 'login' | 'join' | 'engine' | 'connect' | 'scene' | 'scripts';

interface Step {
  id: StepId;
  label: string;
  /** Share of the bar, from measured times on a laptop. */
  weight: number;
}

const STEPS: Step[] = [
  { id: 'login', label: 'Saying hello', weight: 5 },
  { id: 'join', label: 'Finding a world', weight: 30 },
  { id: 'engine', label: 'Loading the engine', weight: 25 },
  { id: 'connect', label: 'Connecting', weight: 15 },
  { id: 'scene', label: 'Building the world', weight: 20 },
  { id: 'scripts', label: 'Starting scripts', weight: 5 },
];

export class LoadProgress {
  #done = new SvelteSet<StepId>();

  done(id: StepId): void {
    this.#done.add(id);
  }

  reset(): void {
    this.#done.clear();
  }

  /** 0…1. */
  get fraction(): number {
    const total = STEPS.reduce((sum, step) => sum + step.weight, 0);
    const reached = STEPS.filter((step) => this.#done.has(step.id)).reduce((sum, step) => sum + step.weight, 0);
    return reached / total;
  }

  /** The first step that is not done yet. */
  get label(): string {
    return STEPS.find((step) => !this.#done.has(step.id))?.label ?? 'Ready';
  }
}
