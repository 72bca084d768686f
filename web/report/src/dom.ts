// Creates DOM elements in one expression. Text is always set as text, never parsed as HTML.

type Attributes = Record<string, string | boolean | ((event: Event) => void) | undefined>;
type Child = Node | string | null | undefined | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child) element.append(child);
  return element;
}

/** An inline SVG; `markup` must be a constant of this program. */
export function svg(markup: string): SVGElement {
  const holder = document.createElement("template");
  holder.innerHTML = markup.trim();
  return holder.content.firstElementChild as SVGElement;
}

/** A 16 × 16 stroke icon. */
export const icon = (path: string): SVGElement =>
  svg(`<svg viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" stroke-width="1.5"
       stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="${path}"/></svg>`);

export function download(name: string, content: string | Blob, type = "text/plain"): void {
  const blob = typeof content === "string" ? new Blob([content], { type }) : content;
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** A file name from the id of its content: letters, digits, dots, dashes and underscores. */
export function fileName(id: string, ending: string): string {
  const name = id.normalize("NFC").replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+|[.-]+$/g, "");
  return `${[...name].slice(0, 80).join("") || "data"}.${ending}`;
}

/** One line of CSV (RFC 4180). Text that a spreadsheet would take for a formula, such as "=1+1", begins with a '. */
export function csvLine(cells: unknown[]): string {
  return cells
    .map((cell) => {
      const formula = typeof cell === "string" && (/^[=@\t\r]/.test(cell) || (/^[+-]/.test(cell) && Number.isNaN(Number(cell))));
      const text = cell === null || cell === undefined ? "" : `${formula ? "'" : ""}${cell}`;
      return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    })
    .join(",");
}
