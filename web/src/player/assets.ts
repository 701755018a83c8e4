// Files of the game's package that scripts name: pictures and sounds, by their path below assets/.
import type { GameFiles } from '../generated/rest';
import { loadSession } from '../lib/session';

/** Names come from scripts, so there may be many. */
const MISSING_MAX = 100;

export class GameAssets {
  #urls: Promise<Map<string, string>> | null = null;
  #of: string | null = null;
  #missing = new Set<string>();

  /** Called once for each name that a script uses and the game has no file for. */
  onMissing: (text: string) => void = (text) => console.warn(text);

  constructor(
    private readonly gameId: string,
    private readonly load: (path: string) => Promise<GameFiles> = fetchFiles,
    /** The world we are in: it may run another version of the game than the newest. */
    private readonly worldId: () => string | null = () => null,
  ) {}

  /** Forgets the list: the world may have another version of the game now. */
  reset(): void {
    this.#urls = null;
    this.#missing.clear();
  }

  /** Where a file is, or null when the game has none of that name. Names may leave out the folders. */
  async url(name: string, folders: readonly string[]): Promise<string | null> {
    const world = this.worldId();
    if (world !== this.#of) this.#urls = null;
    this.#of = world;
    const query = world === null ? '' : `?world_id=${encodeURIComponent(world)}`;
    this.#urls ??= this.load(`/api/games/${encodeURIComponent(this.gameId)}/files${query}`).then(
      (answer) => new Map(answer.files.map((file) => [file.path, file.url])),
    );
    try {
      const urls = await this.#urls;
      const path = [name, ...folders.map((folder) => folder + name)].find((candidate) => urls.has(candidate));
      if (path === undefined) this.#report(name, folders);
      return path === undefined ? null : (urls.get(path) ?? null);
    } catch (error) {
      this.#urls = null; // the next one may have more luck
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

async function fetchFiles(path: string): Promise<GameFiles> {
  // A private game shows its files to its creator only.
  const token = loadSession()?.token;
  const response = await fetch(path, token ? { headers: { Authorization: `Bearer ${token}` } } : {});
  if (!response.ok) throw new Error(`status ${response.status}`);
  return (await response.json()) as GameFiles;
}
