// A figure in parts: on the screen one at a time, with a switch between them; on paper all of them.
import { h } from "./dom";
import type { Figure } from "./results";

const elementOf = (figure: Figure): HTMLElement | null => document.getElementById(`figure-${figure.id}`);

/** Shows the part that holds `target` in place of the others. */
export function showPart(target: Element | null): void {
  const part = target?.closest(".parts > figure");
  for (const each of part?.parentElement?.children ?? []) (each as HTMLElement).hidden = each !== part;
}

/** The switch in the tools of one part; null for a figure that is whole. */
export function partTool(figure: Figure, all: Figure[]): HTMLElement | null {
  const parts = all.filter((other) => other.number === figure.number);
  if (parts.length < 2) return null;
  const own = parts.indexOf(figure);
  const tool = h("select", {
    class: "tool part", "aria-label": "Part of the figure",
    onchange: () => {
      const chosen = elementOf(parts[tool.selectedIndex]);
      tool.selectedIndex = own;
      showPart(chosen);
      chosen?.querySelector<HTMLElement>(".part")?.focus();
    },
  }, parts.map((part, index) => h("option", { selected: index === own }, `part ${index + 1} of ${parts.length}${part.part && `: ${part.part}`}`)));
  return tool;
}

/** The id of the element that the contents link to. */
export const placeOf = (figure: Figure): string => (figure.partOf ? `parts-${figure.partOf}` : `figure-${figure.id}`);

/** The elements of all figures, those of one figure's parts in one holder. */
export function inParts(figures: Figure[], elements: HTMLElement[]): HTMLElement[] {
  return figures.flatMap((figure, index) => {
    const parts = elements.filter((_, other) => figures[other].number === figure.number);
    if (parts[0] !== elements[index]) return [];
    if (!figure.partOf) return parts;
    parts.slice(1).forEach((part) => (part.hidden = true));
    return [h("div", { class: "parts", id: placeOf(figure) }, parts)];
  });
}
