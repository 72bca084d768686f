// One figure: heading, tools, legend, chart, caption. Every user action changes `view` and redraws.
import { canSmooth, chosen } from "./chosen";
import { h, icon, download, fileName } from "./dom";
import { type Chart, echarts } from "./echarts";
import { figureCsv, savePicture } from "./export";
import { formatNumber } from "./format";
import { drawLegend } from "./legend";
import { layout, makeOption } from "./option";
import { type Groups, type Palette } from "./palette";
import { categoriesOf, firstView, type Look, looks, makePlot, type Plot, type View } from "./plot";
import type { Figure, Kind } from "./results";
import { axisTooltip, pointTooltip } from "./tooltip";
import { dataTable } from "./table";
import { keptView } from "./views";
import { attachZoom, moved, type Range, zoomed } from "./zoom";

const ICONS = {
  reset: "M2.5 8a5.5 5.5 0 1 0 1.8-4.1M2.5 2.5v3h3",
  zoom: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM14 14l-3.4-3.4M5 7h4M7 5v4",
  table: "M2 3.5h12v9H2ZM2 6.5h12M2 9.5h12M6.5 3.5v9",
  save: "M8 2v8M4.8 7 8 10.2 11.2 7M2.5 13.5h11",
};

export interface FigureView {
  element: HTMLElement;
  /** The user's settings; changes in place. */
  view: View;
  /** Draws with these colors; for paper, at the width of a page. */
  draw(palette: Palette, paper?: boolean): void;
  /** Downloads the chart as it is shown. */
  save(format: "png" | "svg"): void;
}

/** A chart in one of the two columns of a printed page, in pixels. */
const PAPER = { width: 318, height: 205 };

const KINDS: Record<Kind, string> = { line: "Line chart", scatter: "Scatter plot", bar: "Bar chart", density: "Density" };

/** A text alternative for screen readers. */
function spoken(figure: Figure): string {
  const names = figure.series.map((series) => {
    const values = series.y.filter((y): y is number => y !== null);
    if (values.length === 0) return `${series.name} (no finite value)`;
    return `${series.name} from ${formatNumber(values[0], 3)} to ${formatNumber(values[values.length - 1], 3)}`;
  });
  return `${figure.title}. ${KINDS[figure.kind]} of ${figure.y.label || "y"} against ${figure.x.label || "x"}: ${names.join("; ")}.`;
}

