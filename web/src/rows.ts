/** Which rows are seen, in which order, and where. */
import type { By, Row } from "./source";

export const ROW_HEIGHT = 20;
export const SECTION_HEIGHT = 26;

/** A row as it is laid out: a heading of a section, or a row of the trace. */
export interface Placed {
  y: number;
  height: number;
  by: By;
  /** Null for the heading of a section. */
  row: Row | null;
  title: string;
  collapsed: boolean;
  pinned: boolean;
  /** Stable name for the state in the address: c:12, t:4, section:cpu. */
  key: string;
  depth: number;
}

export interface Layout {
  placed: Placed[];
  height: number;
}

export interface LayoutInput {
  rows: Record<By, Row[]>;
  shown: Record<By, boolean>;
  collapsed: ReadonlySet<string>;
  pins: ReadonlySet<string>;
  filter: string;
  /** Hide tasks that never ran and never waited. */
  onlyActive: boolean;
}

export function keyOf(by: By, row: Row): string {
  return `${by === "cpu" ? "c" : "t"}:${row.row}`;
}

/**
 * Whether a row passes the filter: words that must all hold, each perhaps after `cpu:`, `pid:`, `group:`, `process:` or
 * `name:`, with `*` and `?` a pattern, or after `-` what must not hold. The server's search takes the same.
 */
export function matches(row: Row, filter: string): boolean {
  return filter
    .toLowerCase()
    .replace(/\bcpu\s+(?=\d+(\s|$))/g, "cpu:")
    .split(/\s+/)
    .filter(Boolean)
    .every((word) => {
      const negative = word.startsWith("-") && word.length > 1;
      return matchesWord(row, negative ? word.slice(1) : word) !== negative;
    });
}

function matchesWord(row: Row, word: string): boolean {
  const [, field, asked = word] = /^(cpu|pid|tid|group|name|task|process):(.+)$/.exec(word) ?? [];
  const name = like(asked, row.name ?? row.label);
  const group = like(asked, row.group);
  const process = like(asked, row.process);
  const pid = [row.tid, row.tgid].some((id) => String(id ?? "") === asked);
  switch (field) {
    case "cpu":
      return row.cpu === undefined || row.cpu === null ? row.kind !== "cpu" : String(row.cpu) === asked;
    case "pid":
    case "tid":
      return pid;
    case "group":
      return group;
    case "process":
      return process;
    case "name":
    case "task":
      return name;
    default:
      return name || group || process || pid || (row.kind === "cpu" && asked === `cpu${row.cpu}`);
  }
}

/** Whether a text contains what is asked, or fits it if that is a pattern. */
function like(asked: string, text: string | null | undefined): boolean {
  const lower = (text ?? "").toLowerCase();
  if (!/[*?]/.test(asked)) return lower.includes(asked);
  const escaped = asked.replace(/[\\^$.+()[\]{}|]/g, "\\$&");
  return new RegExp(`^${escaped.replace(/\*+/g, ".*").replaceAll("?", ".")}$`, "su").test(lower);
}

/** The rows that pass the filter, and the groups that contain one of them. */
function passing(rows: Row[], input: LayoutInput): Row[] {
  if (!input.filter && !input.onlyActive) return rows;
  const keep = rows.map(
    (row) =>
      row.kind !== "group" &&
      (!input.filter || matches(row, input.filter)) &&
      !(input.onlyActive && row.kind === "task" && !row.run && !row.wait),
  );
  rows.forEach((row, i) => {
    if (row.kind !== "group") return;
    const last = i + (row.children ?? 0);
    for (let k = i + 1; k <= last && k < rows.length; k++) if (keep[k]) keep[i] = true;
  });
  return rows.filter((_, i) => keep[i]);
}

const TITLES: Record<By, string> = { cpu: "CPUs", task: "Tasks" };

export function layout(input: LayoutInput): Layout {
  const placed: Placed[] = [];
  let y = 0;
  const add = (part: Omit<Placed, "y" | "height">, height: number) => {
    placed.push({ ...part, y, height });
    y += height;
  };
  const place = (by: By, row: Row, pinned: boolean) => {
    const key = keyOf(by, row);
    add(
      { by, row, title: row.label, collapsed: input.collapsed.has(key), pinned, key, depth: pinned ? 0 : row.depth },
      ROW_HEIGHT,
    );
  };
  const byKey = new Map<string, [By, Row]>();
  for (const by of ["cpu", "task"] as const) for (const row of input.rows[by]) byKey.set(keyOf(by, row), [by, row]);
  for (const key of input.pins) {
    const found = byKey.get(key);
    if (found) place(found[0], found[1], true);
  }
  for (const by of ["cpu", "task"] as const) {
    if (!input.shown[by] || !input.rows[by].length) continue;
    const rows = passing(input.rows[by], input);
    const number = rows.filter((row) => row.kind !== "group").length;
    const all = input.rows[by].filter((row) => row.kind !== "group").length;
    const title = `${TITLES[by]}  ${number === all ? all : `${number} of ${all}`}`;
    const key = `section:${by}`;
    const collapsed = input.collapsed.has(key);
    add({ by, row: null, title, collapsed, pinned: false, key, depth: 0 }, SECTION_HEIGHT);
    if (!collapsed) unfold(rows, by, input.collapsed, (row) => place(by, row, false));
  }
  return { placed, height: y };
}

/** Visits the rows that no collapsed group hides. */
function unfold(rows: Row[], by: By, collapsed: ReadonlySet<string>, visit: (row: Row) => void): void {
  let hidden = -1;
  for (const row of rows) {
    if (row.row <= hidden) continue;
    visit(row);
    if (row.kind === "group" && collapsed.has(keyOf(by, row))) hidden = row.row + (row.children ?? 0);
  }
}

/** The index of the row at height `y`, or -1. */
export function rowAt(layout: Layout, y: number): number {
  let [low, high] = [0, layout.placed.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = layout.placed[middle] as Placed;
    if (y < row.y) high = middle - 1;
    else if (y >= row.y + row.height) low = middle + 1;
    else return middle;
  }
  return -1;
}
