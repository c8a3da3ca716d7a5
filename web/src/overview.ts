/** The strip over the whole trace: run-queue length, violations, losses, and the visible window. */
import type { Overview, Window } from "./source";
import type { Surface } from "./surface";

export const OVERVIEW_HEIGHT = 46;
const CURVE = 34;

export interface OverviewPicture {
  data: Overview | null;
  /** The trace's end, and the end of the axis (of the longest trace). */
  end: number;
  axisEnd: number;
  cpus: number;
  window: Window;
  selection: Window | null;
  /** The same curve of the other trace, drawn as a line. */
  other: Overview | null;
  /** When events were lost first. */
  lost: number;
}

function highest(data: Overview): number {
  let most = 0;
  for (const value of data.queue) if (value > most) most = value;
  return most;
}

export function drawOverview(surface: Surface, x: number, y: number, width: number, picture: OverviewPicture): void {
  const { data, axisEnd, window } = picture;
  const at = (time: number) => x + (time / axisEnd) * width;
  surface.rect("panel", x, y, width, OVERVIEW_HEIGHT);
  if (data) {
    const most = Math.max(1, highest(data), picture.other ? highest(picture.other) : 0);
    surface.clip(x, y, width, OVERVIEW_HEIGHT);
    drawCurve(surface, data, at, y, most);
    if (picture.other) surface.line("soft", points(picture.other, at, y, most), 1);
    drawStrips(surface, picture.lost, data, at, y);
    surface.unclip();
  }
  const [a, b] = [Math.max(x, at(window.from)), Math.min(x + width, at(window.to))];
  surface.rect("rowHover", x, y, Math.max(0, a - x), OVERVIEW_HEIGHT);
  surface.rect("rowHover", b, y, Math.max(0, x + width - b), OVERVIEW_HEIGHT);
  if (picture.selection) {
    surface.rect(
      "select",
      at(picture.selection.from),
      y,
      Math.max(1, at(picture.selection.to) - at(picture.selection.from)),
      OVERVIEW_HEIGHT,
    );
  }
  surface.rect("accent", a, y, Math.max(2, b - a), 2);
  surface.rect("accent", a, y, 1.5, OVERVIEW_HEIGHT);
  surface.rect("accent", Math.max(a, b - 1.5), y, 1.5, OVERVIEW_HEIGHT);
  surface.rect("rule", x, y + OVERVIEW_HEIGHT - 1, width, 1);
}

function points(data: Overview, at: (time: number) => number, y: number, most: number): number[] {
  const out: number[] = [];
  const bin = (data.to - data.from) / data.queue.length;
  data.queue.forEach((value, i) => out.push(at(data.from + (i + 0.5) * bin), y + 4 + CURVE - (value / most) * CURVE));
  return out;
}

/** Runnable tasks as a pale area, the running among them as a solid one: what is pale waits. */
function drawCurve(surface: Surface, data: Overview, at: (time: number) => number, y: number, most: number): void {
  const base = y + 4 + CURVE;
  const bin = (data.to - data.from) / data.queue.length;
  const running: number[] = [at(data.from), base];
  data.running.forEach((value, i) => running.push(at(data.from + (i + 0.5) * bin), base - (value / most) * CURVE));
  running.push(at(data.to), base);
  surface.fill("waiting", [at(data.from), base, ...points(data, at, y, most), at(data.to), base], 0.75);
  surface.fill("running", running);
}

/** A strip of violations below the curve, and what nobody knows as hatched gaps. */
function drawStrips(surface: Surface, lost: number, data: Overview, at: (time: number) => number, y: number): void {
  const bin = (data.to - data.from) / data.queue.length;
  for (let i = 0; i < data.queue.length; i++) {
    const left = at(data.from + i * bin);
    const width = Math.max(1, at(data.from + (i + 1) * bin) - left);
    const wasted = data.violation[i] as number;
    // At least 2 pixels, and 5 where one CPU was idle all the time.
    const tall = Math.min(5, 2 + 3 * wasted);
    if (wasted > 0.005) surface.rect("violation", left, y + OVERVIEW_HEIGHT - 2 - tall, width, tall);
    const gap = data.from + (i + 1) * bin > lost ? "unknown" : "soft";
    if ((data.lost[i] as number) > 0.01) surface.hatch(gap, left, y + 2, width, CURVE);
  }
}

/** How much longer or shorter B's run queues are than A's, as bars up and down. */
export function drawDifference(
  surface: Surface,
  x: number,
  y: number,
  width: number,
  height: number,
  a: Overview,
  b: Overview,
  axisEnd: number,
): void {
  const step = (a.to - a.from) / a.queue.length;
  // The bins of a longer trace are wider: B's is the one around the middle of A's. After the end of one there is none.
  const differences = Array.from(a.queue, (queue, i) => {
    const at = (a.from + (i + 0.5) * step - b.from) / (b.to - b.from);
    return (b.queue[Math.floor(at * b.queue.length)] ?? queue) - queue;
  });
  const most = Math.max(0.5, ...differences.map(Math.abs));
  const middle = y + height / 2;
  surface.rect("paper", x, y, width, height);
  differences.forEach((difference, i) => {
    const left = x + ((a.from + i * step) / axisEnd) * width;
    const tall = (Math.abs(difference) / most) * (height / 2 - 1);
    if (tall < 0.3) return;
    surface.rect(
      difference > 0 ? "more" : "less",
      left,
      difference > 0 ? middle - tall : middle,
      Math.max(1, (step / axisEnd) * width),
      tall,
    );
  });
  surface.rect("rule", x, middle, width, 1);
}
