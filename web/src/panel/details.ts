/** The place that was clicked: what it is, why, and for a wait who ran meanwhile. */
import { along, fit, selectPicked } from "../actions";
import type { App } from "../app";
import { h } from "../dom";
import type { Trace } from "../model";
import type { Pick } from "../settings";
import { State, STATE_NAMES, type At, type ListItem, type Wait, type Waker } from "../source";
import { count, duration, instant } from "../units";
import { bar, button, facts, heading, note, place, swatch, table, taskLink, type Cell } from "./parts";

export async function details(app: App): Promise<Node[]> {
  const { pick } = app.settings;
  if (!pick) return welcome(app);
  const trace = app.traces[pick.trace];
  if (!trace) return [note("The link names a trace that is not open.")];
  const at = await app.source.at(pick.trace, pick.by, pick.id, pick.time);
  const waits = pick.by === "task" && at.state === State.waiting;
  const wait = waits ? await app.source.wait(pick.trace, pick.id, pick.time) : null;
  const idle = pick.by === "cpu" && at.state === State.idle;
  return [
    title(app, trace, pick, at),
    ...(idle ? await violations(app, pick) : []),
    span(app, pick, at),
    actions(app),
    ...(wait ? waitParts(app, pick.trace, wait) : []),
    ...queueParts(app, pick, at),
  ];
}

function welcome(app: App): Node[] {
  const infos = app.traces.map((trace) => {
    const { info, letter } = trace;
    return facts([
      ["Trace", app.traces.length > 1 ? `${letter}: ${info.name}` : info.name],
      ["Made by", info.kind],
      ["Kernel", info.kernel ?? "unknown"],
      ["Machine", info.machine],
      ["Length", duration(info.end)],
      ["Events", count(info.events)],
      ["CPUs", count(info.cpus.length)],
      ["Tasks", count(trace.tasks)],
      ["Losses", info.losses ? count(info.losses) : null],
    ]);
  });
  return [
    h("h2", {}, "The trace"),
    ...infos,
    heading("Legend"),
    legend(),
    heading("Where to begin"),
    h(
      "p",
      {},
      "Click a span to see what it is and why. Drag over the lanes to select a stretch of time. " +
        "The lists of waits and violations lead to the worst places; press ? for all keys.",
    ),
  ];
}

function legend(): HTMLElement {
  const line = (name: string, what: string) => [
    h("dt", {}, h("span", { class: `swatch state-${name}` })),
    h("dd", {}, what),
  ];
  return h(
    "dl",
    { class: "legend" },
    ...line("running", "runs (on a CPU's lane in the colour of its process)"),
    ...line("waiting", "runnable, waits for a CPU; a band over a CPU's lane: somebody waits there"),
    ...line("blocked", "blocked, uninterruptible"),
    ...line("sleeping", "sleeps"),
    ...line("idle", "the CPU is idle"),
    ...line("violation", "violation: idle while a task waits that may run there"),
    ...line("unknown", "nobody knows: not seen yet, or in red: events were lost"),
  );
}

function title(app: App, trace: Trace, pick: Pick, at: At): HTMLElement {
  const name = pick.by === "cpu" ? `CPU ${pick.id}` : trace.name(pick.id);
  const prefix = app.traces.length > 1 ? `${trace.letter}: ` : "";
  const tid = pick.by === "task" ? trace.row("task", pick.id)?.tid : undefined;
  return h("h2", {}, swatch(at.state), `${prefix}${name}`, tid === undefined ? null : h("small", {}, ` ${tid}`));
}

function span(app: App, pick: Pick, at: At): HTMLElement {
  const who = at.task && pick.by === "cpu" ? taskLink(app, pick.trace, at.task, pick.time) : null;
  const cpu =
    pick.by === "task" && at.cpu !== null && at.cpu !== undefined
      ? place(app, pick.trace, "cpu", at.cpu, `CPU ${at.cpu}`, pick.time)
      : null;
  return facts([
    ["State", STATE_NAMES[at.state] ?? "unknown"],
    ["Task", who],
    ["On", cpu],
    ["For", duration(at.to - at.from)],
    ["From", instant(at.from, 1000)],
    ["To", instant(at.to, 1000)],
    ["Why", at.why],
    ["Woken by", wakerText(app, pick.trace, at.waker)],
    ["Process", at.task?.process ?? null],
    ["Cgroup", at.task?.group ?? null],
    ["Policy", at.task?.policy ? `${at.task.policy}${at.task.nice ? `, nice ${at.task.nice}` : ""}` : null],
    ["Allowed on", at.task?.allowed ? `CPUs ${at.task.allowed}` : null],
    ["Runnable here", at.queue ?? null],
  ]);
}

