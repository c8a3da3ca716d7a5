/** Statistics of the selected stretch of time: the numbers of `stats`, `delays` and who wakes whom. */
import type { App } from "../app";
import { h, svg } from "../dom";
import type { Trace } from "../model";
import type { Edge, Window } from "../source";
import { count, counted, duration, instant, option } from "../units";
import {
  array,
  bar,
  button,
  child,
  command,
  facts,
  failure,
  figure,
  heading,
  note,
  number,
  quote,
  table,
  text,
  type Cell,
} from "./parts";

const ROWS = 12;

export async function selection(app: App): Promise<Node[]> {
  const window = app.settings.selection;
  if (!window) {
    return [
      h("h2", {}, "Nothing is selected"),
      note("Drag over the lanes, or press Shift+M to select what is visible."),
      h(
        "div",
        { class: "buttons" },
        button("Select the whole trace", () => app.select({ from: 0, to: app.axis.end })),
      ),
    ];
  }
  const out: Node[] = [
    h("h2", {}, duration(window.to - window.from)),
    note(`from ${instant(window.from, 1000)} to ${instant(window.to, 1000)}`),
    h(
      "div",
      { class: "buttons" },
      button("Zoom to it", () => app.axis.show(window, 0.05), "F"),
      button("Clear", () => app.select(null), "Escape"),
    ),
  ];
  for (const trace of app.traces) {
    if (app.traces.length > 1) out.push(h("h2", { class: "second" }, `${trace.letter}: ${trace.info.name}`));
    if (window.from >= trace.info.end) out.push(note("The trace ends before this."));
    else out.push(...(await ofTrace(app, trace, { from: window.from, to: Math.min(window.to, trace.info.end) })));
  }
  return out;
}

async function ofTrace(app: App, trace: Trace, window: Window): Promise<Node[]> {
  const [stats, delays, edges] = await Promise.allSettled([
    app.source.stats(trace.id, window),
    app.source.delays(trace.id, window),
    app.source.wakers(trace.id, window, 40),
  ]);
  const part = `--from ${option(window.from)} --to ${option(window.to)}`;
  const name = quote(trace.info.name);
  return [
    ...(stats.status === "fulfilled"
      ? [...totals(stats.value), ...tasks(stats.value), command(`schedlab stats ${name} ${part}`)]
      : [failure(stats.reason)]),
    ...(delays.status === "fulfilled"
      ? [...culprits(delays.value), command(`schedlab delays ${name} ${part}`)]
      : [failure(delays.reason)]),
    ...(edges.status === "fulfilled" ? wakers(edges.value) : [failure(edges.reason)]),
  ];
}

const TOTALS: [string, string][] = [
  ["run_us", "Run"],
  ["wait_us", "Wait"],
  ["idle_us", "Idle"],
  ["unknown_us", "Unknown"],
  ["slices", "Slices"],
  ["migrations", "Migrations"],
  ["lost_events", "Lost events"],
];

function totals(document: unknown): Node[] {
  const total = child(document, "total");
  const latency = child(total, "latency_us");
  const pairs: [string, Cell][] = TOTALS.filter(([key]) => !(key === "lost_events" && !number(total, key))).map(
    ([key, label]) => [label, figure(key, number(total, key))],
  );
  if (number(latency, "count") > 0) {
    for (const [key, label] of [
      ["p50", "Latency, median"],
      ["p99", "Latency, p99"],
      ["max", "Latency, longest"],
    ] as const) {
      pairs.push([label, figure("_us", number(latency, key))]);
    }
  }
  return [
    h(
      "div",
      { class: "figures", "data-run-us": number(total, "run_us"), "data-wait-us": number(total, "wait_us") },
      facts(pairs),
    ),
  ];
}

