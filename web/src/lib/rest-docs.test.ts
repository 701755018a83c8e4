// The REST reference page's view of an OpenAPI document.
import { describe, expect, it } from 'vitest';
import { addressOf, curlOf, groupsOf, searchCalls, type Call, type OpenApi } from './rest-docs';

const document: OpenApi = {
  info: { title: 'Frolic' },
  paths: {
    '/api/games/{id}/like': {
      put: {
        tags: ['store'],
        summary: 'Likes a game',
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
          { name: 'loud', in: 'query', schema: { type: ['boolean', 'null'] } },
        ],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Like' } } } },
        responses: {
          '404': {
            description: 'no such game',
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Err' } } },
          },
          '200': { description: 'liked' },
        },
        security: [{ bearer: [] }],
      },
    },
    '/health': { get: { tags: ['operation'], summary: 'Whether it is alive', responses: {} } },
  },
  components: {
    schemas: {
      Like: {
        type: 'object',
        required: ['stars', 'kind'],
        properties: {
          stars: { type: 'integer', description: 'One to five' },
          kind: { enum: ['fun', 'art'] },
          why: { type: ['string', 'null'] },
          inner: { $ref: '#/components/schemas/Like' },
        },
      },
      Err: { type: 'object', properties: { code: { type: 'string' } } },
    },
  },
};

const groups = groupsOf(document);
const like = groups[0]?.calls[0] as Call;

describe('the REST page', () => {
  it('groups operations and reads their parameters and responses', () => {
    expect(groups.map((group) => group.tag)).toEqual(['store', 'operation']);
    expect(like.method).toBe('PUT');
    expect(like.token).toBe('required');
    expect(like.answers.map((answer) => answer.status)).toEqual(['200', '404']);
    expect(like.bodyShape).toContain('stars: number;  // One to five');
    expect(like.bodyShape).toContain('why?: string | null;');
    expect(like.bodyShape).toContain('{ … }'); // a recursive type is cut off
    expect(JSON.parse(like.bodySample)).toMatchObject({ stars: 0, kind: 'fun', why: null });
  });

  it('finds calls by words', () => {
    expect(searchCalls(groups, 'put like')[0]?.calls).toHaveLength(1);
    expect(searchCalls(groups, 'nothing like this')).toEqual([]);
    expect(searchCalls(groups, '')).toEqual(groups);
  });

  it('fills the parameters into the URL', () => {
    expect(addressOf(like, {})).toBeNull();
    expect(addressOf(like, { id: 'a/b' })).toBe('/api/games/a%2Fb/like');
    expect(addressOf(like, { id: 'x', loud: 'true' })).toBe('/api/games/x/like?loud=true');
    expect(curlOf(like, 'http://host', '/x', `{"why":"it's"}`)).toBe(
      `curl -X PUT -H 'Authorization: Bearer …' -H 'Content-Type: application/json' -d '{"why":"it'\\''s"}' 'http://host/x'`,
    );
  });
});
