/** The heat map of CPUs over time, from tiles: one picture of pixels for each tile. */
import { heatColor, type Theme } from "./palette";
import { HIGHEST_CELL, TILE_BINS, UNKNOWN_CELL, type HeatTile, type TraceInfo, type Window } from "./source";
import type { Surface } from "./surface";
import { levelOf, tilesBetween, tileSpan, type Tiles } from "./tiles";
import { count } from "./units";

/** What a heat map shows: its title, and what its numbers count (load is in the scheduler's own unit). */
const SHOWN: Record<string, { title: string; unit: string }> = {
  queue: { title: "Run queues", unit: "tasks" },
  load: { title: "Load", unit: "" },
  considered: { title: "CPUs looked at", unit: "looks" },
  memory: { title: "Memory by node", unit: "MiB" },
};

/** The title of a heat map, and a number of it with its unit. */
export function heatWords(of: string): { title: string; number: (value: number) => string } {
  const { title, unit } = SHOWN[of] ?? { title: of, unit: "" };
  return { title, number: (value) => `${count(value, 2)} ${unit}`.trim() };
}

/** Whether a trace has what a heat map shows. */
export function hasHeat(info: TraceInfo, of: string): boolean {
  return of === "queue" || ((of === "load" || of === "considered" || of === "memory") && info[of]);
}

/** More rows than this share a row of the picture. */
const MOST_ROWS = 128;

export interface HeatView {
  trace: number;
  of: string;
  cpus: number;
  end: number;
  window: Window;
  theme: Theme;
  /** When events were lost first. */
  lost: number;
}

/** The value of the strongest colour: the highest that was seen in any trace, so that colours can be compared. */
export interface HeatScale {
  of: string;
  highest: number;
}

interface Picture {
  canvas: OffscreenCanvas;
  /** Whether something in it is unknown, and left out. */
  gaps: boolean;
  tile: HeatTile;
  highest: number;
  theme: Theme;
}

export class Heat {
  private pictures = new Map<string, Picture>();
  rows = 0;
  labels: string[] = [];

  constructor(
    private readonly tiles: Tiles,
    private readonly scale: HeatScale,
  ) {}

  get highest(): number {
    return this.scale.highest;
  }

  group(cpus: number): number {
    return Math.max(1, Math.ceil(cpus / MOST_ROWS));
  }

  draw(surface: Surface, x: number, y: number, width: number, height: number, view: HeatView): void {
    if (this.scale.of !== view.of) Object.assign(this.scale, { of: view.of, highest: 1 });
    const nsPerPixel = (view.window.to - view.window.from) / width;
    const level = levelOf(nsPerPixel);
    const span = tileSpan(level);
    const group = this.group(view.cpus);
    surface.rect("panel", x, y, width, height);
    surface.clip(x, y, width, height);
    for (const k of tilesBetween(view.window.from, Math.min(view.window.to, view.end), level)) {
      const exact = this.tiles.heat(view.trace, view.of, level, k, group);
      const tile = exact ?? this.tiles.heatStandIn(view.trace, view.of, level, k, group);
      if (!tile) continue;
      this.learn(tile);
      const length = tileSpan(tile.level);
      const left = x + (tile.tile * length - view.window.from) / nsPerPixel;
      if (!exact) surface.clip(x + (k * span - view.window.from) / nsPerPixel, y, span / nsPerPixel, height);
      const { canvas, gaps } = this.picture(tile, view);
      const known = Math.min(length, view.end - tile.tile * length);
      if (gaps) {
        const lost = Math.max(0, Math.min(known, view.lost - tile.tile * length)) / nsPerPixel;
        const red = known / nsPerPixel - lost;
        if (lost > 0) surface.hatch("soft", left, y, lost, height);
        if (red > 0) surface.hatch("unknown", left + lost, y, red, height);
      }
      surface.image(canvas, left, y, length / nsPerPixel, height);
      if (!exact) surface.unclip();
    }
    surface.unclip();
  }

