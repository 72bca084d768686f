// What the reader chose in the charts stays when a served page (`plumb watch`) is loaded again with newer results.
import type { Figure } from "./results";
import type { View } from "./plot";

type Kept = Record<string, { logX: boolean; logY: boolean; hidden: string[]; zoom: View["zoom"] }>;

const KEY = `plumb:${location.pathname}`;
const served = location.protocol === "http:" || location.protocol === "https:";

function read(): Kept {
  try {
    return served ? JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Kept : {};
  } catch {
    return {};
  }
}
const before = read();

/** The view of a figure before the page was loaded again; null if there was none. Series are known by their names. */
export function keptView(figure: Figure): View | null {
  const kept = before[figure.id];
  if (!kept) return null;
  const hidden = figure.series.flatMap((series, index) => (kept.hidden.includes(series.name) ? [index] : []));
  return { logX: kept.logX, logY: kept.logY, hidden: new Set(hidden), zoom: kept.zoom };
}

/** Keeps these views until the page is loaded again. */
export function keepViews(figures: { figure: Figure; view: View }[]): void {
  if (!served) return;
  addEventListener("pagehide", () => {
    const kept: Kept = {};
    for (const { figure, view } of figures) {
      const hidden = [...view.hidden].map((index) => figure.series[index].name);
      kept[figure.id] = { logX: view.logX, logY: view.logY, hidden, zoom: view.zoom };
    }
    try {
      sessionStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      // A browser that keeps nothing shows the whole figures again.
    }
  });
}
