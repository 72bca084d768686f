// Builds the page from the results embedded in it.
import { h } from "./dom";
import { makeFigure } from "./figure";
import { Groups, LIGHT } from "./palette";
import { inParts, partTool, placeOf, showPart } from "./parts";
import { readResults } from "./results";
import { type Chapter, makeCommand, makeContents, makeContentsMenu, makeHeader, makeSettings, makeSummary } from "./sections";
import { makeTable } from "./table";
import { applyTheme, themeButton } from "./theme";
import { makeVerdicts, verdictLink } from "./verdicts";
import { keepViews } from "./views";

const source = document.getElementById("results")!.textContent ?? "{}";
const results = readResults(JSON.parse(source));
const groups = new Groups(results.figures.flatMap((figure) => figure.series.map((series) => series.group)));
let palette = applyTheme();

const figures = results.figures.map((figure) =>
  makeFigure(figure, groups, palette,
    results.verdicts.filter((verdict) => verdict.figure === figure.id).map(verdictLink), partTool(figure, results.figures)));

const chapters: Chapter[] = [];
const section = (id: string, title: string, ...content: HTMLElement[]): HTMLElement => {
  chapters.push({ id, title, level: 1 });
  return h("section", { id, class: "chapter" }, h("h2", {}, title), ...content);
};
keepViews(results.figures.map((figure, index) => ({ figure, view: figures[index].view })));

const parts: HTMLElement[] = [];
if (results.summary.length) parts.push(section("summary", "Summary", makeSummary(results.summary)));
if (figures.length) {
  const hint = h("p", { class: "aside on-screen" },
    "Drag across a chart to zoom in and double-click to reset; with a chart in focus, the keys +, −, arrows and 0 do the same. " +
    "Click a name in a legend to hide or show it; double-click to show it alone.");
  parts.push(section("figures", "Figures", hint, h("div", { class: "figures" }, inParts(results.figures, figures.map((figure) => figure.element))),
    h("p", { class: "aside" }, h("button", { type: "button", class: "link", onclick: () => figures.forEach((figure) => figure.save("svg")) },
      "Save every figure as SVG"))));
  results.figures.filter((figure, index) => figure.number !== results.figures[index - 1]?.number).forEach((figure) =>
    chapters.push({ id: placeOf(figure), title: `${figure.number} ${figure.title}`, level: 2 }));
}
if (results.verdicts.length) parts.push(section("verdicts", "Verdicts", makeVerdicts(results.verdicts, results.figures)));
if (results.tables.length) {
  parts.push(section("tables", "Tables", ...results.tables.map((table, index) => makeTable(table, index + 1, groups))));
  results.tables.forEach((table, index) =>
    chapters.push({ id: `table-${table.id}`, title: `${index + 1} ${table.title}`, level: 2 }));
}
if (results.settings.length) parts.push(section("settings", "Settings", makeSettings(results)));
parts.push(section("reproduce", results.command ? "Reproduce" : "Data", makeCommand(results, source)));

const draw = (paper = false) => figures.forEach((figure) => figure.draw(palette, paper));
const theme = themeButton((next) => {
  palette = next;
  draw();
});
document.title = results.title;
document.body.replaceChildren(
  h("div", { class: "page" },
    makeContents(chapters),
    h("div", { class: "column" }, makeHeader(results, theme), h("main", {}, ...parts)),
    makeContentsMenu(chapters)),
  ...document.querySelectorAll("body > script"));

// Menus close on a click elsewhere, and on Escape, which returns the focus to their button.
addEventListener("click", (event) => {
  document.querySelectorAll<HTMLDetailsElement>("details.menu[open]").forEach((menu) => {
    if (!menu.contains(event.target as Node)) menu.open = false;
  });
});
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  document.querySelectorAll<HTMLDetailsElement>("details.menu[open]").forEach((menu) => {
    if (menu.contains(document.activeElement)) menu.querySelector("summary")?.focus();
    menu.open = false;
  });
});

// Print on white, at the width of a page, with all details open.
let folded: HTMLDetailsElement[] = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll<HTMLDetailsElement>("details.card:not([open])")];
  folded.forEach((details) => (details.open = true));
  palette = applyTheme(LIGHT);
  draw(true);
});
addEventListener("afterprint", () => {
  folded.forEach((details) => (details.open = false));
  palette = applyTheme();
  draw();
});

// A link to what is folded unfolds it, and a link to another part of a figure shows that part.
function visit(): void {
  const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  const details = target?.closest<HTMLDetailsElement>("details:not([open])");
  if (details) details.open = true;
  showPart(target);
  target?.scrollIntoView();
}
addEventListener("hashchange", visit);
addEventListener("click", (event) => {
  const link = (event.target as Element).closest?.('a[href^="#"]');
  if (link?.getAttribute("href") === location.hash) visit(); // the same link again
});
visit();
