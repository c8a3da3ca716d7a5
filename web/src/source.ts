/**
 * Where the page gets a trace from: the server of `schedlab view`, or the data inside a page that was sent to somebody.
 * Times are nanoseconds from the start of the trace; a task is a slot (a small number), not its thread id.
 */

/** What a task or a CPU does during a span. The numbers are those on the wire. */
export const State = {
  unknown: 0,
  idle: 1,
  running: 2,
  waiting: 3,
  sleeping: 4,
  blocked: 5,
  interrupt: 6,
  absent: 7,
} as const;

export const STATE_NAMES = [
  "unknown",
  "idle",
  "running",
  "waiting",
  "sleeping",
  "blocked",
  "interrupt",
  "absent",
] as const;

/** No task, no CPU. */
export const NONE = 0xffffffff;

export type By = "cpu" | "task";

export interface Window {
  from: number;
  to: number;
}

export interface NodeInfo {
  node: number;
  packages: { package: number; cores: { core: number; cpus: number[] }[] }[];
}

export interface TraceInfo {
  id: number;
  name: string;
  kind: string;
  kernel: string | null;
  machine: string | null;
  /** The end of the trace. */
  end: number;
  events: number;
  cpus: number[];
  tasks: number;
  /** The scheduler's settings, where the trace has them. */
  tunables?: Record<string, string> | null;
  /** It is still being recorded. */
  growing: boolean;
  /** The server is still reading it: more follows. */
  reading: boolean;
  /** Where it will end, while it is read, if it says so itself. */
  until: number | null;
  /** Its violations are known. */
  checked: boolean;
  /** Its decisions can be asked for. */
  explainable: boolean;
  memory: boolean;
  considered: boolean;
  load: boolean;
  frequency: boolean;
  losses: number;
  /** When events were lost first, if any were. */
  lost_from: number | null;
  partial: string | null;
  /** What a reader must know: partial, broken, empty; full sentences. */
  remarks: string[];
  nodes: NodeInfo[];
}

export interface InitialView {
  from?: number | null;
  to?: number | null;
  by?: By;
  /** What is picked; a task that is not known yet has no number. */
  pick?: { trace: number; by: By; id: number | null; time: number } | null;
}

export interface Traces {
  traces: TraceInfo[];
  view: InitialView | null;
}

export interface Row {
  row: number;
  label: string;
  depth: number;
  kind: "cpu" | "task" | "group";
  cpu?: number;
  task?: number;
  /** How many of the rows that follow belong to this group, at any depth. */
  children?: number;
  tid?: number;
  name?: string;
  tgid?: number;
  process?: string | null;
  group?: string | null;
  /** CPU time and time of waiting in the whole trace. */
  run?: number;
  wait?: number;
}

export interface Rows {
  rows: Row[];
  /** Tasks that are not listed because there are too many. */
  left_out: number;
}

/** `ROWS_PER_TILE` rows in one tile: spans sorted by row and start. */
export interface Tile {
  level: number;
  tile: number;
  first: number;
  /** The spans of row `first + i` are those from `offsets[i]` to `offsets[i + 1]`. */
  offsets: Uint32Array;
  /** In bins of 2^level ns from the tile's start. */
  start: Float32Array;
  width: Float32Array;
  state: Uint8Array;
  /** by=cpu: the task; by=task: the CPU. */
  task: Uint32Array;
  running: Uint8Array;
  waiting: Uint8Array;
  blocked: Uint8Array;
  unknown: Uint8Array;
  bytes: number;
}

export interface Overview extends Window {
  /** Mean number of runnable tasks, the running ones included. */
  queue: Float32Array;
  running: Float32Array;
  /** Mean number of CPUs idle while a task waited that may run there. */
  violation: Float32Array;
  /** Share of the CPUs' time of which nobody knows anything. */
  lost: Float32Array;
}

export interface HeatTile {
  level: number;
  tile: number;
  /** One for each bin of each row, row by row: shares of `highest` in 1/65534, or `UNKNOWN_CELL`. */
  cell: Uint16Array;
  highest: number;
  rows: number;
  labels: string[];
  bytes: number;
}

/** A cell of which nothing is known. */
export const UNKNOWN_CELL = 65535;
/** The cell of the highest value. */
export const HIGHEST_CELL = 65534;

export interface Series extends Window {
  value: Float64Array;
}

export const MARK_KINDS = ["wake", "migrate", "violation", "loss", "interrupt"] as const;
export type MarkKind = (typeof MARK_KINDS)[number];

export interface Marks extends Window {
  kind: MarkKind;
  time: Float64Array;
  fromCpu: Uint32Array;
  toCpu: Uint32Array;
  fromTask: Uint32Array;
  toTask: Uint32Array;
  duration: Float64Array;
  /** How many there are in this window. */
  count: number;
  /** Not all of them were sent. */
  more: boolean;
}

