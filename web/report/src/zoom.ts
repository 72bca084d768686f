// Zooming: drag a box (mouse, or a finger after pressing "Zoom"), Ctrl + wheel or pinch on a touchpad, double click to reset.
import { h } from "./dom";

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface ZoomEvents {
  area(): Box;
  box(chosen: Box): void;
  wheel(x: number, y: number, factor: number): void;
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
  const finish = (event: PointerEvent) => {
    const box = event.type === "pointerup" ? chosen(event) : null;
    start = null;
    marquee.hidden = true;
    if (box && large(box)) events.box(box);
  };
  window.addEventListener("pointerup", finish);
  window.addEventListener("pointercancel", finish);
  holder.addEventListener("dblclick", () => events.reset());
  holder.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = position(event);
    if (at.inside) events.wheel(at.x, at.y, Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006));
  }, { passive: false });
}
