// Converts a plot to the ECharts option that draws it.
import type { EChartsCoreOption } from "echarts/core";
import type { Figure } from "./results";
import type { Palette } from "./palette";
import type { DrawnSeries, Plot, Point } from "./plot";
import { type Tick } from "./scale";

/** Without quotation marks: ECharts would not escape them in SVG attributes. */
export const FONT = "ui-sans-serif, system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif";

/** Markers are drawn only for fewer points than this. */
const MARKER_LIMIT = 30;

interface Size {
  width: number;
  height: number;
}

let pen: CanvasRenderingContext2D | null = null;
function textWidth(text: string, size = 12): number {
  pen ??= document.createElement("canvas").getContext("2d");
  if (!pen) return text.length * size * 0.6;
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(text).width;
}

/** Shortens text in the middle to at most `width`: names often differ at their ends. */
function shorten(text: string, width: number, size = 12): string {
  if (textWidth(text, size) <= width) return text;
  const letters = [...text].slice(0, 400);
  const last = [...text].slice(-400);
  const cut = (kept: number) =>
    letters.slice(0, Math.ceil(kept / 2)).join("").trimEnd() + "…" + last.slice(last.length - Math.floor(kept / 2)).join("").trimStart();
  let kept = letters.length - 1;
  while (kept > 1 && textWidth(cut(kept), size) > width) --kept;
  return cut(kept);
}

/** An axis' name; in two lines if it is wider than this. */
function inLines(label: string, width: number): string {
  if (textWidth(label, 12.5) <= width) return label;
  const spaces = [...label.matchAll(/ /g)].map((space) => space.index!);
  const middle = spaces.sort((a, b) => Math.abs(a - label.length / 2) - Math.abs(b - label.length / 2))[0];
  const lines = middle === undefined ? [label] : [label.slice(0, middle), label.slice(middle + 1)];
  return lines.map((line) => shorten(line, width, 12.5)).join("\n");
}

/** The length limit of rotated labels, in pixels. */
const ROTATED = 130;

export interface Layout {
  left: number;
  right: number;
  top: number;
  bottom: number;
  xTicks: Tick[];
  yTicks: Tick[];
  xName: string;
  yName: string;
  rotate: number;
}

export function layout(figure: Figure, plot: Plot, size: Size, top = 14): Layout {
  const yTicks = plot.yScale.ticks(plot.y[0], plot.y[1], Math.max(3, Math.round(size.height / 62)));
  const room = (name: string) => (name === "" ? 0 : name.includes("\n") ? 38 : 22);
  const yName = inLines(figure.y.label, size.height - top - 50);
  const left = Math.ceil(Math.max(...yTicks.map((tick) => textWidth(tick.label)), 12)) + 14 + room(yName);
  const right = 18;
  const plotWidth = size.width - left - right;
  const xName = inLines(figure.x.label, plotWidth);
  let xTicks = plot.xScale.ticks(plot.x[0], plot.x[1], Math.max(3, Math.round(plotWidth / 84)));
  let rotate = 0;
  let depth = 16;
  if (plot.categories) {
    const slot = plotWidth / plot.categories.length;
    const widest = Math.max(...plot.categories.map((name) => textWidth(name)));
    rotate = widest > slot - 6 ? 35 : 0;
    xTicks = plot.categories.map((name, at) => ({ at, label: rotate ? shorten(name, ROTATED) : name }));
    if (rotate) depth = Math.min(widest, ROTATED) * Math.sin((rotate * Math.PI) / 180) + 16;
  }
  return { left, right, top, bottom: depth + 10 + (xName ? room(xName) + 2 : 0), xTicks, yTicks, xName, yName, rotate };
}

function axis(palette: Palette, ticks: Tick[], [min, max]: [number, number], name: string, gap: number) {
  const labels = new Map(ticks.map((tick) => [tick.at.toPrecision(9), tick.label]));
  const at = ticks.map((tick) => tick.at);
  return {
    type: "value", min, max, name,
    nameLocation: "middle", nameGap: gap,
    nameTextStyle: { color: palette.muted, fontSize: 12.5, lineHeight: 16, fontFamily: FONT },
    axisLine: { show: true, onZero: false, lineStyle: { color: palette.axis } },
    axisTick: { show: true, length: 5, customValues: at, lineStyle: { color: palette.axis } },
    axisLabel: {
      customValues: at, color: palette.muted, fontSize: 12, fontFamily: FONT, margin: 9, hideOverlap: true,
      showMinLabel: true, showMaxLabel: true,
      formatter: (value: number) => labels.get(value.toPrecision(9)) ?? "",
    },
    splitLine: { show: true, lineStyle: { color: palette.grid } },
  };
}

