// Converts the OpenAPI document into the model of the REST reference page. Pure, so that it can be tested in isolation.

export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  example?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
  allOf?: Schema[];
  oneOf?: Schema[];
  anyOf?: Schema[];
}

interface Content {
  content?: Record<string, { schema?: Schema }>;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header' | 'cookie';
  description?: string;
  required?: boolean;
  schema?: Schema;
}

interface Operation {
  tags?: string[];
  summary?: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: Content & { required?: boolean; description?: string };
  responses?: Record<string, Content & { description?: string }>;
  security?: Record<string, unknown>[];
}

export interface OpenApi {
  info: { title: string; version?: string; description?: string };
  paths: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, Schema> };
}

export interface Answer {
  status: string;
  text: string;
  /** Media type and shape, when there is a body. */
  media: string;
  shape: string;
}

export interface Call {
  id: string;
  method: string;
  path: string;
  summary: string;
  text: string;
  /** 'required' operations need a token, 'optional' ones return more with one. */
  token: 'none' | 'optional' | 'required';
  parameters: Parameter[];
  /** Media type of the body, or '' without one. */
  bodyMedia: string;
  bodyShape: string;
  bodySample: string;
  answers: Answer[];
}

export interface Group {
  tag: string;
  calls: Call[];
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
/** Maximum depth of nested types, because references may be recursive. */
const DEPTH_MAX = 5;

/** Every call, by tag, in the order of the document. */
export function groupsOf(document: OpenApi): Group[] {
  const groups: Group[] = [];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of METHODS) {
      const operation = item[method];
      if (!operation) continue;
      const tag = operation.tags?.[0] ?? 'other';
      let group = groups.find((known) => known.tag === tag);
      if (!group) groups.push((group = { tag, calls: [] }));
      group.calls.push(callOf(document, method, path, operation));
    }
  }
  // Operations for players and creators first, those for moderators and admins last.
  return groups.sort((a, b) => rank(a.tag) - rank(b.tag));
}

const LAST_TAGS = ['moderation', 'admin'];
const rank = (tag: string): number => LAST_TAGS.indexOf(tag);

