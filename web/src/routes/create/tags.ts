// Parsing and validation of tags.

import { TAG_CHARS_MAX } from '../../generated/limits';

export { TAGS_MAX } from '../../generated/limits';

/** "Obby, co op , obby" → obby, co-op: lower case, dashes for spaces, each once. */
export function splitTags(text: string): string[] {
  const tags = text.split(',').map((tag) => tag.trim().toLowerCase().replace(/\s+/g, '-'));
  return [...new Set(tags.filter((tag) => tag !== ''))];
}

/** The problem of the first invalid tag. */
export function badTag(tags: readonly string[]): string | null {
  for (const tag of tags) {
    if (tag.length > TAG_CHARS_MAX) return `“${tag}” is longer than ${TAG_CHARS_MAX} characters`;
    if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(tag)) return `“${tag}” can only contain letters a–z, digits and dashes`;
  }
  return null;
}