/** A second, silent axis that only draws the minor ticks of a log scale. */
function minorAxis(palette: Palette, at: number[], [min, max]: [number, number], position: string) {
  return {
    type: "value", min, max, position, offset: 0, silent: true,
    axisLine: { show: false, onZero: false }, axisLabel: { show: false }, splitLine: { show: false }, axisPointer: { show: false },
    axisTick: { show: at.length > 0, length: 3, customValues: at, lineStyle: { color: palette.axis } },
  };
}

type Renderer = {
  coord(value: number[]): number[];
  barLayout(option: object): { offsetCenter: number }[];
};

/** Pointed shapes are drawn larger so that all markers look the same size. */
const markerSize = (symbol: string): number => (symbol === "diamond" ? 11 : symbol === "rect" ? 8 : 9.5);

const BAR_GAPS = { barGap: "12%", barCategoryGap: "32%", barMaxWidth: 54 };

const banded = (series: DrawnSeries): Point[] => series.points.filter((point): point is Point => !!point?.band);

/** The area between low and high. */
function band(series: DrawnSeries) {
  return {
    id: `band-${series.index}`, type: "custom", name: series.name, silent: true, clip: true, z: 1, data: [[0, 0]],
    tooltip: { show: false }, animation: false,
    renderItem: (_: unknown, api: Renderer) => {
      const runs: Point[][] = [[]];
      for (const point of series.points) {
        if (point?.band) runs[runs.length - 1].push(point);
        else if (runs[runs.length - 1].length) runs.push([]);
      }
      const polygon = (points: Point[]) => ({
        type: "polygon",
        shape: {
          points: [
            ...points.map((point) => api.coord([point.at[0], point.band![1]])),
            ...points.reverse().map((point) => api.coord([point.at[0], point.band![0]])),
          ],
        },
        style: { fill: series.look.color, opacity: 0.16 },
      });
      return { type: "group", children: runs.filter((run) => run.length > 1).map((run) => polygon([...run])) };
    },
  };
}

/** Error bars from low to high. */
function whiskers(series: DrawnSeries, palette: Palette, bar: { k: number; n: number } | null) {
  return {
    id: `band-${series.index}`, type: "custom", name: series.name, silent: true, clip: true, z: 4, data: [[0, 0]],
    tooltip: { show: false }, animation: false,
    renderItem: (_: unknown, api: Renderer) => {
      const offset = bar ? api.barLayout({ ...BAR_GAPS, count: bar.n })[bar.k].offsetCenter : 0;
      const stroke = bar ? palette.text : series.look.color;
      const children = banded(series).flatMap((point) => {
        const [x, high] = api.coord([point.at[0], point.band![1]]);
        const [, low] = api.coord([point.at[0], point.band![0]]);
        const line = (x1: number, y1: number, x2: number, y2: number) => ({
          type: "line", shape: { x1, y1, x2, y2 }, style: { stroke, lineWidth: 1.2, opacity: 0.75 },
        });
        const center = x + offset;
        return [line(center, low, center, high), line(center - 4, low, center + 4, low), line(center - 4, high, center + 4, high)];
      });
      return { type: "group", children };
    },
  };
}

const coordinates = (series: DrawnSeries) =>
  series.points.map((point) => (point && point.at[1] !== null ? point.at : [point?.at[0] ?? NaN, NaN]));

/** Whether no line reaches the point, since its neighbors have no values. */
function alone(series: DrawnSeries, index: number): boolean {
  const drawn = (i: number) => (series.points[i]?.at[1] ?? null) !== null;
  return drawn(index) && !drawn(index - 1) && !drawn(index + 1);
}

/** Hollow markers are outlines, larger than the filled ones. Without markers, points that are alone have one. */
function marked(series: DrawnSeries, palette: Palette, markers: boolean) {
  const itemStyle = { color: palette.background, borderColor: series.look.color, borderWidth: 2.2 };
  return coordinates(series).map((value, index) => {
    if (series.hollow?.includes(index)) return { value, symbolSize: 12, itemStyle };
    return markers ? value : { value, symbol: alone(series, index) ? series.look.symbol : "none" };
  });
}

