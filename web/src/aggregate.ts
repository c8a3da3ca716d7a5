/**
 * Tiles out of exact spans, for a page that has the whole trace. The server does the same for larger ones; the
 * rules are
 * in docs/view-protocol.md.
 */
import { offsetsOf } from "./arrow";
import { NONE, ROWS_PER_TILE, State, TILE_BINS, type Row, type Tile } from "./source";

/** All spans of all rows, sorted by row and start, without gaps within a row. */
export interface Spans {
  offsets: Uint32Array;
  start: Float64Array;
  end: Float64Array;
  state: Uint8Array;
  task: Uint32Array;
}

/** Run-queue lengths of each CPU, each until the next. */
export interface Steps {
  offsets: Uint32Array;
  start: Float64Array;
  length: Uint32Array;
}

/** The place of the first entry after `time`, between two places. */
export function after(values: Float64Array, low: number, high: number, time: number): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What a row does in each bin of a tile, in ns. */
class Bins {
  readonly time = Array.from({ length: 8 }, () => new Float64Array(TILE_BINS));
  readonly waited = new Float64Array(TILE_BINS);
  readonly task = new Uint32Array(TILE_BINS).fill(NONE);
  private readonly longest = new Float64Array(TILE_BINS);

  constructor(
    private readonly from: number,
    private readonly bin: number,
  ) {}

  private each(start: number, end: number, visit: (bin: number, time: number) => void): void {
    const first = Math.max(0, Math.floor((start - this.from) / this.bin));
    const last = Math.min(TILE_BINS - 1, Math.ceil((end - this.from) / this.bin) - 1);
    for (let i = first; i <= last; i++) {
      const low = this.from + i * this.bin;
      visit(i, Math.min(end, low + this.bin) - Math.max(start, low));
    }
  }

  add(start: number, end: number, state: number, task: number): void {
    const of = this.time[state] as Float64Array;
    this.each(start, end, (i, time) => {
      of[i] = (of[i] as number) + time;
      if (state !== State.running) return;
      if (time > (this.longest[i] as number)) {
        this.longest[i] = time;
        this.task[i] = task;
      }
    });
  }

  wait(start: number, end: number): void {
    this.each(start, end, (i, time) => {
      this.waited[i] = (this.waited[i] as number) + time;
    });
  }

  /** The state with the largest share. */
  dominant(i: number): number {
    let best: number = State.absent;
    let most = 0;
    this.time.forEach((of, state) => {
      if ((of[i] as number) > most) {
        most = of[i] as number;
        best = state;
      }
    });
    return best;
  }

  total(i: number): number {
    return this.time.reduce((sum, of) => sum + (of[i] as number), 0);
  }
}

/** A share of 1 as 255ths; never 0 or 255 unless it is exactly that. */
export function share255(part: number): number {
  if (part <= 0) return 0;
  if (part >= 1) return 255;
  return Math.max(1, Math.min(254, Math.round(part * 255)));
}

/** Collects the columns of a tile. */
class Builder {
  private readonly row: number[] = [];
  private readonly start: number[] = [];
  private readonly width: number[] = [];
  private readonly state: number[] = [];
  private readonly task: number[] = [];
  private readonly shares: [number, number, number, number][] = [];

  add(
    row: number,
    start: number,
    width: number,
    state: number,
    task: number,
    shares: [number, number, number, number],
  ): void {
    this.row.push(row);
    this.start.push(start);
    this.width.push(width);
    this.state.push(state);
    this.task.push(task);
    this.shares.push(shares);
  }

  finish(level: number, tile: number, first: number): Tile {
    const share = (k: number) => Uint8Array.from(this.shares, (shares) => share255(shares[k] as number));
    return {
      level,
      tile,
      first,
      offsets: offsetsOf(this.row, first, ROWS_PER_TILE),
      start: Float32Array.from(this.start),
      width: Float32Array.from(this.width),
      state: Uint8Array.from(this.state),
      task: Uint32Array.from(this.task),
      running: share(0),
      waiting: share(1),
      blocked: share(2),
      unknown: share(3),
      bytes: this.row.length * 17 + ROWS_PER_TILE * 4 + 256,
    };
  }
}

