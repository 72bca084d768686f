// Converts a figure to drawing data: scales, domains, points in transformed coordinates, and the look of each series.
import { type AxisSpec, type Figure, type Series, type Style } from "./results";
import { type Scale, linearScale, logScale } from "./scale";
import { type Groups, type Palette, SYMBOLS, shade } from "./palette";

/** The user's settings. */
export interface View {
  logX: boolean;
  logY: boolean;
  hidden: Set<number>;
  /** 0: the figure's own horizontal axis; n: the n-th of the others. */
  axis: number;
  /** The weight of the moving average; 0: as measured. */
  smoothing: number;
  zoom: { x: [number, number]; y: [number, number] } | null; // transformed
}

export interface Look {
  color: string;
  symbol: string;
  dash: "solid" | number[];
  style: Style;
}

export interface Point {
  x: number | string;
  y: number;
  low: number | null;
  high: number | null;
  at: [number, number | null]; // transformed; null where the axis has no place for the value
  band: [number, number] | null; // transformed low and high
}

export interface DrawnSeries {
  index: number;
  name: string;
  look: Look;
  points: (Point | null)[];
  hollow?: number[];
  /** The values before smoothing, transformed. */
  measured?: [number, number][];
  /** Where a run ended before its last step: the values after this point are missing. */
  ended: Point | null;
}

export interface Plot {
  xScale: Scale;
  yScale: Scale;
  categories: string[] | null;
  /** The categories' colors if they name groups in a single series of bars. */
  categoryColors: (string | null)[];
  x: [number, number];
  y: [number, number];
  /** The range without zooming. */
  full: { x: [number, number]; y: [number, number] };
  /** Where bars start. */
  baseline: number;
  series: DrawnSeries[];
  /** Values that a log axis cannot show. */
  omitted: number;
  /** Names of curves that leave the chart: of runs that diverged, whose values would leave no room for the others. */
  leaving: string[];
}

export const firstView = (figure: Figure): View => ({
  logX: figure.x.log,
  logY: figure.y.log,
  hidden: new Set(),
  axis: 0,
  smoothing: 0,
  zoom: null,
});

const DASHES: number[][] = [[6, 4], [2, 3], [9, 3, 2, 3]];

/** Series of one group share a color; shades, markers and dashes tell them apart. */
export function looks(figure: Figure, groups: Groups, palette: Palette): Look[] {
  const key = (series: Series) => `${groups.of(series.group)}/${series.style}`;
  const sizes = new Map<string, number>();
  for (const series of figure.series) sizes.set(key(series), (sizes.get(key(series)) ?? 0) + 1);
  const seen = new Map<string, number>();
  return figure.series.map((series) => {
    const group = groups.of(series.group);
    const k = seen.get(key(series)) ?? 0;
    seen.set(key(series), k + 1);
    return {
      color: shade(palette, group, k, sizes.get(key(series)) ?? 1),
      symbol: SYMBOLS[(group + k) % SYMBOLS.length],
      dash: series.style === "dashed" ? DASHES[k % DASHES.length] : "solid",
      style: series.style,
    };
  });
}

export function categoriesOf(figure: Figure): string[] | null {
  const values = figure.series.flatMap((series) => series.x);
  const categorical = figure.kind === "bar" || values.some((value) => typeof value === "string");
  return categorical ? [...new Set(values.map(String))] : null;
}

const min = (values: number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity);
const max = (values: number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);

function scaleFor(log: boolean, values: number[]): Scale {
  if (log && values.some((value) => value > 0)) return logScale();
  const whole = values.length > 0 && values.every(Number.isInteger);
  return linearScale(whole);
}

/**
 * The smallest value that a log axis shows: twelve decades below the largest, or five for a density. Intervals that reach
 * further down than a tenth of the smallest value are cut.
 */
function floorOf(figure: Figure, axis: AxisSpec, values: number[], lows: number[]): number {
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return 0;
  const decades = figure.kind === "density" && axis === figure.y ? 1e-5 : 1e-12;
  const smallest = Math.max(min(positive), max(positive) * decades);
  return axis.floor ?? Math.min(smallest, Math.max(min(lows), smallest / 10));
}

/** The limit of axes, so that their lengths are finite. */
const LARGEST = 1e307;

