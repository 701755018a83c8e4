export type Hat = "none" | "cap" | "beanie" | "top_hat" | "crown" | "party" | "straw" | "horns";
