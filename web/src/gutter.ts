/** The labels of the rows, left of the lanes. */
import { GUTTER } from "./geometry";
import { HUES, type Style } from "./palette";
import type { Pane } from "./pane";
import type { Placed } from "./rows";
import { fit, type Surface } from "./surface";

const INDENT = 12;
export const PIN_ZONE = 24;

export function drawGutter(
  surface: Surface,
  pane: Pane,
  rows: readonly Placed[],
  top: number,
  y: number,
  height: number,
): void {
  surface.clip(0, y, GUTTER, height);
  surface.rect("paper", 0, y, GUTTER, height);
  for (const row of rows) drawLabel(surface, pane, row, y + row.y - top);
  surface.rect("rule", GUTTER - 1, y, 1, height);
  surface.unclip();
}

function drawLabel(surface: Surface, pane: Pane, placed: Placed, y: number): void {
  const middle = y + placed.height / 2 + 0.5;
  if (!placed.row) {
    surface.rect("panel", 0, y, GUTTER, placed.height);
    triangle(surface, 12, middle, placed.collapsed);
    surface.text("ink", placed.title, 26, middle, { bold: true });
    surface.rect("rule", 0, y + placed.height - 1, GUTTER, 1);
    return;
  }
  const hovered = pane.hovered === placed;
  const pick = pane.app.settings.pick;
  const picked =
    pick &&
    pick.trace === pane.trace.id &&
    pick.by === placed.by &&
    placed.row[placed.by] === pick.id &&
    placed.row.kind !== "group";
  if (picked) surface.rect("select", 0, y, GUTTER, placed.height);
  else if (hovered || placed.row.kind === "group") surface.rect("rowHover", 0, y, GUTTER, placed.height);
  const left = 14 + placed.depth * INDENT;
  if (placed.row.kind === "group") triangle(surface, left, middle, placed.collapsed);
  const x = placed.row.kind === "group" ? left + 12 : left;
  const room = GUTTER - x - 10 - (hovered || placed.pinned ? PIN_ZONE : 0);
  const tid = placed.row.kind === "task" && placed.row.tid !== undefined ? String(placed.row.tid) : "";
  const number = tid && room > 90 ? tid : "";
  const bold = placed.row.kind === "group" || Boolean(picked);
  const text = fit(
    placed.row.kind === "task" ? (placed.row.name ?? placed.title) : placed.title,
    room - (number ? number.length * 6.5 + 18 : 0),
    bold,
  );
  if (placed.row.kind === "task" && placed.row.task !== undefined) {
    surface.rect(`hue${(pane.trace.hues[placed.row.task] ?? 7) % HUES}` as Style, x - 1, y + 6, 4, placed.height - 11);
    surface.text("ink", text, x + 8, middle, { bold });
  } else {
    surface.text("ink", text, x, middle, { bold });
  }
  if (number) surface.text("soft", number, x + room, middle, { size: 10, align: "right" });
  if (hovered || placed.pinned) drawPin(surface, GUTTER - 14, middle, placed.pinned);
}

function triangle(surface: Surface, x: number, y: number, collapsed: boolean): void {
  const points = collapsed ? [x, y - 4, x + 5, y, x, y + 4] : [x - 1.5, y - 2, x + 6.5, y - 2, x + 2.5, y + 3];
  surface.fill("soft", points);
}

function drawPin(surface: Surface, x: number, y: number, pinned: boolean): void {
  const style: Style = pinned ? "accent" : "soft";
  surface.fill(style, [x - 3, y - 6, x + 3, y - 6, x + 2, y, x + 4, y + 1, x - 4, y + 1, x - 2, y]);
  surface.rect(style, x - 0.5, y + 1, 1, 5);
}
