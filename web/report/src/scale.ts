// Axis scales. Charts are drawn in the transformed coordinate t = forward(value), so that bands, bars and zooming work
// alike on linear, logarithmic and symmetric-logarithmic axes.
import { formatNumber, formatTick, powerOfTen } from "./format";

export interface Tick {
  at: number; // transformed
  label: string;
}

export interface Scale {
  /** Transformed coordinate; null where the scale has none (a value that is not positive on a log axis). */
  forward(value: number): number | null;
  inverse(at: number): number;
  /** About `count` labeled ticks between two transformed coordinates. */
  ticks(low: number, high: number, count: number): Tick[];
  /** Unlabeled ticks between the labeled ones. */
  minorTicks(low: number, high: number): number[];
}

function niceStep(span: number, count: number, whole: boolean): number {
  const rough = span / Math.max(1, count);
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = (whole ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]).find((factor) => factor * magnitude >= rough * 0.999) ?? 10;
  return step * magnitude;
}

/** `whole`: the values are whole numbers, such as layers, and so are the ticks. */
function linearTicks(low: number, high: number, count: number, whole = false): Tick[] {
  if (!(high > low)) return [];
  const step = Math.max(niceStep(high - low, count, whole), whole ? 1 : 0);
  const ticks: Tick[] = [];
  const largest = Math.max(Math.abs(low), Math.abs(high));
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); ++i) {
    ticks.push({ at: i * step, label: formatTick(i * step, step, largest) });
  }
  return ticks.length < 3 && count < 8 && !(whole && step === 1) ? linearTicks(low, high, count + 1, whole) : ticks;
}

export function linearScale(whole = false): Scale {
  return {
    forward: (value) => value,
    inverse: (at) => at,
    ticks: (low, high, count) => linearTicks(low, high, count, whole),
    minorTicks: () => [],
  };
}

function decadeLabel(exponent: number, plain: boolean): string {
  return plain ? formatNumber(Number(`1e${exponent}`)) : powerOfTen(exponent);
}

function logTicks(low: number, high: number, count: number): Tick[] {
  // Less than two thirds of a decade: ticks that are even in the value itself.
  if (high - low < 0.67) {
    return linearTicks(10 ** low, 10 ** high, count)
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
      if (high - low > 6 || high - low < 0.5) return ticks;
      for (let exponent = Math.floor(low); exponent <= high; ++exponent) {
        for (let factor = 2; factor < 10; ++factor) {
          const at = exponent + Math.log10(factor);
          if (at > low && at < high) ticks.push(at);
        }
      }
      return ticks;
    },
  };
}

/** t = sign(v) log10(1 + |v| / linear): linear near zero, logarithmic on both sides. */
export function symlogScale(linear: number): Scale {
  const forward = (value: number) => Math.sign(value) * Math.log10(1 + Math.abs(value) / linear);
  const first = Math.ceil(Math.log10(linear) - 1e-9);
  return {
    forward,
    inverse: (at) => Math.sign(at) * linear * (10 ** Math.abs(at) - 1),
    ticks: (low, high, count) => {
      const spacing = (high - low) / Math.max(2, count) / 1.5;
      const ticks: Tick[] = low <= 0 && high >= 0 ? [{ at: 0, label: "0" }] : [];
      for (const sign of [1, -1]) {
        let previous = 0;
        for (let exponent = first; exponent < first + 40; ++exponent) {
          const at = forward(sign * 10 ** exponent);
          if (Math.abs(at - previous) < spacing) continue;
          if (at > high || at < low) {
            if (Math.abs(at) > Math.max(Math.abs(low), Math.abs(high))) break;
            continue;
          }
          ticks.push({ at, label: (sign < 0 ? "\u2212" : "") + decadeLabel(exponent, Math.abs(exponent) <= 3) });
          previous = at;
        }
      }
      return ticks.sort((a, b) => a.at - b.at);
    },
    minorTicks: () => [],
  };
}
