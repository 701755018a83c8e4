// Files of the game's package that scripts name: pictures and sounds, by their path below assets/.
import type { GameFiles } from '../generated/rest';

export class GameAssets {
  #urls: Promise<Map<string, string>> | null = null;

  constructor(
    private readonly gameId: string,
    private readonly load: (path: string) => Promise<GameFiles> = fetchFiles,
  ) {}

  /** Where a file is, or null when the game has none of that name. Names may leave out the folders. */
  async url(name: string, folders: readonly string[]): Promise<string | null> {
    this.#urls ??= this.load(`/api/games/${encodeURIComponent(this.gameId)}/files`).then(
      (answer) => new Map(answer.files.map((file) => [file.path, file.url])),
    );
    try {
      const urls = await this.#urls;
      const path = [name, ...folders.map((folder) => folder + name)].find((candidate) => urls.has(candidate));
      return path === undefined ? null : (urls.get(path) ?? null);
    } catch (error) {
      this.#urls = null; // the next one may have more luck
      console.warn('the list of the game\'s files did not load:', error instanceof Error ? error.message : error);
      return null;
    }
  }

  image(name: string): Promise<string | null> {
    return this.url(name, ['assets/', 'assets/images/']);
  }

  sound(name: string): Promise<string | null> {
    return this.url(name, ['assets/', 'assets/sounds/']);
  }
}

async function fetchFiles(path: string): Promise<GameFiles> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`status ${response.status}`);
  return (await response.json()) as GameFiles;
}