function curve(figure: Figure, series: DrawnSeries, palette: Palette) {
  const { color, dash, symbol, style } = series.look;
  const markers = style === "points" || ((style === "solid" || series.hollow) && figure.kind !== "density" && series.points.length < MARKER_LIMIT);
  const density = figure.kind === "density" && style === "solid";
  const scatter = figure.kind === "scatter" && style !== "dashed";
  const many = series.points.length > 400;
  const lone = !markers && series.points.some((_, index) => alone(series, index));
  if (scatter || style === "points") {
    return {
      id: `series-${series.index}`, type: "scatter", name: series.name, data: coordinates(series), symbol,
      symbolSize: many ? 4 : markerSize(symbol), z: 3, clip: true,
      itemStyle: { color: color, opacity: many ? 0.55 : 0.9, borderColor: palette.background, borderWidth: many ? 0 : 1 },
      emphasis: { focus: "series", scale: 1.3 }, blur: { itemStyle: { opacity: 0.15 } },
    };
  }
  return {
    id: `series-${series.index}`, type: "line", name: series.name, data: marked(series, palette, !lone), z: 2, clip: true,
    symbol: markers ? symbol : "circle", showSymbol: markers || lone, symbolSize: markers ? markerSize(symbol) : 6, connectNulls: false,
    lineStyle: { color: color, width: density ? 1.6 : 2.2, type: dash, cap: "round", join: "round" },
    itemStyle: { color: color, borderColor: palette.background, borderWidth: markers ? 1.5 : 0 },
    areaStyle: density ? { color: color, opacity: Math.min(palette.dark ? 0.24 : 0.16, 0.4 / figure.series.length), origin: "start" } : undefined,
    emphasis: { focus: "series", lineStyle: { width: density ? 2.2 : 2.8 } },
    blur: { lineStyle: { opacity: 0.18 }, itemStyle: { opacity: 0.18 }, areaStyle: { opacity: 0.05 } },
    // A cross marks where a run stopped producing finite values.
    markPoint: series.ended && series.ended.at[1] !== null ? {
      silent: true, animation: false,
      symbol: "path://M0 1 L1 0 L5 4 L9 0 L10 1 L6 5 L10 9 L9 10 L5 6 L1 10 L0 9 L4 5 Z", symbolSize: 12,
      itemStyle: { color: color, borderColor: palette.background, borderWidth: 1 }, label: { show: false },
      data: [{ coord: series.ended.at }],
    } : undefined,
  };
}

function bars(series: DrawnSeries, own: (string | null)[]) {
  const data = coordinates(series).map((value, i) => {
    const category = series.points[i]?.at[0];
    const color = category === undefined ? null : own[category];
    return color ? { value, itemStyle: { color: color } } : value;
  });
  return {
    id: `series-${series.index}`, type: "bar", name: series.name, data, z: 2, clip: true, ...BAR_GAPS,
    itemStyle: { color: series.look.color, borderRadius: [3, 3, 0, 0], opacity: series.look.style === "dashed" ? 0.55 : 1 },
    emphasis: { focus: "series" }, blur: { itemStyle: { opacity: 0.25 } },
  };
}

export function makeOption(figure: Figure, plot: Plot, size: Size, palette: Palette, animate: boolean, top?: number): EChartsCoreOption {
  const place = layout(figure, plot, size, top);
  const isBar = figure.kind === "bar";
  const depthOf = (margin: number, name: string) => margin - (name.includes("\n") ? 34 : 18);
  const xAxis = {
    ...axis(palette, place.xTicks, plot.x, place.xName, depthOf(place.bottom, place.xName)),
    ...(plot.categories
      ? { type: "category", data: place.xTicks.map((tick) => tick.label), min: undefined, max: undefined, boundaryGap: true }
      : {}),
  };
  if (plot.categories) {
    xAxis.axisTick = { show: false } as never;
    xAxis.axisLabel = { ...xAxis.axisLabel, customValues: undefined, formatter: undefined, interval: 0, rotate: place.rotate, hideOverlap: false } as never;
  }
  xAxis.splitLine = { ...xAxis.splitLine, show: !plot.categories && figure.kind === "scatter" };
  const yAxis = {
    ...axis(palette, place.yTicks, plot.y, place.yName, depthOf(place.left, place.yName)),
    startValue: plot.baseline,
  };
  const series: object[] = [];
  plot.series.forEach((one, k) => {
    series.push(isBar ? bars(one, plot.categoryColors) : curve(figure, one, palette));
    if (one.measured) {
      series.push({
        id: `measured-${one.index}`, type: "line", name: one.name, data: one.measured, z: 1, clip: true, silent: true,
        showSymbol: false, lineStyle: { color: one.look.color, width: 1.2, type: one.look.dash, opacity: 0.28 }, tooltip: { show: false },
      });
    }
    if (banded(one).length === 0) return;
    const asBars = isBar || figure.kind === "scatter" || one.look.style === "points";
    series.push(asBars ? whiskers(one, palette, isBar ? { k, n: plot.series.length } : null) : band(one));
  });
  return {
    animation: animate, animationDuration: 500, animationDurationUpdate: 350, animationEasing: "cubicOut",
    backgroundColor: "transparent", textStyle: { fontFamily: FONT },
    grid: { left: place.left, right: place.right, top: place.top, bottom: place.bottom, outerBoundsMode: "none" },
    xAxis: plot.categories ? [xAxis] : [xAxis, minorAxis(palette, plot.xScale.minorTicks(...plot.x), plot.x, "bottom")],
    yAxis: [yAxis, minorAxis(palette, plot.yScale.minorTicks(...plot.y), plot.y, "left")],
    series,
  };
}
