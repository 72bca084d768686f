// The legend: buttons that hide and show series. Shift-click or double click shows one alone.
import { h, svg } from "./dom";
import type { Figure } from "./results";
import type { DrawnSeries, Look, View } from "./plot";

const MARKERS: Record<string, string> = {
  circle: '<circle cx="13" cy="6" r="3.6"/>',
  rect: '<rect x="9.6" y="2.6" width="6.8" height="6.8"/>',
  diamond: '<path d="M13 1.4 17.4 6 13 10.6 8.6 6Z"/>',
  triangle: '<path d="M13 1.8 17.4 9.8H8.6Z"/>',
};

/** A small sample of a series' line and marker. */
export function swatch(figure: Figure, look: Look): SVGElement {
  const marker = MARKERS[look.symbol] ?? MARKERS.circle;
  const dash = look.dash === "solid" ? "" : ` stroke-dasharray="${look.dash.map((part) => part * 0.8).join(" ")}"`;
  const line = `<path d="M1.5 6H24.5" fill="none" stroke-width="2.2" stroke="${look.color}"${dash}/>`;
  let drawing = line;
  if (figure.kind === "bar") drawing = `<rect x="7" y="0.5" width="11" height="11" rx="2.5" opacity="${look.style === "dashed" ? 0.55 : 1}"/>`;
  else if (look.style === "points" || (figure.kind === "scatter" && look.style === "solid")) drawing = marker;
  else if (figure.kind === "density" && look.style === "solid") drawing = `<path d="M1 11V6H25V11Z" opacity=".25"/>${line}`;
  else if (look.style === "solid" && figure.series.every((series) => series.y.length < 30)) drawing = line + marker;
  return svg(`<svg class="swatch" viewBox="0 0 26 12" width="26" height="12" fill="${look.color}" aria-hidden="true">${drawing}</svg>`);
}

export interface LegendEvents {
  changed(): void;
  hover(index: number | null): void;
}

/** Fills `holder`; `view.hidden` is changed in place. */
export function drawLegend(holder: HTMLElement, figure: Figure, looks: Look[], drawn: DrawnSeries[], view: View, events: LegendEvents): void {
  const all = [...figure.series.keys()];
  // A series with those that have no entry of their own.
  const entry = (index: number) => all.filter((other) => other === index ||
    (other > index && figure.series.slice(index + 1, other + 1).every((series) => series.companion)));
  const alone = (index: number) => {
    const others = all.filter((other) => !entry(index).includes(other));
    const already = !view.hidden.has(index) && others.every((other) => view.hidden.has(other));
    view.hidden = new Set(already ? [] : others);
    events.changed();
  };
  const buttons = all.filter((index) => index === 0 || !figure.series[index].companion).map((index) => {
    const series = figure.series[index];
    const ended = drawn.find((one) => one.index === index)?.ended;
    const empty = series.y.every((value) => value === null);
    const toggle = (event: Event) => {
      if ((event as MouseEvent).shiftKey) return alone(index);
      const shown = view.hidden.has(index);
      for (const each of entry(index)) shown ? view.hidden.delete(each) : view.hidden.add(each);
      events.changed();
    };
    return h("button", {
      type: "button", class: "key", "aria-pressed": String(!view.hidden.has(index)),
      title: "Click to hide or show; double-click to show it alone",
      onclick: toggle, ondblclick: () => alone(index),
      onmouseenter: () => events.hover(index), onmouseleave: () => events.hover(null),
    }, swatch(figure, looks[index]), h("span", {}, series.name || "values"),
    (ended || empty) && h("em", {}, empty ? "no finite value" : figure.ended));
  });
  const focused = [...holder.children].indexOf(document.activeElement as Element);
  holder.replaceChildren(...buttons);
  if (focused >= 0) buttons[focused]?.focus();
}
