// Types of REST calls, derived from the OpenAPI document (`generated/rest.ts`): which paths a method has, what a call
// sends and what it answers.
import type { paths } from '../generated/rest';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The paths that have an operation with this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<Lowercase<M>, object> ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends keyof paths> = paths[P] extends Record<Lowercase<M>, infer O> ? O : never;

type Sent<Content> = Content extends { 'application/json': infer Json }
  ? Json
  : Content extends { 'application/octet-stream': unknown }
    ? Blob
    : never;

type Body<O> = O extends { requestBody: { content: infer Content } }
  ? { body: Sent<Content> }
  : O extends { requestBody?: { content: infer Content } }
    ? { body?: Sent<Content> }
    : unknown;

type Json<Response> = Response extends { content: { 'application/json': infer Value } } ? Value : undefined;

/** Path and query parameters of a call. */
export type Parameters<M extends Method, P extends keyof paths> =
  Operation<M, P> extends { parameters: infer All } ? Pick<All, Extract<keyof All, 'path' | 'query'>> : unknown;

/** Everything that a call sends. */
export type Request<M extends Method, P extends keyof paths> = Parameters<M, P> & Body<Operation<M, P>>;

/** The decoded body of a successful response. */
export type Answer<M extends Method, P extends keyof paths> =
  Operation<M, P> extends { responses: infer All } ? Json<All[keyof All]> : never;
