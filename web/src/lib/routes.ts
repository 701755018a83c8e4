// Which page a path means. Pure, so that it can be tested without a browser.

export type Route =
  | { page: 'home' }
  | { page: 'game'; gameId: string }
  | { page: 'play'; gameId: string; query: URLSearchParams }
  | { page: 'console'; gameId: string }
  | { page: AccountPage; query: URLSearchParams }
  | { page: 'workshop'; spellId: string | null }
  | { page: 'docs-api' }
  | { page: 'dev-scene'; query: URLSearchParams }
  | { page: 'dev-kit' }
  | { page: 'missing'; path: string };

/** Pages about people, at addresses of one part. */
export type AccountPage = 'sign-in' | 'register' | 'account' | 'admin';
const ACCOUNT_PAGES: readonly AccountPage[] = ['sign-in', 'register', 'account', 'admin'];

/** Reads a location; `dev` also opens the pages that exist only in development builds. */
export function parseRoute(pathname: string, search = '', dev = false): Route {
  let parts: string[];
  try {
    parts = pathname.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return { page: 'missing', path: pathname }; // a stray % in the path
  }
  const [first, second] = parts;
  if (parts.length === 0) return { page: 'home' };
  const accountPage = parts.length === 1 ? ACCOUNT_PAGES.find((page) => page === first) : undefined;
  if (accountPage) return { page: accountPage, query: new URLSearchParams(search) };
  if (first === 'workshop' && parts.length <= 2) return { page: 'workshop', spellId: second ?? null };
  if (parts.length === 2 && second !== undefined) {
    if (first === 'games') return { page: 'game', gameId: second };
    if (first === 'play') return { page: 'play', gameId: second, query: new URLSearchParams(search) };
    if (first === 'docs' && second === 'api') return { page: 'docs-api' };
    if (dev && first === 'dev' && second === 'kit') return { page: 'dev-kit' };
    if (dev && first === 'dev' && second === 'scene') return { page: 'dev-scene', query: new URLSearchParams(search) };
  }
  if (parts.length === 3 && first === 'create' && second !== undefined && parts[2] === 'console') {
    return { page: 'console', gameId: second };
  }
  return { page: 'missing', path: pathname };
}

/** The creator's live console of a game. */
export const consolePath = (gameId: string): string => `/create/${encodeURIComponent(gameId)}/console`;

/** The spell workshop, at one spell or at none. */
export const workshopPath = (spellId?: string): string => (spellId ? `/workshop/${encodeURIComponent(spellId)}` : '/workshop');

export const gamePath = (gameId: string): string => `/games/${encodeURIComponent(gameId)}`;

/** Where Play leads; with a world, to exactly that one. */
export function playPath(gameId: string, worldId?: string): string {
  const path = `/play/${encodeURIComponent(gameId)}`;
  return worldId ? `${path}?world=${encodeURIComponent(worldId)}` : path;
}

/** Signing in, and back to where somebody was. */
export const signInPath = (next = '/'): string => withNext('/sign-in', next);
export const registerPath = (next = '/'): string => withNext('/register', next);

/** A path of this site, or nothing: a link from elsewhere must not lead people away after they signed in. */
export function sitePath(text: string | null): string | null {
  if (!text?.startsWith('/')) return null;
  const url = new URL(text, 'http://site.invalid');
  return url.origin === 'http://site.invalid' ? url.pathname + url.search : null;
}

function withNext(path: string, next: string): string {
  const own = ['/', '/sign-in', '/register'].includes(next.split('?')[0] ?? '');
  return own ? path : `${path}?next=${encodeURIComponent(next)}`;
}
