// A page that is older than its server reloads itself, but not in a loop: if the site itself is
// outdated, every reload would be refused as well.
import { tabStorage } from './saved-seat';

const KEY = 'frolic.reloaded';
/** Minimum time between automatic reloads. */
const AGAIN_AFTER_MS = 10 * 60_000;

/** Reloads the page, unless it just did or has no storage to remember it. */
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
