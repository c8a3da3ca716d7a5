/** What differs between the two traces: the figures of `schedlab diff`. */
import type { App } from "../app";
import { h } from "../dom";
import { array, child, command, figure, heading, note, number, quote, table, text, words, type Cell } from "./parts";

const ROWS = 15;

/** The figures in the order of `schedlab diff`, as it calls them. */
const NAMES = new Map([
  ["duration_us", "duration"],
  ["run_us", "CPU time"],
  ["wait_us", "wait"],
  ["slices", "switches"],
  ["migrations", "migrations"],
  ["wakeups", "wake-ups"],
  ["latency_p50_us", "latency p50"],
  ["latency_p90_us", "latency p90"],
  ["latency_p99_us", "latency p99"],
  ["latency_p999_us", "latency p99.9"],
]);

export async function difference(app: App): Promise<Node[]> {
  const [a, b] = app.traces;
  if (!a || !b) return [h("h2", {}, "One trace is open"), note("Open two to compare them: schedlab view A B")];
  const document = await app.source.diff(a.id, b.id);
  const rows = array(document, "rows");
  const all = rows.find((row) => text(row, "name") === "all tasks") ?? rows[0];
  return [
    h("h2", {}, "What differs"),
    h("p", { class: "pair" }, `A is ${a.info.name}`, h("br"), `B is ${b.info.name}`),
    ...remarks(document),
    heading("All tasks"),
    figures(all),
    ...changes(rows.filter((row) => row !== all)),
    command(`schedlab diff ${quote(a.info.name)} ${quote(b.info.name)}`),
  ];
}

function remarks(document: unknown): Node[] {
  return array(document, "remarks")
    .filter((remark): remark is string => typeof remark === "string")
    .map(note);
}

function figures(row: unknown): HTMLElement {
  const order = [...NAMES.keys()];
  const entries = Object.entries((child(row, "figures") as Record<string, unknown> | undefined) ?? {});
  entries.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  const lines = entries.map(([name, value]): Cell[] => [
    NAMES.get(name) ?? words(name),
    figure(name, number(value, "a")),
    figure(name, number(value, "b")),
    change(value),
  ]);
  return table(["figure", "A", "B", "change"], lines, "Figures of all tasks");
}

/** The change in per cent, coloured by whether it is an improvement, if the comparison can say so. */
function change(value: unknown): Node {
  const share = number(value, "change");
  const sure = text(value, "direction");
  const shown = Number.isFinite(share)
    ? `${share > 0 ? "+" : ""}${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)}%`
    : "";
  const kind = sure === "worse" ? "bad" : sure === "better" ? "fine" : "";
  return h("span", { class: kind, title: sure ? `by its interval: ${sure}` : null }, shown);
}

/** The tasks whose wait has changed most. */
function changes(rows: unknown[]): Node[] {
  const by = (row: unknown, key: string) => number(child(child(row, "figures"), "wait_us"), key);
  const sorted = rows
    .map((row) => ({ row, change: by(row, "b") - by(row, "a") }))
    .filter(({ change: by_ }) => Number.isFinite(by_) && by_ !== 0)
    .sort((x, y) => Math.abs(y.change) - Math.abs(x.change))
    .slice(0, ROWS);
  if (!sorted.length) return [];
  const lines = sorted.map(({ row, change: by_ }): Cell[] => [
    text(row, "name"),
    figure("_us", by(row, "a")),
    figure("_us", by(row, "b")),
    h("span", { class: by_ > 0 ? "more" : "less" }, `${by_ > 0 ? "+" : "−"}${figure("_us", Math.abs(by_))}`),
  ]);
  return [heading("Whose wait changed most"), table(["task", "A", "B", "B − A"], lines, "Whose wait changed most")];
}
