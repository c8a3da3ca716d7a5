/** The data inside a page that was written by `schedlab view -o`: a small trace as a whole. */
import { tableFromIPC } from "@uwdata/flechette";
import { column, f64, marksOf, offsetsOf, u32, u8 } from "./arrow";
import { after, makeTile, meanOfKnown, meanOfSteps, type Spans, type Steps } from "./aggregate";
import {
  HIGHEST_CELL,
  NONE,
  State,
  TILE_BINS,
  UNKNOWN_CELL,
  type At,
  type By,
  type Document,
  type Edge,
  type Explained,
  type Found,
  type HeatTile,
  type List,
  type ListItem,
  type ListKind,
  type MarkKind,
  type Marks,
  type Overview,
  type Row,
  type Rows,
  type Series,
  type Source,
  type TaskRef,
  type Tile,
  type Traces,
  type Wait,
  type Waker,
  type Window,
} from "./source";
import { tileSpan } from "./tiles";

export interface Bundle {
  traces: Traces;
  responses: Record<string, unknown>;
  arrow: Record<string, string>;
}

/** The source of a page that carries its data, or null. */
export function bundled(): Source | null {
  const element = document.getElementById("bundle");
  return element ? new Bundled(JSON.parse(element.textContent ?? "{}") as Bundle) : null;
}

const SERVER = "This page carries a trace without its server. Open the trace with `schedlab view` to see this.";

