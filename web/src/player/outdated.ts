// A page that is older than its server. It can help itself by loading anew, but not for ever: where the site itself is
// the older of the two, every new page would be refused like the one before.
import { tabStorage } from './saved-seat';

const KEY = 'frolic.reloaded';
/** An update that comes sooner after the one before has to be asked for by hand. */
const AGAIN_AFTER_MS = 10 * 60_000;
/** A connection whose bytes cannot be read may be an accident; the second within this time is none. */
const ACCIDENTS_APART_MS = 60_000;

/** Loads the page anew, unless that was done a moment ago or cannot be remembered. */
export function reloadOnce(storage = tabStorage(), reload = () => location.reload(), now = Date.now()): boolean {
  try {
    const before = storage?.getItem(KEY);
    if (!storage || (before && now - Number(before) < AGAIN_AFTER_MS)) return false;
    storage.setItem(KEY, String(now));
  } catch {
    return false;
  }
  reload();
  return true;
}

/** Tells an accident from two sides that do not speak the same language. */
export class Misunderstandings {
  #lastMs = -Infinity;

  /** A connection has ended because what came could not be read; whether that was so a moment ago as well. */
  again(nowMs: number): boolean {
    const again = nowMs - this.#lastMs < ACCIDENTS_APART_MS;
    this.#lastMs = nowMs;
    return again;
  }
}
