/** Draws the spans of rows: the lanes. The same code draws on the screen and into an exported SVG. */
import { HUES, STATE_STYLE, type Style } from "./palette";
import { ROW_HEIGHT, type Placed } from "./rows";
import { NONE, ROWS_PER_TILE, State, TILE_BINS, type Tile } from "./source";
import { fit, textWidth, type Surface } from "./surface";
import { levelOf, tilesBetween, tileSpan, type Tiles } from "./tiles";
import { duration } from "./units";

export interface PaintContext {
  tiles: Tiles;
  trace: number;
  end: number;
  /** The hue of each task, by slot. */
  hues: Uint8Array;
  name(task: number): string;
  byTask: boolean;
  /** If a task: it alone has its colour on the CPUs. */
  highlight: number;
  /** The other trace and the row in it that stands for the same, to show where they differ. */
  other: { trace: number; row(placed: Placed): number } | null;
}

/** The window that is drawn: instant `from` is at `x`. */
export interface Area {
  x: number;
  width: number;
  from: number;
  nsPerPixel: number;
}

const HUE_STYLES: Style[] = Array.from({ length: HUES }, (_, i) => `hue${i}` as Style);
const STYLES: Style[] = [
  "running",
  "waiting",
  "waitingEdge",
  "sleeping",
  "blocked",
  "idle",
  "interrupt",
  "unknown",
  "loading",
  "more",
  "less",
  ...HUE_STYLES,
];
const FULL = 15;
const TOP = 3;
const BOTTOM = TOP + FULL;
/** Spans narrower than this have no gap to their neighbour and no label. */
const GAP_FROM = 4;
const LABEL_FROM = 26;

/** Rectangles of one style, drawn together; a rectangle that continues the last one is added to it. */
class Batch {
  private buffer = new Float32Array(4096);
  private used = 0;

  add(x: number, y: number, w: number, h: number): void {
    const last = this.used - 4;
    const b = this.buffer;
    if (last >= 0 && b[last + 1] === y && b[last + 3] === h) {
      const end = (b[last] as number) + (b[last + 2] as number);
      if (x <= end && x >= (b[last] as number)) {
        b[last + 2] = Math.max(end, x + w) - (b[last] as number);
        return;
      }
    }
    if (this.used + 4 > b.length) {
      this.buffer = new Float32Array(b.length * 2);
      this.buffer.set(b);
    }
    const to = this.buffer;
    to[this.used] = x;
    to[this.used + 1] = y;
    to[this.used + 2] = w;
    to[this.used + 3] = h;
    this.used += 4;
  }

  flush(surface: Surface, style: Style): void {
    if (this.used) surface.rects(style, this.buffer, this.used / 4);
    this.used = 0;
  }
}

interface Label {
  text: string;
  x: number;
  y: number;
  style: Style;
}

/** Whether a span goes on in the next tile. Its ends are rounded to 32 bits: of 512 bins, to 1/30,000 of a bin. */
function goesOn(tile: Tile, i: number): boolean {
  return (tile.start[i] as number) + (tile.width[i] as number) > TILE_BINS - 0.001;
}

/** The first span of a row that ends after `at` (in bins). */
export function spanAt(tile: Tile, row: number, at: number): number {
  let low = tile.offsets[row - tile.first] as number;
  let high = tile.offsets[row - tile.first + 1] as number;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tile.start[middle] as number) + (tile.width[middle] as number) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The tiles of an area: their level and numbers, and where the area or the trace ends. */
interface TilesIn {
  level: number;
  to: number;
  numbers: number[];
}

function tilesIn(context: PaintContext, area: Area): TilesIn {
  const level = levelOf(area.nsPerPixel);
  const to = Math.min(area.from + area.width * area.nsPerPixel, context.end);
  return { level, to, numbers: tilesBetween(area.from, to, level) };
}

/** Paints rows; keeps its buffers between calls, so that a frame allocates next to nothing. */
export class Painter {
  private readonly batches = Object.fromEntries(STYLES.map((style) => [style, new Batch()])) as Record<Style, Batch>;
  private readonly hatched: number[] = [];
  private labels: Label[] = [];

