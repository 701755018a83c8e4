// API calls for spells: drafts, builds, revisions, publishing.
import type { BuildRequest, SpellChannel, SpellList } from '../../generated/rest';
import { call, download } from '../../lib/api';
import { loadSession } from '../../lib/session';

export const mySpells = async (signal?: AbortSignal): Promise<SpellList> =>
  loadSession()
    ? call('GET', '/api/spells', { query: { mine: true, per_page: 100 }, signal })
    : { spells: [], total: 0, page: 1, per_page: 100, prompts: false };
export const allSpells = (q: string, signal?: AbortSignal) =>
  call('GET', '/api/spells', { query: { q, per_page: 50 }, signal });
export const getSpell = (id: string, signal?: AbortSignal) => call('GET', '/api/spells/{id}', { path: { id }, signal });
export const revisions = (id: string, signal?: AbortSignal) =>
  call('GET', '/api/spells/{id}/revisions', { path: { id }, query: { per_page: 20 }, signal });

/** Creates a spell; signs in as a guest if necessary. */
export const createSpell = (display_name: string) =>
  call('POST', '/api/spells', { body: { display_name }, as: 'guest' });
export const build = (id: string, body: BuildRequest) =>
  call('POST', '/api/spells/{id}/build', { path: { id }, body, as: 'guest' });
export const job = (id: string) => call('GET', '/api/jobs/{id}', { path: { id }, as: 'me' });
export const cancelJob = (id: string) => call('POST', '/api/jobs/{id}/cancel', { path: { id }, as: 'me' });
export const publish = (id: string, revision_id: string, channel: SpellChannel) =>
  call('POST', '/api/spells/{id}/publish', { path: { id }, body: { revision_id, channel }, as: 'me' });

/** The source code of a revision. */
export async function codeOf(id: string, rev: string, signal?: AbortSignal): Promise<string> {
  const path = { id, rev, path: 'spell.luau' };
  const file = await download('/api/spells/{id}/revisions/{rev}/files/{path}', { path, as: 'guest', signal });
  return file.text();
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
