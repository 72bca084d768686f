// Zooming: drag a box (mouse, or a finger after pressing "Zoom"), Ctrl + wheel or pinch on a touchpad, double click to
// reset; or with the keys + − and arrows, 0 or Escape to reset.
import { h } from "./dom";
import type { Scale } from "./scale";

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export type Range = [number, number]; // transformed coordinates

/** `wanted` limited to `whole`; `current` if that is too fine for the axis to label. */
export function zoomed(wanted: Range, current: Range, whole: Range, scale: Scale): Range {
  const range: Range = [Math.max(wanted[0], whole[0]), Math.min(wanted[1], whole[1])];
  return scale.resolves(...range) ? range : current;
}

/** `current` moved by `part` of its length, at most to the end of `whole`. */
export function moved(current: Range, whole: Range, part: number): Range {
  const wanted = (current[1] - current[0]) * part;
  const by = Math.min(Math.max(wanted, whole[0] - current[0]), whole[1] - current[1]);
  return [current[0] + by, current[1] + by];
}

export interface ZoomEvents {
  area(): Box;
  box(chosen: Box): void;
  /** Scales lengths by `factor` about a point of the holder, or about its middle if no point is given. */
  scale(factor: number, x?: number, y?: number): void;
  /** Moves the view by fractions of its width and height. */
  move(right: number, up: number): void;
  /** True if part of the figure is shown. */
  active(): boolean;
  reset(): void;
  /** True while a finger draws a box instead of scrolling the page. */
  touch(): boolean;
}

export function attachZoom(holder: HTMLElement, events: ZoomEvents): void {
  const marquee = h("div", { class: "marquee", hidden: true });
  holder.append(marquee);
  let start: { x: number; y: number } | null = null;
  const position = (event: MouseEvent) => {
    const frame = holder.getBoundingClientRect();
    const area = events.area();
    return {
      x: Math.min(Math.max(event.clientX - frame.left, area.left), area.right),
      y: Math.min(Math.max(event.clientY - frame.top, area.top), area.bottom),
      inside: event.clientX - frame.left >= area.left && event.clientX - frame.left <= area.right &&
        event.clientY - frame.top >= area.top && event.clientY - frame.top <= area.bottom,
    };
  };
  const chosen = (event: PointerEvent): Box | null => {
    if (!start) return null;
    const end = position(event);
    return {
      left: Math.min(start.x, end.x), right: Math.max(start.x, end.x),
      top: Math.min(start.y, end.y), bottom: Math.max(start.y, end.y),
    };
  };
  const large = (box: Box) => box.right - box.left > 8 && box.bottom - box.top > 8;
  holder.addEventListener("pointerdown", (event) => {
    const at = position(event);
    if (event.button !== 0 || !at.inside || (event.pointerType === "touch" && !events.touch())) return;
    start = at;
    event.preventDefault(); // no text selection while dragging
  });
  window.addEventListener("pointermove", (event) => {
    const box = chosen(event);
    if (!box) return;
    marquee.hidden = !large(box);
    Object.assign(marquee.style, {
      left: `${box.left}px`, top: `${box.top}px`, width: `${box.right - box.left}px`, height: `${box.bottom - box.top}px`,
    });
  });
  const cancel = () => {
    start = null;
    marquee.hidden = true;
  };
  const finish = (event: PointerEvent) => {
    const box = event.type === "pointerup" ? chosen(event) : null;
    cancel();
    if (box && large(box)) events.box(box);
  };
  window.addEventListener("pointerup", finish);
  window.addEventListener("pointercancel", finish);
  holder.addEventListener("dblclick", () => events.reset());
  holder.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = position(event);
    if (at.inside) events.scale(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), at.x, at.y);
  }, { passive: false });

  const keys: Record<string, () => void> = {
    "+": () => events.scale(0.7), "=": () => events.scale(0.7), "-": () => events.scale(1 / 0.7),
    ArrowLeft: () => events.move(-0.2, 0), ArrowRight: () => events.move(0.2, 0),
    ArrowUp: () => events.move(0, 0.2), ArrowDown: () => events.move(0, -0.2),
    "0": () => events.reset(),
  };
  holder.addEventListener("keydown", (event) => {
    const scrolls = event.key.startsWith("Arrow") && !events.active(); // the whole figure: the page scrolls
    const action = keys[event.key];
    if (!action || scrolls || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (start) cancel();
    else if (document.activeElement === holder) events.reset();
  });
}
