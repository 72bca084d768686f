// Preserves the user's chart settings when a served page (`plumb watch`) is reloaded with newer results.
import type { Figure } from "./results";
import type { View } from "./plot";

type Kept = Record<string, Omit<View, "hidden"> & { hidden: string[] }>;

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

/** The view of a figure before the page was reloaded; null if it had none. Series are identified by name. */
export function keptView(figure: Figure): View | null {
  const kept = before[figure.id];
  if (!kept) return null;
  const hidden = figure.series.flatMap((series, index) => (kept.hidden.includes(series.name) ? [index] : []));
  return { ...kept, axis: Math.min(kept.axis, figure.otherX.length), hidden: new Set(hidden) };
}

/** Saves these views when the page is left, for the next load. */
export function keepViews(figures: { figure: Figure; view: View }[]): void {
  if (!served) return;
  addEventListener("pagehide", () => {
    const kept: Kept = {};
    for (const { figure, view } of figures) {
      const hidden = [...view.hidden].map((index) => figure.series[index].name);
      kept[figure.id] = { ...view, hidden };
    }
    try {
      sessionStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      // Without storage, the page shows the whole figures after a reload.
    }
  });
}
