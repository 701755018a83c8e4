// API calls of the store besides listings: games, likes, ranking, tags, and the creator's operations.
import type { Channel, EditGame, SetChannel } from '../generated/rest';
import { call, urlOf } from './api';

/** A game's page, with fields for its creator and for the caller's like. */
export const getGame = (id: string, signal?: AbortSignal) => call('GET', '/api/games/{id}', { path: { id }, signal });

export const listTags = (signal?: AbortSignal) => call('GET', '/api/tags', { as: 'anonymous', signal });

/** Explains a game's rank in Popular. */
export const getRanking = (id: string, signal?: AbortSignal) =>
  call('GET', '/api/games/{id}/ranking', { path: { id }, signal });

export const setLike = (id: string, liked: boolean) =>
  call(liked ? 'PUT' : 'DELETE', '/api/games/{id}/like', { path: { id }, as: 'guest' });

/** The games that the visitor likes, the last liked first. */
export const likedGames = (page: number, signal?: AbortSignal) =>
  call('GET', '/api/me/likes', { query: { page, per_page: 24 }, as: 'me', signal });

/** Features a game or stops featuring it; for moderators. */
export const setFeatured = (id: string, featured: boolean) =>
  call('PUT', '/api/games/{id}/featured', { path: { id }, body: { featured }, as: 'me' });

/** Download URL of the package, for games whose creator allows it. */
export const downloadPath = (id: string): string => urlOf('/api/games/{id}/download', { path: { id } });

export const myGames = (page: number, signal?: AbortSignal) =>
  call('GET', '/api/creator/games', { query: { page, per_page: 24 }, as: 'me', signal });

export const myGame = (id: string, signal?: AbortSignal) =>
  call('GET', '/api/creator/games/{id}', { path: { id }, as: 'me', signal });

export const editGame = (id: string, edit: EditGame) =>
  call('PATCH', '/api/games/{id}', { path: { id }, body: edit, as: 'me' });

/** Publishes or unpublishes a game. */
export const setPublished = (id: string, published: boolean, edition: number) =>
  call('POST', published ? '/api/games/{id}/publish' : '/api/games/{id}/unpublish', {
    path: { id },
    body: { edition },
    as: 'me',
  });

export const getChannels = (id: string, signal?: AbortSignal) =>
  call('GET', '/api/creator/games/{id}/channels', { path: { id }, as: 'me', signal });

export const setChannel = (id: string, channel: Channel, wish: SetChannel) =>
  call('PUT', '/api/games/{id}/channels/{channel}', { path: { id, channel }, body: wish, as: 'me' });

export const rollBack = (id: string, channel: Channel, edition: number) =>
  call('POST', '/api/games/{id}/channels/{channel}/rollback', { path: { id, channel }, body: { edition }, as: 'me' });

export const getVersions = (id: string, page: number, signal?: AbortSignal) =>
  call('GET', '/api/creator/games/{id}/versions', { path: { id }, query: { page, per_page: 20 }, as: 'me', signal });

export const getDashboard = (id: string, days: number, signal?: AbortSignal) =>
  call('GET', '/api/creator/games/{id}/dashboard', { path: { id }, query: { days }, as: 'me', signal });

/** Output and costs of a game's scripts after a line; for its creator, or with an admin token. */
export const getConsole = (id: string, after: number, signal?: AbortSignal) =>
  call('GET', '/api/games/{id}/console', { path: { id }, query: { after }, as: 'operator', signal });

export const addScreenshot = (id: string, picture: Blob) =>
  call('POST', '/api/games/{id}/screenshots', { path: { id }, body: picture, as: 'me' });

export const removeScreenshot = (id: string, picture: string) =>
  call('DELETE', '/api/games/{id}/screenshots/{picture}', { path: { id, picture }, as: 'me' });

export const orderScreenshots = (id: string, ids: string[]) =>
  call('PUT', '/api/games/{id}/screenshots/order', { path: { id }, body: { ids }, as: 'me' });

export const setThumbnail = (id: string, picture: Blob) =>
  call('PUT', '/api/games/{id}/thumbnail', { path: { id }, body: picture, as: 'me' });

export const removeThumbnail = (id: string) => call('DELETE', '/api/games/{id}/thumbnail', { path: { id }, as: 'me' });

/** Validates a package without storing it. */
export const validatePackage = (file: Blob, signal?: AbortSignal) =>
  call('POST', '/api/games/validate', { body: file, as: 'guest', signal });
