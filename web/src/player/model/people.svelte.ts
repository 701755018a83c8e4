// Muted and blocked players: mutes are stored in this browser, blocks with the account. The server withholds
// chat between two players if one has blocked the other; earlier messages are hidden here.
import { SvelteSet } from 'svelte/reactivity';
import { block, listBlocks, unblock } from '../../lib/social';

const KEY = 'frolic.muted';
/** Older entries are dropped. */
const MUTED_MAX = 200;

export class People {
  readonly muted = new SvelteSet<string>(storedMutes());
  readonly blocked = new SvelteSet<string>();

  /** Loads the blocks once per visit; if that fails, the server still enforces them. */
  async load(): Promise<void> {
    try {
      const { blocks } = await listBlocks();
      for (const { user_id } of blocks) this.blocked.add(user_id);
    } catch (error) {
      console.info('the blocked players are not known:', error instanceof Error ? error.message : error);
    }
  }

  hides(playerId: string): boolean {
    return this.muted.has(playerId) || this.blocked.has(playerId);
  }

  mute(playerId: string, on: boolean): void {
    if (on) this.muted.add(playerId);
    else this.muted.delete(playerId);
    try {
      localStorage.setItem(KEY, JSON.stringify([...this.muted].slice(-MUTED_MAX)));
    } catch {
      // The mutes last until the page is closed.
    }
  }

  /** Rejects when the platform cannot store the block. */
  async block(playerId: string, on: boolean): Promise<void> {
    if (on) {
      await block(playerId);
      this.blocked.add(playerId);
    } else {
      await unblock(playerId);
      this.blocked.delete(playerId);
    }
  }
}

function storedMutes(): string[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(value) ? value.filter((id): id is string => typeof id === 'string').slice(-MUTED_MAX) : [];
  } catch {
    return [];
  }
}