export interface TaskRef {
  task: number;
  tid: number;
  name: string;
  tgid?: number | null;
  process?: string | null;
  group?: string | null;
  policy?: string | null;
  nice?: number | null;
  allowed?: string | null;
}

export interface Waker {
  task: TaskRef | null;
  cpu: number | null;
  time: number;
}

export interface At {
  state: number;
  task: TaskRef | null;
  cpu: number | null;
  from: number;
  to: number;
  why: string | null;
  waker: Waker | null;
  previous?: number | null;
  next?: number | null;
  queue?: number | null;
  waiting?: TaskRef[];
}

export interface Wait {
  task: TaskRef;
  from: number;
  to: number;
  finished: boolean;
  queues: { cpu: number; from: number; to: number }[];
  culprits: { task: TaskRef; run: number }[];
  idle: number;
  unknown: number;
  idle_allowed: number;
  idle_cpus: { cpu: number; idle: number }[];
  allowed: string | null;
  waker: Waker | null;
  why: string | null;
}

export interface ListItem {
  start: number;
  duration: number;
  cpu: number | null;
  task: TaskRef | null;
  idle_cpu?: number;
  busy_cpu?: number;
  level?: string;
  tasks?: number;
  sentence?: string;
}

export type ListKind = "waits" | "violations";

export interface List {
  items: ListItem[];
  left_out: number;
  /** Violations last longer than this. */
  threshold?: number | null;
}

export interface Found {
  rows: { row: number; label: string; cpu?: number | null; task?: TaskRef | null }[];
  more: boolean;
}

export interface Edge {
  from: TaskRef | null;
  to: TaskRef;
  count: number;
  other_cpu?: number;
}

export interface Decision {
  time: number;
  cpu: number;
  choice: string;
  who: string | null;
  over: string[];
  rule: string;
  numbers: { of: string | null; what: string; value: number | string | boolean | null }[];
}

export interface Explained {
  decision: Decision | null;
  before: number | null;
  after: number | null;
  /** What `sim --queues-at` prints of that CPU; its shape is the scheduler's. */
  queue: unknown;
  sentence: string | null;
}

/** A document that a verb prints with --json; the page reads the parts it shows. */
export type Document = Record<string, unknown>;

/** What the server says without being asked. */
export interface Notices {
  /** It listens from now on: what was said before went unheard. */
  listening(): void;
  grown(id: number, end: number, events: number): void;
  ended(id: number): void;
  checked(id: number): void;
}

/** Every method fails with an `Error` whose message is one sentence for the reader. */
export interface Source {
  /** Whether there is a server: for decisions, statistics of any window, search by pattern. */
  readonly live: boolean;
  traces(): Promise<Traces>;
  rows(trace: number, by: By): Promise<Rows>;
  /** Tiles of chunks of `ROWS_PER_TILE` rows: of each tile all chunks. */
  tiles(
    trace: number,
    by: By,
    level: number,
    tiles: readonly number[],
    chunks: readonly number[],
    signal: AbortSignal,
  ): Promise<Tile[]>;
  overview(trace: number, bins: number, window: Window): Promise<Overview>;
  /** `group`: how many CPUs share a row. */
  heat(
    trace: number,
    of: string,
    level: number,
    tiles: readonly number[],
    group: number,
    signal: AbortSignal,
  ): Promise<HeatTile[]>;
  counter(trace: number, name: string, window: Window, bins: number): Promise<Series>;
  marks(trace: number, kind: MarkKind, window: Window, limit: number): Promise<Marks>;
  at(trace: number, by: By, id: number, time: number): Promise<At>;
  wait(trace: number, task: number, time: number): Promise<Wait>;
  list(trace: number, of: ListKind, limit: number, window: Window | null): Promise<List>;
  stats(trace: number, window: Window): Promise<Document>;
  delays(trace: number, window: Window): Promise<Document>;
  wakers(trace: number, window: Window, limit: number): Promise<Edge[]>;
  find(trace: number, query: string, by: By, limit: number): Promise<Found>;
  /** The next or previous span's start, of a state if one is given. */
  step(
    trace: number,
    by: By,
    id: number,
    time: number,
    to: "next" | "previous",
    state: number | null,
  ): Promise<number | null>;
  explain(trace: number, time: number, cpu: number): Promise<Explained>;
  diff(a: number, b: number): Promise<Document>;
  listen(notices: Notices): void;
}

/** The bins of a tile. */
export const TILE_BINS = 512;

/** How many rows a tile has; a request asks for those of all rows that are seen. */
export const ROWS_PER_TILE = 16;
