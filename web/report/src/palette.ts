// Colors. The first eight are distinct with every common form of color blindness (after Okabe and Ito, darkened or
// lightened until they stand out from the background); marker shapes and dashes repeat the distinction.

export interface Palette {
  dark: boolean;
  background: string;
  text: string;
  muted: string;
  grid: string;
  axis: string;
  colors: string[];
}

export const LIGHT: Palette = {
  dark: false,
  background: "#ffffff",
  text: "#1d2430",
  muted: "#586273",
  grid: "#e9ecf1",
  axis: "#aab2bf",
  colors: ["#cf4a0a", "#1566c0", "#0b8a65", "#a8468f", "#b07a00", "#2f9bc9", "#7c5a3c", "#5d6675",
    "#5b4bc4", "#8a9400", "#d6336c", "#00727a", "#8f2a1a"],
};

export const DARK: Palette = {
  dark: true,
  background: "#171b22",
  text: "#e8ebf0",
  muted: "#a3adbb",
  grid: "#282e38",
  axis: "#4b5563",
  colors: ["#ff8548", "#62a8ff", "#37c79b", "#e08bc8", "#e8b53a", "#7fd0f2", "#c79d78", "#a6b0bf",
    "#a99bff", "#c6d04a", "#ff7aa8", "#4fc9cf", "#e0806f"],
};

/** Each lies on its point. */
export const SYMBOLS = ["circle", "rect", "diamond", "triangle"] as const;

const RESERVED = ["post-ln", "pre-ln"];
const normalized = (group: string): string => group.trim().toLowerCase().replace(/[\s_]+/g, "-");

/** Gray, for series that belong to no group. */
const NEUTRAL = 7;

/** Assigns colors to groups: Post-LN and Pre-LN always get the first two, the others follow in order of appearance. */
export class Groups {
  private readonly index = new Map<string, number>();

  constructor(names: Iterable<string>) {
    RESERVED.forEach((name, index) => this.index.set(name, index));
    let next = RESERVED.length;
    for (const name of names) {
      const key = normalized(name);
      if (!this.index.has(key)) this.index.set(key, next++);
    }
  }

  of(group: string): number {
    return this.index.get(normalized(group)) ?? NEUTRAL;
  }

  knows(group: string): boolean {
    return this.index.has(normalized(group));
  }
}

function channels(color: string): number[] {
  return [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));
}

/** (1 − amount)·a + amount·b. */
export function mix(a: string, b: string, amount: number): string {
  const other = channels(b);
  const mixed = channels(a).map((value, i) => Math.round(value + (other[i] - value) * amount));
  return "#" + mixed.map((value) => value.toString(16).padStart(2, "0")).join("");
}

/** The index among `colors` colors of a group. No other group ever shares the colors of Post-LN and Pre-LN. */
export function colorIndex(group: number, colors: number): number {
  const reserved = RESERVED.length;
  return group < colors ? group : reserved + ((group - reserved) % (colors - reserved));
}

/** The color of the k-th of n series that share a group in one figure: from strong to faint. */
export function shade(palette: Palette, group: number, k: number, n: number): string {
  const color = palette.colors[colorIndex(group, palette.colors.length)];
  if (n < 2) return color;
  const position = (k / (n - 1)) * 2 - 1;
  return position < 0 ? mix(color, palette.text, -position * 0.5) : mix(color, palette.background, position * 0.5);
}
