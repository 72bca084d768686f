// The parts of Apache ECharts that the page uses; esbuild leaves the rest out.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, MarkPointComponent, TitleComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";

echarts.use([
  BarChart, CustomChart, LineChart, ScatterChart,
  GridComponent, LegendComponent, MarkPointComponent, TitleComponent, TooltipComponent,
  CanvasRenderer, SVGRenderer,
]);

export { echarts };
export type Chart = echarts.ECharts;
