/** What is painted of a tile's spans. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { settingsOf } from "../../src/model";
import { drawDifference, drawOverview, type OverviewPicture } from "../../src/overview";
import { Painter, type Area, type PaintContext } from "../../src/paint";
import type { Placed } from "../../src/rows";
import { NONE, State, type Overview, type Tile, type TraceInfo } from "../../src/source";
import type { Surface } from "../../src/surface";
import { upright } from "../../src/dom";

interface Span {
  start: number;
  width: number;
  state: number;
  waiting?: number;
}

/** The rectangles that a lane gets, by style. A bin is a pixel, or more if it is fewer ns. */
function painted(spans: Span[], kind = "cpu", nsPerPixel = 1): Map<string, number[][]> {
  const share = (of: (span: Span) => number) => Uint8Array.from(spans, of);
  const tile: Tile = {
    level: 0,
    tile: 0,
    first: 0,
    offsets: Uint32Array.of(0, spans.length),
    start: Float32Array.from(spans, ({ start }) => start),
    width: Float32Array.from(spans, ({ width }) => width),
    state: share(({ state }) => state),
    task: new Uint32Array(spans.length).fill(NONE),
    running: share(({ state }) => (state === State.running ? 255 : 0)),
    waiting: share(({ waiting }) => waiting ?? 0),
    blocked: new Uint8Array(spans.length),
    unknown: new Uint8Array(spans.length),
  } as Tile;
  const context = {
    tiles: { tile: () => tile, standIn: () => null },
    trace: 0,
    end: 512,
    hues: new Uint8Array(1),
    name: () => "",
    byTask: false,
    highlight: NONE,
    other: null,
  } as unknown as PaintContext;
  const found = new Map<string, number[][]>();
  const surface = {
    rects(style: string, values: Float32Array, count: number) {
      found.set(
        style,
        Array.from({ length: count }, (_, i) => [...values.subarray(4 * i, 4 * i + 4)]),
      );
    },
    hatch() {},
    text() {},
  } as unknown as Surface;
  const placed = [{ by: "cpu", y: 0, row: { row: 0, kind, label: "CPU 0", depth: 0, cpu: 0 } }] as Placed[];
  const area: Area = { x: 0, width: 512, from: 0, nsPerPixel };
  new Painter().rows(surface, context, placed, 0, 0, area);
  return found;
}

test("a span that goes on in the next tile has no gap there, however its ends are rounded", () => {
  // As 32-bit numbers, these add up to less than 512.
  const start = 14.1;
  const width = Math.fround(512 - start - 2e-5);
  assert.ok(Math.fround(start) + width < 512);
  const [run] = painted([{ start, width, state: State.running }]).get("running") ?? [];
  assert.deepEqual(run && [run[0], (run[0] as number) + (run[2] as number)], [14, 512]);
});

test("the bins of a group are no spans, and have no gaps however wide they are", () => {
  const bins = Array.from({ length: 512 }, (_, i) => ({ start: i, width: 1, state: State.running }));
  assert.equal(painted(bins, "group", 0.1).get("hue7")?.length, 1);
});

test("a short wait is no band over a long span", () => {
  const band = (state: number, waiting: number, width: number) =>
    painted([{ start: 0, width, state, waiting }]).has("waiting");
  // 1/255 of 100 pixels is less than half a pixel.
  assert.equal(band(State.running, 1, 100), false);
  assert.equal(band(State.running, 20, 100), true);
  assert.equal(band(State.running, 255, 3), true);
  // A task on its way to an idle CPU.
  assert.equal(band(State.idle, 1, 500), false);
  assert.equal(band(State.idle, 128, 500), true);
});

test("two traces of different lengths are compared at the same instants", () => {
  const overview = (queue: number[]): Overview =>
    ({ from: 0, to: queue.length * 100, queue: Float32Array.from(queue) }) as unknown as Overview;
  const bars: [string, number][] = [];
  const rect = (style: string, x: number) => {
    if (style === "more" || style === "less") bars.push([style, x]);
  };
  // Twice as long, in as many bins: what differs is its end, which A does not have, and the third quarter of A.
  const long = { ...overview([2, 1, 5, 5]), to: 800 };
  drawDifference({ rect } as unknown as Surface, 0, 0, 800, 20, overview([2, 2, 2, 1]), long, 800);
  assert.deepEqual(bars, [["less", 200]]);
});

test("a name cannot turn the text beside it around", () =>
  assert.equal(upright("a\u202eb\u2066c waited"), "a\ufffdb\ufffdc waited"));

test("a comparison says which settings differ", () => {
  const info = (kernel: string, tunables: Record<string, string>) => ({ kernel, tunables }) as unknown as TraceInfo;
  const a = info("linux-4.1", { x: "0", y: "1" });
  const b = info("linux-4.1", { x: "1", y: "1" });
  assert.deepEqual([settingsOf(a, b), settingsOf(b, a)], [["x=0"], ["x=1"]]);
  assert.deepEqual(settingsOf(a, a), []);
  assert.deepEqual(settingsOf(a, undefined), []);
  // Other kernels have other settings.
  assert.deepEqual(settingsOf(a, info("linux-6.12", { z: "1" })), []);
  const many = info("linux-4.1", { x: "2", y: "2", z: "2", w: "2" });
  assert.deepEqual(settingsOf(many, a), ["x=2", "y=2", "z=2", "and 1 more"]);
});

test("what is unknown is red from the first loss on, and not before a CPU's first switch", () => {
  const zeros = () => new Float32Array(4);
  const data = { from: 0, to: 400, queue: zeros(), running: zeros(), violation: zeros(), lost: zeros().fill(1) };
  const hatched: [string, number][] = [];
  const ignored = () => {};
  const surface = {
    ...Object.fromEntries(["rect", "clip", "unclip", "line", "fill", "text"].map((name) => [name, ignored])),
    hatch: (style: string, x: number) => hatched.push([style, x]),
  } as unknown as Surface;
  const window = { from: 0, to: 400 };
  const picture = { data, end: 400, axisEnd: 400, cpus: 1, window, selection: null, other: null, lost: 200 };
  drawOverview(surface, 0, 0, 400, picture as unknown as OverviewPicture);
  assert.deepEqual(hatched, [
    ["soft", 0],
    ["soft", 100],
    ["unknown", 200],
    ["unknown", 300],
  ]);
});
