// Which page a path means. Pure, so that it can be tested without a browser.

export type Route =
  | { page: 'home' }
  | { page: 'game'; gameId: string }
  | { page: 'play'; gameId: string; query: URLSearchParams }
  | { page: 'search'; query: URLSearchParams }
  | { page: 'create' }
  | { page: 'upload'; query: URLSearchParams }
  | { page: 'manage'; gameId: string; view: ManageView }
  | { page: 'console'; gameId: string }
  | { page: AccountPage; query: URLSearchParams }
  | { page: 'characters' }
  | { page: 'notices' }
  | { page: 'moderation' }
  | { page: 'invite'; code: string }
  | { page: 'workshop'; spellId: string | null }
  | { page: 'docs-api' }
  | { page: 'worlds' }
  | { page: 'docs-rest' }
  | { page: 'dev-scene'; query: URLSearchParams }
  | { page: 'dev-kit' }
  | { page: 'missing'; path: string };

/** What a creator looks at: plots, versions and channels, the page of the game, errors of scripts. */
export type ManageView = 'overview' | 'versions' | 'edit' | 'errors';
const MANAGE_VIEWS: readonly ManageView[] = ['versions', 'edit', 'errors'];
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
  if (parts.length === 1) {
    if (first === 'search') return { page: 'search', query: new URLSearchParams(search) };
    if (first === 'create') return { page: 'create' };
    if (first === 'upload') return { page: 'upload', query: new URLSearchParams(search) };
  }
  const accountPage = parts.length === 1 ? ACCOUNT_PAGES.find((page) => page === first) : undefined;
  if (accountPage) return { page: accountPage, query: new URLSearchParams(search) };
  if (parts.length === 1) {
    if (first === 'characters' || first === 'notices' || first === 'moderation') return { page: first };
  }
  if (first === 'workshop' && parts.length <= 2) return { page: 'workshop', spellId: second ?? null };
  if (parts.length === 2 && second !== undefined) {
    if (first === 'i') return { page: 'invite', code: second };
    if (first === 'games') return { page: 'game', gameId: second };
    if (first === 'play') return { page: 'play', gameId: second, query: new URLSearchParams(search) };
    if (first === 'my' && second === 'worlds') return { page: 'worlds' };
    if (first === 'create') return { page: 'manage', gameId: second, view: 'overview' };
    if (first === 'docs' && second === 'api') return { page: 'docs-api' };
    if (first === 'docs' && second === 'rest') return { page: 'docs-rest' };
    if (dev && first === 'dev' && second === 'kit') return { page: 'dev-kit' };
    if (dev && first === 'dev' && second === 'scene') return { page: 'dev-scene', query: new URLSearchParams(search) };
  }
  if (parts.length === 3 && first === 'create' && second !== undefined) {
    if (parts[2] === 'console') return { page: 'console', gameId: second };
    const view = MANAGE_VIEWS.find((known) => known === parts[2]);
    if (view) return { page: 'manage', gameId: second, view };
  }
  return { page: 'missing', path: pathname };
}

/** The creator's live console of a game. */
export const consolePath = (gameId: string): string => `/create/${encodeURIComponent(gameId)}/console`;

/** The visitor's own worlds; `/worlds` itself is the interface for programs. */
export const WORLDS_PATH = '/my/worlds';

/** What a creator sees of one of their games. */
export const managePath = (gameId: string, view: ManageView = 'overview'): string =>
  `/create/${encodeURIComponent(gameId)}${view === 'overview' ? '' : `/${view}`}`;

/** Games by words, tag, creator or order; what is left out does not stand in the address. */
export function searchPath(wish: { q?: string; tag?: string; creator?: string; sort?: string; page?: number }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wish)) {
    if (value !== undefined && value !== '' && !(name === 'page' && value === 1)) query.set(name, String(value));
  }
  return query.size > 0 ? `/search?${query}` : '/search';
}
/** The spell workshop, at one spell or at none. */
export const workshopPath = (spellId?: string): string => (spellId ? `/workshop/${encodeURIComponent(spellId)}` : '/workshop');

export const gamePath = (gameId: string): string => `/games/${encodeURIComponent(gameId)}`;

/** Where Play leads; with a world, to exactly that one. */
export function playPath(gameId: string, worldId?: string): string {
  const path = `/play/${encodeURIComponent(gameId)}`;
  return worldId ? `${path}?world=${encodeURIComponent(worldId)}` : path;
}

/** Play of a version that is not everybody's yet. */
export const channelPlayPath = (gameId: string, channel: 'beta' | 'dev'): string => `${playPath(gameId)}?channel=${channel}`;
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
/** Into the world that a friend invited to, beside them. */
export const invitePlayPath = (gameId: string, code: string): string => `${playPath(gameId)}?invite=${encodeURIComponent(code)}`;
