// Axis scales. Charts are drawn in the transformed coordinate t = forward(value), so that bands, bars and zooming work
// the same on linear and logarithmic axes.
import { formatNumber, formatTick, powerOfTen } from "./format";

export interface Tick {
  at: number; // transformed
  label: string;
}

export interface Scale {
  /** Transformed coordinate; null if the scale has none (a value that is not positive on a log axis). */
  forward(value: number): number | null;
  inverse(at: number): number;
  /** About `count` labeled ticks between two transformed coordinates. */
  ticks(low: number, high: number, count: number): Tick[];
  /** Unlabeled ticks between the labeled ones. */
  minorTicks(low: number, high: number): number[];
  /** Whether labels have enough digits to differ in this range: the limit of zooming in. */
  resolves(low: number, high: number): boolean;
}

/** The finest range, relative to the values in it. Doubles have 16 digits; labels show up to 12. */
const FINEST = 1e-9;

function resolvesLinear(low: number, high: number): boolean {
  const span = high - low;
  return Number.isFinite(span) && span > 1e-300 && span >= FINEST * Math.max(Math.abs(low), Math.abs(high));
}

/** `at` is a logarithm, so that a difference in it is a relative difference of values. */
function resolvesLog(low: number, high: number): boolean {
  return high - low >= FINEST && Math.max(Math.abs(low), Math.abs(high)) <= 300;
}

function niceStep(span: number, count: number, factors: number[]): number {
  const rough = span / Math.max(1, count);
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = factors.find((factor) => factor * magnitude >= rough * 0.999) ?? 10;
  return step * magnitude;
}

const FACTORS = [1, 2, 2.5, 5, 10];
const ROUND = [1, 2, 5, 10];

/** `whole`: values and ticks are whole numbers, such as layers. */
function linearTicks(low: number, high: number, count: number, whole = false, factors = whole ? ROUND : FACTORS): Tick[] {
  if (!resolvesLinear(low, high)) return []; // also if adding a step would not change a value
  const step = Math.max(niceStep(high - low, count, factors), whole ? 1 : 0);
  const ticks: Tick[] = [];
  const largest = Math.max(Math.abs(low), Math.abs(high));
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); ++i) {
    ticks.push({ at: i * step, label: formatTick(i * step, step, largest) });
  }
  return ticks.length < 3 && count < 8 && !(whole && step === 1) ? linearTicks(low, high, count + 1, whole, factors) : ticks;
}

export function linearScale(whole = false): Scale {
  return {
    forward: (value) => value,
    inverse: (at) => at,
    ticks: (low, high, count) => linearTicks(low, high, count, whole),
    minorTicks: () => [],
    resolves: resolvesLinear,
  };
}

function decadeLabel(exponent: number, plain: boolean): string {
  return plain ? formatNumber(Number(`1e${exponent}`)) : powerOfTen(exponent);
}

function logTicks(low: number, high: number, count: number): Tick[] {
  if (!resolvesLog(low, high)) return [];
  // Less than two thirds of a decade: ticks at equal distances in the value itself.
  if (high - low < 0.67) {
    return linearTicks(10 ** low, 10 ** high, count, false, ROUND)
      .filter((tick) => tick.at > 0)
      .map((tick) => ({ at: Math.log10(tick.at), label: tick.label }));
  }
  const plain = low > -3.05 && high < 5.05;
  const stride = Math.max(1, Math.ceil((high - low) / Math.max(2, count)));
  const factors = high - low < 2.2 && count > 2 ? [1, 2, 5] : [1];
  const ticks: Tick[] = [];
  for (let exponent = Math.floor(low / stride) * stride; exponent <= high; exponent += stride) {
    for (const factor of factors) {
      const at = exponent + Math.log10(factor);
      if (at < low - 1e-9 || at > high + 1e-9) continue;
      const decade = decadeLabel(exponent, plain);
      const multiple = plain ? formatNumber(Number(`${factor}e${exponent}`)) : `${factor}·${decade}`;
      ticks.push({ at, label: factor === 1 ? decade : multiple });
    }
  }
  return ticks;
}

export function logScale(): Scale {
  return {
    forward: (value) => (value > 0 ? Math.log10(value) : null),
    inverse: (at) => 10 ** at,
    ticks: logTicks,
    minorTicks: (low, high) => {
      const ticks: number[] = [];
      if (!resolvesLog(low, high) || high - low > 6 || high - low < 0.5) return ticks;
      for (let exponent = Math.floor(low); exponent <= high; ++exponent) {
        for (let factor = 2; factor < 10; ++factor) {
          const at = exponent + Math.log10(factor);
          if (at > low && at < high) ticks.push(at);
        }
      }
      return ticks;
    },
    resolves: resolvesLog,
  };
}
