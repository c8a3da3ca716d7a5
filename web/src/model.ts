/** A trace as the page knows it: what it is, its rows, and the names of its tasks. */
import { hueOf, stem } from "./palette";
import type { By, Row, Source, TraceInfo } from "./source";

/** So many settings stand in a title. */
const MOST_SETTINGS = 3;

/** The settings of a trace that differ from those of another: what a comparison is about. */
export function settingsOf(info: TraceInfo, other: TraceInfo | undefined): string[] {
  if (!info.tunables || !other?.tunables || info.kernel !== other.kernel) return [];
  const own = Object.entries(info.tunables).filter(([name, value]) => other.tunables?.[name] !== value);
  const shown = own.slice(0, MOST_SETTINGS).map(([name, value]) => `${name}=${value}`);
  return own.length > MOST_SETTINGS ? [...shown, `and ${own.length - MOST_SETTINGS} more`] : shown;
}

export class Trace {
  rows: Record<By, Row[]> = { cpu: [], task: [] };
  leftOut = 0;
  hues: Uint8Array;
  /** Null where several tasks have the name. */
  private twins: Map<string, Row | null> | null = null;
  private names: (string | undefined)[] = [];
  private byId: Record<By, Map<number, Row>> = { cpu: new Map(), task: new Map() };

  constructor(public info: TraceInfo) {
    this.hues = new Uint8Array(info.tasks).fill(7);
  }

  get id(): number {
    return this.info.id;
  }

  /** How many tasks are in it, also those that are not listed; it may name others that do nothing. */
  get tasks(): number {
    return this.byId.task.size + this.leftOut;
  }

  /** The letter that stands for it where two traces are compared. */
  get letter(): string {
    return String.fromCharCode(65 + this.info.id);
  }

  /** Asks for the rows; which of them have other numbers than before. */
  async load(source: Source): Promise<By[]> {
    const [cpu, task] = await Promise.all([source.rows(this.id, "cpu"), source.rows(this.id, "task")]);
    const before = this.rows;
    const moved = (by: By, rows: Row[]) =>
      before[by].length > 0 &&
      (before[by].length !== rows.length ||
        rows.some((row, i) => row.cpu !== before[by][i]?.cpu || row.task !== before[by][i]?.task));
    this.rows = { cpu: cpu.rows, task: task.rows };
    this.leftOut = task.left_out;
    this.hues = new Uint8Array(Math.max(this.info.tasks, task.rows.length)).fill(7);
    this.names = [];
    this.twins = null;
    for (const by of ["cpu", "task"] as const) {
      this.byId[by] = new Map();
      for (const row of this.rows[by]) {
        const id = row[by];
        if (row.kind === by && id !== undefined) this.byId[by].set(id, row);
      }
    }
    for (const [slot, row] of this.byId.task) {
      const name = row.name ?? row.label;
      this.names[slot] = name;
      this.hues[slot] = hueOf(stem(row.process ?? name));
    }
    return [
      ...(moved("cpu", cpu.rows) ? ["cpu" as const] : []),
      ...(moved("task", task.rows) ? ["task" as const] : []),
    ];
  }

  name(task: number): string {
    return this.names[task] ?? `task ${task}`;
  }

  row(by: By, id: number): Row | undefined {
    return this.byId[by].get(id);
  }

  /**
   * The task that stands for a task of another trace: with the same name, and the same thread id if there are several.
   */
  twin(row: Row): Row | undefined {
    if (!this.twins) {
      this.twins = new Map();
      for (const task of this.byId.task.values()) {
        const name = task.name ?? task.label;
        this.twins.set(`${name}/${task.tid}`, task);
        this.twins.set(name, this.twins.has(name) ? null : task);
      }
    }
    const name = row.name ?? row.label;
    return this.twins.get(`${name}/${row.tid}`) ?? this.twins.get(name) ?? undefined;
  }

  nameOf(by: By, id: number): string {
    return by === "cpu" ? `CPU ${id}` : this.name(id);
  }
}
