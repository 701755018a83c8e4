import type { Face } from "./Face";
import type { Hat } from "./Hat";

export type AvatarLooks = { skin: string | null, hair: string | null, shirt: string | null, trousers: string | null, accent: string | null, hat: Hat, face: Face, };
