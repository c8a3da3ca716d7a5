/** Links, rows, the axis, units: what needs no browser. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Axis } from "../../src/axis";
import { hueOf, stem } from "../../src/palette";
import { layout, matches, rowAt } from "../../src/rows";
import { decode, defaults, encode } from "../../src/settings";
import type { Row } from "../../src/source";
import { duration, instant, tickStep } from "../../src/units";

test("a link holds the whole state", () => {
  const settings = defaults();
  settings.shown.cpu = false;
  settings.collapsed = new Set(["c:0", "section:task"]);
  settings.pins = new Set(["t:12"]);
  settings.filter = "nginx & <b>=1#2";
  settings.marks = new Set(["wake"]);
  settings.heat = "";
  settings.counters = new Set(["latency"]);
  settings.selection = { from: 10, to: 20 };
  settings.pick = { trace: 1, by: "task", id: 7, time: 12345 };
  settings.panel = "waits";
  settings.theme = "dark";
  settings.scroll = [0, 44];
  const window = { from: 100, to: 90000 };
  assert.deepEqual(decode(`#${encode(settings, window)}`), { settings, window });
});

test("an ordinary view has a short link", () => assert.equal(encode(defaults(), null), ""));

test("a link that cannot be read gives the defaults", () => {
  for (const hash of [
    "#t=20-10&pick=1.x.2.3",
    "#select=a-b&marks=nothing&theme=pink",
    "#%%%",
    "#heat=<script>&panel=decision'",
  ]) {
    const { settings } = decode(hash);
    assert.equal(settings.pick, null);
    assert.equal(settings.selection, null);
    assert.equal(settings.theme, "auto");
    assert.equal(settings.heat, "queue");
  }
});

const rows: Row[] = [
  { row: 0, kind: "group", label: "/web", depth: 0, children: 3 },
  { row: 1, kind: "group", label: "nginx", depth: 1, children: 2 },
  {
    row: 2,
    kind: "task",
    label: "nginx 10",
    name: "nginx",
    depth: 2,
    task: 0,
    tid: 10,
    group: "/web",
    run: 5,
    wait: 0,
  },
  {
    row: 3,
    kind: "task",
    label: "worker 11",
    name: "worker",
    depth: 2,
    task: 1,
    tid: 11,
    group: "/web",
    run: 0,
    wait: 0,
  },
  { row: 4, kind: "task", label: "make 12", name: "make", depth: 0, task: 2, tid: 12, run: 1, wait: 0 },
];

function keys(change: Partial<Parameters<typeof layout>[0]>): string[] {
  const input = {
    rows: { cpu: [], task: rows },
    shown: { cpu: true, task: true },
    collapsed: new Set<string>(),
    pins: new Set<string>(),
    filter: "",
    onlyActive: false,
  };
  return layout({ ...input, ...change }).placed.map(({ key }) => key);
}

test("groups fold, filters keep the groups of what they find, pins come first", () => {
  assert.deepEqual(keys({}), ["section:task", "t:0", "t:1", "t:2", "t:3", "t:4"]);
  assert.deepEqual(keys({ collapsed: new Set(["t:0"]) }), ["section:task", "t:0", "t:4"]);
  assert.deepEqual(keys({ collapsed: new Set(["t:1"]) }), ["section:task", "t:0", "t:1", "t:4"]);
  assert.deepEqual(keys({ filter: "worker" }), ["section:task", "t:0", "t:1", "t:3"]);
  assert.deepEqual(keys({ filter: "pid:12" }), ["section:task", "t:4"]);
  assert.deepEqual(keys({ filter: "group:web -task:nginx" }), ["section:task", "t:0", "t:1", "t:3"]);
  assert.deepEqual(keys({ onlyActive: true }), ["section:task", "t:0", "t:1", "t:2", "t:4"]);
  assert.deepEqual(keys({ pins: new Set(["t:4"]) })[0], "t:4");
  assert.deepEqual(keys({ shown: { cpu: true, task: false } }), []);
});

test("a filter's words must all hold", () => {
  const row = rows[2] as Row;
  assert.ok(matches(row, "ngi web"));
  assert.ok(!matches(row, "ngi make"));
  assert.ok(matches(row, "tid:10"));
  assert.ok(!matches(row, "tid:1"));
});

test("a filter takes what the search takes", () => {
  const task = { row: 0, kind: "task", label: "Worker/1 71", name: "Worker/1", depth: 0, tid: 71 } as Row;
  const row = { ...task, tgid: 70, process: "server", group: "/site/a" };
  for (const text of ["70", "pid:70", "work", "worker/?", "server", "/site", "group:site name:*1", "name:WORK"])
    assert.ok(matches(row, text), text);
  for (const text of ["7", "pid:7", "name:server", "work?", "server 9", "group:*a/", "name:(", "-w*"])
    assert.ok(!matches(row, text), text);
  const cpu = (number: number) => ({ row: number, kind: "cpu", label: `CPU ${number}`, depth: 0, cpu: number }) as Row;
  for (const text of ["cpu 3", "cpu:3", "CPU3", "cpu"]) assert.ok(matches(cpu(3), text), text);
  for (const text of ["cpu 3", "cpu:3", "cpu3"]) assert.ok(!matches(cpu(13), text), text);
});

test("the row at a height", () => {
  const found = layout({
    rows: { cpu: [], task: rows },
    shown: { cpu: true, task: true },
    collapsed: new Set(),
    pins: new Set(),
    filter: "",
    onlyActive: false,
  });
  assert.equal(rowAt(found, 0), 0);
  assert.equal(rowAt(found, 26), 1);
  assert.equal(rowAt(found, found.height - 1), 5);
  assert.equal(rowAt(found, found.height), -1);
  assert.equal(rowAt(found, -1), -1);
});

test("zooming keeps the instant under the pointer, and can be undone", () => {
  const axis = new Axis(() => {});
  axis.end = 1e9;
  axis.set(0, 1e9);
  axis.remember();
  axis.zoom(0.5, 2.5e8);
  assert.ok(Math.abs(axis.from - 1.25e8) < 1 && Math.abs(axis.to - 6.25e8) < 1);
  assert.ok(axis.undo());
  assert.deepEqual(axis.window(), { from: 0, to: 1e9 });
  assert.ok(axis.redo());
  assert.ok(Math.abs(axis.from - 1.25e8) < 1);
  assert.ok(!axis.redo());
});

test("the window stays within the trace", () => {
  const axis = new Axis(() => {});
  axis.end = 1000;
  axis.set(-5000, -4000);
  assert.ok(axis.from >= -20 && axis.to <= 1020);
  axis.set(0, 1e12);
  assert.ok(axis.span <= 1040);
  axis.set(500, 500.001);
  assert.ok(axis.span >= 20);
});

test("times have the unit that fits", () => {
  assert.equal(duration(0), "0");
  assert.equal(duration(12), "12 ns");
  assert.equal(duration(1500), "1.500 us");
  assert.equal(duration(12_345_678), "12.35 ms");
  assert.equal(duration(2e9), "2.000 s");
  assert.equal(duration(999_990), "1.000 ms");
  assert.equal(duration(9_999_800), "10.00 ms");
  assert.equal(duration(NaN), "unknown");
  assert.equal(instant(1_204_530_000, 10_000), "1.20453 s");
  assert.equal(instant(5e5, 1e5, 2e9), "0.0005 s");
});

test("ticks are at 1, 2 and 5", () => {
  assert.equal(tickStep(1, 110), 200);
  assert.equal(tickStep(1e4, 100), 1e6);
  assert.equal(tickStep(0.001, 100), 1);
});

test("the tasks of a pool share a hue", () => {
  assert.equal(stem("worker-12"), "worker");
  assert.equal(stem("kworker/0:1"), "kworker");
  assert.equal(stem("123"), "123");
  assert.equal(hueOf(stem("worker-1")), hueOf(stem("worker-2")));
});
