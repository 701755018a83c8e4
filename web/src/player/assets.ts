// Resolves files of the game's package that scripts refer to: images and sounds by their path below assets/.
import type { GameFiles } from '../generated/rest';
import { call } from '../lib/api';

/** Bound, because names come from scripts. */
const MISSING_MAX = 100;

export class GameAssets {
  #urls: Promise<Map<string, string>> | null = null;
  #of: string | null = null;
  #missing = new Set<string>();

  /** Called once per name without a matching file. */
  onMissing: (text: string) => void = (text) => console.warn(text);

  constructor(
    private readonly gameId: string,
    private readonly load: (gameId: string, worldId?: string) => Promise<GameFiles> = fetchFiles,
    /** The current world, which may run an older version of the game. */
    private readonly worldId: () => string | null = () => null,
  ) {}

  /** Clears the list, because the world may now run another version of the game. */
  reset(): void {
    this.#urls = null;
    this.#missing.clear();
  }

  /** The URL of a file, or null when the game has no such file. Names may omit folders. */
  async url(name: string, folders: readonly string[]): Promise<string | null> {
    const world = this.worldId();
    if (world !== this.#of) this.#urls = null;
    this.#of = world;
    this.#urls ??= this.load(this.gameId, world ?? undefined).then(
      (answer) => new Map(answer.files.map((file) => [file.path, file.url])),
    );
    try {
      const urls = await this.#urls;
      const path = [name, ...folders.map((folder) => folder + name)].find((candidate) => urls.has(candidate));
      if (path === undefined) this.#report(name, folders);
      return path === undefined ? null : (urls.get(path) ?? null);
    } catch (error) {
      this.#urls = null; // the next request tries again
      console.warn("the list of the game's files did not load:", error instanceof Error ? error.message : error);
      return null;
    }
  }

  #report(name: string, folders: readonly string[]): void {
    if (this.#missing.has(name) || this.#missing.size >= MISSING_MAX) return;
    this.#missing.add(name);
    const places = name.includes('/') ? '' : `, and none in ${folders.join(' or ')}`;
    this.onMissing(`there is no file "${name}" in this game${places}`);
  }

  image(name: string): Promise<string | null> {
    return this.url(name, ['assets/', 'assets/images/']);
  }

  sound(name: string): Promise<string | null> {
    return this.url(name, ['assets/', 'assets/sounds/']);
  }
}

// Files of a private game require its creator's session.
const fetchFiles = (id: string, world_id?: string): Promise<GameFiles> =>
  call('GET', '/api/games/{id}/files', { path: { id }, query: { world_id } });
