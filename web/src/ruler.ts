/** The axis of time: ticks, labels, the selection's length. */
import { textWidth, type Surface } from "./surface";
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
  const flag = selection ? flagOf(x, width, at, selection) : null;
  for (let tick = Math.ceil(window.from / step) * step; tick <= window.to; tick += step) {
    const position = at(tick);
    surface.rect("rule", position, y + RULER_HEIGHT - 7, 1, 7);
    if (tick < 0 || position > x + width - 30) continue;
    const text = instant(tick, step, Math.abs(window.to));
    const left = position + 5;
    const hidden = flag && left < flag.to && left + textWidth(text) > flag.from;
    if (!hidden) surface.text("soft", text, left, y + RULER_HEIGHT / 2, { size: 11 });
    for (let k = 1; k < 5; k++) surface.rect("rule", at(tick + (step * k) / 5), y + RULER_HEIGHT - 4, 1, 4);
  }
  if (selection && flag) drawSelection(surface, x, y, width, at, selection, flag);
  surface.rect("rule", x, y + RULER_HEIGHT - 1, width, 1);
}

/** The length of the selection, on a ground of its own. */
interface Flag {
  text: string;
  from: number;
  to: number;
}

/** Null if the selection is out of sight. */
function flagOf(x: number, width: number, at: (time: number) => number, selection: Window): Flag | null {
  const [a, b] = [Math.max(at(selection.from), x), Math.min(at(selection.to), x + width)];
  if (b < a) return null;
  const text = duration(selection.to - selection.from);
  const middle = Math.min(Math.max((a + b) / 2, x + 40), x + width - 40);
  const half = text.length * 3.4 + 8;
  return { text, from: middle - half, to: middle + half };
}

function drawSelection(
  surface: Surface,
  x: number,
  y: number,
  width: number,
  at: (time: number) => number,
  selection: Window,
  { text, from, to }: Flag,
): void {
  const [a, b] = [Math.max(at(selection.from), x), Math.min(at(selection.to), x + width)];
  surface.rect("accent", a, y + RULER_HEIGHT - 3, Math.max(1, b - a), 2);
  surface.rect("accent", from, y + 3, to - from, 16);
  surface.text("paper", text, (from + to) / 2, y + 11, { align: "center", size: 11, bold: true });
}

/** Thin lines at the ticks, behind the lanes. */
export function drawGrid(surface: Surface, x: number, y: number, width: number, height: number, window: Window): void {
  const nsPerPixel = (window.to - window.from) / width;
  const step = tickStep(nsPerPixel, 110);
  for (let tick = Math.ceil(window.from / step) * step; tick <= window.to; tick += step) {
    surface.rect("rowHover", x + Math.round((tick - window.from) / nsPerPixel), y, 1, height);
  }
}
