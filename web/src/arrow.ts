/** Decodes the server's Arrow streams into the arrays that the page draws from. */
import { tableFromIPC, type Table } from "@uwdata/flechette";
import {
  NONE,
  ROWS_PER_TILE,
  TILE_BINS,
  type HeatTile,
  type MarkKind,
  type Marks,
  type Overview,
  type Series,
  type Tile,
  type Window,
} from "./source";

type Numbers = ArrayLike<number | bigint | null>;

/** A column as one array of numbers, where it can be that of the answer; a missing column is filled with `otherwise`. */
export function column<A extends Uint8Array | Uint16Array | Uint32Array | Float32Array | Float64Array>(
  table: Table,
  name: string,
  make: (length: number) => A,
  otherwise = 0,
): A {
  const found = table.getChild(name);
  if (!found) return make(table.numRows).fill(otherwise) as A;
  const values = found.toArray() as Numbers;
  if (values.constructor === make(0).constructor) return values as A;
  const out = make(table.numRows);
  for (let i = 0; i < out.length; i++) {
    const value = values[i];
    out[i] = value === null || value === undefined ? otherwise : Number(value);
  }
  return out;
}

export const u8 = (n: number) => new Uint8Array(n);
const u16 = (n: number) => new Uint16Array(n);
export const u32 = (n: number) => new Uint32Array(n);
const f32 = (n: number) => new Float32Array(n);
export const f64 = (n: number) => new Float64Array(n);

function metadata(table: Table, key: string): string | undefined {
  return table.schema.metadata?.get(key);
}

/** Where the spans of each row begin, for spans sorted by row. */
export function offsetsOf(rows: ArrayLike<number>, first: number, count: number): Uint32Array {
  const offsets = new Uint32Array(count + 1);
  let span = 0;
  for (let i = 0; i < count; i++) {
    while (span < rows.length && (rows[span] as number) < first + i) span++;
    offsets[i] = span;
  }
  while (span < rows.length && (rows[span] as number) < first + count) span++;
  offsets[count] = span;
  return offsets;
}

/** Where spans begin and how wide they are, in an answer that says it, and in one whose rows have one span a bin. */
function extents(table: Table, counts: readonly (readonly number[])[]): { start: Float32Array; width: Float32Array } {
  if (table.getChild("start")) return { start: column(table, "start", f32), width: column(table, "width", f32) };
  const [start, width] = [f32(table.numRows), f32(table.numRows).fill(1)];
  const last = (metadata(table, "last") ?? "").split(";").map(Number);
  let at = 0;
  counts.forEach((rows, tile) => {
    for (const count of rows) {
      for (let bin = 0; bin < count; bin++) start[at++] = bin;
      if (count) width[at - 1] = last[tile] as number;
    }
  });
  return { start, width };
}

/** The tiles of an answer, each with its part of the columns: of each tile all chunks of rows. */
export function tilesOf(ipc: Uint8Array, level: number, tiles: readonly number[], chunks: readonly number[]): Tile[] {
  const table = tableFromIPC(ipc);
  const spans = (metadata(table, "spans") ?? "").split(";").map((counts) => counts.split(",").map(Number));
  const columns = {
    ...extents(table, spans),
    state: column(table, "state", u8),
    task: column(table, "task", u32, NONE),
    running: column(table, "running", u8),
    waiting: column(table, "waiting", u8),
    blocked: column(table, "blocked", u8),
    unknown: column(table, "unknown", u8),
  };
  let from = 0;
  const made = (tile: number, chunk: number, counts: readonly number[]): Tile => {
    const offsets = new Uint32Array(ROWS_PER_TILE + 1);
    for (let row = 0; row < ROWS_PER_TILE; row++) offsets[row + 1] = (offsets[row] as number) + (counts[row] ?? 0);
    const begin = from;
    from += offsets[ROWS_PER_TILE] as number;
    const part = <A extends Uint8Array | Uint32Array | Float32Array>(array: A) => array.subarray(begin, from) as A;
    return {
      level,
      tile,
      first: chunk * ROWS_PER_TILE,
      offsets,
      start: part(columns.start),
      width: part(columns.width),
      state: part(columns.state),
      task: part(columns.task),
      running: part(columns.running),
      waiting: part(columns.waiting),
      blocked: part(columns.blocked),
      unknown: part(columns.unknown),
      bytes: (from - begin) * 17 + ROWS_PER_TILE * 4 + 256,
    };
  };
  return tiles.flatMap((tile, i) =>
    chunks.map((chunk, c) => made(tile, chunk, spans[i]?.slice(c * ROWS_PER_TILE, (c + 1) * ROWS_PER_TILE) ?? [])),
  );
}

/** A column of bins, of which the stream may leave some out, as one array of `bins`. */
function dense<A extends Float32Array | Float64Array>(table: Table, name: string, out: A): A {
  const bin = column(table, "bin", u32);
  const value = column(table, name, f64, NaN);
  for (let i = 0; i < bin.length; i++) {
    const at = bin[i] as number;
    if (at < out.length) out[at] = value[i] as number;
  }
  return out;
}

export function overviewOf(ipc: Uint8Array, bins: number, window: Window): Overview {
  const table = tableFromIPC(ipc);
  return {
    ...window,
    queue: dense(table, "queue", f32(bins)),
    running: dense(table, "running", f32(bins)),
    violation: dense(table, "violation", f32(bins)),
    lost: dense(table, "lost", f32(bins)),
  };
}

export function heatOf(ipc: Uint8Array, level: number, tiles: readonly number[]): HeatTile[] {
  const table = tableFromIPC(ipc);
  const cells = column(table, "cell", u16);
  const rows = Number(metadata(table, "rows") ?? 0);
  const size = rows * TILE_BINS;
  const beside = {
    highest: Number(metadata(table, "highest") ?? 0),
    rows,
    labels: JSON.parse(metadata(table, "labels") ?? "[]") as string[],
    bytes: 2 * size + 1024,
  };
  return tiles.map((tile, i) => ({ level, tile, cell: cells.subarray(i * size, (i + 1) * size), ...beside }));
}

export function seriesOf(ipc: Uint8Array, bins: number, window: Window): Series {
  return { ...window, value: dense(tableFromIPC(ipc), "value", f64(bins).fill(NaN)) };
}

export function marksOf(ipc: Uint8Array, kind: MarkKind, window: Window): Marks {
  const table = tableFromIPC(ipc);
  return {
    ...window,
    kind,
    time: column(table, "time", f64),
    fromCpu: column(table, "from_cpu", u32, NONE),
    toCpu: column(table, "to_cpu", u32, NONE),
    fromTask: column(table, "from_task", u32, NONE),
    toTask: column(table, "to_task", u32, NONE),
    duration: column(table, "duration", f64),
    count: Number(metadata(table, "count") ?? table.numRows),
    more: metadata(table, "more") === "true",
  };
}
