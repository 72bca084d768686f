// Tables that are sorted by clicking a column heading.
import { download, fileName, h, icon } from "./dom";
import { figureCsv, tableCsv } from "./export";
import { formatNumber } from "./format";
import { colorIndex, type Groups, LIGHT } from "./palette";
import type { Cell, Figure, Table } from "./results";

/** The most rows that the page shows; the download has all rows. */
const MOST_ROWS = 1000;

const shown = (cell: Cell): string => {
  if (cell === null || cell === undefined) return "—";
  if (typeof cell === "number") return formatNumber(cell);
  return typeof cell === "boolean" ? (cell ? "yes" : "no") : String(cell);
};

/** Numbers by size, then words; missing values are last in both directions. */
function compare(a: Cell, b: Cell, direction: number): number {
  const missing = (cell: Cell) => cell === null || cell === undefined || cell === "";
  if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
  if (typeof a === "number" && typeof b === "number") return direction * (a - b);
  if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? -1 : 1;
  return direction * String(a).localeCompare(String(b), undefined, { numeric: true });
}

type Decorate = (cell: Cell) => Node | null;

/** A note below a table that does not show all rows. */
function remainder(rows: number, save: () => void): HTMLElement | null {
  if (rows <= MOST_ROWS) return null;
  return h("p", { class: "omitted" }, `Showing ${formatNumber(MOST_ROWS)} of ${formatNumber(rows)} rows, in the order chosen. `,
    h("button", { type: "button", class: "link", onclick: save }, "Download all rows (CSV)"));
}

function grid(table: Table, decorate: Decorate, save: () => void): HTMLElement {
  const numeric = table.columns.map((_, column) =>
    table.rows.length > 0 && table.rows.every((row) => typeof row[column] === "number" || row[column] === null));
  const body = h("tbody");
  let sorted = -1;
  let direction = 1;
  const fill = () => {
    const order = table.rows.map((_, i) => i);
    if (sorted >= 0) order.sort((a, b) => compare(table.rows[a][sorted], table.rows[b][sorted], direction) || a - b);
    body.replaceChildren(...order.slice(0, MOST_ROWS).map((i) =>
      h("tr", {}, table.columns.map((_, column) => {
        const cell = table.rows[i][column] ?? null;
        const long = typeof cell === "string" && cell.length > 30;
        return h("td", { class: numeric[column] ? "number" : long ? "long" : undefined }, decorate(cell), shown(cell));
      }))));
  };
  const heads = table.columns.map((name, column) =>
    h("th", { scope: "col", class: numeric[column] ? "number" : undefined, "aria-sort": "none" },
      h("button", {
        type: "button",
        onclick: () => {
          // Numbers are sorted from large to small first; a third click restores the original order.
          const opening = numeric[column] ? -1 : 1;
          if (sorted !== column) [sorted, direction] = [column, opening];
          else if (direction === opening) direction = -opening;
          else sorted = -1;
          heads.forEach((head, i) =>
            head.setAttribute("aria-sort", i !== sorted ? "none" : direction > 0 ? "ascending" : "descending"));
          fill();
        },
      }, name)));
  fill();
  return h("div", { class: "grid" },
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title },
      h("table", { class: "data" }, h("thead", {}, h("tr", {}, heads)), body)),
    remainder(table.rows.length, save));
}

/** A figure's data as a table. */
export function dataTable(figure: Figure): HTMLElement {
  const withBand = figure.series.some((series) => series.low);
  const table: Table = {
    id: figure.id, title: `Data of ${figure.title}`, caption: "",
    columns: ["series", figure.x.label || "x", figure.y.label || "y", ...(withBand ? ["low", "high"] : [])],
    rows: figure.series.flatMap((series) => series.y.map((y, i): Cell[] =>
      [series.name, series.x[i], y, ...(withBand ? [series.low?.[i] ?? null, series.high?.[i] ?? null] : [])])),
  };
  return grid(table, () => null, () => download(fileName(figure.id, "csv"), figureCsv(figure), "text/csv"));
}

export function makeTable(table: Table, number: number, groups: Groups): HTMLElement {
  // A word that names a group is marked with the group's color in the figures.
  const dot: Decorate = (cell) =>
    typeof cell === "string" && groups.knows(cell)
      ? h("span", { class: "dot", style: `background:var(--series-${colorIndex(groups.of(cell), LIGHT.colors.length)})` })
      : null;
  const save = () => download(fileName(table.id, "csv"), tableCsv(table), "text/csv");
  return h("section", { class: "card table", id: `table-${table.id}` },
    h("div", { class: "figure-head" },
      h("h3", {}, h("a", { class: "number", href: `#table-${table.id}` }, `Table ${number}`), table.title),
      h("div", { class: "tools" },
        h("button", {
          type: "button", class: "tool", title: "Download as CSV", "aria-label": `Download ${table.title} as CSV`,
          onclick: save,
        }, icon("M8 2v8M4.8 7 8 10.2 11.2 7M2.5 13.5h11"), "CSV"))),
    grid(table, dot, save),
    table.caption && h("p", { class: "caption" }, table.caption));
}
