export type Face = "smile" | "grin" | "wink" | "cool" | "surprised" | "sleepy" | "fierce";
