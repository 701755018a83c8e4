// The definition of the script API for people and editors: search for the reference page, completion items for editors.
// The data is generated from crates/script/api by `cargo xtask codegen`.
import type { Member, Page, Side } from '../generated/api';

/** One completion item. Methods of classes have the class in `of`. */
export interface Completion {
  /** Inserted and displayed text: `Spawn`. */
  label: string;
  kind: 'library' | 'class' | 'function' | 'method' | 'property' | 'signal' | 'callback';
  /** The Luau type, methods without `self`; empty for libraries and classes. */
  type: string;
  /** One or two sentences. */
  doc: string;
  side: Side;
  /** The library or class it belongs to; null for globals. */
  of: string | null;
  /** True when it follows an object (`entity.`), false when it follows its table (`World.`) or nothing. */
  onObject: boolean;
}

export const sideOf = (page: Page, member: Member): Side => member.side ?? page.side;

/** All completion items. */
export function completions(pages: Page[]): Completion[] {
  return pages.flatMap((page) => {
    const globals = page.kind === 'globals';
    const members = page.member.map((member) => ({
      label: member.name,
      kind: member.kind,
      type: member.type,
      doc: member.about,
      side: sideOf(page, member),
      of: globals ? null : page.name,
      onObject: page.kind === 'record' || (page.kind === 'class' && !member.static),
    }));
    if (globals || page.kind === 'record') return members;
    const kind = page.kind === 'library' ? ('library' as const) : ('class' as const);
    const tables = [page.name, ...page.aliases].map((label) => ({
      label,
      kind,
      type: '',
      doc: page.about,
      side: page.side,
      of: null,
      onObject: false,
    }));
    return [...tables, ...members];
  });
}

/** The pages with their matching members; a page whose name matches keeps all of them. */
export function search(pages: Page[], query: string, side: Side | 'all'): Page[] {
  const words = query
    .toLowerCase()
    .split(/[\s.:]+/)
    .filter(Boolean);
  return pages.flatMap((page) => {
    const here = page.member.filter(
      (member) => side === 'all' || sideOf(page, member) === 'both' || sideOf(page, member) === side,
    );
    const title = page.name.toLowerCase();
    const rest = words.filter((word) => !title.includes(word));
    const fits = (member: Member) => {
      const text = `${member.name} ${member.about}`.toLowerCase();
      return rest.every((word) => text.includes(word));
    };
    const found = here.filter(fits);
    return found.length > 0 ? [{ ...page, member: found }] : [];
  });
}

/** The anchor of a member on the page. */
export const anchorOf = (page: Page, member?: Member): string => (member ? `${page.name}.${member.name}` : page.name);