function domain(axis: AxisSpec, scale: Scale, ats: number[], padding: number, withZero: boolean): [number, number] {
  let low = ats.length ? min(ats) : 0;
  let high = ats.length ? max(ats) : 1;
  if (withZero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  [low, high] = [Math.max(low, -LARGEST), Math.min(high, LARGEST)];
  if (!scale.resolves(low, high)) low = high; // equal, to the digits of labels
  const constant = low === high;
  const span = !constant ? high - low : Math.abs(high) > 1e-200 ? Math.abs(high) * 0.2 : 1;
  if (constant) padding = 0.5;
  const touchesZero = (bound: number) => withZero && bound === 0;
  const padded: [number, number] = [
    touchesZero(low) ? low : low - span * padding,
    touchesZero(high) ? high : high + span * padding,
  ];
  if (axis.min !== undefined) padded[0] = scale.forward(axis.min) ?? padded[0];
  if (axis.max !== undefined) padded[1] = scale.forward(axis.max) ?? padded[1];
  return padded;
}

function colorsOfCategories(figure: Figure, categories: string[] | null, groups: Groups, palette: Palette): (string | null)[] {
  if (figure.kind !== "bar" || figure.series.length !== 1 || !categories) return [];
  if (!categories.some((category) => groups.knows(category))) return [];
  const other = palette.colors[palette.colors.length - 1];
  return categories.map((category) => (groups.knows(category) ? shade(palette, groups.of(category), 0, 1) : other));
}

export function makePlot(figure: Figure, view: View, groups: Groups, palette: Palette): Plot {
  const categories = categoriesOf(figure);
  const allLooks = looks(figure, groups, palette);
  const shown = figure.series.filter((_, index) => !view.hidden.has(index));
  const source = shown.length ? shown : figure.series;
  const numbers = (values: unknown[]) => values.filter((value): value is number => typeof value === "number");
  const xs = categories ? [] : numbers(source.flatMap((series) => series.x));
  const ys = numbers(source.flatMap((series) => [...series.y, ...(series.low ?? []), ...(series.high ?? [])]));
  const xScale = categories ? linearScale() : scaleFor(view.logX, xs);
  const yScale = scaleFor(view.logY, ys);
  const yIsLog = view.logY && ys.some((value) => value > 0);
  const floor = yIsLog
    ? floorOf(figure, figure.y, numbers(source.flatMap((series) => series.y)), numbers(source.flatMap((series) => series.low ?? [])))
    : -Infinity;
  const clamp = (value: number) => (yIsLog ? Math.max(value, floor) : value);

  let omitted = 0;
  const place = (series: Series, i: number): Point | null => {
    const y = series.y[i];
    const x = series.x[i];
    const xAt = categories ? categories.indexOf(String(x)) : typeof x === "number" ? xScale.forward(x) : null;
    if (y === null) return null;
    if (xAt === null) {
      ++omitted;
      return null;
    }
    // The tails of a density leave the chart at the bottom.
    const onFloor = yIsLog && figure.kind === "density";
    const yAt = yScale.forward(onFloor ? (y < floor ? floor * 0.1 : y) : y);
    const below = yIsLog && !onFloor && y < floor;
    if (yAt === null || below) ++omitted;
    const low = series.low?.[i] ?? null;
    const high = series.high?.[i] ?? null;
    const lowAt = low === null ? null : yScale.forward(clamp(low));
    const highAt = high === null ? null : yScale.forward(clamp(high));
    return {
      x, y, low, high,
      at: [xAt, below ? null : yAt],
      band: lowAt === null || highAt === null ? null : [lowAt, highAt],
    };
  };

  const series: DrawnSeries[] = [];
  figure.series.forEach((raw, index) => {
    if (view.hidden.has(index)) return;
    const points = raw.y.map((_, i) => place(raw, i));
    const last = raw.y.reduce<number>((found, value, i) => (value === null ? found : i), -1);
    const ended = figure.kind === "line" && !categories && last >= 0 && last < raw.y.length - 1 ? points[last] : null;
    const measured = raw.measured?.map((y, i): [number, number] =>
      [points[i]?.at[0] ?? NaN, (y === null ? null : yScale.forward(y)) ?? NaN]);
    series.push({ index, name: raw.name, look: allLooks[index], points, hollow: raw.hollow, measured, ended });
  });

  const placed = (some: DrawnSeries[]) => some.flatMap((one) => one.points.filter((point): point is Point => point !== null));
  const heights = (some: DrawnSeries[]) =>
    placed(some).flatMap((point) => [point.at[1], ...(point.band ?? [])]).filter((at): at is number => at !== null);
  const all = placed(series);
  const others = heights(series.filter((one) => !one.ended));
  const [least, most] = [min(others), max(others)];
  // A curve that ended above all others, such as a diverged loss, leaves the chart if it would squeeze them.
  const room = (most - least) / 4;
  const squeezed = room > 0 && max(heights(series)) - least > 4 * (most - least);
  const limit = (at: number) => (squeezed ? Math.min(at, most + room) : at);
  const yAts = heights(series).map(limit);
  const leaving = series.filter((one) => heights([one]).some((at) => limit(at) !== at)).map((one) => one.name);
  const fromZero = !view.logY && (figure.kind === "bar" || figure.kind === "density");
  const nearZero = !view.logY && yAts.length > 0 && min(yAts) >= 0 && min(yAts) < 0.35 * max(yAts);
  const full = {
    x: categories
      ? ([-0.5, categories.length - 0.5] as [number, number])
      : domain(figure.x, xScale, all.map((point) => point.at[0]), figure.kind === "scatter" ? 0.05 : 0.02, false),
    y: domain(figure.y, yScale, yAts, 0.05, fromZero || nearZero),
  };
  if (yIsLog && figure.kind === "density" && figure.y.min === undefined && floor > 0) full.y[0] = Math.log10(floor);
  if (yIsLog && figure.kind === "bar" && figure.y.min === undefined) full.y[0] = Math.floor(full.y[0]);
  const x = view.zoom?.x ?? full.x;
  const y = view.zoom?.y ?? full.y;
  return {
    xScale, yScale, categories, x, y, full, series, omitted, leaving,
    categoryColors: colorsOfCategories(figure, categories, groups, palette),
    baseline: Math.max(yIsLog ? full.y[0] : 0, y[0]),
  };
}
