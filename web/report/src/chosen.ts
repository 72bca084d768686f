// A figure as the reader has chosen to see it: along another horizontal axis, smoothed.
import type { Figure, Series } from "./results";

/** A series needs this many points to be smoothed. */
const FEWEST = 20;

const smoothable = (series: Series): boolean => series.style !== "points" && series.y.length >= FEWEST;

export const canSmooth = (figure: Figure): boolean =>
  figure.kind === "line" && figure.series.some((series) => smoothable(series) && series.x.every((x) => typeof x === "number"));

/** The exponential moving average of this weight, corrected for its start at zero; gaps stay and begin it anew. */
export function smoothed(values: (number | null)[], weight: number): (number | null)[] {
  let sum = 0;
  let share = 0;
  return values.map((value) => {
    if (value === null) {
      sum = share = 0;
      return null;
    }
    sum = weight * sum + (1 - weight) * value;
    share = weight * share + (1 - weight);
    return sum / share;
  });
}

function along(series: Series, axis: number): Series {
  const places = series.otherX[axis - 1];
  const known = places.flatMap((place, index) => (place === null ? [] : [index]));
  const kept = <T>(values: T[]): T[] => known.map((index) => values[index]);
  return {
    ...series, x: kept(places) as number[], y: kept(series.y),
    low: series.low && kept(series.low), high: series.high && kept(series.high),
  };
}

/** `axis` 0 is the figure's own, `weight` 0 means as measured. */
export function chosen(figure: Figure, axis: number, weight: number): Figure {
  const placed: Figure = axis === 0 ? figure : {
    ...figure, x: figure.otherX[axis - 1], series: figure.series.map((series) => along(series, axis)),
  };
  if (weight === 0) return placed;
  const smooth = (values: (number | null)[] | undefined) => values && smoothed(values, weight);
  return {
    ...placed,
    series: placed.series.map((series) => (!smoothable(series) ? series : {
      ...series, y: smoothed(series.y, weight), low: smooth(series.low), high: smooth(series.high), measured: series.y,
    })),
  };
}
