// Small synthesised sounds without files. Silent until the first user gesture, as browsers require.
import { settings } from './model/settings.svelte';

interface Tone {
  from: number;
  to: number;
  seconds: number;
  wave: OscillatorType;
  gain: number;
  /** Seconds after the sound's start. */
  at?: number;
}

const SOUNDS: Record<string, Tone[]> = {
  step: [{ from: 150, to: 90, seconds: 0.05, wave: 'triangle', gain: 0.1 }],
  jump: [{ from: 260, to: 520, seconds: 0.13, wave: 'sine', gain: 0.22 }],
  land: [{ from: 160, to: 60, seconds: 0.12, wave: 'triangle', gain: 0.3 }],
  hit: [{ from: 320, to: 90, seconds: 0.18, wave: 'sawtooth', gain: 0.16 }],
  click: [{ from: 700, to: 600, seconds: 0.04, wave: 'sine', gain: 0.15 }],
  coin: [
    { from: 880, to: 880, seconds: 0.07, wave: 'square', gain: 0.07 },
    { from: 1320, to: 1320, seconds: 0.16, wave: 'square', gain: 0.07, at: 0.07 },
  ],
  win: [523, 659, 784, 1047].map((hz, i) => ({
    from: hz,
    to: hz,
    seconds: 0.18,
    wave: 'triangle' as const,
    gain: 0.16,
    at: i * 0.11,
  })),
  shot: [
    { from: 1150, to: 260, seconds: 0.11, wave: 'sawtooth', gain: 0.05 },
    { from: 620, to: 140, seconds: 0.14, wave: 'triangle', gain: 0.16 },
  ],
  impact: [{ from: 420, to: 120, seconds: 0.07, wave: 'triangle', gain: 0.12 }],
  mark: [{ from: 1500, to: 1900, seconds: 0.06, wave: 'sine', gain: 0.16 }],
  ouch: [
    { from: 300, to: 110, seconds: 0.16, wave: 'sawtooth', gain: 0.1 },
    { from: 150, to: 70, seconds: 0.2, wave: 'triangle', gain: 0.22 },
  ],
  out: [{ from: 520, to: 70, seconds: 0.6, wave: 'triangle', gain: 0.25 }],
  noticed: [{ from: 520, to: 660, seconds: 0.16, wave: 'triangle', gain: 0.12 }],
  alarm: [
    { from: 700, to: 940, seconds: 0.09, wave: 'square', gain: 0.09 },
    { from: 940, to: 700, seconds: 0.18, wave: 'square', gain: 0.09, at: 0.1 },
  ],
  splash: [
    { from: 900, to: 180, seconds: 0.22, wave: 'sawtooth', gain: 0.04 },
    { from: 240, to: 90, seconds: 0.3, wave: 'triangle', gain: 0.2 },
    { from: 520, to: 760, seconds: 0.09, wave: 'sine', gain: 0.08, at: 0.2 },
  ],
  fall: [{ from: 480, to: 110, seconds: 0.45, wave: 'sine', gain: 0.2 }],
};

export class SoundBoard {
  #context: AudioContext | null = null;

  /** Call on a user gesture. */
  unlock(): void {
    this.#context ??= new AudioContext();
    if (this.#context.state === 'suspended') void this.#context.resume();
  }

  /** None before the first gesture. */
  get context(): AudioContext | null {
    return this.#context?.state === 'running' ? this.#context : null;
  }

  knows(name: string): boolean {
    return Object.hasOwn(SOUNDS, name);
  }

  /** Plays a sound by name; unknown names are silent. */
  play(name: string, volume = 1, pitch = 1): void {
    const context = this.context;
    const tones = this.knows(name) ? SOUNDS[name] : undefined;
    if (!context || !tones || settings.volume * volume <= 0) return;
    for (const tone of tones) {
      playTone(context, { ...tone, from: tone.from * pitch, to: tone.to * pitch }, settings.volume * volume);
    }
  }

  dispose(): void {
    void this.#context?.close();
    this.#context = null;
  }
}

function playTone(context: AudioContext, tone: Tone, volume: number): void {
  const start = context.currentTime + (tone.at ?? 0);
  const end = start + tone.seconds;
  const oscillator = new OscillatorNode(context, { type: tone.wave, frequency: tone.from });
  const gain = new GainNode(context, { gain: tone.gain * volume });
  oscillator.frequency.exponentialRampToValueAtTime(tone.to, end);
  gain.gain.exponentialRampToValueAtTime(0.0005, end);
  oscillator.connect(gain).connect(context.destination);
  oscillator.start(start);
  oscillator.stop(end);
}
