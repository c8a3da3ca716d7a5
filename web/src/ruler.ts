/** The axis of time: ticks, labels, the selection's length. */
import type { Surface } from "./surface";
import type { Window } from "./source";
import { duration, instant, tickStep } from "./units";

export const RULER_HEIGHT = 24;

export function drawRuler(
  surface: Surface,
  x: number,
  y: number,
  width: number,
  window: Window,
  selection: Window | null,
): void {
  const nsPerPixel = (window.to - window.from) / width;
  const step = tickStep(nsPerPixel, 110);
  const at = (time: number) => x + (time - window.from) / nsPerPixel;
  surface.rect("paper", x, y, width, RULER_HEIGHT);
  if (selection) {
    const [a, b] = [Math.max(x, at(selection.from)), Math.min(x + width, at(selection.to))];
    if (b > a) surface.rect("select", a, y, b - a, RULER_HEIGHT);
  }
  for (let tick = Math.ceil(window.from / step) * step; tick <= window.to; tick += step) {
    const position = at(tick);
    surface.rect("rule", position, y + RULER_HEIGHT - 7, 1, 7);
    if (tick < 0 || position > x + width - 30) continue;
    surface.text("soft", instant(tick, step, Math.abs(window.to)), position + 5, y + RULER_HEIGHT / 2, {
      size: 11,
    });
    for (let k = 1; k < 5; k++) surface.rect("rule", at(tick + (step * k) / 5), y + RULER_HEIGHT - 4, 1, 4);
  }
  if (selection) drawSelection(surface, x, y, width, at, selection);
  surface.rect("rule", x, y + RULER_HEIGHT - 1, width, 1);
}

function drawSelection(
  surface: Surface,
  x: number,
  y: number,
  width: number,
  at: (time: number) => number,
  selection: Window,
): void {
  const [a, b] = [at(selection.from), at(selection.to)];
  const text = duration(selection.to - selection.from);
  const middle = Math.min(Math.max((Math.max(a, x) + Math.min(b, x + width)) / 2, x + 40), x + width - 40);
  if (b < x || a > x + width) return;
  surface.rect("accent", Math.max(a, x), y + RULER_HEIGHT - 3, Math.max(1, Math.min(b, x + width) - Math.max(a, x)), 2);
  const half = text.length * 3.4 + 8;
  surface.rect("accent", middle - half, y + 3, half * 2, 16);
  surface.text("paper", text, middle, y + 11, { align: "center", size: 11, bold: true });
}

/** Thin lines at the ticks, behind the lanes. */
export function drawGrid(surface: Surface, x: number, y: number, width: number, height: number, window: Window): void {
  const nsPerPixel = (window.to - window.from) / width;
  const step = tickStep(nsPerPixel, 110);
  for (let tick = Math.ceil(window.from / step) * step; tick <= window.to; tick += step) {
    surface.rect("rowHover", x + Math.round((tick - window.from) / nsPerPixel), y, 1, height);
  }
}
