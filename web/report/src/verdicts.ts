// The claims with their sources, and the verdicts of the measurements.
import { h, icon } from "./dom";
import { formatNumber } from "./format";
import type { Effect, Figure, Status, Verdict } from "./results";

const MARKS: Record<Status, string> = {
  supported: "M3.5 8.5 6.5 11.5 12.5 4.5",
  contradicted: "M4.2 4.2 11.8 11.8M11.8 4.2 4.2 11.8",
  smaller: "M4.5 8h7M8.8 5.2 11.6 8 8.8 10.8",
  undecided: "M5.6 6a2.4 2.4 0 1 1 3.3 2.2c-.6.3-.9.7-.9 1.4M8 12.1v.1",
  untestable: "M4 8h8",
};
const ORDER: Status[] = ["supported", "contradicted", "smaller", "undecided", "untestable"];
export const VERDICT_WORDS: Record<Status, string> = {
  supported: "supported", contradicted: "contradicted", smaller: "no effect of that size", undecided: "undecided",
  untestable: "this setting cannot test it",
};

export const pill = (status: Status): HTMLElement =>
  h("span", { class: `pill ${status}` }, icon(MARKS[status]), VERDICT_WORDS[status]);

/** "1.97 (95% interval 1.85 to 2.1; 10 seeds)"; empty without an estimate. */
export function effectText(effect: Effect): string {
  if (effect.mean === null) return "";
  const seeds = `${effect.seeds} seed${effect.seeds === 1 ? "" : "s"}`;
  const number = (value: number | null) => formatNumber(value, 3);
  return effect.low === null || effect.high === null ? `${number(effect.mean)} (${seeds})`
    : `${number(effect.mean)} (95% interval ${number(effect.low)} to ${number(effect.high)}; ${seeds})`;
}

/** The quantity that was judged, the reason, the evidence and the rule. */
function judged(verdict: Verdict): (HTMLElement | false)[] {
  const effect = effectText(verdict.effect);
  return [
    verdict.quantity !== "" && h("p", { class: "effect" }, verdict.quantity, effect && ": ", effect && h("b", {}, effect)),
    verdict.reason !== "" && h("p", {}, verdict.reason),
    verdict.evidence !== "" && h("p", {}, verdict.evidence),
    verdict.rule !== "" && h("p", { class: "rule" }, verdict.rule),
  ];
}

/** A link to a verdict, shown with the figure that the verdict is based on. */
export const verdictLink = (verdict: Verdict): HTMLElement =>
  h("a", { class: `pill ${verdict.verdict}`, href: `#verdict-${verdict.id}` }, icon(MARKS[verdict.verdict]), verdict.claim);

function score(verdicts: Verdict[]): HTMLElement {
  const counts = ORDER.map((status) => ({ status, count: verdicts.filter((one) => one.verdict === status).length }))
    .filter(({ count }) => count > 0);
  const words = counts.map(({ status, count }) => `${count} ${VERDICT_WORDS[status]}`).join(", ");
  return h("div", { class: "score", role: "img", "aria-label": words },
    h("div", { class: "score-bar" }, counts.map(({ status, count }) => h("i", { class: status, style: `flex:${count}` }))),
    h("p", {}, counts.map(({ status, count }) => h("span", {}, h("b", {}, String(count)), ` ${VERDICT_WORDS[status]}`))));
}

/** Whether the measurements say something about the claim. */
const answers = (verdict: Verdict): boolean => verdict.verdict !== "undecided" && verdict.verdict !== "untestable";

/** The setting that most verdicts have in common; empty if none does. */
export function commonSetting(verdicts: Verdict[]): string {
  const settings = verdicts.map((verdict) => verdict.setting);
  return settings.find((setting) => 2 * settings.filter((other) => other === setting).length > Math.max(settings.length, 2)) ?? "";
}

export function makeVerdicts(verdicts: Verdict[], figures: Figure[]): HTMLElement {
  const setting = commonSetting(verdicts);
  const row = (verdict: Verdict) => {
    const number = figures.find((figure) => figure.id === verdict.figure)?.number ?? 0;
    return h("tr", { id: `verdict-${verdict.id}` },
      h("td", { class: "status" }, pill(verdict.verdict)),
      h("td", { class: "claim" }, h("strong", {}, verdict.claim), verdict.source && h("cite", {}, verdict.source),
        verdict.setting !== setting && verdict.setting && h("p", { class: "setting" }, verdict.setting)),
      h("td", { class: "evidence" }, judged(verdict)),
      h("td", { class: "where" }, number > 0 && h("a", { href: `#figure-${verdict.figure}` }, `Figure ${number}`)));
  };
  const table = (some: Verdict[]) =>
    h("table", { class: "verdicts" },
      h("thead", {}, h("tr", {}, ["Verdict", "Claim", "Evidence", "See"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, some.map(row)));
  const answered = verdicts.filter(answers), open = verdicts.filter((verdict) => !answers(verdict));
  return h("div", {},
    score(verdicts),
    setting && h("p", { class: "aside" }, `${verdicts.every((verdict) => verdict.setting === setting) ? "Setting" : "Setting, where a verdict has no other"}: ${setting}.`),
    answered.length > 0 && h("div", { class: "card" }, table(answered)),
    // Folded where there are answers to read first.
    open.length > 0 && (answered.length === 0 ? h("div", { class: "card" }, table(open))
      : h("details", { class: "card unanswered" },
        h("summary", {}, h("span", {}, "Not answered"), h("em", {}, `${open.length} of ${verdicts.length}, and why`)),
        table(open))));
}
