/** Tiles: counts and times are conserved at every level of zoom. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundleOf, make, type Made } from "../synthetic";
import { meanOfKnown } from "../../src/aggregate";
import { Bundled } from "../../src/bundled";
import { State, HIGHEST_CELL, ROWS_PER_TILE, TILE_BINS, type By, type Tile } from "../../src/source";
import { levelOf, Lru, Tiles, tileSpan } from "../../src/tiles";

const END = 3e8;
const made: Made = make({ cpus: 6, tasks: 20, end: END, seed: 11 });
const source = new Bundled(bundleOf([made]));

function tiles(by: By, level: number): Promise<Tile[]> {
  const number = Math.ceil(END / tileSpan(level));
  const chunks = Math.ceil(made.rows[by].length / ROWS_PER_TILE);
  return source.tiles(0, by, level, [...Array(number).keys()], [...Array(chunks).keys()]);
}

/** The numbers of a row's spans in a tile, which may be one of other rows. */
function spansOf(tile: Tile, row: number): number[] {
  const [from, to] = [tile.offsets[row - tile.first] ?? 0, tile.offsets[row - tile.first + 1] ?? 0];
  return Array.from({ length: row < tile.first ? 0 : to - from }, (_, i) => from + i);
}

/** The time that a row spent in a state, by the shares of its tiles. */
function time(all: Tile[], row: number, state: "running" | "waiting" | "blocked"): number {
  let sum = 0;
  for (const tile of all) {
    for (const i of spansOf(tile, row))
      sum += ((tile[state][i] as number) / 255) * (tile.width[i] as number) * 2 ** tile.level;
  }
  return sum;
}

for (const level of [10, 14, 17, 20, 24, 29]) {
  test(`level ${level}: the time in each state is that of the spans`, async () => {
    const all = await tiles("task", level);
    for (const { row, task } of made.rows.task) {
      for (const [name, state] of [
        ["running", State.running],
        ["waiting", State.waiting],
        ["blocked", State.blocked],
      ] as const) {
        const exact = made.spans.task
          .filter((span) => span.row === row && span.state === state)
          .reduce((sum, span) => sum + span.end - span.start, 0);
        // A share is rounded to 1/255 of its bin.
        const bins = Math.ceil(END / 2 ** level);
        const slack =
          Math.min(
            bins,
            all.reduce((n, tile) => n + spansOf(tile, row).length, 0),
          ) *
            (2 ** level / 255) +
          END * 1e-6;
        assert.ok(
          Math.abs(time(all, row, name) - exact) <= slack,
          `task ${task}, ${name}: ${time(all, row, name)} instead of ${exact}`,
        );
      }
    }
  });

  test(`level ${level}: spans follow one another without gaps`, async () => {
    for (const by of ["cpu", "task"] as const) {
      for (const tile of await tiles(by, level)) {
        const bins = Math.min(HIGHEST_CELL, TILE_BINS, (END - tile.tile * tileSpan(level)) / 2 ** level);
        for (let row = tile.first; row < Math.min(tile.first + ROWS_PER_TILE, made.rows[by].length); row++) {
          let at = 0;
          for (const i of spansOf(tile, row)) {
            assert.ok(Math.abs((tile.start[i] as number) - at) < 1e-3 * bins, `${by} row ${row}: a gap at ${at}`);
            at = (tile.start[i] as number) + (tile.width[i] as number);
          }
          assert.ok(Math.abs(at - bins) < 1e-3 * bins, `${by} row ${row} ends at ${at} of ${bins}`);
        }
      }
    }
  });
}

test("a group's running time is that of its CPUs", async () => {
  const level = 18;
  const all = await tiles("cpu", level);
  const [group] = made.rows.cpu;
  const members = group?.children ?? 0;
  let sum = 0;
  for (let row = 1; row <= members; row++) sum += time(all, row, "running");
  const bins = (END / 2 ** level) * (2 ** level / 255) * members;
  assert.ok(Math.abs(time(all, 0, "running") * members - sum) <= 2 * bins);
});

test("heat and overview have the same mean queue", async () => {
  const overview = await source.overview(0, 300, { from: 0, to: END });
  const mean = overview.queue.reduce((sum, value) => sum + value, 0) / 300;
  const level = 20;
  let sum = 0;
  const all = [...Array(Math.ceil(END / tileSpan(level))).keys()];
  for (const { cell, highest } of await source.heat(0, "queue", level, all, 1))
    for (const value of cell) sum += (value / HIGHEST_CELL) * highest * 2 ** level;
  assert.ok(Math.abs(sum / END - mean) < 0.01 * mean, `${sum / END} and ${mean}`);
});

test("the level's bins are nearest to a pixel", () => {
  assert.equal(levelOf(1), 0);
  assert.equal(levelOf(1024), 10);
  assert.equal(levelOf(1500), 11);
  assert.equal(levelOf(0.01), 0);
});

