/** Pieces that several panels are made of. */
import { h } from "../dom";
import type { App } from "../app";
import { STATE_NAMES, type By, type TaskRef } from "../source";
import { count, duration, percent } from "../units";

export type Cell = string | number | Node | null;

/** A table of figures: the first column is text, the others are numbers at the right. */
export function table(head: string[], rows: Cell[][], label: string): HTMLElement {
  const cells = (tag: "th" | "td", row: Cell[]) =>
    row.map((cell, i) => h(tag, { class: i ? "n" : "", ...(tag === "th" ? { scope: "col" } : {}) }, cell));
  return h(
    "table",
    { "aria-label": label },
    h("thead", {}, h("tr", {}, ...cells("th", head))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...cells("td", row)))),
  );
}

/** Terms and what they are. */
export function facts(pairs: [string, Cell][]): HTMLElement {
  return h(
    "dl",
    {},
    ...pairs
      .filter(([, value]) => value !== null && value !== "")
      .flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]),
  );
}

export function heading(text: string, ...more: (Node | null)[]): HTMLElement {
  return h("h3", {}, text, ...more);
}

export function note(text: string): HTMLElement {
  return h("p", { class: "note" }, text);
}

export function failure(error: unknown): HTMLElement {
  return h("p", { class: "failure", role: "alert" }, error instanceof Error ? error.message : String(error));
}

export function button(text: string, run: () => void, hint = ""): HTMLButtonElement {
  return h("button", { type: "button", class: "small", title: hint || null, onclick: run }, text);
}

/** A link that shows a CPU's or a task's row. */
export function place(app: App, trace: number, by: By, id: number, text: string, time?: number): HTMLElement {
  return h(
    "button",
    {
      type: "button",
      class: "link",
      onclick: () => {
        app.reveal(trace, by, id);
        const at = time ?? app.settings.pick?.time ?? (app.axis.from + app.axis.to) / 2;
        app.pick({ trace, by, id, time: at });
      },
    },
    text,
  );
}

export function taskLink(app: App, trace: number, task: TaskRef, time?: number): HTMLElement {
  return place(app, trace, "task", task.task, `${task.name} ${task.tid}`, time);
}

export function swatch(state: number): HTMLElement {
  return h("span", { class: `swatch state-${STATE_NAMES[state] ?? "unknown"}` });
}

/** A command that gives the same answer in a terminal. */
export function command(text: string): HTMLElement {
  return h("p", { class: "command" }, h("code", { tabindex: 0, "aria-label": "the same in a terminal" }, text));
}

/** A bar whose length is `share` of its cell. */
export function bar(share: number): HTMLElement {
  const inner = h("span", { class: "bar-inner" });
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("span", { class: "bar" }, inner);
}

type Json = Record<string, unknown>;

export function number(of: unknown, key: string): number {
  const value = (of as Json | null | undefined)?.[key];
  return typeof value === "number" ? value : NaN;
}

export function text(of: unknown, key: string): string {
  const value = (of as Json | null | undefined)?.[key];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

export function array(of: unknown, key: string): unknown[] {
  const value = (of as Json | null | undefined)?.[key];
  return Array.isArray(value) ? value : [];
}

export function child(of: unknown, key: string): unknown {
  return (of as Json | null | undefined)?.[key];
}

/** A figure of a document of the command, whose name says its unit. */
export function figure(name: string, value: number): string {
  if (!Number.isFinite(value)) return "unknown";
  if (name.endsWith("_us")) return duration(value * 1000);
  if (name.endsWith("_ns")) return duration(value);
  if (name.endsWith("share")) return percent(value);
  return Number.isInteger(value) ? count(value) : value.toPrecision(4);
}

/** The words of a figure's name: `latency_p99_us` is "latency p99". */
export function words(name: string): string {
  return name.replace(/_(us|ns|ticks)$/, "").replaceAll("_", " ");
}

export function quote(name: string): string {
  return /^[\w./:@%+=-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

/** A value of a scheduler, whose name says its unit. */
export function value(name: string, of: unknown): string {
  if (of === null || of === undefined) return "";
  if (typeof of === "boolean") return of ? "yes" : "no";
  if (typeof of !== "number") return String(of);
  if (name.endsWith("_ns")) return duration(of);
  if (name.endsWith("_us")) return duration(of * 1000);
  return of.toLocaleString("en-US", { maximumFractionDigits: 3 });
}
