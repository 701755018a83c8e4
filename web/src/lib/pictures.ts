// URLs of resized images: the server creates WebP copies in these widths.

const WIDTHS = [320, 640, 1280] as const;

/** The URL of a copy of at most this width. Local images (`blob:`, `data:`) have none. */
export function smaller(src: string, width: number): string {
  if (!src.startsWith('/')) return src;
  return `${src}${src.includes('?') ? '&' : '?'}w=${width}`;
}

/** For `srcset`: the browser picks the copy for its screen. */
export function pictureSet(src: string): string | undefined {
  return src.startsWith('/') ? WIDTHS.map((width) => `${smaller(src, width)} ${width}w`).join(', ') : undefined;
}