  /** Draws the rows with `top` of the list at `y`. Whether everything that belongs there was at hand. */
  rows(
    surface: Surface,
    context: PaintContext,
    placed: readonly Placed[],
    top: number,
    y: number,
    area: Area,
  ): boolean {
    let complete = true;
    const tiles = tilesIn(context, area);
    for (const row of placed) {
      if (!row.row) continue;
      if (!this.row(context, row, y + row.y - top, area, tiles)) complete = false;
    }
    for (const style of STYLES) this.batches[style].flush(surface, style);
    for (let i = 0; i < this.hatched.length; i += 3) {
      surface.hatch(
        "soft",
        this.hatched[i] as number,
        this.hatched[i + 1] as number,
        this.hatched[i + 2] as number,
        FULL,
      );
    }
    this.hatched.length = 0;
    for (const label of this.labels) surface.text(label.style, label.text, label.x, label.y);
    this.labels = [];
    return complete;
  }

  /** Asks for the tiles of these rows without drawing them; whether all are there. */
  want(context: PaintContext, placed: readonly Placed[], area: Area): boolean {
    const { level, numbers } = tilesIn(context, area);
    let complete = true;
    for (const { row, by } of placed) {
      if (!row) continue;
      for (const k of numbers)
        if (!context.tiles.tile(context.trace, by, level, k, Math.floor(row.row / ROWS_PER_TILE))) complete = false;
    }
    return complete;
  }

  private add(style: Style, x: number, y: number, w: number, h: number): void {
    this.batches[style].add(x, y, w, h);
  }

  private row(context: PaintContext, placed: Placed, y: number, area: Area, { level, to, numbers }: TilesIn): boolean {
    const row = placed.row?.row ?? 0;
    const span = tileSpan(level);
    const chunk = Math.floor(row / ROWS_PER_TILE);
    let complete = true;
    for (const k of numbers) {
      let tile = context.tiles.tile(context.trace, placed.by, level, k, chunk);
      if (!tile) {
        complete = false;
        tile = context.tiles.standIn(context.trace, placed.by, level, k, chunk);
      }
      const from = Math.max(k * span, area.from);
      const until = Math.min((k + 1) * span, to);
      if (tile) {
        this.spans(context, placed, tile, y, area, from, until);
        this.differ(context, placed, tile, y, area, from, until);
      } else {
        this.add("loading", this.x(area, from), y + TOP, this.x(area, until) - this.x(area, from), FULL);
      }
    }
    return complete;
  }

  private x(area: Area, time: number): number {
    return area.x + (time - area.from) / area.nsPerPixel;
  }

  private spans(
    context: PaintContext,
    placed: Placed,
    tile: Tile,
    y: number,
    area: Area,
    from: number,
    until: number,
  ): void {
    const row = placed.row?.row ?? 0;
    const bin = 2 ** tile.level;
    const origin = tile.tile * tileSpan(tile.level);
    const last = tile.offsets[row - tile.first + 1] as number;
    const scale = bin / area.nsPerPixel;
    const x0 = area.x + (origin - area.from) / area.nsPerPixel;
    const right = this.x(area, until);
    for (let i = spanAt(tile, row, (from - origin) / bin); i < last; i++) {
      const start = x0 + (tile.start[i] as number) * scale;
      if (start >= right) break;
      const end = start + (tile.width[i] as number) * scale;
      const left = Math.max(Math.floor(start + 0.5), Math.floor(area.x));
      const width = Math.max(1, Math.floor(Math.min(end, right + 1) + 0.5) - left);
      // A span that goes on in the next tile has no gap there; what a group has are bins.
      const bins = placed.row?.kind === "group";
      const wide = !bins && end - start >= GAP_FROM && width > 2 && !goesOn(tile, i);
      const w = wide ? width - 1 : width;
      if (placed.row?.kind === "cpu") this.cpu(context, tile, i, left, y, w);
      else if (bins) this.stack(tile, i, left, y, w, "hue7");
      else this.task(tile, i, left, y, w);
      if (end - start >= LABEL_FROM && !bins) this.label(context, placed, tile, i, start, end - start, y);
    }
  }

