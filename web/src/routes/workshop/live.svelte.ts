// The workshop's connection to the platform (Socket.IO): progress of builds, worlds, casts. Loaded with the page, not before.
import type { Socket } from 'socket.io-client';
import type { WorldInfo } from '../../generated/rest';
import { session } from '../../lib/api';

export interface JobProgress {
  job_id: string;
  stage: string;
  pct: number;
  message: string;
  extras: { status?: string; error?: string; result_revision_id?: string };
}

export interface Happening {
  id: number;
  good: boolean;
  text: string;
}

const HAPPENINGS_MAX = 30;

/** One connection and its received state. */
export class Live {
  connected = $state(false);
  /** Worlds the user may cast into: current, own, and those whose owners allow it. */
  worlds = $state.raw<WorldInfo[]>([]);
  world = $state<string | null>(null);
  happenings = $state.raw<Happening[]>([]);
  #socket: Socket | null = null;
  #count = 0;
  /** Called for every progress event of the user's builds. */
  onprogress: (progress: JobProgress) => void = () => undefined;

  async open(): Promise<void> {
    const [{ io }, { token }] = await Promise.all([import('socket.io-client'), session()]);
    const socket = io({ auth: { token }, transports: ['websocket'] });
    this.#socket = socket;
    socket.on('connected', () => {
      this.connected = true;
      this.refresh();
      if (this.world) socket.emit('world.join', { world_id: this.world });
    });
    socket.on('disconnect', () => (this.connected = false));
    socket.on('world.list_result', ({ worlds }: { worlds: WorldInfo[] }) => (this.worlds = worlds));
    socket.on('world.list_updated', () => this.refresh());
    socket.on('job.progress', (progress: JobProgress) => this.onprogress(progress));
    socket.on('world.created', ({ world_id }: { world_id: string }) => this.join(world_id));
    socket.on('world.joined', ({ world }: { world: WorldInfo }) => {
      this.world = world.world_id;
      this.#tell(true, `Watching ${world.name}.`);
    });
    socket.on('spell.cast_event', (cast: { spell_id: string; seed: number; target: number[] }) =>
      this.#tell(
        true,
        `${cast.spell_id} was cast at ${cast.target.map((part) => part.toFixed(1)).join(', ')} with seed ${cast.seed}.`,
      ),
    );
    socket.on('spell.cast_rejected', ({ error }: { error: string }) => this.#tell(false, error));
    socket.on('error', ({ message }: { message: string }) => this.#tell(false, message));
  }

  /** Reloads the worlds; the user may have joined one since. */
  refresh(): void {
    this.#socket?.emit('world.list', { castable: true });
  }

  join(world_id: string): void {
    this.#socket?.emit('world.join', { world_id });
  }

  /** Creates a private sandbox world. */
  create(name: string): void {
    this.#socket?.emit('world.create', { name });
  }

  cast(spell_id: string, revision_id: string | null, target: number[]): void {
    this.#socket?.emit('spell.cast_request', { spell_id, revision_id, params: { target } });
  }

  close(): void {
    this.#socket?.disconnect();
  }

  #tell(good: boolean, text: string): void {
    this.happenings = [{ id: ++this.#count, good, text }, ...this.happenings].slice(0, HAPPENINGS_MAX);
  }
}
