// API calls of the store besides listings: likes, ranking, tags, and the creator's operations.
import type {
  Channel,
  CreatorGame,
  CreatorGameList,
  EditGame,
  GameChannels,
  GameDashboard,
  LikeState,
  RankingBreakdown,
  ScreenshotList,
  SetChannel,
  TagList,
  ValidationReport,
  VersionList,
} from '../generated/rest';
import { call } from './api';

const game = (id: string, rest = ''): string => `/api/games/${encodeURIComponent(id)}${rest}`;
const own = (id: string, rest = ''): string => `/api/creator/games/${encodeURIComponent(id)}${rest}`;

export const listTags = (signal?: AbortSignal) => call<TagList>('GET', '/api/tags', { as: 'anonymous', signal });

/** Explains a game's rank in Popular. */
export const getRanking = (id: string, signal?: AbortSignal) =>
  call<RankingBreakdown>('GET', game(id, '/ranking'), { signal });

export const setLike = (id: string, liked: boolean) =>
  call<LikeState>(liked ? 'PUT' : 'DELETE', game(id, '/like'), { as: 'guest' });

/** Features a game or stops featuring it; for moderators. */
export const setFeatured = (id: string, featured: boolean) =>
  call<unknown>('PUT', game(id, '/featured'), { body: { featured }, as: 'me' });

/** Download URL of the package, for games whose creator allows it. */
export const downloadPath = (id: string): string => game(id, '/download');

export const myGames = (page: number, signal?: AbortSignal) =>
  call<CreatorGameList>('GET', '/api/creator/games', { query: { page, per_page: 24 }, as: 'me', signal });

export const myGame = (id: string, signal?: AbortSignal) => call<CreatorGame>('GET', own(id), { as: 'me', signal });

export const editGame = (id: string, edit: EditGame) => call<CreatorGame>('PATCH', game(id), { body: edit, as: 'me' });

/** Publishes or unpublishes a game. */
export const setPublished = (id: string, published: boolean, edition: number) =>
  call<CreatorGame>('POST', game(id, published ? '/publish' : '/unpublish'), { body: { edition }, as: 'me' });

export const getChannels = (id: string, signal?: AbortSignal) =>
  call<GameChannels>('GET', own(id, '/channels'), { as: 'me', signal });

export const setChannel = (id: string, channel: Channel, wish: SetChannel) =>
  call<GameChannels>('PUT', game(id, `/channels/${channel}`), { body: wish, as: 'me' });

export const rollBack = (id: string, channel: Channel, edition: number) =>
  call<GameChannels>('POST', game(id, `/channels/${channel}/rollback`), { body: { edition }, as: 'me' });

export const getVersions = (id: string, page: number, signal?: AbortSignal) =>
  call<VersionList>('GET', own(id, '/versions'), { query: { page, per_page: 20 }, as: 'me', signal });

export const getDashboard = (id: string, days: number, signal?: AbortSignal) =>
  call<GameDashboard>('GET', own(id, '/dashboard'), { query: { days }, as: 'me', signal });

export const addScreenshot = (id: string, picture: Blob) =>
  call<ScreenshotList>('POST', game(id, '/screenshots'), { body: picture, as: 'me' });

export const removeScreenshot = (id: string, picture: string) =>
  call<ScreenshotList>('DELETE', game(id, `/screenshots/${encodeURIComponent(picture)}`), { as: 'me' });

export const orderScreenshots = (id: string, ids: string[]) =>
  call<ScreenshotList>('PUT', game(id, '/screenshots/order'), { body: { ids }, as: 'me' });

export const setThumbnail = (id: string, picture: Blob) =>
  call<unknown>('PUT', game(id, '/thumbnail'), { body: picture, as: 'me' });

export const removeThumbnail = (id: string) => call<unknown>('DELETE', game(id, '/thumbnail'), { as: 'me' });

/** Validates a package without storing it. */
export const validatePackage = (file: Blob, signal?: AbortSignal) =>
  call<ValidationReport>('POST', '/api/games/validate', { body: file, as: 'guest', signal });
