// What was claimed, by whom, and what the measurements say.
import { h, icon } from "./dom";
import type { Figure, Status, Verdict } from "./results";

const MARKS: Record<Status, string> = {
  confirmed: "M3.5 8.5 6.5 11.5 12.5 4.5",
  contradicted: "M4.2 4.2 11.8 11.8M11.8 4.2 4.2 11.8",
  unclear: "M5.6 6a2.4 2.4 0 1 1 3.3 2.2c-.6.3-.9.7-.9 1.4M8 12.1v.1",
};
const ORDER: Status[] = ["confirmed", "contradicted", "unclear"];

export const pill = (status: Status): HTMLElement => h("span", { class: `pill ${status}` }, icon(MARKS[status]), status);

/** A pill that leads to the verdict, for the figure that it rests on. */
export const verdictLink = (verdict: Verdict): HTMLElement =>
  h("a", { class: `pill ${verdict.verdict}`, href: `#verdict-${verdict.id}` }, icon(MARKS[verdict.verdict]), verdict.claim);

function score(verdicts: Verdict[]): HTMLElement {
  const counts = ORDER.map((status) => ({ status, count: verdicts.filter((one) => one.verdict === status).length }))
    .filter(({ count }) => count > 0);
  const words = counts.map(({ status, count }) => `${count} ${status}`).join(", ");
  return h("div", { class: "score", role: "img", "aria-label": words },
    h("div", { class: "score-bar" }, counts.map(({ status, count }) => h("i", { class: status, style: `flex:${count}` }))),
    h("p", {}, counts.map(({ status, count }) => h("span", {}, h("b", {}, String(count)), ` ${status}`))));
}

export function makeVerdicts(verdicts: Verdict[], figures: Figure[]): HTMLElement {
  const row = (verdict: Verdict) => {
    const number = figures.findIndex((figure) => figure.id === verdict.figure) + 1;
    return h("tr", { id: `verdict-${verdict.id}` },
      h("td", { class: "status" }, pill(verdict.verdict)),
      h("td", { class: "claim" }, h("strong", {}, verdict.claim), verdict.source && h("cite", {}, verdict.source)),
      h("td", { class: "evidence" }, verdict.evidence),
      h("td", { class: "where" }, number > 0 && h("a", { href: `#figure-${verdict.figure}` }, `Figure ${number}`)));
  };
  return h("div", {},
    score(verdicts),
    h("div", { class: "card" },
      h("table", { class: "verdicts" },
        h("thead", {}, h("tr", {}, ["Verdict", "Claim", "Evidence", "See"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, verdicts.map(row)))));
}
