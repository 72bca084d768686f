// The tooltip: the value of every visible series nearest to the pointer.
import { formatNumber } from "./format";
import { h } from "./dom";
import type { DrawnSeries, Plot, Point } from "./plot";
import type { Figure } from "./results";
import { swatch } from "./legend";

const ROWS = 14;

function nearestPoint(series: DrawnSeries, at: number): Point | null {
  let best: Point | null = null;
  for (const point of series.points) {
    if (point && (!best || Math.abs(point.at[0] - at) < Math.abs(best.at[0] - at))) best = point;
  }
  return best;
}

const written = (x: number | string): string => (typeof x === "number" ? formatNumber(x) : x);

function valueOf(point: Point): string {
  const band = point.low !== null && point.high !== null ? ` (${formatNumber(point.low, 3)} – ${formatNumber(point.high, 3)})` : "";
  return formatNumber(point.y) + band;
}

function card(heading: string, rows: HTMLElement[], more: number): HTMLElement {
  return h("div", { class: "tip" },
    h("div", { class: "tip-head" }, heading), rows, more > 0 && h("div", { class: "tip-more" }, `and ${more} more`));
}

/** The tooltip for a pointer at transformed x `at`. */
export function axisTooltip(figure: Figure, plot: Plot, at: number): HTMLElement | string {
  const reach = plot.categories ? 0.01 : (plot.x[1] - plot.x[0]) * 0.06;
  const found = plot.series
    .map((series) => ({ series, point: nearestPoint(series, at) }))
    .filter((entry): entry is { series: DrawnSeries; point: Point } =>
      entry.point !== null && Math.abs(entry.point.at[0] - at) <= reach);
  const over = plot.categories ? [] : plot.series.filter((series) => series.ended && series.ended.at[0] < at - reach);
  if (found.length + over.length === 0) return "";
  if (found.length > 3 && !plot.categories) found.sort((a, b) => b.point.y - a.point.y);
  const xs = new Set(found.map((entry) => written(entry.point.x)));
  const same = xs.size === 1;
  const rows = found.slice(0, ROWS).map(({ series, point }) =>
    h("div", { class: "tip-row" }, swatch(figure, series.look),
      h("span", { class: "tip-name" }, series.name, !same && h("i", {}, ` at ${written(point.x)}`)),
      h("b", {}, valueOf(point))));
  for (const series of over) {
    rows.push(h("div", { class: "tip-row" }, swatch(figure, series.look),
      h("span", { class: "tip-name" }, series.name), h("b", {}, `ended at ${written(series.ended!.x)}`)));
  }
  const label = figure.x.label ? `${figure.x.label} ` : "";
  const here = same ? [...xs][0] : formatNumber(plot.xScale.inverse(at), 3);
  return card(plot.categories ? here : label + here, rows, found.length - ROWS);
}

/** The tooltip of one point of a scatter. */
export function pointTooltip(figure: Figure, series: DrawnSeries, point: Point): HTMLElement {
  const row = (name: string, value: string) =>
    h("div", { class: "tip-row" }, h("span", { class: "tip-name" }, name), h("b", {}, value));
  return h("div", { class: "tip" },
    h("div", { class: "tip-head" }, swatch(figure, series.look), " ", series.name),
    row(figure.x.label || "x", written(point.x)), row(figure.y.label || "y", valueOf(point)));
}
