// Paths to pages and back.
import { expect, test } from 'vitest';
import {
  channelPlayPath,
  consolePath,
  gamePath,
  LIKES_PATH,
  managePath,
  parseRoute,
  playPath,
  registerPath,
  searchPath,
  signInPath,
  sitePath,
} from './routes';

test('each path resolves to its page', () => {
  expect(parseRoute('/')).toEqual({ page: 'home' });
  expect(parseRoute('/games/obby')).toEqual({ page: 'game', gameId: 'obby' });
  expect(parseRoute('/games/obby/')).toEqual({ page: 'game', gameId: 'obby' });
  const play = parseRoute('/play/obby', '?world=world_1');
  expect(play.page === 'play' && play.query.get('world')).toBe('world_1');
  expect(parseRoute(consolePath('obby'))).toEqual({ page: 'console', gameId: 'obby' });
  expect(parseRoute(LIKES_PATH)).toEqual({ page: 'likes' });
  expect(parseRoute('/characters')).toEqual({ page: 'characters' });
  expect(parseRoute('/notices')).toEqual({ page: 'notices' });
  expect(parseRoute('/moderation')).toEqual({ page: 'moderation' });
  expect(parseRoute('/i/ABC234')).toEqual({ page: 'invite', code: 'ABC234' });
  expect(parseRoute(managePath('obby'))).toEqual({ page: 'manage', gameId: 'obby', view: 'overview' });
  expect(parseRoute(managePath('obby', 'edit'))).toEqual({ page: 'manage', gameId: 'obby', view: 'edit' });
  expect(parseRoute('/create/obby/nonsense').page).toBe('missing');
  expect(parseRoute('/create/obby/overview').page).toBe('missing');
  expect(parseRoute('/create')).toEqual({ page: 'create' });
  expect(parseRoute('/upload').page).toBe('upload');
  expect(parseRoute('/docs/api')).toEqual({ page: 'docs-api' });
  expect(parseRoute('/docs/rest')).toEqual({ page: 'docs-rest' });
  expect(parseRoute('/my/worlds')).toEqual({ page: 'worlds' });
  expect(parseRoute('/games')).toEqual({ page: 'missing', path: '/games' });
});

test('a broken escape is a missing page, not a crash', () => {
  expect(parseRoute('/games/%E0%A4')).toEqual({ page: 'missing', path: '/games/%E0%A4' });
});

test('dev pages exist only in dev builds', () => {
  expect(parseRoute('/dev/scene').page).toBe('missing');
  expect(parseRoute('/dev/scene', '', true).page).toBe('dev-scene');
});

test('built paths parse back to the same game', () => {
  expect(parseRoute(gamePath('a b/c'))).toEqual({ page: 'game', gameId: 'a b/c' });
  expect(playPath('obby', 'world_1')).toBe('/play/obby?world=world_1');
  expect(channelPlayPath('obby', 'beta')).toBe('/play/obby?channel=beta');
});

test('a search has a shareable URL', () => {
  expect(searchPath({})).toBe('/search');
  const path = searchPath({ q: 'a & b', tag: 'obby', page: 2, sort: '' });
  const route = parseRoute('/search', path.slice('/search'.length));
  expect(route.page === 'search' && Object.fromEntries(route.query)).toEqual({ q: 'a & b', tag: 'obby', page: '2' });
});

test('account pages have paths, and signing in returns to the previous page', () => {
  for (const page of ['sign-in', 'register', 'account', 'admin'] as const)
    expect(parseRoute(`/${page}`).page).toBe(page);
  const path = signInPath('/games/obby?a=1');
  const route = parseRoute('/sign-in', path.slice(path.indexOf('?')));
  expect(route.page === 'sign-in' && sitePath(route.query.get('next'))).toBe('/games/obby?a=1');
  expect(signInPath('/')).toBe('/sign-in');
  expect(registerPath('/sign-in?next=%2Faccount')).toBe('/register');
});

test('signing in never redirects to another site', () => {
  for (const next of ['https://evil.test/', '//evil.test/x', '/\\evil.test', 'javascript:alert(1)', '', null])
    expect(sitePath(next)).toBe(null);
  expect(sitePath('/account?x=1#y')).toBe('/account?x=1');
});