function wakerText(app: App, trace: number, waker: Waker | null): Node | string | null {
  if (!waker) return null;
  const where = waker.cpu === null ? "" : ` on CPU ${waker.cpu}`;
  if (!waker.task) return `an interrupt${where}`;
  return h("span", {}, taskLink(app, trace, waker.task, waker.time), `${where}, ${instant(waker.time, 1000)}`);
}

/** Whether this idle CPU is a violation: for whom it should not have been idle. */
async function violations(app: App, pick: Pick): Promise<Node[]> {
  const window = { from: pick.time, to: pick.time + 1 };
  const { items } = await app.source
    .list(pick.trace, "violations", 1000, window)
    .catch(() => ({ items: [] as ListItem[] }));
  return items
    .filter((item) => item.idle_cpu === pick.id)
    .slice(0, 3)
    .map((item) => {
      const { task, busy_cpu: busy } = item;
      return h(
        "p",
        { class: "verdict bad" },
        item.sentence ?? `Idle for ${duration(item.duration)} while a task waited that may run here.`,
        task ? " See " : null,
        task ? taskLink(app, pick.trace, task, item.start) : null,
        busy === undefined ? null : " and ",
        busy === undefined ? null : place(app, pick.trace, "cpu", busy, `CPU ${busy}`, pick.time),
      );
    });
}

function actions(app: App): HTMLElement {
  return h(
    "div",
    { class: "buttons" },
    button("‹ Previous", () => void along(app, "previous"), "Previous span of the row (left arrow)"),
    button("Next ›", () => void along(app, "next"), "Next span of the row (right arrow)"),
    button("Zoom to it", () => void fit(app), "F"),
    button("Select it", () => void selectPicked(app, false), "M"),
  );
}

function waitParts(app: App, trace: number, wait: Wait): Node[] {
  const length = Math.max(1, wait.to - wait.from);
  const rows: Cell[][] = wait.culprits
    .slice(0, 20)
    .map(({ task, run }) => [taskLink(app, trace, task, wait.from), bar(run / length), duration(run)]);
  if (wait.idle) rows.push(["(idle, about to run it)", bar(wait.idle / length), duration(wait.idle)]);
  if (wait.unknown) rows.push(["(unknown)", bar(wait.unknown / length), duration(wait.unknown)]);
  const left = wait.culprits.length - 20;
  return [
    heading("This wait"),
    facts([
      ["Waited", `${duration(length)}${wait.finished ? "" : " so far; the trace ends before it does"}`],
      ["Because", wait.why],
      ["Queued on", wait.queues.map(({ cpu }) => `CPU ${cpu}`).join(", then ")],
      ["Woken by", wakerText(app, trace, wait.waker)],
      ["May run on", wait.allowed ? `CPUs ${wait.allowed}` : "unknown; every CPU is assumed"],
    ]),
    idleVerdict(app, trace, wait),
    heading("Meanwhile there ran"),
    rows.length ? table(["task", "", "for"], rows, "Who ran meanwhile") : note("Nothing ran there during the wait."),
    ...(left > 0 ? [note(`${left} more ran for less.`)] : []),
  ];
}

/** Whether a CPU was idle on which the task could have run: the question that the paper's authors asked. */
function idleVerdict(app: App, trace: number, wait: Wait): HTMLElement {
  if (wait.idle_allowed <= 0) return h("p", { class: "verdict fine" }, "No other allowed CPU was idle meanwhile.");
  const links = wait.idle_cpus
    .slice(0, 8)
    .flatMap(({ cpu, idle }, i) => [
      i ? ", " : "",
      place(app, trace, "cpu", cpu, `CPU ${cpu}`, wait.from),
      ` (${duration(idle)})`,
    ]);
  return h(
    "p",
    { class: "verdict bad" },
    `For ${duration(wait.idle_allowed)} of it another CPU was idle on which it may run: `,
    ...links,
    ".",
  );
}

function queueParts(app: App, pick: Pick, at: At): Node[] {
  if (pick.by !== "cpu" || !at.waiting?.length) return [];
  return [
    heading("Waiting here"),
    h("ul", { class: "plain" }, ...at.waiting.map((task) => h("li", {}, taskLink(app, pick.trace, task, pick.time)))),
  ];
}
