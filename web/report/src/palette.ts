// Colours. The first eight are told apart with every common form of colour blindness (after Okabe and Ito, darkened or
// lightened until they stand out from the background); marker shapes and dashes say the same a second time.

export interface Palette {
  dark: boolean;
  background: string;
  text: string;
  muted: string;
  grid: string;
  axis: string;
  colours: string[];
}

export const LIGHT: Palette = {
  dark: false,
  background: "#ffffff",
  text: "#1d2430",
  muted: "#586273",
  grid: "#e9ecf1",
  axis: "#aab2bf",
  colours: ["#cf4a0a", "#1566c0", "#0b8a65", "#a8468f", "#b07a00", "#2f9bc9", "#7c5a3c", "#5d6675",
    "#5b4bc4", "#8a9400", "#d6336c", "#00727a", "#8f2a1a"],
};

export const DARK: Palette = {
  dark: true,
  background: "#171b22",
  text: "#e8ebf0",
  muted: "#a3adbb",
  grid: "#282e38",
  axis: "#4b5563",
  colours: ["#ff8548", "#62a8ff", "#37c79b", "#e08bc8", "#e8b53a", "#7fd0f2", "#c79d78", "#a6b0bf",
    "#a99bff", "#c6d04a", "#ff7aa8", "#4fc9cf", "#e0806f"],
};

export const SYMBOLS = ["circle", "rect", "diamond", "triangle", "pin", "arrow", "roundRect", "circle"] as const;

const RESERVED = ["post-ln", "pre-ln"];
const normalised = (group: string): string => group.trim().toLowerCase().replace(/[\s_]+/g, "-");

/** The grey one: for what belongs to no group. */
const NEUTRAL = 7;

/** Which colour a group has: Post-LN and Pre-LN always the first two, the others in the order in which they appear. */
export class Groups {
  private readonly index = new Map<string, number>();

  constructor(names: Iterable<string>) {
    RESERVED.forEach((name, index) => this.index.set(name, index));
    let next = RESERVED.length;
    for (const name of names) {
      const key = normalised(name);
      if (!this.index.has(key)) this.index.set(key, next++);
    }
  }

  of(group: string): number {
    return this.index.get(normalised(group)) ?? NEUTRAL;
  }

  knows(group: string): boolean {
    return this.index.has(normalised(group));
  }
}

function channels(colour: string): number[] {
  return [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
}

/** (1 − amount)·a + amount·b. */
export function mix(a: string, b: string, amount: number): string {
  const other = channels(b);
  const mixed = channels(a).map((value, i) => Math.round(value + (other[i] - value) * amount));
  return "#" + mixed.map((value) => value.toString(16).padStart(2, "0")).join("");
}

/** The colour of the k-th of n series that share a group in one figure: from strong to faint. */
export function shade(palette: Palette, group: number, k: number, n: number): string {
  const colour = palette.colours[group % palette.colours.length];
  if (n < 2) return colour;
  const position = (k / (n - 1)) * 2 - 1;
  return position < 0 ? mix(colour, palette.text, -position * 0.5) : mix(colour, palette.background, position * 0.5);
}