export function makeFigure(whole: Figure, groups: Groups, first: Palette, related: HTMLElement[], partTool: HTMLElement | null): FigureView {
  const view = keptView(whole) ?? firstView(whole);
  let figure = chosen(whole, view.axis, view.smoothing);
  let palette = first;
  let allLooks: Look[] = looks(figure, groups, palette);
  let plot: Plot = makePlot(figure, view, groups, palette);
  let chart: Chart | null = null;
  let touchZoom = false;
  const fingers = matchMedia("(pointer: coarse)");
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  const legend = h("div", { class: "legend", role: "group", "aria-label": "Series" });
  const canvas = h("div", { class: "canvas", role: "img", "aria-label": spoken(figure) });
  const zoomable = !categoriesOf(figure);
  const stage = h("div", zoomable ? {
    class: "stage", tabindex: "0", role: "group", "aria-keyshortcuts": "+ - 0 ArrowLeft ArrowRight ArrowUp ArrowDown",
    "aria-label": "Chart. Plus and minus zoom, arrow keys move the view, 0 resets it.",
  } : { class: "stage" }, canvas);
  const hint = h("p", { class: "omitted", hidden: true });
  /** The tooltip where a finger would cover it. */
  const readout = h("div", { class: "readout", "aria-live": "polite" });
  const data = h("div", { class: "figure-data", hidden: true });

  const height = (width: number) => Math.round(Math.min(430, Math.max(270, width * 0.52)));

  const render = (animate: boolean, paper = false) => {
    figure = chosen(whole, view.axis, view.smoothing);
    allLooks = looks(figure, groups, palette);
    plot = makePlot(figure, view, groups, palette);
    const width = paper ? PAPER.width : Math.max(220, stage.clientWidth);
    const size = { width, height: paper ? PAPER.height : height(width) };
    canvas.style.height = `${size.height}px`;
    if (!chart) {
      const many = figure.series.reduce((sum, series) => sum + series.y.length, 0) > 20000;
      chart = echarts.init(canvas, null, { renderer: many ? "canvas" : "svg", ...size });
    } else if (chart.getWidth() !== size.width || chart.getHeight() !== size.height) {
      chart.resize(size);
    }
    chart.setOption({
      ...makeOption(figure, plot, size, palette, animate && !still),
      tooltip: {
        trigger: figure.kind === "scatter" ? "item" : "axis", confine: true, appendTo: undefined, padding: 0, borderWidth: 0,
        backgroundColor: "transparent", extraCssText: "box-shadow:none", transitionDuration: still ? 0 : 0.15,
        axisPointer: {
          type: plot.categories && figure.kind === "bar" ? "shadow" : "line", z: 0, snap: false, label: { show: false },
          lineStyle: { color: palette.axis, type: "solid" }, shadowStyle: { color: palette.grid, opacity: 0.5 },
        },
        formatter: (params: never) => {
          if (!fingers.matches) return tooltip(params);
          readout.replaceChildren(tooltip(params));
          return "";
        },
      },
    }, { notMerge: !animate, replaceMerge: ["series"] });
    drawLegend(legend, figure, allLooks, plot.series, view, { changed: () => update(), hover: highlight });
    legend.hidden = plot.categoryColors.length > 0; // then the axis names the colors
    hint.hidden = plot.omitted === 0 && plot.leaving.length === 0;
    hint.textContent = [
      plot.omitted === 1 && "1 value is not shown: it is zero, negative or too small for a logarithmic axis.",
      plot.omitted > 1 && `${formatNumber(plot.omitted)} values are not shown: they are zero, negative or too small for a logarithmic axis.`,
      plot.leaving.length > 0 && `What ${figure.ended} leaves the chart, to keep the others legible; shown alone, it is whole: ${plot.leaving.join("; ")}.`,
    ].filter(Boolean).join(" ");
  };

  const tooltip = (params: unknown): HTMLElement | string => {
    if (Array.isArray(params)) return axisTooltip(figure, plot, Number(plot.categories ? params[0].dataIndex : params[0].axisValue));
    const { seriesId, dataIndex } = params as { seriesId: string; dataIndex: number };
    const series = plot.series.find((one) => seriesId === `series-${one.index}`);
    const point = series?.points[dataIndex];
    return series && point ? pointTooltip(figure, series, point) : "";
  };

  const highlight = (index: number | null) => {
    if (index === null) chart?.dispatchAction({ type: "downplay" });
    else chart?.dispatchAction({ type: "highlight", seriesId: `series-${index}` });
  };

  // Tools.
  const tool = (label: string, title: string, action: () => void, ...content: (Node | string)[]) =>
    h("button", { type: "button", class: "tool", "aria-label": label === "" && title, title, onclick: action }, ...content, label);
  const reset = tool("Reset", "Reset zoom", () => {
    stage.focus({ preventScroll: true }); // the button is about to hide
    zoomTo(null);
  }, icon(ICONS.reset));
  const positive = (values: unknown[]) => values.some((value) => typeof value === "number" && value > 0);
  const logTool = (axis: "logX" | "logY", name: string) => {
    const button = tool(`log ${name}`, `Logarithmic ${name} axis`, () => {
      view[axis] = !view[axis];
      view.zoom = null;
      update();
    });
    return { axis, button };
  };
  const manyDecades = () => {
    const xs = figure.series.flatMap((series) => series.x).filter((x): x is number => typeof x === "number" && x > 0);
    const negative = figure.series.some((series) => series.x.some((x) => typeof x === "number" && x < 0));
    return !negative && xs.length > 0 && xs.reduce((a, b) => Math.max(a, b)) >= 30 * xs.reduce((a, b) => Math.min(a, b));
  };
  const logTools = [
    ...(!categoriesOf(figure) && (figure.x.log || manyDecades()) && positive(figure.series.flatMap((series) => series.x)) ? [logTool("logX", "x")] : []),
    ...(positive(figure.series.flatMap((series) => series.y)) ? [logTool("logY", "y")] : []),
  ];
  const axisTool = h("select", {
    class: "tool", "aria-label": "Horizontal axis",
    onchange: () => {
      view.axis = axisTool.selectedIndex;
      view.logX = false;
      view.zoom = null;
      update();
    },
  }, [whole.x, ...whole.otherX].map((axis, index) =>
    h("option", { selected: index === view.axis }, `by ${axis.label.replace(/,.*/, "")}`)));
  const smoothTool = h("label", { class: "tool" }, "smooth", h("input", {
    type: "range", min: "0", max: "0.99", step: "0.01", value: String(view.smoothing), title: "Weight of the moving average",
    oninput: (event) => {
      view.smoothing = Number((event.target as HTMLInputElement).value);
      update();
    },
  }));
  const touchTool = tool("", "Zoom by touch: drag a box", () => {
    touchZoom = !touchZoom;
    sync();
  }, icon(ICONS.zoom));
  touchTool.classList.add("touch-only");
  const tableTool = tool("", "Show the data as a table", () => {
    if (!data.firstChild) data.append(dataTable(whole));
    data.hidden = !data.hidden;
    sync();
  }, icon(ICONS.table));
  const picture = (format: "png" | "svg") => savePicture(figure, groups, view, format);
  const save = h("details", { class: "menu" },
    h("summary", { class: "tool", "aria-label": "Save this figure", title: "Save this figure" }, icon(ICONS.save)),
    h("div", { class: "menu-items" },
      ...([
        ["Data (CSV)", () => download(fileName(figure.id, "csv"), figureCsv(whole), "text/csv")],
        ["Data (JSON)", () => download(fileName(figure.id, "json"), JSON.stringify(whole, null, 2), "application/json")],
        ["Image (SVG)", () => picture("svg")],
        ["Image (PNG)", () => picture("png")],
      ] as [string, () => void][]).map(([label, action]) =>
        h("button", { type: "button", onclick: () => { save.open = false; action(); } }, label))));

  const sync = () => {
    for (const { axis, button } of logTools) button.setAttribute("aria-pressed", String(view[axis]));
    reset.hidden = view.zoom === null;
    readout.replaceChildren();
    touchTool.setAttribute("aria-pressed", String(touchZoom));
    tableTool.setAttribute("aria-pressed", String(!data.hidden));
    canvas.style.touchAction = touchZoom ? "none" : "";
  };
  const update = () => {
    render(true);
    sync();
  };
  const zoomTo = (zoom: typeof view.zoom) => {
    view.zoom = zoom;
    update();
  };

  const area = () => {
    const size = { width: stage.clientWidth, height: height(stage.clientWidth) };
    const place = layout(figure, plot, size);
    return { left: place.left, right: size.width - place.right, top: place.top, bottom: size.height - place.bottom };
  };
  const toData = (px: number, py: number): [number, number] => {
    const box = area();
    return [
      plot.x[0] + ((px - box.left) / (box.right - box.left)) * (plot.x[1] - plot.x[0]),
      plot.y[1] - ((py - box.top) / (box.bottom - box.top)) * (plot.y[1] - plot.y[0]),
    ];
  };
  /** Shows these ranges, limited to the figure's data and to what its axes can label. */
  const show = (x: Range, y: Range, animate: boolean) => {
    const zoom = { x: zoomed(x, plot.x, plot.full.x, plot.xScale), y: zoomed(y, plot.y, plot.full.y, plot.yScale) };
    const same = (a: Range, b: Range) => a[0] === b[0] && a[1] === b[1];
    view.zoom = same(zoom.x, plot.full.x) && same(zoom.y, plot.full.y) ? null : zoom;
    render(animate);
    sync();
  };
  if (zoomable) {
    attachZoom(stage, {
      area,
      touch: () => touchZoom,
      reset: () => view.zoom && zoomTo(null),
      box: (chosen) => {
        const [x0, y1] = toData(chosen.left, chosen.top);
        const [x1, y0] = toData(chosen.right, chosen.bottom);
        show([x0, x1], [y0, y1], true);
      },
      scale: (factor, px, py) => {
        const middle = ([low, high]: Range) => low + (high - low) / 2;
        const [x, y] = px === undefined || py === undefined ? [middle(plot.x), middle(plot.y)] : toData(px, py);
        const about = ([low, high]: Range, center: number): Range =>
          [center - (center - low) * factor, center + (high - center) * factor];
        show(about(plot.x, x), about(plot.y, y), false);
      },
      move: (right, up) => show(moved(plot.x, plot.full.x, right), moved(plot.y, plot.full.y, up), false),
      active: () => view.zoom !== null,
    });
  }

  const element = h("figure", { class: "card figure", id: `figure-${figure.id}` },
    h("div", { class: "figure-head" },
      h("h3", {}, h("a", { class: "number", href: `#figure-${figure.id}` }, `Figure ${whole.number}`), figure.title),
      h("div", { class: "tools", role: "toolbar", "aria-label": "Figure tools" },
        reset, partTool, whole.otherX.length > 0 && axisTool, canSmooth(whole) && smoothTool, logTools.map(({ button }) => button), zoomable && touchTool, tableTool, save)),
    legend, stage, readout, hint, data,
    h("figcaption", {}, figure.caption && h("p", {}, figure.caption),
      figure.notes.map((note) => h("p", { class: "note" }, note)),
      related.length > 0 && h("p", { class: "related" }, h("span", {}, "Related claims"), ...related)));

  let width = 0;
  new ResizeObserver(() => {
    if (stage.clientWidth === width) return;
    width = stage.clientWidth; // 0 while another part of the figure is shown
    if (width > 0) requestAnimationFrame(() => render(false));
  }).observe(stage);
  sync();
  return {
    element,
    view,
    draw: (next, paper = false) => {
      palette = next;
      render(false, paper);
    },
    save: picture,
  };
}