export interface TileInput {
  rows: readonly Row[];
  spans: Spans;
  /** Of CPUs: the lengths of their queues, to know when somebody waited. */
  steps: Steps | null;
  end: number;
}

export function makeTile(input: TileInput, level: number, tile: number, chunk: number): Tile {
  const first = chunk * ROWS_PER_TILE;
  const out = new Builder();
  const bin = 2 ** level;
  const from = tile * TILE_BINS * bin;
  const to = Math.min(from + TILE_BINS * bin, input.end);
  for (let row = first; row < Math.min(first + ROWS_PER_TILE, input.rows.length); row++) {
    if (from >= to) break;
    if (input.rows[row]?.kind === "group") groupBins(out, input, row, from, to, bin);
    else rowSpans(out, input, row, from, to, bin);
  }
  return out.finish(level, tile, first);
}

function range(spans: Spans, row: number, from: number, to: number): [number, number] {
  const [low, high] = [spans.offsets[row] as number, spans.offsets[row + 1] as number];
  const begin = after(spans.end, low, high, from);
  let end = after(spans.start, begin, high, to);
  while (end > begin && (spans.start[end - 1] as number) >= to) end--;
  return [begin, end];
}

function rowSpans(out: Builder, input: TileInput, row: number, from: number, to: number, bin: number): void {
  const { spans } = input;
  const [begin, end] = range(spans, row, from, to);
  if (end - begin > TILE_BINS) {
    binned(out, input, row, from, to, bin);
    return;
  }
  for (let i = begin; i < end; i++) {
    const start = Math.max(spans.start[i] as number, from);
    const stop = Math.min(spans.end[i] as number, to);
    const state = spans.state[i] as number;
    const waits = input.steps
      ? waited(input, row, start, stop, state) / (stop - start)
      : state === State.waiting
        ? 1
        : 0;
    const shares: [number, number, number, number] = [
      state === State.running ? 1 : 0,
      waits,
      state === State.blocked ? 1 : 0,
      state === State.unknown ? 1 : 0,
    ];
    out.add(row, (start - from) / bin, (stop - start) / bin, state, spans.task[i] as number, shares);
  }
}

/** How long somebody waited for the CPU of a row, between two instants within one span. */
function waited(input: TileInput, row: number, from: number, to: number, state: number): number {
  let sum = 0;
  queued(input, row, from, to, (start, end, length) => {
    if (length !== NONE && length > (state === State.running ? 1 : 0)) sum += end - start;
  });
  return sum;
}

function queued(
  input: TileInput,
  row: number,
  from: number,
  to: number,
  visit: (start: number, end: number, length: number) => void,
): void {
  const cpu = input.rows[row]?.cpu;
  if (!input.steps || cpu === undefined) return;
  const { offsets, start, length } = input.steps;
  const [low, high] = [offsets[cpu] ?? 0, offsets[cpu + 1] ?? 0];
  for (let i = Math.max(low, after(start, low, high, from) - 1); i < high && (start[i] as number) < to; i++) {
    const stop = i + 1 < high ? (start[i + 1] as number) : input.end;
    visit(Math.max(start[i] as number, from), Math.min(stop, to), length[i] as number);
  }
}

function fill(bins: Bins, input: TileInput, row: number, from: number, to: number): void {
  const { spans } = input;
  const [begin, end] = range(spans, row, from, to);
  for (let i = begin; i < end; i++) {
    const [start, stop] = [Math.max(spans.start[i] as number, from), Math.min(spans.end[i] as number, to)];
    const state = spans.state[i] as number;
    bins.add(start, stop, state, spans.task[i] as number);
    if (!input.steps) continue;
    queued(input, row, start, stop, (a, b, length) => {
      if (length !== NONE && length > (state === State.running ? 1 : 0)) bins.wait(a, b);
    });
  }
}