function decode(base64: string | undefined): Uint8Array | null {
  if (!base64) return null;
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function spansOf(ipc: Uint8Array | null, rows: number): Spans {
  if (!ipc) return { offsets: new Uint32Array(rows + 1), start: f64(0), end: f64(0), state: u8(0), task: u32(0) };
  const table = tableFromIPC(ipc);
  return {
    offsets: offsetsOf(column(table, "row", u32), 0, rows),
    start: column(table, "start", f64),
    end: column(table, "end", f64),
    state: column(table, "state", u8),
    task: column(table, "task", u32, NONE),
  };
}

function stepsOf(ipc: Uint8Array | null, cpus: number): Steps {
  if (!ipc) return { offsets: new Uint32Array(cpus + 1), start: f64(0), length: u32(0) };
  const table = tableFromIPC(ipc);
  return {
    offsets: offsetsOf(column(table, "cpu", u32), 0, cpus),
    start: column(table, "start", f64),
    length: column(table, "length", u32, NONE),
  };
}

interface Held {
  rows: Record<By, Row[]>;
  spans: Record<By, Spans>;
  steps: Steps;
  frequencies: Steps;
  marks: Partial<Record<MarkKind, Marks>>;
  end: number;
  cpus: number[];
}

export class Bundled implements Source {
  readonly live = false;
  private readonly held: Held[];

  constructor(private readonly bundle: Bundle) {
    this.held = bundle.traces.traces.map(({ id, cpus, end }) => {
      const rows = (by: By) => (bundle.responses[`api/${id}/rows?by=${by}`] as Rows | undefined)?.rows ?? [];
      const arrow = (name: string) => decode(bundle.arrow[`${id}/${name}`]);
      const marks: Held["marks"] = {};
      for (const kind of ["wake", "migrate", "violation", "loss", "interrupt"] as const) {
        const ipc = arrow(kind);
        if (ipc) marks[kind] = marksOf(ipc, kind, { from: 0, to: end });
      }
      const most = Math.max(0, ...cpus) + 1;
      return {
        rows: { cpu: rows("cpu"), task: rows("task") },
        steps: stepsOf(arrow("queue"), most),
        frequencies: stepsOf(arrow("frequency"), most),
        marks,
        end,
        cpus,
        spans: { cpu: spansOf(arrow("cpu"), rows("cpu").length), task: spansOf(arrow("task"), rows("task").length) },
      };
    });
  }

  private of(trace: number): Held {
    const held = this.held[trace];
    if (!held) throw new Error(`There is no trace ${trace} in this page.`);
    return held;
  }

  async traces(): Promise<Traces> {
    return this.bundle.traces;
  }

  async rows(trace: number, by: By): Promise<Rows> {
    return { rows: this.of(trace).rows[by], left_out: 0 };
  }

  async tiles(
    trace: number,
    by: By,
    level: number,
    tiles: readonly number[],
    chunks: readonly number[],
  ): Promise<Tile[]> {
    const { rows, spans, steps, end } = this.of(trace);
    const input = { rows: rows[by], spans: spans[by], steps: by === "cpu" ? steps : null, end };
    return tiles.flatMap((tile) => chunks.map((chunk) => makeTile(input, level, tile, chunk)));
  }

  async overview(trace: number, bins: number, window: Window): Promise<Overview> {
    const held = this.of(trace);
    const queue = new Float64Array(bins);
    for (const cpu of held.cpus) meanOfSteps(held.steps, cpu, held.end, window.from, window.to, bins, queue);
    const share = (state: number) => this.meanOfState(held, state, window, bins);
    const lost = share(State.unknown).map((value) => value / Math.max(1, held.cpus.length));
    const violation = new Float32Array(bins);
    const marks = held.marks.violation;
    if (marks) marks.time.forEach((time, i) => spread(violation, window, time, time + (marks.duration[i] as number)));
    return { ...window, queue: Float32Array.from(queue), running: share(State.running), violation, lost };
  }

  /** The mean number of CPUs in a state. */
  private meanOfState(held: Held, state: number, window: Window, bins: number): Float32Array {
    const out = new Float32Array(bins);
    const { spans } = held;
    for (let i = 0; i < spans.cpu.start.length; i++) {
      if (spans.cpu.state[i] === state) spread(out, window, spans.cpu.start[i] as number, spans.cpu.end[i] as number);
    }
    return out;
  }

  async heat(trace: number, _of: string, level: number, tiles: readonly number[], group: number): Promise<HeatTile[]> {
    const held = this.of(trace);
    return tiles.map((tile) => heatTile(held, level, tile, group));
  }

  async counter(trace: number, name: string, window: Window, bins: number): Promise<Series> {
    const held = this.of(trace);
    const value = new Float64Array(bins);
    if (name === "runnable") {
      for (const cpu of held.cpus) meanOfSteps(held.steps, cpu, held.end, window.from, window.to, bins, value);
      const known = meanOfKnown(held.steps, held.cpus, held.end, window, bins);
      return { ...window, value: value.map((one, bin) => (Number.isNaN(known[bin]) ? NaN : one)) };
    }
    if (name === "frequency")
      return { ...window, value: meanOfKnown(held.frequencies, held.cpus, held.end, window, bins) };
    const quantile = { latency_p50: 0.5, latency_p99: 0.99 }[name];
    if (quantile === undefined) throw new Error(SERVER);
    return { ...window, value: latencies(held.spans.task, window, bins, quantile) };
  }

  async marks(trace: number, kind: MarkKind, window: Window, limit: number): Promise<Marks> {
    const all = this.of(trace).marks[kind];
    const wanted: number[] = [];
    all?.time.forEach((time, i) => {
      if (time <= window.to && time + (all.duration[i] as number) >= window.from) wanted.push(i);
    });
    const step = Math.max(1, Math.ceil(wanted.length / limit));
    const some = wanted.filter((_, i) => i % step === 0);
    const f = (of: Float64Array | undefined) => Float64Array.from(some, (i) => of?.[i] ?? 0);
    const u = (of: Uint32Array | undefined) => Uint32Array.from(some, (i) => of?.[i] ?? NONE);
    return {
      ...window,
      kind,
      time: f(all?.time),
      duration: f(all?.duration),
      fromCpu: u(all?.fromCpu),
      toCpu: u(all?.toCpu),
      fromTask: u(all?.fromTask),
      toTask: u(all?.toTask),
      count: wanted.length,
      more: step > 1,
    };
  }

  private task(held: Held, slot: number): TaskRef | null {
    if (slot === NONE) return null;
    const row = held.rows.task.find((one) => one.kind === "task" && one.task === slot);
    return {
      task: slot,
      tid: row?.tid ?? 0,
      name: row?.name ?? `task ${slot}`,
      process: row?.process ?? null,
      group: row?.group ?? null,
    };
  }

  private span(held: Held, by: By, id: number, time: number): number {
    const row = held.rows[by].find((one) => one.kind === by && one[by] === id);
    if (!row) throw new Error(`There is no ${by === "cpu" ? "CPU" : "task"} ${id} in this page.`);
    const spans = held.spans[by];
    const [low, high] = [spans.offsets[row.row] as number, spans.offsets[row.row + 1] as number];
    const i = Math.max(low, after(spans.start, low, high, time) - 1);
    if (i >= high) throw new Error("Nothing is known of this row.");
    return i;
  }

  async at(trace: number, by: By, id: number, time: number): Promise<At> {
    const held = this.of(trace);
    const spans = held.spans[by];
    const i = this.span(held, by, id, time);
    const other = spans.task[i] as number;
    const slot = by === "task" ? id : other;
    const [from, to] = [spans.start[i] as number, spans.end[i] as number];
    const waits = by === "task" && spans.state[i] === State.waiting;
    return {
      state: spans.state[i] as number,
      task: this.task(held, slot),
      cpu: by === "cpu" ? id : other === NONE ? null : other,
      from,
      to,
      why: null,
      waker: waits ? this.waker(held, id, from) : null,
    };
  }

  private waker(held: Held, task: number, time: number): Waker | null {
    const marks = held.marks.wake;
    if (!marks) return null;
    const i = after(marks.time, 0, marks.time.length, time) - 1;
    for (let k = i; k >= 0 && (marks.time[k] as number) === time; k--) {
      if (marks.toTask[k] !== task) continue;
      const cpu = marks.fromCpu[k] as number;
      return { task: this.task(held, marks.fromTask[k] as number), cpu: cpu === NONE ? null : cpu, time };
    }
    return null;
  }

  async wait(trace: number, task: number, time: number): Promise<Wait> {
    const held = this.of(trace);
    const spans = held.spans.task;
    const i = this.span(held, "task", task, time);
    const [from, to, cpu] = [spans.start[i] as number, spans.end[i] as number, spans.task[i] as number];
    if (spans.state[i] !== State.waiting) throw new Error("The task does not wait then.");
    const run = new Map<number, number>();
    const idle = new Map<number, number>();
    let unknown = 0;
    for (const one of held.cpus) {
      this.between(held, one, from, to, (state, who, length) => {
        if (state === State.idle) idle.set(one, (idle.get(one) ?? 0) + length);
        else if (one === cpu && state === State.running) run.set(who, (run.get(who) ?? 0) + length);
        else if (one === cpu && state === State.unknown) unknown += length;
      });
    }
    const culprits = [...run]
      .map(([who, length]) => ({ task: this.task(held, who) as TaskRef, run: length }))
      .sort((a, b) => b.run - a.run);
    const own = idle.get(cpu) ?? 0;
    idle.delete(cpu);
    const idle_cpus = [...idle].map(([one, length]) => ({ cpu: one, idle: length })).sort((a, b) => b.idle - a.idle);
    return {
      task: this.task(held, task) as TaskRef,
      from,
      to,
      finished: to < held.end,
      queues: cpu === NONE ? [] : [{ cpu, from, to }],
      culprits,
      idle: own,
      unknown,
      idle_allowed: idle_cpus[0]?.idle ?? 0,
      idle_cpus,
      allowed: null,
      waker: this.waker(held, task, from),
      why: null,
    };
  }

  private between(
    held: Held,
    cpu: number,
    from: number,
    to: number,
    visit: (state: number, task: number, length: number) => void,
  ): void {
    const spans = held.spans.cpu;
    const row = held.rows.cpu.find((one) => one.kind === "cpu" && one.cpu === cpu);
    if (!row) return;
    const [low, high] = [spans.offsets[row.row] as number, spans.offsets[row.row + 1] as number];
    for (let i = after(spans.end, low, high, from); i < high && (spans.start[i] as number) < to; i++) {
      visit(
        spans.state[i] as number,
        spans.task[i] as number,
        Math.min(to, spans.end[i] as number) - Math.max(from, spans.start[i] as number),
      );
    }
  }

  async list(trace: number, of: ListKind, limit: number, window: Window | null): Promise<List> {
    const found = this.bundle.responses[`api/${trace}/lists?of=${of}`] as List | undefined;
    if (!found) throw new Error(SERVER);
    const items = found.items.filter(
      (item: ListItem) => !window || (item.start < window.to && item.start + item.duration > window.from),
    );
    const left_out = found.left_out + Math.max(0, items.length - limit);
    return { items: items.slice(0, limit), left_out, threshold: found.threshold ?? null };
  }

  private whole(trace: number, name: string, window: Window): Document {
    const found = this.bundle.responses[`api/${trace}/${name}`] as Document | undefined;
    const view = this.bundle.traces.view;
    const [from, to] = [view?.from ?? 0, view?.to ?? this.of(trace).end];
    if (!found || window.from > from || window.to < to)
      throw new Error(`${SERVER} It has the statistics of the whole trace.`);
    return found;
  }

  async stats(trace: number, window: Window): Promise<Document> {
    return this.whole(trace, "stats", window);
  }

  async delays(trace: number, window: Window): Promise<Document> {
    return this.whole(trace, "delays", window);
  }

  async wakers(trace: number, window: Window, limit: number): Promise<Edge[]> {
    const held = this.of(trace);
    const marks = held.marks.wake;
    const pairs = new Map<string, Edge>();
    marks?.time.forEach((time, i) => {
      if (time < window.from || time >= window.to) return;
      const [from, to] = [marks.fromTask[i] as number, marks.toTask[i] as number];
      const edge = pairs.get(`${from}/${to}`);
      if (edge) edge.count++;
      else pairs.set(`${from}/${to}`, { from: this.task(held, from), to: this.task(held, to) as TaskRef, count: 1 });
    });
    return [...pairs.values()]
      .filter(({ to }) => to !== null)
      .sort((a, b) => b.count - a.count)
      .slice(0, limit);
  }

  async find(): Promise<Found> {
    return { rows: [], more: false };
  }

  async step(
    trace: number,
    by: By,
    id: number,
    time: number,
    to: "next" | "previous",
    state: number | null,
  ): Promise<number | null> {
    const held = this.of(trace);
    const spans = held.spans[by];
    const row = held.rows[by].find((one) => one.kind === by && one[by] === id);
    if (!row) return null;
    const move = to === "next" ? 1 : -1;
    for (
      let i = this.span(held, by, id, time) + move;
      i >= (spans.offsets[row.row] as number) && i < (spans.offsets[row.row + 1] as number);
      i += move
    ) {
      if (state === null || spans.state[i] === state) return spans.start[i] as number;
    }
    return null;
  }

  async explain(): Promise<Explained> {
    throw new Error(SERVER);
  }

  async diff(a: number, b: number): Promise<Document> {
    const found = this.bundle.responses[`api/diff?a=${a}&b=${b}`] as Document | undefined;
    if (!found) throw new Error(SERVER);
    return found;
  }

  listen(): void {
    // Nothing changes in a page that was sent.
  }
}

function heatTile(held: Held, level: number, tile: number, group: number): HeatTile {
  const from = tile * tileSpan(level);
  const rows = Math.ceil(held.cpus.length / group);
  const value = new Float64Array(rows * TILE_BINS);
  const gaps = new Uint8Array(rows * TILE_BINS);
  for (let r = 0; r < rows; r++) {
    const part = <A extends Float64Array | Uint8Array>(of: A) => of.subarray(r * TILE_BINS, (r + 1) * TILE_BINS) as A;
    const members = held.cpus.slice(r * group, (r + 1) * group);
    for (const cpu of members)
      meanOfSteps(held.steps, cpu, held.end, from, from + tileSpan(level), TILE_BINS, part(value), part(gaps));
    const own = part(value);
    own.forEach((sum, b) => (own[b] = sum / members.length));
  }
  const highest = value.reduce((most, one, i) => (gaps[i] ? most : Math.max(most, one)), 0);
  const cell = Uint16Array.from(value, (one, i) => {
    if (gaps[i]) return UNKNOWN_CELL;
    return one > 0 ? Math.max(1, Math.round((one / highest) * HIGHEST_CELL)) : 0;
  });
  const labels = Array.from({ length: rows }, (_, r) => `CPU ${held.cpus[r * group] ?? r}`);
  return { level, tile, cell, highest, rows, labels, bytes: 2 * cell.length + 1024 };
}

/** Adds a span's share of each bin. */
function spread(out: Float32Array, window: Window, start: number, end: number): void {
  const bin = (window.to - window.from) / out.length;
  const from = Math.max(start, window.from);
  const to = Math.min(end, window.to);
  for (let i = Math.max(0, Math.floor((from - window.from) / bin)); i < out.length && window.from + i * bin < to; i++) {
    const part = Math.min(to, window.from + (i + 1) * bin) - Math.max(from, window.from + i * bin);
    out[i] = (out[i] as number) + part / bin;
  }
}

/** A quantile of the waits that end in each bin. */
function latencies(spans: Spans, window: Window, bins: number, quantile: number): Float64Array {
  const found: number[][] = Array.from({ length: bins }, () => []);
  for (let i = 0; i + 1 < spans.start.length; i++) {
    const end = spans.end[i] as number;
    if (
      spans.state[i] !== State.waiting ||
      spans.state[i + 1] !== State.running ||
      end < window.from ||
      end >= window.to
    )
      continue;
    found[Math.floor(((end - window.from) / (window.to - window.from)) * bins)]?.push(end - (spans.start[i] as number));
  }
  return Float64Array.from(found, (list) => {
    if (!list.length) return NaN;
    list.sort((a, b) => a - b);
    return list[Math.min(list.length - 1, Math.floor(quantile * list.length))] as number;
  });
}