  /** A strip below the row where it ran much more or much less than the same row of the other trace. */
  private differ(
    context: PaintContext,
    placed: Placed,
    tile: Tile,
    y: number,
    area: Area,
    from: number,
    until: number,
  ): void {
    const otherRow = context.other?.row(placed) ?? -1;
    if (!context.other || otherRow < 0) return;
    const chunk = Math.floor(otherRow / ROWS_PER_TILE);
    const other = context.tiles.tile(context.other.trace, placed.by, tile.level, tile.tile, chunk);
    if (!other) return;
    const row = placed.row?.row ?? 0;
    const origin = tile.tile * tileSpan(tile.level);
    const bin = 2 ** tile.level;
    const step = 2 * area.nsPerPixel;
    let i = spanAt(tile, row, (from - origin) / bin);
    let j = spanAt(other, otherRow, (from - origin) / bin);
    const [iEnd, jEnd] = [
      tile.offsets[row - tile.first + 1] as number,
      other.offsets[otherRow - other.first + 1] as number,
    ];
    for (let time = from; time < until; time += step) {
      const at = (time - origin) / bin;
      while (i < iEnd && (tile.start[i] as number) + (tile.width[i] as number) <= at) i++;
      while (j < jEnd && (other.start[j] as number) + (other.width[j] as number) <= at) j++;
      if (i >= iEnd || j >= jEnd) break;
      const difference = (tile.running[i] as number) - (other.running[j] as number);
      if (Math.abs(difference) < 100) continue;
      this.add(difference > 0 ? "more" : "less", Math.floor(this.x(area, time)), y + ROW_HEIGHT - 2, 2, 2);
    }
  }

  private cpu(context: PaintContext, tile: Tile, i: number, x: number, y: number, w: number): void {
    const share = tile.running[i] as number;
    const state = tile.state[i] as number;
    if (share > 0) {
      const height = share === 255 ? FULL : Math.max(2, Math.round((FULL * share) / 255));
      if (height < FULL) this.add("idle", x, y + BOTTOM - 1, w, 1);
      this.add(this.hue(context, tile.task[i] as number), x, y + BOTTOM - height, w, height);
    } else if (state === State.idle) {
      this.add("idle", x, y + BOTTOM - 1, w, 1);
    } else if (state === State.interrupt) {
      this.add("interrupt", x, y + TOP + 4, w, FULL - 4);
    }
    if (tile.unknown[i] || state === State.unknown) this.hatched.push(x, y + TOP, w);
    // A wait of less than half a pixel is not drawn along the whole span, and one for a CPU that is idle nearly all the
    // time is a task on its way to that CPU.
    const waiting = tile.waiting[i] as number;
    if (waiting * w < 128 || (state === State.idle && waiting < 25)) return;
    this.add("waiting", x, y, w, waiting === 255 ? 3 : waiting > 100 ? 2 : 1);
  }

  private hue(context: PaintContext, task: number): Style {
    if (context.highlight !== NONE) return task === context.highlight ? "running" : "sleeping";
    return context.byTask ? (HUE_STYLES[context.hues[task] ?? 7] as Style) : "running";
  }

  private task(tile: Tile, i: number, x: number, y: number, w: number): void {
    const running = tile.running[i] as number;
    const waiting = tile.waiting[i] as number;
    const blocked = tile.blocked[i] as number;
    const mixed = (running > 0 && running < 255) || (waiting > 0 && waiting < 255) || (blocked > 0 && blocked < 255);
    if (mixed) {
      this.stack(tile, i, x, y, w, "running");
      return;
    }
    const state = tile.state[i] as number;
    switch (state) {
      case State.running:
        this.add("running", x, y + TOP, w, FULL);
        break;
      case State.waiting:
        this.add("waiting", x, y + BOTTOM - 11, w, 11);
        this.add("waitingEdge", x, y + BOTTOM - 12, w, 1);
        break;
      case State.blocked:
        this.add("blocked", x, y + BOTTOM - 6, w, 6);
        break;
      case State.sleeping:
        this.add("sleeping", x, y + BOTTOM - 2, w, 2);
        break;
      case State.unknown:
        this.hatched.push(x, y + TOP, w);
        break;
      case State.absent:
        break;
      default:
        this.add(STATE_STYLE[state] ?? "idle", x, y + BOTTOM - 2, w, 2);
    }
  }

