/** What the reader has chosen: all of it is in the address, so that a link shows the same picture. */
import { MARK_KINDS, type By, type MarkKind, type Window } from "./source";

export type PanelName = "details" | "selection" | "waits" | "violations" | "decision" | "diff";
export const PANELS: readonly PanelName[] = ["details", "selection", "waits", "violations", "decision", "diff"];

/** A place that was clicked. */
export interface Pick {
  trace: number;
  by: By;
  /** The CPU or the task (slot). */
  id: number;
  time: number;
}

export interface Settings {
  shown: Record<By, boolean>;
  collapsed: Set<string>;
  pins: Set<string>;
  filter: string;
  onlyActive: boolean;
  /** Running on CPUs in the colours of tasks. */
  byTask: boolean;
  marks: Set<MarkKind>;
  /** Which heat map; empty for none. */
  heat: string;
  counters: Set<string>;
  /** Show in B where it differs from A. */
  differences: boolean;
  selection: Window | null;
  pick: Pick | null;
  panel: PanelName | null;
  theme: "auto" | "light" | "dark";
  /** How far each trace's lanes are scrolled. */
  scroll: number[];
}

export function defaults(): Settings {
  return {
    shown: { cpu: true, task: true },
    collapsed: new Set(),
    pins: new Set(),
    filter: "",
    onlyActive: false,
    byTask: true,
    marks: new Set<MarkKind>(["violation", "loss"]),
    heat: "queue",
    counters: new Set(["runnable"]),
    differences: true,
    selection: null,
    pick: null,
    panel: "details",
    theme: "auto",
    scroll: [],
  };
}

const list = (values: Iterable<string>) => [...values].join(",");
const split = (text: string) => new Set(text.split(",").filter(Boolean));
const range = (window: Window) => `${Math.round(window.from)}-${Math.round(window.to)}`;

function windowOf(text: string | null): Window | null {
  const found = /^(-?\d+)-(-?\d+)$/.exec(text ?? "");
  if (!found) return null;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return to > from ? { from, to } : null;
}

/** The part of the address after `#`: only what differs from the defaults. */
export function encode(settings: Settings, window: Window | null): string {
  const usual = defaults();
  const out = new URLSearchParams();
  const put = (key: string, value: string, normal: string) => {
    if (value !== normal) out.set(key, value);
  };
  if (window) out.set("t", range(window));
  put("show", list((["cpu", "task"] as const).filter((by) => settings.shown[by])), "cpu,task");
  put("fold", list(settings.collapsed), "");
  put("pin", list(settings.pins), "");
  put("filter", settings.filter, "");
  put("active", settings.onlyActive ? "1" : "0", "0");
  put("color", settings.byTask ? "task" : "state", "task");
  put("marks", list(settings.marks), list(usual.marks));
  put("heat", settings.heat, usual.heat);
  put("counters", list(settings.counters), list(usual.counters));
  put("differ", settings.differences ? "1" : "0", "1");
  if (settings.selection) out.set("select", range(settings.selection));
  if (settings.pick) {
    const { trace, by, id, time } = settings.pick;
    out.set("pick", `${trace}.${by}.${id}.${Math.round(time)}`);
  }
  put("panel", settings.panel ?? "none", usual.panel ?? "none");
  put("theme", settings.theme, "auto");
  put("y", settings.scroll.map(Math.round).join(","), settings.scroll.map(() => 0).join(","));
  return out.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

export interface Decoded {
  settings: Settings;
  window: Window | null;
}

/** Reads a link. What it cannot read keeps its default: a link may be old, or typed by hand. */
export function decode(hash: string): Decoded {
  const settings = defaults();
  const from = new URLSearchParams(hash.replace(/^#/, ""));
  const get = (key: string, run: (value: string) => void) => {
    const value = from.get(key);
    if (value !== null) run(value);
  };
  get("show", (text) => {
    const shown = split(text);
    settings.shown = { cpu: shown.has("cpu"), task: shown.has("task") };
  });
  get("fold", (text) => (settings.collapsed = split(text)));
  get("pin", (text) => (settings.pins = split(text)));
  get("filter", (text) => (settings.filter = text.slice(0, 500)));
  get("active", (text) => (settings.onlyActive = text === "1"));
  get("color", (text) => (settings.byTask = text !== "state"));
  get("marks", (text) => (settings.marks = new Set(MARK_KINDS.filter((kind) => split(text).has(kind)))));
  get("heat", (text) => (settings.heat = /^[a-z]*$/.test(text) ? text : settings.heat));
  get(
    "counters",
    (text) => (settings.counters = new Set([...split(text)].filter((name) => /^[a-z0-9_]+$/.test(name)))),
  );
  get("differ", (text) => (settings.differences = text === "1"));
  get("panel", (text) => (settings.panel = PANELS.find((name) => name === text) ?? null));
  get("theme", (text) => (settings.theme = text === "light" || text === "dark" ? text : "auto"));
  get("y", (text) => (settings.scroll = text.split(",").map((part) => Math.max(0, Number(part) || 0))));
  settings.selection = windowOf(from.get("select"));
  const pick = /^(\d+)\.(cpu|task)\.(\d+)\.(\d+)$/.exec(from.get("pick") ?? "");
  if (pick) settings.pick = { trace: Number(pick[1]), by: pick[2] as By, id: Number(pick[3]), time: Number(pick[4]) };
  return { settings, window: windowOf(from.get("t")) };
}
