// Exports a figure: its data, or an image on a white background with title and legend.
import { csvLine, download, fileName } from "./dom";
import { echarts } from "./echarts";
import { FONT, makeOption } from "./option";
import { type Groups, LIGHT } from "./palette";
import { makePlot, type View } from "./plot";
import type { Figure, Table } from "./results";

export function figureCsv(figure: Figure): string {
  const lines = [csvLine(["series", figure.x.label || "x", figure.y.label || "y", "low", "high", ...figure.otherX.map((axis) => axis.label)])];
  for (const series of figure.series) {
    series.y.forEach((y, i) =>
      lines.push(csvLine([series.name, series.x[i], y, series.low?.[i], series.high?.[i], ...series.otherX.map((at) => at[i])])));
  }
  return lines.join("\n") + "\n";
}

export const tableCsv = (table: Table): string => [table.columns, ...table.rows].map(csvLine).join("\n") + "\n";

export function savePicture(figure: Figure, groups: Groups, view: View, format: "png" | "svg"): void {
  const plot = makePlot(figure, view, groups, LIGHT);
  const size = { width: 960, height: 600 };
  const holder = document.createElement("div");
  const chart = echarts.init(holder, null, { renderer: format === "svg" ? "svg" : "canvas", ...size });
  const rows = Math.ceil(plot.series.length / 4);
  const shapes = new Map(plot.series.map((series) => [series.name, series.look]));
  chart.setOption({
    ...makeOption(figure, plot, size, LIGHT, false, 50 + 34 * rows),
    backgroundColor: LIGHT.background,
    title: { text: figure.title, left: 20, top: 14, textStyle: { fontSize: 18, color: LIGHT.text, fontFamily: FONT } },
    legend: {
      left: 18, top: 44, itemGap: 18, textStyle: { color: LIGHT.text, fontFamily: FONT, fontSize: 12.5 },
      data: [...shapes].map(([name, look]) => ({
        name,
        itemStyle: { color: look.color, opacity: look.style === "dashed" ? 0 : 1 }, // dashed lines have no markers
        lineStyle: { color: look.color, type: look.dash, width: 2.2 },
      })),
    },
  });
  if (format === "svg") {
    download(fileName(figure.id, "svg"), chart.renderToSVGString(), "image/svg+xml");
  } else {
    const link = document.createElement("a");
    link.href = chart.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: LIGHT.background });
    link.download = fileName(figure.id, "png");
    link.click();
  }
  chart.dispose();
}
