// Which page a path means. Pure, so that it can be tested without a browser. The paths are in pages.json, which the
// build puts beside the site: the server answers 404 for every other one, and for a `:game` or `:invite` it does not know.
import pages from './pages.json';

export type Route =
  | { page: 'home' }
  | { page: 'game'; gameId: string }
  | { page: 'play'; gameId: string; query: URLSearchParams }
  | { page: 'search'; query: URLSearchParams }
  | { page: 'create' | 'worlds' | 'likes' | 'characters' | 'notices' | 'moderation' | 'docs-api' | 'docs-rest' }
  | { page: 'upload' | 'sign-in' | 'register' | 'account' | 'admin'; query: URLSearchParams }
  | { page: 'manage'; gameId: string; view: ManageView }
  | { page: 'console'; gameId: string }
  | { page: 'invite'; code: string }
  | { page: 'workshop'; spellId: string | null }
  | { page: 'dev-scene'; query: URLSearchParams }
  | { page: 'dev-kit' }
  | { page: 'missing'; path: string };

/** Pages for creators: charts, versions and channels, the page of the game, script errors. */
export type ManageView = 'overview' | 'versions' | 'edit' | 'errors';
const PATTERNS = Object.entries(pages).map(([path, page]) => ({ page, segments: segmentsOf(path) }));

/** Reads a location; `dev` also opens the pages that exist only in development builds. */
export function parseRoute(pathname: string, search = '', dev = false): Route {
  const missing: Route = { page: 'missing', path: pathname };
  let parts: string[];
  try {
    parts = segmentsOf(pathname).map(decodeURIComponent);
  } catch {
    return missing; // a stray % in the path
  }
  const query = new URLSearchParams(search);
  if (dev && pathname === '/dev/kit') return { page: 'dev-kit' };
  if (dev && pathname === '/dev/scene') return { page: 'dev-scene', query };
  const found = PATTERNS.find(
    ({ segments }) =>
      segments.length === parts.length &&
      segments.every((segment, index) => segment.startsWith(':') || segment === parts[index]),
  );
  const page = found?.page;
  const [, second = '', third = 'overview'] = parts;
  switch (page) {
    case 'home':
    case 'create':
    case 'worlds':
    case 'likes':
    case 'characters':
    case 'notices':
    case 'moderation':
    case 'docs-api':
    case 'docs-rest':
      return { page };
    case 'search':
    case 'upload':
    case 'sign-in':
    case 'register':
    case 'account':
    case 'admin':
      return { page, query };
    case 'game':
    case 'console':
      return { page, gameId: second };
    case 'play':
      return { page, gameId: second, query };
    case 'manage':
      return { page, gameId: second, view: third as ManageView };
    case 'invite':
      return { page, code: second };
    case 'workshop':
      return { page, spellId: second || null };
    default:
      return missing;
  }
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter(Boolean);
}

/** The creator's live console of a game. */
export const consolePath = (gameId: string): string => `/create/${encodeURIComponent(gameId)}/console`;

/** The visitor's own worlds; `/worlds` itself is the interface for programs. */
export const WORLDS_PATH = '/my/worlds';

/** The games that the visitor likes. */
export const LIKES_PATH = '/my/likes';

/** A creator's page about one of their games. */
export const managePath = (gameId: string, view: ManageView = 'overview'): string =>
  `/create/${encodeURIComponent(gameId)}${view === 'overview' ? '' : `/${view}`}`;

/** Search page; parameters that are not set are omitted from the address. */
export function searchPath(wish: { q?: string; tag?: string; creator?: string; sort?: string; page?: number }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wish)) {
    if (value !== undefined && value !== '' && !(name === 'page' && value === 1)) query.set(name, String(value));
  }
  return query.size > 0 ? `/search?${query}` : '/search';
}
/** The spell workshop, at one spell or at none. */
export const workshopPath = (spellId?: string): string =>
  spellId ? `/workshop/${encodeURIComponent(spellId)}` : '/workshop';

export const gamePath = (gameId: string): string => `/games/${encodeURIComponent(gameId)}`;

/** Page that joins the game; with `worldId`, exactly that world. */
export function playPath(gameId: string, worldId?: string): string {
  const path = `/play/${encodeURIComponent(gameId)}`;
  return worldId ? `${path}?world=${encodeURIComponent(worldId)}` : path;
}

/** Plays a version that is not on the stable channel. */
export const channelPlayPath = (gameId: string, channel: 'beta' | 'dev'): string =>
  `${playPath(gameId)}?channel=${channel}`;
/** Sign-in page that returns to the current page. */
export const signInPath = (next = '/'): string => withNext('/sign-in', next);
export const registerPath = (next = '/'): string => withNext('/register', next);

/** A path of this site, or null: a sign-in link must not redirect to another site. */
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
export const invitePlayPath = (gameId: string, code: string): string =>
  `${playPath(gameId)}?invite=${encodeURIComponent(code)}`;