  /** Shares above each other: running at the bottom, then waiting, then blocked. */
  private stack(tile: Tile, i: number, x: number, y: number, w: number, style: Style): void {
    const height = (share: number) => (share === 0 ? 0 : Math.max(1, Math.round((FULL * share) / 255)));
    const running = height(tile.running[i] as number);
    const waiting = Math.min(FULL - running, height(tile.waiting[i] as number));
    const blocked = Math.min(FULL - running - waiting, height(tile.blocked[i] as number));
    if ((tile.unknown[i] as number) > 127) this.hatched.push(x, y + TOP, w);
    if ((tile.state[i] as number) !== State.absent) this.add("sleeping", x, y + BOTTOM - 1, w, 1);
    if (running) this.add(style, x, y + BOTTOM - running, w, running);
    if (waiting) this.add("waiting", x, y + BOTTOM - running - waiting, w, waiting);
    if (blocked) this.add("blocked", x, y + BOTTOM - running - waiting - blocked, w, blocked);
  }

  private label(
    context: PaintContext,
    placed: Placed,
    tile: Tile,
    i: number,
    start: number,
    width: number,
    y: number,
  ): void {
    // A span that began in an earlier tile has its label there, or at the edge of the picture.
    if ((tile.start[i] as number) <= 0 && tile.tile > 0) return;
    const text = labelOf(context, placed, tile, i);
    if (!text) return;
    const fitted = caption(text, width - 8);
    if (fitted) this.labels.push({ text: fitted, x: start + 4, y: y + ROW_HEIGHT / 2 + 1, style: text.style });
  }

  /** The labels of spans that began left of the picture, at its edge. */
  sticky(surface: Surface, context: PaintContext, placed: readonly Placed[], top: number, y: number, area: Area): void {
    const level = levelOf(area.nsPerPixel);
    const span = tileSpan(level);
    const k = Math.floor(Math.max(0, area.from) / span);
    for (const place of placed) {
      if (!place.row || place.row.kind === "group") continue;
      const row = place.row.row;
      const tile = context.tiles.tile(context.trace, place.by, level, k, Math.floor(row / ROWS_PER_TILE));
      if (!tile) continue;
      const bin = 2 ** level;
      const i = spanAt(tile, row, (area.from - k * span) / bin);
      if (i >= (tile.offsets[row - tile.first + 1] as number)) continue;
      const start = k * span + (tile.start[i] as number) * bin;
      const end = start + (tile.width[i] as number) * bin;
      const text = labelOf(context, place, tile, i);
      if (!text || start >= area.from) continue;
      // While the span's own label is partly in view, it stands.
      const own = (tile.start[i] as number) > 0 || k === 0;
      const gone = (area.from - start) / area.nsPerPixel;
      if (own && gone < textWidth(text.text)) continue;
      const fitted = caption(text, (end - area.from) / area.nsPerPixel - 8);
      if (fitted) surface.text(text.style, fitted, area.x + 4, y + place.y - top + ROW_HEIGHT / 2 + 1);
    }
  }
}

interface Caption {
  text: string;
  /** Instead of a part of the text, where the text does not fit. */
  short?: string;
  style: Style;
}

function caption({ text, short }: Caption, width: number): string {
  if (short === undefined || textWidth(text) <= width) return fit(text, width);
  return textWidth(short) <= width ? short : "";
}

function labelOf(context: PaintContext, placed: Placed, tile: Tile, i: number): Caption | null {
  const task = tile.task[i] as number;
  const state = tile.state[i] as number;
  if (placed.by === "cpu") {
    if (tile.running[i] !== 255 || task === NONE) return null;
    const dimmed = context.highlight !== NONE && context.highlight !== task;
    return { text: context.name(task), style: dimmed ? "ink" : "onDark" };
  }
  if (state === State.running && tile.running[i] === 255)
    return {
      text: task === NONE ? "running" : `CPU ${task}`,
      short: task === NONE ? "" : String(task),
      style: "onDark",
    };
  if (state === State.waiting && tile.waiting[i] === 255) {
    // The tile may have cut the span: then its length is not known here.
    const cut = (tile.start[i] as number) <= 0 || goesOn(tile, i);
    const length = duration((tile.width[i] as number) * 2 ** tile.level);
    return cut ? { text: "waits", style: "onLight" } : { text: `waits ${length}`, short: length, style: "onLight" };
  }
  return null;
}
