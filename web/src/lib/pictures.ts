// Addresses of smaller copies of a picture: the server makes them as WebP, in these widths.

const WIDTHS = [320, 640, 1280] as const;

/** The address of a copy that is at most this wide. Pictures of this page (`blob:`, `data:`) have none. */
export function smaller(src: string, width: number): string {
  if (!src.startsWith('/')) return src;
  return `${src}${src.includes('?') ? '&' : '?'}w=${width}`;
}

/** For `srcset`: the browser takes the copy that suits its screen. */
export function pictureSet(src: string): string | undefined {
  return src.startsWith('/') ? WIDTHS.map((width) => `${smaller(src, width)} ${width}w`).join(', ') : undefined;
}
