// Sounds that client scripts play: the engine's own by name, and files of the game, decoded once and bounded in number.
import type { GameAssets } from '../assets';
import type { WireValue } from '../core/events';
import type { SoundHost, Triple } from '../luau/host';
import { settings } from '../model/settings.svelte';
import type { SoundBoard } from '../sound';

/** Maximum simultaneous sounds. */
export const PLAYING_MAX = 32;
/** Maximum cached decoded sounds; a minute of stereo takes 20 MB. */
const BUFFERS_MAX = 32;
const FILE_BYTES_MAX = 16 * 1024 * 1024;

export interface SoundSource {
  readonly sound: SoundBoard;
  readonly assets: GameAssets;
  entityPosition(id: number): Triple | null;
  listener(): { position: Triple; forward: Triple };
  /** Logs a message for the game's creator. */
  warn(text: string): void;
}

interface Playing {
  node: AudioBufferSourceNode | null;
  gain: GainNode | null;
  panner: PannerNode | null;
  volume: number;
  entity: number;
  stopped: boolean;
}

export class ScriptSounds implements SoundHost {
  #playing = new Map<number, Playing>();
  #buffers = new Map<string, Promise<AudioBuffer | null>>();

  constructor(private readonly source: SoundSource) {}

  play(id: number, name: string, options: Record<string, WireValue>): void {
    if (this.source.sound.knows(name))
      return this.source.sound.play(name, number(options.Volume, 1), number(options.Pitch, 1));
    if (this.#playing.size >= PLAYING_MAX) return;
    const playing: Playing = {
      node: null,
      gain: null,
      panner: null,
      volume: number(options.Volume, 1),
      entity: 0,
      stopped: false,
    };
    this.#playing.set(id, playing);
    void this.#start(id, name, options, playing);
  }

  stop(id: number): void {
    const ids = id === 0 ? [...this.#playing.keys()] : [id];
    for (const one of ids) {
      const playing = this.#playing.get(one);
      if (!playing) continue;
      playing.stopped = true;
      playing.node?.stop();
      this.#playing.delete(one);
    }
  }

  isPlaying(id: number): boolean {
    return this.#playing.has(id);
  }

  /** Updates the listener and moving sounds; called once per frame. */
  update(): void {
    const context = this.source.sound.context;
    if (!context || this.#playing.size === 0) return;
    const { position, forward } = this.source.listener();
    place(context.listener, position);
    aim(context.listener, forward);
    for (const playing of this.#playing.values()) {
      if (playing.gain) playing.gain.gain.value = playing.volume * settings.volume;
      const at = playing.entity > 0 ? this.source.entityPosition(playing.entity) : null;
      if (at && playing.panner) place(playing.panner, at);
    }
  }

  async #start(id: number, name: string, options: Record<string, WireValue>, playing: Playing): Promise<void> {
    const buffer = await this.#buffer(name);
    const context = this.source.sound.context;
    if (!buffer || !context || playing.stopped) {
      this.#playing.delete(id);
      return;
    }
    const node = new AudioBufferSourceNode(context, {
      buffer,
      loop: options.Loop === true,
      playbackRate: number(options.Pitch, 1),
    });
    playing.gain = new GainNode(context, { gain: playing.volume * settings.volume });
    const at = this.#place(options.At, playing);
    if (at) {
      playing.panner = new PannerNode(context, {
        panningModel: 'equalpower',
        distanceModel: 'inverse',
        refDistance: 4,
        maxDistance: 500,
      });
      place(playing.panner, at);
      node.connect(playing.panner).connect(playing.gain).connect(context.destination);
    } else {
      node.connect(playing.gain).connect(context.destination);
    }
    node.onended = () => this.#playing.delete(id);
    playing.node = node;
    node.start();
  }

  #place(at: WireValue | undefined, playing: Playing): Triple | null {
    if (typeof at !== 'object' || at === null || Array.isArray(at)) return null;
    if (Array.isArray(at.$v)) return at.$v.map(Number) as Triple;
    if (typeof at.$e !== 'number') return null;
    playing.entity = at.$e;
    return this.source.entityPosition(at.$e);
  }

  #buffer(name: string): Promise<AudioBuffer | null> {
    const known = this.#buffers.get(name);
    if (known) return known;
    const loading = this.#load(name).catch((error: unknown) => {
      this.source.warn(`the sound "${name}" did not load: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    });
    this.#buffers.set(name, loading);
    const [oldest] = this.#buffers.keys();
    if (this.#buffers.size > BUFFERS_MAX && oldest !== undefined) this.#buffers.delete(oldest);
    return loading;
  }

  async #load(name: string): Promise<AudioBuffer | null> {
    const url = await this.source.assets.sound(name);
    const context = this.source.sound.context;
    if (!url) return null;
    if (!context) {
      this.#buffers.delete(name); // silent until the first gesture; try again then
      return null;
    }
    const response = await fetch(url);
    const bytes = await response.arrayBuffer();
    if (!response.ok || bytes.byteLength > FILE_BYTES_MAX)
      throw new Error(`status ${response.status}, ${bytes.byteLength} bytes`);
    return context.decodeAudioData(bytes);
  }
}

const number = (value: WireValue | undefined, otherwise: number): number =>
  typeof value === 'number' ? value : otherwise;

function place(thing: PannerNode | AudioListener, [x, y, z]: Triple): void {
  // Firefox has no AudioParams on the listener.
  if (!thing.positionX) return (thing as AudioListener).setPosition?.(x, y, z);
  thing.positionX.value = x;
  thing.positionY.value = y;
  thing.positionZ.value = z;
}

function aim(listener: AudioListener, [x, y, z]: Triple): void {
  if (!listener.forwardX) return listener.setOrientation?.(x, y, z, 0, 1, 0);
  listener.forwardX.value = x;
  listener.forwardY.value = y;
  listener.forwardZ.value = z;
}
