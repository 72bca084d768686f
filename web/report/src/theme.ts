// Light and dark theme: the system's setting until the user chooses.
import { h, icon } from "./dom";
import { DARK, LIGHT, type Palette } from "./palette";

const KEY = "plumb-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a page opened from a file may have no storage
  }
}

const isDark = (): boolean => {
  const choice = document.documentElement.dataset.theme ?? stored();
  return choice ? choice === "dark" : system.matches;
};

/** Applies a palette, also as CSS variables for everything except charts. */
export function applyTheme(palette: Palette = isDark() ? DARK : LIGHT): Palette {
  const root = document.documentElement;
  root.classList.toggle("dark", palette.dark);
  palette.colors.forEach((color, index) => root.style.setProperty(`--series-${index}`, color));
  return palette;
}

export function themeButton(changed: (palette: Palette) => void): HTMLElement {
  const title = "Dark mode";
  const update = () => {
    changed(applyTheme());
    button.setAttribute("aria-pressed", String(isDark()));
  };
  const button: HTMLElement = h("button", {
    type: "button", class: "tool theme", title, "aria-label": title, "aria-pressed": String(isDark()),
    onclick: () => {
      const next = isDark() ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // the choice is lost when the page is closed
      }
      update();
    },
  }, icon("M8 2.2a5.8 5.8 0 1 0 0 11.6ZM8 2.2a5.8 5.8 0 0 1 0 11.6"));
  system.addEventListener("change", update);
  return button;
}
