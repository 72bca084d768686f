// Formats numbers for people: few digits, powers of ten instead of "e-7".

const SUPERSCRIPT: Record<string, string> = {
  "-": "⁻", "0": "⁰", "1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵", "6": "⁶", "7": "⁷", "8": "⁸", "9": "⁹",
};

const MINUS = "\u2212";
const minus = (text: string): string => text.replace("-", MINUS);

/** 10ⁿ. */
export function powerOfTen(exponent: number): string {
  return "10" + [...String(exponent)].map((digit) => SUPERSCRIPT[digit]).join("");
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function withThousands(text: string): string {
  const [whole, fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** Four significant digits; integers below ten million in full; "—" for missing values. */
export function formatNumber(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "—";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return minus(withThousands(String(value)));
  if (size >= 1e-4 && size < 1e6) {
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return minus(withThousands(trimZeros(value.toFixed(Math.min(decimals, 12)))));
  }
  const [mantissa, exponent] = value.toExponential(digits - 2).split("e");
  return minus(`${trimZeros(mantissa)}·`) + powerOfTen(Number(exponent));
}

/** A tick label of a linear axis; ticks are `step` apart, at most `largest` in size: 0.25, 1.5, 20k, 3M, 2·10⁻⁵. */
export function formatTick(value: number, step: number, largest: number): string {
  if (Math.abs(value) < step * 1e-6) return "0";
  if ((step < 1e-4 && largest < 1e-2) || largest >= 1e9) {
    const exponent = Math.floor(Math.log10(largest) + 1e-9);
    return minus(`${(value / 10 ** exponent).toFixed(decimalsOf(step / 10 ** exponent))}·`) + powerOfTen(exponent);
  }
  // Abbreviates thousands and millions, unless the ticks are so close that whole numbers are shorter.
  const [large, letter]: [number, string] = largest >= 2e6 ? [1e6, "M"] : largest >= 2e4 ? [1e3, "k"] : [1, ""];
  const [unit, suffix] = step >= large / 10 ? [large, letter] : [1, ""];
  const text = (value / unit).toFixed(decimalsOf(step / unit));
  return minus(withThousands(suffix ? trimZeros(text) : text)) + suffix;
}

/** The number of decimals that multiples of `step` need. */
function decimalsOf(step: number): number {
  let decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const exact = () => Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) < 1e-6;
  while (decimals < 15 && !exact()) ++decimals;
  return decimals;
}