function tasks(document: unknown): Node[] {
  const all = array(document, "tasks");
  const rows = [...all]
    .sort((a, b) => number(b, "wait_us") - number(a, "wait_us") || number(b, "run_us") - number(a, "run_us"))
    .slice(0, ROWS)
    .map((task): Cell[] => {
      const latency = child(task, "latency_us");
      return [
        `${text(task, "name")} ${text(task, "tid")}`,
        figure("_us", number(task, "run_us")),
        figure("_us", number(task, "wait_us")),
        number(latency, "count") > 0 ? figure("_us", number(latency, "p99")) : "-",
      ];
    });
  if (!rows.length) return [note("No task ran or waited here.")];
  return [
    heading("Tasks that waited longest"),
    table(["task", "run", "wait", "p99"], rows, "Tasks that waited longest"),
    ...(all.length > ROWS ? [note(`${counted(all.length - ROWS, "more task")}.`)] : []),
  ];
}

function culprits(document: unknown): Node[] {
  const all = array(document, "culprits").filter((one) => number(one, "caused_us") > 0);
  const most = number(all[0], "share");
  const rows = all
    .slice(0, ROWS)
    .map((one): Cell[] => [
      `${text(one, "task")} ${text(one, "tid")}`,
      bar(number(one, "share") / most),
      figure("_us", number(one, "caused_us")),
    ]);
  if (!rows.length) return [];
  return [heading("Ran while others waited"), table(["task", "", "for"], rows, "Culprits")];
}

/**
 * Who wakes whom: names below each other, an arc for each pair; arcs at the right lead down, those at the left lead
 * up.
 */
function wakers(edges: Edge[]): Node[] {
  const used = edges.filter((edge) => edge.from).slice(0, 24);
  if (!used.length) return [];
  const names: string[] = [];
  const label = (task: { name: string; tid: number }) => `${task.name} ${task.tid}`;
  for (const edge of used)
    for (const name of [label(edge.from as Edge["to"]), label(edge.to)]) if (!names.includes(name)) names.push(name);
  const most = Math.max(...used.map((edge) => edge.count));
  const [line, left, right] = [18, 60, 250];
  const y = (name: string) => names.indexOf(name) * line + line / 2;
  const arcs = used.map((edge) => {
    const [from, to] = [y(label(edge.from as Edge["to"])), y(label(edge.to))];
    const [x, bend] = to >= from ? [right, 1] : [left, -1];
    const far = x + bend * Math.min(52, 10 + Math.abs(to - from) * 0.35);
    const path = svg("path", {
      d: `M${x} ${from}C${far} ${from} ${far} ${to} ${x} ${to}`,
      class: bend > 0 ? "arc down" : "arc up",
      "stroke-width": 0.75 + (3 * edge.count) / most,
    });
    path.append(
      svg("title", {}, `${label(edge.from as Edge["to"])} wakes ${label(edge.to)}: ${counted(edge.count, "time")}`),
    );
    return path;
  });
  const ends = used.map((edge) => {
    const [from, to] = [y(label(edge.from as Edge["to"])), y(label(edge.to))];
    const [x, bend] = to >= from ? [right, 1] : [left, -1];
    return svg("path", { d: `M${x} ${to}l${bend * 6} -3v6z`, class: "tip" });
  });
  const texts = names.map((name) =>
    svg("text", { x: left + 8, y: y(name), class: "node" }, name.length > 28 ? `${name.slice(0, 27)}…` : name),
  );
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 320 ${names.length * line}`,
      class: "wakers",
      role: "img",
      "aria-label": `Who wakes whom: ${used.length} pairs`,
    },
    ...arcs,
    ...ends,
    ...texts,
  );
  const rows = used
    .slice(0, 8)
    .map((edge): Cell[] => [`${edge.from?.name ?? "?"} → ${edge.to.name}`, count(edge.count)]);
  return [
    heading("Who wakes whom"),
    picture,
    table(["waker → woken", "times"], rows, "Who wakes whom"),
    ...(edges.length > used.length ? [note(`The ${used.length} most frequent of ${edges.length} pairs.`)] : []),
  ];
}
