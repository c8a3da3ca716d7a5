/**
 * The pictures of lanes, kept in blocks: panning copies blocks and paints only those that come into view. While the
 * scale changes, and until the new tiles are there, the blocks of the last scale are shown stretched.
 */
import { Painter, type PaintContext } from "./paint";
import type { Theme } from "./palette";
import { Pixels, PixelSurface } from "./pixels";
import type { Layout, Placed } from "./rows";
import { CanvasSurface } from "./surface";
import type { Window } from "./source";

const WIDTH = 256;
const HEIGHT = 400;
/** For so many ms after the scale has changed, tiles are waited for rather than stood in for: most come sooner. */
const PATIENCE = 250;

interface Block {
  canvas: OffscreenCanvas;
  context: OffscreenCanvasRenderingContext2D;
  complete: boolean;
  /** The number of tiles that had arrived when it was painted. */
  version: number;
  used: number;
}

interface Scale {
  nsPerPixel: number;
  blocks: Map<string, Block>;
}

export interface Viewport {
  /** Where it is on the canvas, in CSS pixels. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** The row list's coordinate at the top. */
  top: number;
  window: Window;
  ratio: number;
  theme: Theme;
}

export class Blocks {
  private now: Scale = { nsPerPixel: 0, blocks: new Map() };
  private before: Scale | null = null;
  private settled = false;
  private free: Block[] = [];
  private changedAt = 0;
  /** The scale has changed several times in a row. */
  private gliding = false;
  private frame = 0;
  private readonly painter = new Painter();
  /** Where blocks are painted, one after the other. */
  private pixels: Pixels | null = null;
  /** Whether the last frame showed everything as it is. */
  complete = false;
  /** Whether another frame would show more, without further tiles. */
  pending = false;

  /** Forgets everything: rows, colours or the trace have changed. */
  clear(): void {
    for (const scale of [this.now, this.before]) if (scale) this.release(scale);
    this.before = null;
    this.settled = false;
  }

  private release(scale: Scale): void {
    for (const block of scale.blocks.values()) if (this.free.length < 16) this.free.push(block);
    scale.blocks.clear();
  }

  get bytes(): number {
    let sum = 0;
    for (const scale of [this.now, this.before])
      if (scale) for (const { canvas } of scale.blocks.values()) sum += canvas.width * canvas.height * 4;
    return sum;
  }

  /** Draws the viewport within about `budget` ms; `complete` says whether another frame is needed. */
  draw(target: CanvasRenderingContext2D, layout: Layout, context: PaintContext, view: Viewport, budget: number): void {
    const nsPerPixel = (view.window.to - view.window.from) / view.width;
    const begin = performance.now();
    this.frame++;
    if (Math.abs(nsPerPixel / this.now.nsPerPixel - 1) > 1e-9) this.rescale(nsPerPixel, begin);
    const zooming = this.gliding && begin - this.changedAt < 60 && this.before !== null;
    const left = Math.round(view.window.from / nsPerPixel);
    target.save();
    target.beginPath();
    target.rect(view.x, view.y, view.width, view.height);
    target.clip();
    this.complete = !zooming;
    this.pending = zooming;
    const columns: number[] = [];
    for (let i = Math.floor(left / WIDTH); i * WIDTH < left + view.width; i++) columns.push(i);
    let painted = false;
    for (
      let j = Math.floor(view.top / HEIGHT);
      j * HEIGHT < view.top + view.height && j * HEIGHT < layout.height;
      j++
    ) {
      for (const i of columns) {
        const late = zooming || (painted && performance.now() - begin > budget);
        const soon = begin - this.changedAt < PATIENCE && this.soon(layout, context, i, j);
        const block = this.block(layout, context, view, i, j, !late && !soon);
        const [x, y] = [view.x + i * WIDTH - left, view.y + j * HEIGHT - view.top];
        if (block.fresh) painted = true;
        if (block.found) this.copy(target, block.found.canvas, x, y, view);
        else this.stretch(target, view, i, j, x, y);
        if (!block.found?.complete || block.late) this.complete = false;
        if (block.late && !soon) this.pending = true;
      }
    }
    target.restore();
    if (this.complete) this.settled = true;
    this.trim(columns.length * (Math.ceil(view.height / HEIGHT) + 1));
  }

  /** Asks for the tiles on both sides of what is seen, as far as panning by half of the width shows. */
  ahead(layout: Layout, context: PaintContext, view: Viewport): void {
    const nsPerPixel = (view.window.to - view.window.from) / view.width;
    const area = {
      x: 0,
      width: 2 * view.width,
      from: view.window.from - (view.width / 2) * nsPerPixel,
      nsPerPixel,
    };
    this.painter.want(context, placedIn(layout, view.top, view.height), area);
  }

  private copy(target: CanvasRenderingContext2D, canvas: OffscreenCanvas, x: number, y: number, view: Viewport): void {
    const snap = (value: number) => Math.round(value * view.ratio) / view.ratio;
    target.imageSmoothingEnabled = false;
    target.drawImage(canvas, snap(x), snap(y), WIDTH, HEIGHT);
  }

  private rescale(nsPerPixel: number, now: number): void {
    if (this.settled && this.now.blocks.size) {
      if (this.before) this.release(this.before);
      this.before = this.now;
    } else {
      this.release(this.now);
    }
    this.now = { nsPerPixel, blocks: new Map() };
    this.settled = false;
    this.gliding = now - this.changedAt < 100;
    this.changedAt = now;
  }

