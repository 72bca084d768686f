// The text parts of the page: heading, summary, settings, how to reproduce it, contents.
import { download, h, icon, svg } from "./dom";
import type { Results } from "./results";

/** A plumb bob on its line. */
const LOGO = `<svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true"><path d="M16 1.5V11" stroke="currentColor"
  stroke-width="1.6" stroke-linecap="round"/><path d="M12.6 11h6.8l3.1 6.2L16 30.5 9.5 17.2Z" fill="currentColor"/>
  <path d="M9.9 17.2h12.2" stroke="var(--paper)" stroke-width="1.4"/></svg>`;

function date(text: string): string {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text;
  return time.toLocaleDateString("en-US", { day: "numeric", month: "long", year: "numeric" });
}

/** "1 table", "3 tables"; empty for 0. */
const counted = (count: number, noun: string): string => (count === 0 ? "" : `${count} ${noun}${count === 1 ? "" : "s"}`);

export function makeHeader(results: Results, theme: HTMLElement): HTMLElement {
  const facts = [
    date(results.created),
    results.version && `Plumb ${results.version}`,
    counted(new Set(results.figures.map((figure) => figure.number)).size, "figure"),
    counted(results.tables.length, "table"),
  ].filter((fact): fact is string => !!fact);
  return h("header", { class: "masthead" },
    h("div", { class: "brand" }, svg(LOGO) as unknown as HTMLElement, h("span", {}, "Plumb"), h("span", { class: "kind" }, results.subject), theme),
    h("h1", {}, results.title),
    results.subtitle && h("p", { class: "subtitle" }, results.subtitle),
    h("div", { class: "facts" }, h("p", {}, facts.map((fact) => h("span", {}, fact)))));
}

export const makeSummary = (sentences: string[]): HTMLElement =>
  h("div", { class: "summary" }, sentences.map((sentence) => h("p", {}, sentence)));

export function makeSettings(results: Results): HTMLElement {
  const count = results.settings.reduce((sum, group) => sum + group.items.length, 0);
  return h("details", { class: "card settings" },
    h("summary", {}, h("span", {}, "Full configuration"), h("em", {}, counted(count, "setting"))),
    h("div", { class: "groups" }, results.settings.map((group) =>
      h("section", {}, h("h3", {}, group.group),
        h("dl", {}, group.items.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))))))));
}

async function copy(text: string, button: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages opened from a file may lack the clipboard interface: select the text and copy it the old way.
    const area = h("textarea", { class: "off-screen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const label = button.lastChild!;
  const before = label.textContent;
  label.textContent = "Copied";
  setTimeout(() => (label.textContent = before), 1500);
}

export function makeCommand(results: Results, source: string): HTMLElement {
  const button = h("button", { type: "button", class: "tool", onclick: () => void copy(results.command, button) },
    icon("M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8Z"), "Copy");
  return h("div", {},
    results.command && h("div", { class: "card command" }, h("pre", { tabindex: "0" }, h("code", {}, results.command)), button),
    h("p", { class: "aside" }, "This page contains all of its data and needs no network. ",
      h("button", { type: "button", class: "link", onclick: () => download("results.json", source, "application/json") },
        "Download results.json")));
}

export interface Chapter {
  id: string;
  title: string;
  level: 1 | 2;
}

/** The contents as a menu in a corner, where there is no room beside the text. */
export function makeContentsMenu(chapters: Chapter[]): HTMLElement {
  const menu = h("details", { class: "menu contents-menu" },
    h("summary", { class: "tool", "aria-label": "Contents" }, icon("M2.5 4h11M2.5 8h11M2.5 12h7"), "Contents"),
    h("nav", { class: "menu-items", "aria-label": "Contents" },
      chapters.map((chapter) => h("a", { href: `#${chapter.id}`, class: `level-${chapter.level}` }, chapter.title))));
  menu.addEventListener("click", (event) => {
    if ((event.target as Element).closest("a")) menu.open = false;
  });
  return menu;
}

/** The table of contents beside the text; the section in view is highlighted. */
export function makeContents(chapters: Chapter[]): HTMLElement {
  const links = chapters.map((chapter) =>
    h("a", { href: `#${chapter.id}`, class: `level-${chapter.level}`, title: chapter.title }, chapter.title));
  const nav = h("nav", { class: "contents", "aria-label": "Contents" }, links);
  const mark = () => {
    let current = 0;
    chapters.forEach((chapter, index) => {
      const target = document.getElementById(chapter.id);
      if (target && target.getBoundingClientRect().top < innerHeight * 0.3) current = index;
    });
    links.forEach((link, index) => {
      if (index === current) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    });
    const active = links[current];
    if (active && nav.scrollHeight > nav.clientHeight) nav.scrollTop = active.offsetTop - nav.clientHeight / 2;
  };
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      mark();
    });
  }, { passive: true });
  requestAnimationFrame(mark);
  return nav;
}
