/** The longest waits and the violations: each leads to its place. */
import { jump } from "../actions";
import type { App } from "../app";
import { h } from "../dom";
import type { Trace } from "../model";
import type { ListItem, ListKind } from "../source";
import { duration, instant } from "../units";
import { failure, note } from "./parts";

const LIMIT = 200;

export async function list(app: App, of: ListKind): Promise<Node[]> {
  const window = app.settings.selection;
  const title = of === "waits" ? "The longest waits" : "Violations of work conservation";
  const out: Node[] = [h("h2", {}, title)];
  if (window) out.push(note(`In the selection, ${instant(window.from, 1000)} to ${instant(window.to, 1000)}.`));
  for (const trace of app.traces) {
    if (app.traces.length > 1) out.push(h("h2", { class: "second" }, `${trace.letter}: ${trace.info.name}`));
    out.push(...(await ofTrace(app, trace, of)));
  }
  return out;
}

async function ofTrace(app: App, trace: Trace, of: ListKind): Promise<Node[]> {
  try {
    const { items, left_out, threshold } = await app.source.list(trace.id, of, LIMIT, app.settings.selection);
    const long = threshold ? `longer than ${duration(threshold)}` : "long";
    if (!items.length)
      return [
        note(
          of === "waits" ? "No task waited." : `No CPU was idle for ${long} while a task waited that may run there.`,
        ),
      ];
    const most = items[0]?.duration ?? 1;
    const rows = items.map((item, i) => h("li", {}, entry(app, trace, of, item, i, most)));
    return [
      ...(of === "violations" ? [note(`CPUs that were idle for ${long} while tasks waited, the longest first.`)] : []),
      h("ol", { class: "jumps", "aria-label": of }, ...rows),
      ...(left_out > 0 ? [note(`${left_out.toLocaleString("en-US")} more are shorter.`)] : []),
    ];
  } catch (error) {
    return [failure(error)];
  }
}

function entry(app: App, trace: Trace, of: ListKind, item: ListItem, index: number, most: number): HTMLElement {
  const who =
    of === "violations" && item.idle_cpu !== undefined
      ? `CPU ${item.idle_cpu} idle`
      : item.task
        ? `${item.task.name} ${item.task.tid}`
        : `CPU ${item.cpu ?? "?"}`;
  const where =
    of === "violations"
      ? item.task
        ? `${item.task.name} waited${item.busy_cpu === undefined ? "" : ` on CPU ${item.busy_cpu}`}`
        : (item.sentence ?? "")
      : item.cpu === null
        ? ""
        : `CPU ${item.cpu}`;
  const line = h("span", { class: "jump-bar" });
  line.style.width = `${(item.duration / most) * 100}%`;
  return h(
    "button",
    {
      type: "button",
      class: "jump",
      "data-index": index,
      title: item.sentence ?? null,
      onclick: () => jump(app, trace.id, item),
    },
    h("span", { class: "jump-what" }, who),
    h("span", { class: "jump-long" }, duration(item.duration)),
    h("span", { class: "jump-where" }, where),
    h("span", { class: "jump-when" }, instant(item.start, 1000)),
    line,
  );
}
