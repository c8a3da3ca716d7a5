/** Wake-ups, migrations, violations, losses and interrupts, drawn over the lanes. */
import { TILE_BINS, NONE, type By, type MarkKind, type Marks, type Source, type Window } from "./source";
import { ROW_HEIGHT, type Placed } from "./rows";
import { textWidth, type Surface } from "./surface";

/** More arrows than this are a thicket. */
const LIMIT = 1500;

const IDLE = "idle while a task waits";

export interface MarkArea {
  x: number;
  width: number;
  window: Window;
  /** The row of a CPU or task on the screen, or undefined. */
  find(by: By, id: number): Placed | undefined;
  /** The screen's y of a row. */
  y(row: Placed): number;
}

/** The marks of one trace around the visible window. */
export class MarkStore {
  private readonly have = new Map<MarkKind, Marks>();
  private readonly asked = new Map<MarkKind, string>();
  private timer = 0;
  /** What the timer is for. */
  private due = "";
  private running = 0;

  constructor(
    private readonly source: Source,
    private readonly trace: number,
    private readonly arrived: () => void,
    private readonly failed: (message: string) => void,
  ) {}

  clear(): void {
    this.asked.clear();
  }

  /** Whether marks are on their way. */
  get busy(): boolean {
    return this.timer !== 0 || this.running > 0;
  }

  get(kind: MarkKind): Marks | undefined {
    return this.have.get(kind);
  }

  want(kinds: Iterable<MarkKind>, window_: Window, end: number): void {
    const span = window_.to - window_.from;
    // The window is widened to whole steps, so that panning a little asks for nothing.
    const step = 2 ** Math.ceil(Math.log2(Math.max(span, TILE_BINS)));
    const from = Math.max(0, Math.floor(window_.from / step) * step);
    const to = Math.min(end, Math.ceil(window_.to / step) * step);
    const missing = [...kinds].filter((kind) => this.asked.get(kind) !== `${from}-${to}`);
    const due = `${missing.join()}/${from}-${to}`;
    if (!missing.length || to <= from || (this.timer && due === this.due)) return;
    window.clearTimeout(this.timer);
    this.due = due;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      for (const kind of missing) void this.load(kind, { from, to });
    }, 100);
  }

  private async load(kind: MarkKind, window_: Window): Promise<void> {
    const key = `${window_.from}-${window_.to}`;
    if (this.asked.get(kind) === key) return;
    this.asked.set(kind, key);
    this.running++;
    try {
      const marks = await this.source.marks(this.trace, kind, window_, LIMIT);
      if (this.asked.get(kind) !== key) return;
      this.have.set(kind, marks);
    } catch (error) {
      this.failed(error instanceof Error ? error.message : String(error));
    } finally {
      this.running--;
      this.arrived();
    }
  }
}

/** Of arrows closer than this many pixels on average, only the heads are drawn. */
const CROWDED = 8;

export function drawMarks(surface: Surface, marks: Marks, area: MarkArea): void {
  const scale = area.width / (area.window.to - area.window.from);
  const crowded = visible(marks, area.window) > area.width / CROWDED;
  for (let i = 0; i < marks.time.length; i++) {
    const x = area.x + ((marks.time[i] as number) - area.window.from) * scale;
    const width = (marks.duration[i] as number) * scale;
    if (x + width < area.x || x > area.x + area.width) continue;
    switch (marks.kind) {
      case "loss":
        loss(surface, marks, i, x, width, area);
        break;
      case "violation":
        violation(surface, marks, i, x, width, area);
        break;
      case "interrupt":
        interrupt(surface, marks, i, x, width, area);
        break;
      default:
        arrow(surface, marks, i, x, area, crowded);
    }
  }
}

function visible(marks: Marks, window: Window): number {
  let count = 0;
  for (const time of marks.time) if (time >= window.from && time <= window.to) count++;
  return count;
}

function loss(surface: Surface, marks: Marks, i: number, x: number, width: number, area: MarkArea): void {
  const row = area.find("cpu", marks.toCpu[i] as number);
  if (!row) return;
  const left = Math.max(area.x, x);
  const w = Math.max(3, Math.min(x + width, area.x + area.width) - left);
  surface.rect("paper", left, area.y(row) + 1, w, ROW_HEIGHT - 2);
  surface.hatch("unknown", left, area.y(row) + 1, w, ROW_HEIGHT - 2);
}

function violation(surface: Surface, marks: Marks, i: number, x: number, width: number, area: MarkArea): void {
  const left = Math.max(area.x, x);
  const w = Math.max(2, Math.min(x + width, area.x + area.width) - left);
  const row = area.find("cpu", marks.toCpu[i] as number);
  if (row) {
    surface.rect("violation", left, area.y(row) + ROW_HEIGHT - 6, w, 4);
    if (w > textWidth(IDLE)) surface.text("violation", IDLE, left + 4, area.y(row) + 8, { size: 10 });
  }
  const waits = marks.toTask[i] as number;
  const task = waits === NONE ? undefined : area.find("task", waits);
  if (task) surface.rect("violation", left, area.y(task) + ROW_HEIGHT - 2, w, 2);
}

function interrupt(surface: Surface, marks: Marks, i: number, x: number, width: number, area: MarkArea): void {
  const row = area.find("cpu", marks.toCpu[i] as number);
  if (row) surface.rect("interrupt", x, area.y(row) + 3, Math.max(1.5, width), 7);
}

/** An arrow from row to row; if one of them is not on the screen, a short stub at the other. */
function arrow(surface: Surface, marks: Marks, i: number, x: number, area: MarkArea, crowded: boolean): void {
  const style = marks.kind === "wake" ? "wake" : "migrate";
  for (const by of ["cpu", "task"] as const) {
    const ends =
      marks.kind === "migrate" && by === "task"
        ? [marks.toTask[i], marks.toTask[i]]
        : by === "cpu"
          ? [marks.fromCpu[i], marks.toCpu[i]]
          : [marks.fromTask[i], marks.toTask[i]];
    const [from, to] = ends.map((id) => (id === undefined || id === NONE ? undefined : area.find(by, id)));
    if (!to) continue;
    const y1 = area.y(to) + ROW_HEIGHT / 2;
    if (crowded) {
      surface.rect(style, x, y1 - 9, 1, 5);
    } else if (from && from !== to) {
      const y0 = area.y(from) + ROW_HEIGHT / 2;
      const tip = y1 > y0 ? -5 : 5;
      surface.line(style, [x, y0, x, y1], 1);
      surface.fill(style, [x, y1, x - 3.5, y1 + tip, x + 3.5, y1 + tip]);
    } else {
      surface.fill(style, [x, y1 + 3, x - 3, y1 - 3, x + 3, y1 - 3]);
    }
  }
}
