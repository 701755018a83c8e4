// API calls for spells: drafts, builds, revisions, publishing.
import type {
  BuildRequest,
  BuildStarted,
  SpellChannel,
  DraftCreated,
  JobInfo,
  RevisionList,
  SpellInfo,
  SpellList,
  SpellPublished,
} from '../../generated/rest';
import { call, session } from '../../lib/api';
import { loadSession } from '../../lib/session';

const spell = (id: string, rest = ''): string => `/api/spells/${encodeURIComponent(id)}${rest}`;

export const mySpells = (signal?: AbortSignal): Promise<SpellList> =>
  loadSession()
    ? call('GET', '/api/spells', { query: { mine: 'true', per_page: 100 }, signal })
    : Promise.resolve({ spells: [], total: 0, page: 1, per_page: 100, prompts: false });
export const allSpells = (q: string, signal?: AbortSignal): Promise<SpellList> =>
  call('GET', '/api/spells', { query: { q, per_page: 50 }, signal });
export const getSpell = (id: string, signal?: AbortSignal): Promise<SpellInfo> => call('GET', spell(id), { signal });
export const revisions = (id: string, signal?: AbortSignal): Promise<RevisionList> =>
  call('GET', spell(id, '/revisions'), { query: { per_page: 20 }, signal });

/** Creates a spell; signs in as a guest if necessary. */
export const createSpell = (display_name: string): Promise<DraftCreated> =>
  call('POST', '/api/spells', { body: { display_name }, as: 'guest' });
export const build = (id: string, body: BuildRequest): Promise<BuildStarted> =>
  call('POST', spell(id, '/build'), { body, as: 'guest' });
export const job = (id: string): Promise<JobInfo> => call('GET', `/api/jobs/${encodeURIComponent(id)}`, { as: 'me' });
export const cancelJob = (id: string): Promise<JobInfo> =>
  call('POST', `/api/jobs/${encodeURIComponent(id)}/cancel`, { as: 'me' });
export const publish = (id: string, revision_id: string, channel: SpellChannel): Promise<SpellPublished> =>
  call('POST', spell(id, '/publish'), { body: { revision_id, channel }, as: 'me' });

/** The source code of a revision. */
export async function codeOf(id: string, revision: string, signal?: AbortSignal): Promise<string> {
  const token = loadSession()?.token ?? (await session()).token;
  const path = spell(id, `/revisions/${encodeURIComponent(revision)}/files/spell.luau`);
  const response = await fetch(path, { signal, headers: { Authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error('We couldn’t load the code of this revision. Try again.');
  return response.text();
}

/** The template of a new spell. */
export const FIRST_CODE = `-- Runs on the server, where it changes the world, and with the same
-- seed in every player's browser, where it is seen.
local RADIUS = 4

function on_cast(ctx)
	for _, near in ctx.world.in_radius(ctx.target, RADIUS) do
		ctx.world.damage(near, ctx.random.NextInteger(5, 10))
	end
	ctx.world.particles(ctx.target, { Color = "#ff8800", Count = 60 })
	ctx.world.sound("hit")
end
`;
