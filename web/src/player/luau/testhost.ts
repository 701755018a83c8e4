// A test host for client scripts: a small world that records everything scripts do. The same world as
// crates/script/tests/support/mod.rs: ground (1), a kill brick (2), an NPC (5), the character (10) of player 7.
import type { WireValue } from '../core/events';
import type { ClientHost, Found, Triple } from './host';

/**
 * The clock of the VM's time limits in tests: the CPU time of this process. With wall-clock time, a script could be stopped
 * because other programs were running.
 */
export const clock = {
  cpu: (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  now: (): number => clock.cpu(),
};

interface TestEntity {
  name: string;
  tags: string[];
  attributes: Record<string, WireValue>;
}

export class TestHost implements ClientHost {
  sent: [string, WireValue[], boolean][] = [];
  calls: [number, string, WireValue[]][] = [];
  casts: [string, WireValue][] = [];
  logs: string[] = [];
  screen: string[] = [];
  keys = new Set<string>();
  actions: string[] = [];
  mode = 'Follow';
  fov = 70;
  playing = new Set<number>();
  entities = new Map<number, TestEntity>([
    [1, { name: 'Ground', tags: [], attributes: {} }],
    [2, { name: 'KillBrick', tags: ['deadly'], attributes: { Team: 'red' } }],
    [5, { name: 'Guard', tags: [], attributes: {} }],
    [10, { name: 'Ada', tags: [], attributes: {} }],
  ]);

  fireServer(name: string, args: WireValue[], reliable: boolean): void {
    this.sent.push([name, args, reliable]);
  }
  invokeServer(call: number, name: string, args: WireValue[]): void {
    this.calls.push([call, name, args]);
  }
  castSpell(spell: string, params: WireValue): void {
    this.casts.push([spell, params]);
  }
  log(level: 'info' | 'warn' | 'error', text: string): void {
    this.logs.push(`${level} ${text}`);
  }
  uiCreate(id: number, kind: string, props: Record<string, unknown>): void {
    this.screen.push(`create ${id} ${kind} ${JSON.stringify(props)}`);
  }
  uiUpdate(id: number, props: Record<string, unknown>): void {
    this.screen.push(`update ${id} ${JSON.stringify(props)}`);
  }
  uiRemove(id: number): void {
    this.screen.push(`remove ${id}`);
  }
  isKeyDown(name: string): boolean {
    return this.keys.has(name);
  }
  inputVector(which: number): Triple {
    return [
      [100, 50, 0],
      [3, 4, 1],
      [0.5, -0.5, 0],
      [0, 1, 0],
    ][which] as Triple;
  }
  inputDevice(): string {
    return 'Keyboard';
  }
  wantModule(path: string): boolean {
    return path === 'ReplicatedStorage/Late.luau';
  }
  worldTime(): number {
    return 100;
  }
  knownScripts(): [string, boolean][] {
    return [['ReplicatedStorage/Late.luau', true]];
  }
  bindAction(name: string): void {
    this.actions.push(name);
  }
  unbindAction(name: string): void {
    this.actions = this.actions.filter((known) => known !== name);
  }

  readonly camera = {
    position: (): Triple => [1, 2, 3],
    forward: (): Triple => [0, 0, -1],
    viewport: (): Triple => [800, 600, 0],
    mode: () => this.mode,
    setMode: (mode: string) => void (this.mode = mode),
    setPosition: (position: Triple) => {
      this.mode = 'Fixed';
      this.screen.push(`camera ${position.join(' ')}`);
    },
    lookAt: (target: Triple) => void this.screen.push(`look ${target.join(' ')}`),
    fieldOfView: () => this.fov,
    setFieldOfView: (degrees: number) => void (this.fov = degrees || 70),
    worldToScreen: ([x, y, z]: Triple): Triple => [400 + x, 300 - y, -z],
    screenToRay: (): Triple => [0, 0, -1],
    shake: (strength: number, seconds: number) => void this.screen.push(`shake ${strength} ${seconds}`),
  };

  readonly sound = {
    play: (id: number, name: string, options: Record<string, WireValue>) => {
      this.playing.add(id);
      this.screen.push(`sound ${name}${Object.keys(options).length ? ` ${JSON.stringify(options)}` : ''}`);
    },
    stop: (id: number) => void (id === 0 ? this.playing.clear() : this.playing.delete(id)),
    isPlaying: (id: number) => this.playing.has(id),
  };

  readonly effects = {
    particles: (at: Triple, options: Record<string, WireValue>) =>
      void this.screen.push(`particles ${at.join(' ')} ${JSON.stringify(options)}`),
    beam: (from: Triple, to: Triple, options: Record<string, WireValue>) =>
      void this.screen.push(`beam ${from.join(' ')} to ${to.join(' ')} ${JSON.stringify(options)}`),
  };

  /** Stone below y = 0, hit by rays where x > 20; requests are recorded. */
  readonly terrain = {
    exists: () => true,
    info: () => ({ min: [-32, -32, -32] as Triple, max: [32, 32, 32] as Triple, block: 1 }),
    block: ([, y]: Triple) => (y < 0 ? 'stone' : ''),
    height: (x: number) => (Math.abs(x) < 32 ? 0 : null),
    raycast: ([x, y, z]: Triple, direction: Triple, max: number) =>
      direction[1] < -0.5 && x > 20 && y > 0 && max >= y
        ? {
            distance: y,
            normal: [0, 1, 0] as Triple,
            block: [Math.floor(x) + 0.5, -0.5, Math.floor(z) + 0.5] as Triple,
            material: 'stone',
          }
        : null,
    request: (op: string, center: Triple, size: number[], material: string | null) =>
      void this.screen.push(`terrain ${op} ${center.join(' ')} of ${size.join(' ')} ${material ?? 'nothing'}`),
  };

  readonly world = {
    exists: (id: number) => this.entities.has(id),
    entity: (id: number, property: string): Found => {
      const entity = this.entities.get(id);
      if (!entity) return undefined;
      const values: Record<string, WireValue> = {
        position: { $v: [id, 0, 0] },
        velocity: { $v: [0, 0, 0] },
        rotation: { $v: [0, 90, 0] },
        name: entity.name,
        color: '#ff0000',
        tags: entity.tags,
        pattern: 'plain',
      };
      return values[property];
    },
    attribute: (id: number, name: string) => this.entities.get(id)?.attributes[name] ?? null,
    find: (word: string) =>
      [...this.entities].filter(([, e]) => e.name === word || e.tags.includes(word)).map(([id]) => id),
    inRadius: ([x]: Triple, radius: number) => [...this.entities.keys()].filter((id) => Math.abs(id - x) <= radius),
    raycast: (origin: Triple, direction: Triple, max: number, tag: string, ignore: number[]) =>
      direction[1] < -0.5 && max >= origin[1] && !ignore.includes(1) && tag === ''
        ? { id: 1, distance: origin[1], normal: [0, 1, 0] as Triple }
        : null,
    players: () => [7],
    playerOf: (entity: number) => (entity === 10 ? 7 : 0),
    localPlayer: () => 7,
    player: (number: number, property: string): Found => {
      if (number !== 7) return undefined;
      return { name: 'Ada', userId: 'user-7', character: { $e: 10 }, team: null }[property] as Found;
    },
    npcs: () => [5],
    npc: (id: number) => (id === 5 ? { state: 'idle', suspicion: 0.25 } : null),
    stat: (number: number, name: string) => (number === 7 && name === 'Coins' ? 3 : null),
  };
}
