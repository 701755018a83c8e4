// The site's router: the history API, one reactive route, and plain links that do not reload.
import { parseRoute, type Route } from './routes';

function current(): Route {
  return parseRoute(location.pathname, location.search, import.meta.env.DEV);
}

class Router {
  route = $state.raw<Route>(current());

  constructor() {
    addEventListener('popstate', () => (this.route = current()));
  }

  go(path: string): void {
    if (path === location.pathname + location.search) return;
    history.pushState(null, '', path);
    this.route = current();
    scrollTo(0, 0);
  }

  /** As `go`, but replaces the current history entry, so that typing adds a single step. */
  replace(path: string): void {
    if (path === location.pathname + location.search) return;
    history.replaceState(null, '', path);
    this.route = current();
  }
}

export const router = new Router();

/** Click handler for the whole page: follows same-site links without a reload. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  // In-page anchors and files of the server keep the browser's default behaviour.
  if (link.hash || link.pathname.startsWith('/api/') || link.pathname.startsWith('/cdn/')) return;
  event.preventDefault();
  router.go(link.pathname + link.search);
}