test("the cache forgets what was not used for longest", () => {
  const cache = new Lru<{ bytes: number }>(100);
  cache.set("a", { bytes: 40 });
  cache.set("b", { bytes: 40 });
  cache.get("a");
  cache.set("c", { bytes: 40 });
  assert.deepEqual(cache.keys().sort(), ["a", "c"]);
  assert.equal(cache.bytes, 80);
  cache.set("huge", { bytes: 500 });
  assert.deepEqual(cache.keys(), ["huge"]);
});

/** The source, which notes what tiles it is asked for, and of which chunks of rows. */
function noting(fetched: number[][], chunks: number[][] = []): Bundled {
  return new Proxy(source, {
    get: (target, key) =>
      key === "tiles"
        ? (...args: Parameters<Bundled["tiles"]>) => {
            fetched.push([...args[3]]);
            chunks.push([...args[4]]);
            return target.tiles(...args);
          }
        : Reflect.get(target, key),
  });
}

test("a tile is fetched once, with those beside it, and again when the trace has outgrown it", async () => {
  const fetched: number[][] = [];
  const cache = new Tiles(
    noting(fetched),
    () => {},
    (message) => assert.fail(message),
  );
  const ask = async () => {
    cache.begin();
    const found = [2, 0, 1].map((tile) => cache.tile(0, "cpu", 16, tile, 0));
    cache.pump();
    await new Promise((done) => setImmediate(done));
    return found;
  };
  assert.deepEqual(await ask(), [undefined, undefined, undefined]);
  assert.deepEqual(
    (await ask()).map((tile) => tile?.tile),
    [2, 0, 1],
  );
  await ask();
  assert.deepEqual(fetched, [[0, 1, 2]]);
  cache.grown(0, 1.5 * tileSpan(16));
  assert.ok(
    (await ask()).every((tile) => tile),
    "the old tiles are shown meanwhile",
  );
  assert.deepEqual(fetched, [
    [0, 1, 2],
    [1, 2],
  ]);
});

test("rows below each other come in one answer where they lack the same tiles", async () => {
  const fetched: number[][] = [];
  const of: number[][] = [];
  const cache = new Tiles(
    noting(fetched, of),
    () => {},
    (message) => assert.fail(message),
  );
  const ask = async (tiles: number[], chunks: number[]) => {
    cache.begin();
    const found = tiles.flatMap((tile) => chunks.map((chunk) => cache.tile(0, "task", 16, tile, chunk)));
    cache.pump();
    await new Promise((done) => setImmediate(done));
    return found.map((tile) => tile && [tile.tile, tile.first]);
  };
  await ask([4, 5], [1, 0]);
  assert.deepEqual([fetched, of], [[[4, 5]], [[0, 1]]]);
  assert.deepEqual(await ask([4, 5], [0, 1]), [
    [4, 0],
    [4, ROWS_PER_TILE],
    [5, 0],
    [5, ROWS_PER_TILE],
  ]);
  // The first rows lack one of these tiles, the others both.
  await ask([6], [0]);
  await ask([6, 7], [0, 1]);
  assert.deepEqual(
    [fetched.slice(2), of.slice(2)],
    [
      [[6, 7], [7]],
      [[1], [0]],
    ],
  );
});

test("what is not shown yet is fetched alone, and nobody waits for it", async () => {
  const fetched: number[][] = [];
  let drawn = 0;
  const cache = new Tiles(
    noting(fetched),
    () => drawn++,
    (message) => assert.fail(message),
  );
  const turn = () => new Promise((done) => setImmediate(done));
  cache.begin();
  cache.ahead(() => [3, 4, 5].forEach((tile) => cache.tile(0, "cpu", 16, tile, 0)));
  assert.equal(cache.busy, 0);
  await turn();
  await turn();
  assert.ok(fetched.length > 0 && fetched.every((tiles) => tiles.length === 1), JSON.stringify(fetched));
  assert.equal(drawn, 0);
  cache.begin();
  cache.tile(0, "cpu", 16, 9, 0);
  cache.pump();
  assert.equal(cache.busy, 1);
  await turn();
  assert.equal(drawn, 1);
});

test("a mean of what is known leaves the rest out", () => {
  const steps = {
    offsets: Uint32Array.of(0, 2, 3),
    start: Float64Array.of(10, 30, 20),
    length: Uint32Array.of(1, 2, 4),
  };
  const mean = [...meanOfKnown(steps, [0, 1], 50, { from: 0, to: 50 }, 5)];
  assert.deepEqual(mean, [NaN, 1, 2.5, 3, 3]);
  assert.deepEqual([...meanOfKnown(steps, [0, 1], 50, { from: 0, to: 50 }, 1)], [180 / 70]);
});