/** Groups reduced to the operations that match every word of `query`. */
export function searchCalls(groups: Group[], query: string): Group[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (group: Group, call: Call): boolean => {
    const text = `${group.tag} ${call.method} ${call.path} ${call.summary} ${call.text}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return groups
    .map((group) => ({ ...group, calls: group.calls.filter((call) => matches(group, call)) }))
    .filter((group) => group.calls.length > 0);
}

/** The URL with the entered values; `null` while a path parameter is missing. */
export function addressOf(call: Call, values: Record<string, string>): string | null {
  let path = call.path;
  const query = new URLSearchParams();
  for (const { name, in: place } of call.parameters) {
    const value = values[name] ?? '';
    if (place === 'path') {
      if (value === '') return null;
      path = path.replace(`{${name}}`, encodeURIComponent(value));
    } else if (place === 'query' && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** The operation as a curl command. */
export function curlOf(call: Call, origin: string, address: string, body: string): string {
  const parts = ['curl'];
  if (call.method !== 'GET') parts.push('-X', call.method);
  if (call.token !== 'none') parts.push('-H', "'Authorization: Bearer …'");
  if (call.bodyMedia !== '') parts.push('-H', quoted(`Content-Type: ${call.bodyMedia}`));
  if (call.bodyMedia === 'application/json' && body.trim() !== '') parts.push('-d', quoted(body));
  else if (call.bodyMedia !== '' && call.bodyMedia !== 'application/json') parts.push('--data-binary', '@file');
  parts.push(quoted(origin + address));
  return parts.join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function callOf(document: OpenApi, method: string, path: string, operation: Operation): Call {
  const [bodyMedia, bodySchema] = first(operation.requestBody);
  const json = bodyMedia === 'application/json' && bodySchema !== undefined;
  return {
    id: `${method}-${path.replaceAll(/[^a-z0-9]+/gi, '-').replaceAll(/^-|-$/g, '')}`,
    method: method.toUpperCase(),
    path,
    summary: operation.summary ?? path,
    text: operation.description ?? '',
    token: tokenOf(operation.security),
    parameters: operation.parameters ?? [],
    bodyMedia,
    bodyShape: json ? shapeOf(document, bodySchema) : '',
    bodySample: json ? JSON.stringify(sampleOf(document, bodySchema), null, 2) : '',
    answers: Object.entries(operation.responses ?? {})
      .map(([status, answer]) => {
        const [media, schema] = first(answer);
        return { status, text: answer.description ?? '', media, shape: schema ? shapeOf(document, schema) : '' };
      })
      .sort((a, b) => a.status.localeCompare(b.status)),
  };
}

function first(holder: Content | undefined): [string, Schema | undefined] {
  const entry = Object.entries(holder?.content ?? {})[0];
  return entry ? [entry[0], entry[1].schema] : ['', undefined];
}

function tokenOf(security: Record<string, unknown>[] | undefined): Call['token'] {
  if (!security || security.length === 0) return 'none';
  return security.some((way) => Object.keys(way).length === 0) ? 'optional' : 'required';
}

function resolve(document: OpenApi, schema: Schema): Schema {
  const name = schema.$ref?.split('/').pop();
  return name === undefined ? schema : (document.components?.schemas?.[name] ?? {});
}

/** All properties, inherited ones first. */
function fieldsOf(document: OpenApi, schema: Schema): { properties: [string, Schema][]; required: string[] } {
  const parts = (schema.allOf ?? []).map((part) => fieldsOf(document, resolve(document, part)));
  return {
    properties: [...parts.flatMap((part) => part.properties), ...Object.entries(schema.properties ?? {})],
    required: [...parts.flatMap((part) => part.required), ...(schema.required ?? [])],
  };
}

/** The type of a value in TypeScript notation. */
export function shapeOf(document: OpenApi, given: Schema, depth = 0): string {
  const schema = resolve(document, given);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return [...new Set(choices.map((choice) => shapeOf(document, choice, depth)))].join(' | ');
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const types = [schema.type ?? []].flat();
  const nullable = types.includes('null') ? ' | null' : '';
  const type = types.find((name) => name !== 'null');
  const { properties, required } = fieldsOf(document, schema);
  if (properties.length > 0) {
    if (depth >= DEPTH_MAX) return '{ … }';
    const indent = '  '.repeat(depth + 1);
    const lines = properties.map(([name, field]) => {
      const about = field.description ?? resolve(document, field).description ?? '';
      const note = about ? `  // ${about.split('\n')[0]}` : '';
      return `${indent}${name}${required.includes(name) ? '' : '?'}: ${shapeOf(document, field, depth + 1)};${note}`;
    });
    return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}${nullable}`;
  }
  if (type === 'array') return `${shapeOf(document, schema.items ?? {}, depth)}[]${nullable}`;
  if (typeof schema.additionalProperties === 'object') {
    return `{ [name: string]: ${shapeOf(document, schema.additionalProperties, depth)} }${nullable}`;
  }
  if (type === 'integer' || type === 'number') return `number${nullable}`;
  return `${type ?? 'any'}${nullable}`;
}

/** An example value with the required properties. */
export function sampleOf(document: OpenApi, given: Schema, depth = 0): unknown {
  const schema = resolve(document, given);
  if (schema.example !== undefined) return schema.example;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  const choice = (schema.oneOf ?? schema.anyOf)?.find((one) => resolve(document, one).type !== 'null');
  if (choice) return sampleOf(document, choice, depth);
  const types = [schema.type ?? []].flat();
  const { properties, required } = fieldsOf(document, schema);
  if (properties.length > 0 && depth < DEPTH_MAX) {
    const shown = properties.filter(([name]) => required.includes(name) || depth === 0);
    return Object.fromEntries(
      shown.map(([name, field]) => [
        name,
        required.includes(name) ? sampleOf(document, field, depth + 1) : optional(document, field, depth),
      ]),
    );
  }
  switch (types.find((name) => name !== 'null')) {
    case 'string':
      return '';
    case 'integer':
    case 'number':
      return 0;
    case 'boolean':
      return false;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return null;
  }
}

function optional(document: OpenApi, field: Schema, depth: number): unknown {
  const types = [resolve(document, field).type ?? []].flat();
  return types.includes('null') ? null : sampleOf(document, field, depth + 1);
}