function binned(out: Builder, input: TileInput, row: number, from: number, to: number, bin: number): void {
  const bins = new Bins(from, bin);
  fill(bins, input, row, from, to);
  for (let i = 0; i < TILE_BINS && from + i * bin < to; i++) {
    const total = bins.total(i);
    if (!total) continue;
    const part = (state: number) => ((bins.time[state] as Float64Array)[i] as number) / total;
    const waits = input.steps ? (bins.waited[i] as number) / total : part(State.waiting);
    const width = Math.min(bin, to - from - i * bin) / bin;
    out.add(row, i, width, bins.dominant(i), bins.task[i] as number, [
      part(State.running),
      waits,
      part(State.blocked),
      part(State.unknown),
    ]);
  }
}

/** The mean of the rows of a group, for each bin. */
function groupBins(out: Builder, input: TileInput, row: number, from: number, to: number, bin: number): void {
  const bins = new Bins(from, bin);
  const last = row + (input.rows[row]?.children ?? 0);
  let members = 0;
  for (let inner = row + 1; inner <= last; inner++) {
    if (input.rows[inner]?.kind === "group") continue;
    members++;
    fill(bins, input, inner, from, to);
  }
  if (!members) return;
  for (let i = 0; i < TILE_BINS && from + i * bin < to; i++) {
    const whole = Math.min(bin, to - from - i * bin) * members;
    const part = (state: number) => ((bins.time[state] as Float64Array)[i] as number) / whole;
    const waits = input.steps ? (bins.waited[i] as number) / whole : part(State.waiting);
    out.add(row, i, Math.min(bin, to - from - i * bin) / bin, bins.dominant(i), NONE, [
      part(State.running),
      waits,
      part(State.blocked),
      part(State.unknown),
    ]);
  }
}

/** The mean over time of a function of steps, in each of `bins` bins. */
export function meanOfSteps(
  steps: Steps,
  cpu: number,
  end: number,
  from: number,
  to: number,
  bins: number,
  out: Float64Array,
  unknown?: Uint8Array,
): void {
  const [low, high] = [steps.offsets[cpu] ?? 0, steps.offsets[cpu + 1] ?? 0];
  const bin = (to - from) / bins;
  for (
    let i = Math.max(low, after(steps.start, low, high, from) - 1);
    i < high && (steps.start[i] as number) < to;
    i++
  ) {
    const start = Math.max(from, steps.start[i] as number);
    const stop = Math.min(to, i + 1 < high ? (steps.start[i + 1] as number) : end);
    const length = steps.length[i] as number;
    for (let k = Math.floor((start - from) / bin); k < bins && from + k * bin < stop; k++) {
      const part = Math.min(stop, from + (k + 1) * bin) - Math.max(start, from + k * bin);
      if (length === NONE) {
        if (unknown) unknown[k] = 1;
      } else {
        out[k] = (out[k] as number) + (length * part) / bin;
      }
    }
  }
}

/** The mean of some CPUs' steps in each bin, each for as long as it is known there. */
export function meanOfKnown(
  steps: Steps,
  cpus: readonly number[],
  end: number,
  window: { from: number; to: number },
  bins: number,
): Float64Array {
  const [sum, known] = [new Float64Array(bins), new Float64Array(bins)];
  const present = { ...steps, length: steps.length.map((value) => (value === NONE ? NONE : 1)) };
  for (const cpu of cpus) {
    meanOfSteps(steps, cpu, end, window.from, window.to, bins, sum);
    meanOfSteps(present, cpu, end, window.from, window.to, bins, known);
  }
  return sum.map((value, bin) => (known[bin] ? value / (known[bin] as number) : NaN));
}
