// Which page a path means. Pure, so that it can be tested without a browser.

export type Route =
  | { page: 'home' }
  | { page: 'game'; gameId: string }
  | { page: 'play'; gameId: string; query: URLSearchParams }
  | { page: 'console'; gameId: string }
  | { page: 'docs-api' }
  | { page: 'docs-rest' }
  | { page: 'dev-scene'; query: URLSearchParams }
  | { page: 'dev-kit' }
  | { page: 'missing'; path: string };

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
  if (parts.length === 2 && second !== undefined) {
    if (first === 'games') return { page: 'game', gameId: second };
    if (first === 'play') return { page: 'play', gameId: second, query: new URLSearchParams(search) };
    if (first === 'docs' && second === 'api') return { page: 'docs-api' };
    if (first === 'docs' && second === 'rest') return { page: 'docs-rest' };
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

export const gamePath = (gameId: string): string => `/games/${encodeURIComponent(gameId)}`;

/** Where Play leads; with a world, to exactly that one. */
export function playPath(gameId: string, worldId?: string): string {
  const path = `/play/${encodeURIComponent(gameId)}`;
  return worldId ? `${path}?world=${encodeURIComponent(worldId)}` : path;
}
