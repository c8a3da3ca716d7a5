/** Tiles: counts and times are conserved at every level of zoom. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundleOf, make, type Made } from "../synthetic";
import { Bundled } from "../../src/bundled";
import { State, HIGHEST_CELL, TILE_BINS, type By, type Tile } from "../../src/source";
import { levelOf, Lru, Tiles, tileSpan } from "../../src/tiles";

const END = 3e8;
const made: Made = make({ cpus: 6, tasks: 20, end: END, seed: 11 });
const source = new Bundled(bundleOf([made]));

function tiles(by: By, level: number): Promise<Tile[]> {
  const count = made.rows[by].length;
  const number = Math.ceil(END / tileSpan(level));
  return source.tiles(0, by, level, [...Array(number).keys()], 0, count);
}

/** The time that a row spent in a state, by the shares of its tiles. */
function time(all: Tile[], row: number, state: "running" | "waiting" | "blocked"): number {
  let sum = 0;
  for (const tile of all) {
    for (let i = tile.offsets[row] as number; i < (tile.offsets[row + 1] as number); i++)
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
            all.reduce((n, tile) => n + (tile.offsets[row + 1] as number) - (tile.offsets[row] as number), 0),
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

  test(`level ${level}: slices are counted once`, async () => {
    const all = await tiles("task", level);
    for (const { row } of made.rows.task) {
      const exact = made.spans.task.filter((span) => span.row === row && span.state === State.running).length;
      let sum = 0;
      for (const tile of all)
        for (let i = tile.offsets[row] as number; i < (tile.offsets[row + 1] as number); i++)
          sum += tile.switches[i] as number;
      assert.equal(sum, exact, `row ${row}`);
    }
  });

  test(`level ${level}: spans follow one another without gaps`, async () => {
    for (const by of ["cpu", "task"] as const) {
      for (const tile of await tiles(by, level)) {
        const bins = Math.min(HIGHEST_CELL, TILE_BINS, (END - tile.tile * tileSpan(level)) / 2 ** level);
        for (let row = 0; row < tile.count; row++) {
          let at = 0;
          for (let i = tile.offsets[row] as number; i < (tile.offsets[row + 1] as number); i++) {
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

/** The source, which notes what tiles it is asked for. */
function noting(fetched: number[][]): Bundled {
  return new Proxy(source, {
    get: (target, key) =>
      key === "tiles"
        ? (...args: Parameters<Bundled["tiles"]>) => {
            fetched.push([...args[3]]);
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
