/**
 * The contents of a run queue, as a teacher draws them: a tree as a tree, arrays as rows of boxes. Every scheduler
 * has its
 * own shape; this draws what it finds.
 */
import { h, svg } from "../dom";
import { facts, note, value, words, type Cell } from "./parts";

type Json = Record<string, unknown>;

const isObject = (of: unknown): of is Json => typeof of === "object" && of !== null && !Array.isArray(of);

function nameOf(of: unknown): string | null {
  if (typeof of === "string") return of;
  if (!isObject(of)) return null;
  for (const key of ["task", "group", "name"]) if (typeof of[key] === "string") return of[key];
  return null;
}

/** The number that decides: what the tree is sorted by comes first in this list. */
const KEYS = [
  "deadline_ns",
  "vruntime_ns",
  "virtual_deadline_ns",
  "lag_ns",
  "time_slice_ticks",
  "counter",
  "goodness",
  "level",
  "prio",
];

function caption(of: unknown): string {
  if (!isObject(of)) return "";
  const key = KEYS.find((candidate) => candidate in of);
  return key ? value(key, of[key]) : "";
}

function tooltip(of: unknown): string {
  if (!isObject(of)) return String(of);
  return Object.entries(of)
    .filter(([, v]) => !isObject(v) && !Array.isArray(v))
    .map(([k, v]) => `${words(k)}: ${value(k, v)}`)
    .join("\n");
}

export function queue(of: unknown): Node[] {
  if (of === null || of === undefined) return [note("The queue is not known.")];
  const parts = draw(of, 0);
  return parts.length ? [h("div", { class: "queue" }, ...parts)] : [note("The queue is empty.")];
}

function draw(of: unknown, depth: number): Node[] {
  if (!isObject(of) || depth > 5) return [];
  const scalars: [string, Cell][] = [];
  const rest: Node[] = [];
  for (const [key, inner] of Object.entries(of)) {
    if (Array.isArray(inner)) rest.push(...drawArray(key, inner, depth));
    else if (isObject(inner) && nameOf(inner))
      rest.push(h("h4", {}, words(key)), boxes([inner]), ...nested([inner], depth));
    else if (isObject(inner)) rest.push(...section(words(key), draw(inner, depth + 1)));
    else if (inner !== null && inner !== "") scalars.push([words(key), value(key, inner)]);
  }
  return [...(scalars.length ? [facts(scalars)] : []), ...rest];
}

function section(title: string, parts: Node[]): Node[] {
  return parts.length ? [h("section", { class: "sub" }, h("h4", {}, title), ...parts)] : [];
}

function drawArray(key: string, items: unknown[], depth: number): Node[] {
  if (!items.length) return key === "tree" || key === "lists" ? [h("h4", {}, words(key)), note("empty")] : [];
  if (key === "tree" && items.every((item) => nameOf(item)))
    return [h("h4", {}, "tree"), tree(items), ...nested(items, depth)];
  if (items.every((item) => nameOf(item))) return [h("h4", {}, words(key)), boxes(items), ...nested(items, depth)];
  if (items.every((item) => isObject(item) && Array.isArray(item["tasks"])))
    return [h("h4", {}, words(key)), lists(items as Json[])];
  if (items.every(isObject)) return items.flatMap((item, i) => section(`${words(key)} ${i}`, draw(item, depth + 1)));
  return [facts([[words(key), items.map((item) => value(key, item)).join(", ")]])];
}

/** Queues of groups within the queue. */
function nested(items: unknown[], depth: number): Node[] {
  return items.filter(isObject).flatMap((item) =>
    Object.entries(item)
      .filter(([, inner]) => isObject(inner))
      .flatMap(([, inner]) => section(nameOf(item) ?? "", draw(inner, depth + 1))),
  );
}

function box(of: unknown): HTMLElement {
  const eligible = isObject(of) && of["eligible"] === false ? " waits" : "";
  return h(
    "span",
    { class: `box${eligible}`, title: tooltip(of) },
    h("b", {}, nameOf(of)),
    h("small", {}, caption(of)),
  );
}

function boxes(items: unknown[]): HTMLElement {
  return h(
    "div",
    { class: "boxes" },
    ...items.slice(0, 64).map(box),
    items.length > 64 ? h("span", {}, `and ${items.length - 64} more`) : null,
  );
}

/** Lists by priority or level, each a row. */
function lists(items: Json[]): HTMLElement {
  return h(
    "div",
    { class: "lists" },
    ...items.map((item) => {
      const label = Object.entries(item).find(([, v]) => typeof v === "number" || typeof v === "string");
      return h(
        "div",
        { class: "list" },
        h("span", { class: "list-label" }, label ? `${words(label[0])} ${String(label[1])}` : ""),
        boxes(item["tasks"] as unknown[]),
      );
    }),
  );
}

const NODE = { width: 92, height: 34, gap: 16 };

/** A sorted list as a balanced tree: its order is the kernel's, its shape is drawn. */
function tree(items: unknown[]): HTMLElement {
  const shown = items.slice(0, 31);
  const nodes: { item: unknown; column: number; depth: number; parent: number }[] = [];
  const build = (from: number, to: number, depth: number, parent: number): void => {
    if (from >= to) return;
    const middle = (from + to) >> 1;
    nodes.push({ item: shown[middle], column: middle, depth, parent });
    const me = nodes.length - 1;
    build(from, middle, depth + 1, me);
    build(middle + 1, to, depth + 1, me);
  };
  build(0, shown.length, 0, -1);
  const depth = Math.max(...nodes.map((node) => node.depth));
  const step = shown.length > 4 ? NODE.width * 0.62 : NODE.width + 8;
  const x = (column: number) => column * step + NODE.width / 2 + 2;
  const y = (row: number) => row * (NODE.height + NODE.gap) + NODE.height / 2 + 2;
  const edges = nodes
    .filter((node) => node.parent >= 0)
    .map((node) => {
      const parent = nodes[node.parent] as (typeof nodes)[number];
      return svg("line", {
        x1: x(parent.column),
        y1: y(parent.depth),
        x2: x(node.column),
        y2: y(node.depth),
        class: "edge",
      });
    });
  const width = (shown.length - 1) * step + NODE.width + 4;
  const height = (depth + 1) * (NODE.height + NODE.gap);
  const picture = svg(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: "tree",
      role: "img",
      "aria-label": `Tree of ${items.length}`,
    },
    ...edges,
    ...nodes.map((node) => treeNode(node.item, x(node.column), y(node.depth), node.column === 0)),
  );
  const more = items.length > shown.length ? note(`The first ${shown.length} of ${items.length}.`) : null;
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "group", "aria-label": "Tree of the queue" },
    picture,
    note("Left to right in the tree's order; drawn balanced."),
    more,
  );
}

function treeNode(item: unknown, x: number, y: number, first: boolean): SVGElement {
  const name = nameOf(item) ?? "";
  const waits = isObject(item) && item["eligible"] === false;
  const node = svg(
    "g",
    { class: `node${first ? " first" : ""}${waits ? " waits" : ""}` },
    svg("rect", { x: x - NODE.width / 2, y: y - NODE.height / 2, width: NODE.width, height: NODE.height, rx: 5 }),
    svg("text", { x, y: y - 6 }, name.length > 13 ? `${name.slice(0, 12)}…` : name),
    svg("text", { x, y: y + 8, class: "small" }, caption(item)),
  );
  node.append(svg("title", {}, tooltip(item)));
  return node;
}
