/**
 * The pictures of lanes, kept in blocks: panning copies blocks and paints only those that come into view. While the
 * scale changes, and until the new tiles are there, the blocks of the last scale are shown stretched.
 */
import { Painter, type PaintContext } from "./paint";
import type { Theme } from "./palette";
import { Pixels, PixelSurface } from "./pixels";
import type { Layout, Placed } from "./rows";
import { CanvasSurface, STRIPE } from "./surface";
import type { Window } from "./source";

/** Whole stripes, so that a hatching goes on from block to block. */
const WIDTH = 32 * STRIPE;
const HEIGHT = 13 * STRIPE;
/** For so many ms after the scale has changed, tiles are waited for rather than stood in for: most come sooner. */
const PATIENCE = 250;
/** So many blocks that show nothing are kept: making one takes longer than painting it. */
const FREE = 128;

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
  /** Those that have, or had, blocks. */
  columns: Set<number>;
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
  private now: Scale = { nsPerPixel: 0, blocks: new Map(), columns: new Set() };
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
    for (const block of scale.blocks.values()) this.give(block);
    scale.blocks.clear();
    scale.columns.clear();
  }

  get bytes(): number {
    let sum = 0;
    for (const scale of [this.now, this.before])
      if (scale) for (const { canvas } of scale.blocks.values()) sum += canvas.width * canvas.height * 4;
    return sum;
  }

  /** Draws the viewport within about `budget` ms; `complete` says whether another frame is needed. */
  draw(target: CanvasRenderingContext2D, layout: Layout, context: PaintContext, view: Viewport, budget: number): void {
    const nsPerPixel = scaleOf(view);
    const begin = performance.now();
    this.frame++;
    if (!sameScale(nsPerPixel, this.now.nsPerPixel)) this.rescale(nsPerPixel, begin);
    const zooming = this.zooming(begin);
    const left = Math.round(view.window.from / nsPerPixel);
    target.save();
    target.beginPath();
    target.rect(view.x, view.y, view.width, view.height);
    target.clip();
    this.complete = !zooming;
    this.pending = zooming;
    let painted = false;
    const all = places(layout, view);
    for (const [i, j] of all) {
      const late = zooming || (painted && performance.now() - begin > budget);
      const soon = begin - this.changedAt < PATIENCE && this.soon(layout, context, i, j);
      const block = this.block(layout, context, view, i, j, !late && !soon);
      const [x, y] = [view.x + i * WIDTH - left, view.y + j * HEIGHT - view.top];
      if (block.fresh) painted = true;
      if (block.found) this.copy(target, block.found.canvas, x, y, view);
      else this.stretch(target, view, i, j, x, y);
      if (!block.found?.complete || block.late) this.complete = false;
      if (block.late && !soon) {
        this.pending = true;
        this.wanted(context, layout, i, j);
      }
    }
    target.restore();
    if (this.complete) this.settled = true;
    this.trim(all.length);
  }

  /** Paints blocks whose tiles are all there, for about `budget` ms, without showing them; whether there are more. */
  prepare(layout: Layout, context: PaintContext, view: Viewport, budget: number): boolean {
    const begin = performance.now();
    // What another scale needs, the next frame will find out.
    if (this.zooming(begin) || !sameScale(scaleOf(view), this.now.nsPerPixel)) return false;
    for (const [i, j] of places(layout, view)) {
      const found = this.now.blocks.get(`${i}/${j}`);
      if (found && (found.complete || found.version === context.tiles.version)) continue;
      if (!this.wanted(context, layout, i, j)) continue;
      if (performance.now() - begin > budget) return true;
      this.block(layout, context, view, i, j, true);
    }
    return false;
  }

  /** Asks for the tiles on both sides of what is seen, as far as panning by half of the width shows. */
  ahead(layout: Layout, context: PaintContext, view: Viewport): void {
    const nsPerPixel = scaleOf(view);
    this.painter.want(context, placedIn(layout, view.top, view.height), {
      x: 0,
      width: 2 * view.width,
      from: view.window.from - (view.width / 2) * nsPerPixel,
      nsPerPixel,
    });
    // Blocks for the first zoom, which shows the last scale until they are painted.
    const shown = Math.min(FREE, this.now.blocks.size);
    while (this.free.length < shown) this.give(this.make(view.ratio));
  }

  private copy(target: CanvasRenderingContext2D, canvas: OffscreenCanvas, x: number, y: number, view: Viewport): void {
    const snap = (value: number) => Math.round(value * view.ratio) / view.ratio;
    target.imageSmoothingEnabled = false;
    target.drawImage(canvas, snap(x), snap(y), WIDTH, HEIGHT);
  }

  /** Whether the scale changes all the time, so that painting for this one is not worth it. */
  private zooming(now: number): boolean {
    return this.gliding && now - this.changedAt < 60 && this.before !== null;
  }

  private rescale(nsPerPixel: number, now: number): void {
    if (this.settled && this.now.blocks.size) {
      if (this.before) this.release(this.before);
      this.before = this.now;
    } else {
      this.release(this.now);
    }
    this.now = { nsPerPixel, blocks: new Map(), columns: new Set() };
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
      this.now.columns.add(i);
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
    return [...this.before.columns].filter((b) => (b + 1) * factor > i && b * factor < i + 1);
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

  private give(block: Block): void {
    if (this.free.length < FREE) this.free.push(block);
  }

  private take(ratio: number): Block {
    const known = this.free.pop();
    return known?.canvas.width === Math.round(WIDTH * ratio) ? known : this.make(ratio);
  }

  private make(ratio: number): Block {
    const [w, h] = [Math.round(WIDTH * ratio), Math.round(HEIGHT * ratio)];
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
      this.give(block);
    }
  }
}

/** How many ns a pixel is. */
function scaleOf({ window, width }: Viewport): number {
  return (window.to - window.from) / width;
}

function sameScale(a: number, b: number): boolean {
  return Math.abs(a / b - 1) <= 1e-9;
}

/** Which blocks are seen: column and row. */
function places(layout: Layout, view: Viewport): [number, number][] {
  const left = Math.round(view.window.from / scaleOf(view));
  const all: [number, number][] = [];
  for (let j = Math.floor(view.top / HEIGHT); j * HEIGHT < Math.min(view.top + view.height, layout.height); j++)
    for (let i = Math.floor(left / WIDTH); i * WIDTH < left + view.width; i++) all.push([i, j]);
  return all;
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