  private block(layout: Layout, context: PaintContext, view: Viewport, i: number, j: number, may: boolean) {
    const key = `${i}/${j}`;
    let found = this.now.blocks.get(key);
    let fresh = false;
    const outdated = found && !found.complete && found.version !== context.tiles.version;
    const late = (!found || outdated) && !may;
    if (found && !outdated && !found.complete) this.wanted(context, layout, i, j);
    if ((!found || outdated) && may) {
      found = this.paint(found, layout, context, view, i, j);
      this.now.blocks.set(key, found);
      fresh = true;
    }
    if (found) found.used = this.frame;
    return { found, fresh, late };
  }

  /** Whether a block is not painted yet, has a picture of the last scale, and waits for tiles. */
  private soon(layout: Layout, context: PaintContext, i: number, j: number): boolean {
    if (this.now.blocks.has(`${i}/${j}`) || !this.stretched(i).some((b) => this.before?.blocks.has(`${b}/${j}`)))
      return false;
    return !this.wanted(context, layout, i, j);
  }

  /** The columns of the last scale that have a picture of a part of a column of this one. */
  private stretched(i: number): number[] {
    if (!this.before) return [];
    const factor = this.before.nsPerPixel / this.now.nsPerPixel;
    const all = [...this.before.blocks.keys()].map((key) => Number(key.split("/")[0]));
    return [...new Set(all)].filter((b) => (b + 1) * factor > i && b * factor < i + 1);
  }

  /** Asks again for the tiles of a block that still waits for some, so that they stay wanted; whether all are there. */
  private wanted(context: PaintContext, layout: Layout, i: number, j: number): boolean {
    return this.painter.want(context, placedIn(layout, j * HEIGHT, HEIGHT), {
      x: 0,
      width: WIDTH,
      from: i * WIDTH * this.now.nsPerPixel,
      nsPerPixel: this.now.nsPerPixel,
    });
  }

  private paint(
    old: Block | undefined,
    layout: Layout,
    context: PaintContext,
    view: Viewport,
    i: number,
    j: number,
  ): Block {
    const block = old ?? this.take(view.ratio);
    const { width, height } = block.canvas;
    if (this.pixels?.width !== width || this.pixels.height !== height) this.pixels = new Pixels(width, height);
    const surface = new PixelSurface(block.context, view.theme, this.pixels, view.ratio);
    surface.rect("paper", 0, 0, WIDTH, HEIGHT);
    const placed = placedIn(layout, j * HEIGHT, HEIGHT);
    for (const row of placed) {
      if (!row.row) surface.rect("panel", 0, row.y - j * HEIGHT, WIDTH, row.height);
      else if (row.row.kind === "group") surface.rect("rowHover", 0, row.y - j * HEIGHT, WIDTH, row.height);
      surface.rect("rule", 0, row.y - j * HEIGHT + row.height - 0.5, WIDTH, 0.5);
    }
    const nsPerPixel = this.now.nsPerPixel;
    const area = { x: 0, width: WIDTH, from: i * WIDTH * nsPerPixel, nsPerPixel };
    block.complete = this.painter.rows(surface, context, placed, j * HEIGHT, 0, area);
    surface.hand();
    block.version = context.tiles.version;
    return block;
  }

  private take(ratio: number): Block {
    const [w, h] = [Math.round(WIDTH * ratio), Math.round(HEIGHT * ratio)];
    const known = this.free.pop();
    if (known && known.canvas.width === w && known.canvas.height === h) return known;
    const canvas = new OffscreenCanvas(w, h);
    const context = canvas.getContext("2d", { alpha: false }) as OffscreenCanvasRenderingContext2D;
    context.scale(ratio, ratio);
    return { canvas, context, complete: false, version: -1, used: 0 };
  }

  /** Draws what the last scale has of the block's place. */
  private stretch(target: CanvasRenderingContext2D, view: Viewport, i: number, j: number, x: number, y: number): void {
    const before = this.before;
    if (!before) {
      new CanvasSurface(target, view.theme).rect("loading", x, y, WIDTH, HEIGHT);
      return;
    }
    new CanvasSurface(target, view.theme).rect("paper", x, y, WIDTH, HEIGHT);
    const factor = before.nsPerPixel / this.now.nsPerPixel;
    const [from, to] = [(i * WIDTH) / factor, ((i + 1) * WIDTH) / factor];
    for (const b of this.stretched(i)) {
      const block = before.blocks.get(`${b}/${j}`);
      if (!block) continue;
      const [start, end] = [Math.max(from, b * WIDTH), Math.min(to, (b + 1) * WIDTH)];
      const scale = block.canvas.width / WIDTH;
      target.imageSmoothingEnabled = false;
      target.drawImage(
        block.canvas,
        (start - b * WIDTH) * scale,
        0,
        Math.max((end - start) * scale, 0.01),
        block.canvas.height,
        x + (start - from) * factor,
        y,
        (end - start) * factor,
        HEIGHT,
      );
    }
  }

  private trim(visible: number): void {
    const blocks = this.now.blocks;
    if (blocks.size <= visible * 2 + 8) return;
    const oldest = [...blocks].sort((a, b) => a[1].used - b[1].used).slice(0, blocks.size - visible * 2);
    for (const [key, block] of oldest) {
      blocks.delete(key);
      if (this.free.length < 16) this.free.push(block);
    }
  }
}

/** The rows between two heights. */
export function placedIn(layout: Layout, top: number, height: number): Placed[] {
  const { placed } = layout;
  let [low, high] = [0, placed.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = placed[middle] as Placed;
    if (row.y + row.height <= top) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < placed.length && (placed[end] as Placed).y < top + height) end++;
  return placed.slice(low, end);
}