  /** Asks for the tiles on both sides of what is seen. */
  ahead(width: number, view: HeatView): void {
    const { from, to } = view.window;
    const level = levelOf((to - from) / width);
    const half = (to - from) / 2;
    for (const k of tilesBetween(from - half, Math.min(to + half, view.end), level))
      this.tiles.heat(view.trace, view.of, level, k, this.group(view.cpus));
  }

  private learn(tile: HeatTile): void {
    this.scale.highest = Math.max(this.scale.highest, Math.ceil(tile.highest));
    if (tile.rows) this.rows = tile.rows;
    if (tile.labels.length) this.labels = tile.labels;
  }

  private picture(tile: HeatTile, view: HeatView): Picture {
    const key = `${view.trace}/${view.of}/${tile.level}/${tile.tile}`;
    const known = this.pictures.get(key);
    if (known && known.tile === tile && known.highest === this.highest && known.theme === view.theme) return known;
    const picture = { ...paint(tile, this.highest, view.theme), tile, highest: this.highest, theme: view.theme };
    this.pictures.delete(key);
    this.pictures.set(key, picture);
    if (this.pictures.size > 24) this.pictures.delete(this.pictures.keys().next().value as string);
    return picture;
  }

  /** The value of a row at an instant, or null if it is unknown or not there yet. */
  valueAt(view: HeatView, width: number, row: number, time: number): number | null {
    const level = levelOf((view.window.to - view.window.from) / width);
    const span = tileSpan(level);
    const k = Math.floor(time / span);
    if (time < 0 || time > view.end) return null;
    const tile = this.tiles.heat(view.trace, view.of, level, k, this.group(view.cpus));
    if (!tile) return null;
    const cell = tile.cell[row * TILE_BINS + Math.floor((time - k * span) / 2 ** level)];
    return cell === undefined || cell === UNKNOWN_CELL ? null : (cell / HIGHEST_CELL) * tile.highest;
  }
}

/** A picture of one pixel a cell, through which the hatching behind it is seen where nothing is known. */
function paint(tile: HeatTile, highest: number, theme: Theme): Pick<Picture, "canvas" | "gaps"> {
  const rows = Math.max(1, tile.rows);
  const canvas = new OffscreenCanvas(TILE_BINS, rows);
  const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
  const pixels = context.createImageData(TILE_BINS, rows);
  const cells = new Uint32Array(pixels.data.buffer);
  const colors = colorsOf(tile.highest / Math.max(1, highest), theme);
  for (let i = 0; i < tile.cell.length; i++) {
    const cell = tile.cell[i] as number;
    if (cell !== UNKNOWN_CELL) cells[i] = colors[(cell + 15) >> 4] as number;
  }
  context.putImageData(pixels, 0, 0);
  return { canvas, gaps: tile.cell.includes(UNKNOWN_CELL) };
}

/** One number a pixel: red, green, blue and opacity in the order of the bytes. */
function packed([r, g, b]: [number, number, number]): number {
  return new Uint32Array(new Uint8Array([r, g, b, 255]).buffer)[0] ?? 0;
}

let known: { share: number; theme: Theme; colors: Uint32Array } | null = null;

/**
 * The colours of cells of which the highest is this share of the strongest colour's value: of 0, and of 16 neighbours
 * each. One task is a colour of its own whatever the highest: the root spreads the low values. The tiles of a picture
 * mostly share these.
 */
function colorsOf(share: number, theme: Theme): Uint32Array {
  if (known?.share === share && known.theme === theme) return known.colors;
  const all = Array.from({ length: 65 }, (_, i) => packed(heatColor(theme, i / 64)));
  const root = Math.sqrt(share / HIGHEST_CELL) * 64;
  const colors = Uint32Array.from({ length: 4097 }, (_, i) => {
    const place = i && Math.min(64, Math.max(1, Math.round(root * Math.sqrt(16 * i - 8))));
    return all[place] as number;
  });
  known = { share, theme, colors };
  return colors;
}
