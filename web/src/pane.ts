/** One trace on the screen: its strip, axis, heat map, curves and lanes. */
import type { App } from "./app";
import { Blocks, placedIn, type Viewport } from "./blocks";
import { CounterPlot, COUNTER_HEIGHT, countersOf } from "./counters";
import { fitCanvas, h } from "./dom";
import { DIFFERENCE_HEIGHT, GUTTER, HEAT_HEIGHT, RIGHT } from "./geometry";
import { hasHeat, Heat, heatWords, type HeatScale } from "./heat";
import { drawGutter } from "./gutter";
import { drawMarks, MarkStore } from "./marks";
import type { Trace } from "./model";
import { drawDifference, drawOverview, OVERVIEW_HEIGHT } from "./overview";
import { Painter, type Area, type PaintContext } from "./paint";
import { layout, rowAt, type Layout, type Placed } from "./rows";
import { drawGrid, drawRuler, RULER_HEIGHT } from "./ruler";
import { NONE, type By, type Overview } from "./source";
import { CanvasSurface, type Surface } from "./surface";
import { counted } from "./units";

/** Painting of blocks in a frame may take so many ms; the rest waits for the next frame. */
const BUDGET = 10;
const EMPTY: Layout = { placed: [], height: 0 };

/** Where things are in the head of a pane. */
interface Head {
  difference: number;
  ruler: number;
  heat: number;
  height: number;
}

export class Pane {
  readonly element: HTMLElement;
  readonly head: HTMLCanvasElement;
  readonly lanes: HTMLCanvasElement;
  readonly scroller: HTMLElement;
  readonly remarks: HTMLElement;
  private readonly spacer: HTMLElement;
  private readonly curves: HTMLElement;
  readonly heat: Heat;
  readonly marks: MarkStore;
  private plots: CounterPlot[] = [];
  private readonly blocks = { pinned: new Blocks(), main: new Blocks() };
  private readonly sticky = new Painter();
  pinned: Layout = EMPTY;
  main: Layout = EMPTY;
  private places = new Map<string, Placed>();
  overview: Overview | null = null;
  private overviewAsked = "";
  width = 0;
  height = 0;
  /** The row under the pointer. */
  hovered: Placed | null = null;

  constructor(
    readonly app: App,
    readonly trace: Trace,
    scale: HeatScale,
  ) {
    const name = app.traces.length > 1 ? `${trace.letter}: ${trace.info.name}` : trace.info.name;
    this.head = h("canvas", { class: "head", role: "img", "aria-label": `Overview, axis and heat map of ${name}` });
    this.lanes = h("canvas", {
      class: "lanes-canvas",
      tabindex: 0,
      role: "application",
      "aria-label": `Lanes of ${name}`,
      "aria-describedby": "lanes-help",
      "data-trace": trace.id,
    });
    this.spacer = h("div", { class: "spacer" });
    this.scroller = h(
      "div",
      { class: "scroller", tabindex: -1, onscroll: () => this.scrolled() },
      this.lanes,
      this.spacer,
    );
    this.curves = h("div", { class: "curves" });
    this.remarks = h("div", { class: "remarks" });
    this.element = h(
      "section",
      { class: "pane", "aria-label": `Trace ${name}` },
      this.remarks,
      this.head,
      this.curves,
      this.scroller,
    );
    this.heat = new Heat(app.tiles, scale);
    this.marks = new MarkStore(
      app.source,
      trace.id,
      () => app.redraw(),
      (message) => app.fail(message),
    );
    this.showRemarks();
  }

  showRemarks(): void {
    const sentences = [...this.trace.info.remarks];
    if (this.trace.leftOut) sentences.push(`Not listed: ${counted(this.trace.leftOut, "task")}, which ran least.`);
    this.remarks.replaceChildren(
      ...sentences.map((text) => h("p", { class: "remark" }, text.charAt(0).toUpperCase() + text.slice(1))),
    );
  }

  private get letter(): string {
    return this.app.traces.length > 1 ? this.trace.letter : "";
  }

  headLayout(): Head {
    const second = this.app.traces.length > 1 && this.trace.id !== this.app.traces[0]?.id;
    const difference = OVERVIEW_HEIGHT;
    const ruler = difference + (second && this.app.settings.differences ? DIFFERENCE_HEIGHT : 0);
    const heat = ruler + RULER_HEIGHT;
    return { difference, ruler, heat, height: heat + (this.app.settings.heat ? HEAT_HEIGHT : 0) };
  }

  /** Sections, rows or colours have changed. */
  rearrange(): void {
    const { settings } = this.app;
    const all = layout({ ...settings, rows: this.trace.rows });
    const pins = all.placed.filter((row) => row.pinned);
    const height = pins.reduce((sum, row) => sum + row.height, 0);
    this.pinned = { placed: pins, height };
    this.main = {
      placed: all.placed.slice(pins.length).map((row) => ({ ...row, y: row.y - height })),
      height: all.height - height,
    };
    this.places = new Map();
    for (const place of [...this.main.placed, ...this.pinned.placed]) {
      const id = place.row?.[place.by];
      if (place.row && place.row.kind !== "group" && id !== undefined) this.places.set(`${place.by}:${id}`, place);
    }
    this.blocks.pinned.clear();
    this.blocks.main.clear();
    this.arrangeCounters();
  }

  /** The colours have changed, the rows have not. */
  recolor(): void {
    this.blocks.pinned.clear();
    this.blocks.main.clear();
  }

  private arrangeCounters(): void {
    const wanted = countersOf(this.trace.info).filter(({ name }) => this.app.settings.counters.has(name));
    if (wanted.map(({ name }) => name).join() === this.plots.map(({ counter }) => counter.name).join()) return;
    this.plots = wanted.map(
      (counter) =>
        new CounterPlot(
          counter,
          this.app.source,
          this.trace.id,
          () => this.app.redraw(),
          (message) => this.app.fail(message),
        ),
    );
    this.curves.replaceChildren(...this.plots.map(({ element }) => element));
  }

  /** The trace has grown: curves, marks and overview are asked for again. */
  refresh(): void {
    for (const plot of this.plots) plot.refresh();
    this.marks.clear();
    this.overviewAsked = "";
    this.blocks.main.clear();
    this.blocks.pinned.clear();
  }

  /** Takes the size that the page gives. */
  measure(): void {
    this.width = this.element.clientWidth;
    const head = this.headLayout().height;
    const taken = head + this.plots.length * COUNTER_HEIGHT + this.remarks.offsetHeight;
    this.height = Math.max(60, this.element.clientHeight - taken);
    this.scroller.style.height = `${this.height}px`;
    this.spacer.style.height = `${Math.max(0, this.main.height + this.pinned.height + 40 - this.height)}px`;
  }

  get plotWidth(): number {
    return Math.max(50, this.width - GUTTER - RIGHT);
  }

  private scrolled(): void {
    this.app.settings.scroll[this.trace.id] = this.scroller.scrollTop;
    this.app.redraw();
  }

  /** Draws a frame; whether another one would show more. */
  draw(): boolean {
    this.loadOverview();
    const head = this.headLayout();
    const context = fitCanvas(this.head, this.width, head.height);
    if (context) this.drawHead(new CanvasSurface(context, this.app.theme), 0, 0);
    for (const plot of this.plots) plot.update(this.app.axis.window(), this.width, this.trace.info.end, this.app.theme);
    this.marks.want(this.app.settings.marks, this.app.axis.window(), this.trace.info.end);
    return this.drawLanes();
  }

  private loadOverview(): void {
    const bins = Math.min(2048, Math.max(64, Math.round(this.plotWidth / 2)));
    const key = `${bins}/${this.trace.info.end}/${this.trace.info.checked}`;
    if (key === this.overviewAsked || this.trace.info.end <= 0) return;
    this.overviewAsked = key;
    this.app.source.overview(this.trace.id, bins, { from: 0, to: this.trace.info.end }).then(
      (data) => {
        this.overview = data;
        this.app.redraw();
      },
      (error: Error) => this.app.fail(error.message),
    );
  }

  private get other(): Pane | null {
    return this.panes().find((pane) => pane !== this) ?? null;
  }

  /** Set by the page: all panes. */
  panes: () => Pane[] = () => [];

  drawHead(surface: Surface, x: number, y: number): void {
    const { axis, settings } = this.app;
    const at = this.headLayout();
    const left = x + GUTTER;
    surface.rect("paper", x, y, this.width, at.height);
    const window = axis.window();
    drawOverview(surface, left, y, this.plotWidth, {
      data: this.overview,
      end: this.trace.info.end,
      axisEnd: axis.end,
      cpus: this.trace.info.cpus.length,
      window,
      selection: settings.selection,
      other: settings.differences ? (this.other?.overview ?? null) : null,
      lost: this.lost,
    });
    const letter = this.letter ? `${this.letter}  ` : "";
    surface.text("ink", `${letter}Whole trace`, x + 12, y + 14, { bold: true });
    surface.text("soft", "runnable: running, waiting", x + 12, y + 28, { size: 10 });
    surface.text("violation", "idle while tasks wait", x + 12, y + 40, { size: 10 });
    if (at.ruler > at.difference) this.drawDifference(surface, x, y + at.difference);
    drawRuler(surface, left, y + at.ruler, this.plotWidth, window, settings.selection);
    surface.rect("rule", x, y + at.heat - 1, GUTTER, 1);
    if (settings.heat) this.drawHeat(surface, x, y + at.heat);
    surface.rect("rule", x + GUTTER - 1, y, 1, at.height);
  }

  private drawDifference(surface: Surface, x: number, y: number): void {
    const a = this.panes()[0]?.overview;
    if (a && this.overview)
      drawDifference(surface, x + GUTTER, y, this.plotWidth, DIFFERENCE_HEIGHT, a, this.overview, this.app.axis.end);
    surface.text("soft", `runnable: ${this.letter} more, ${this.letter} less`, x + 12, y + DIFFERENCE_HEIGHT / 2, {
      size: 10,
    });
  }

  heatView() {
    const { info } = this.trace;
    return {
      trace: info.id,
      of: this.app.settings.heat,
      cpus: info.cpus.length,
      end: info.end,
      window: this.app.axis.window(),
      theme: this.app.theme,
      lost: this.lost,
    };
  }

  /**
   * From when on what nobody knows is red. That is for lost events alone: a partial recording lacks nothing that it was
   * to have, and neither does one before a CPU's first switch.
   */
  private get lost(): number {
    return this.trace.info.lost_from ?? Infinity;
  }

  /** Whether the heat map can be drawn: a link may ask for one that the trace does not have. */
  get hasHeat(): boolean {
    return hasHeat(this.trace.info, this.app.settings.heat);
  }

  private drawHeat(surface: Surface, x: number, y: number): void {
    const words = heatWords(this.app.settings.heat);
    if (this.hasHeat) this.heat.draw(surface, x + GUTTER, y, this.plotWidth, HEAT_HEIGHT - 1, this.heatView());
    const scale = this.hasHeat ? `0 to ${words.number(this.heat.highest)}` : "not in this trace";
    surface.text("ink", words.title, x + 12, y + 14, { bold: true });
    surface.text("soft", scale, x + 12, y + 31, { size: 10 });
    const labels = this.hasHeat ? this.heat.labels : [];
    if (labels.length > 1) {
      surface.text("soft", labels[0] ?? "", x + GUTTER - 8, y + 8, { size: 10, align: "right" });
      surface.text("soft", labels.at(-1) ?? "", x + GUTTER - 8, y + HEAT_HEIGHT - 9, { size: 10, align: "right" });
    }
    surface.rect("rule", x, y + HEAT_HEIGHT - 1, this.width, 1);
  }

  context(): PaintContext {
    const { app, trace } = this;
    const pick = app.settings.pick;
    const highlight = pick && pick.trace === trace.id && pick.by === "task" ? pick.id : NONE;
    const first = app.traces[0];
    const other =
      app.settings.differences && first && first !== trace ? { trace: first.id, row: this.rowInOther(first) } : null;
    return {
      tiles: app.tiles,
      trace: trace.id,
      end: trace.info.end,
      hues: trace.hues,
      name: (task) => trace.name(task),
      byTask: app.settings.byTask,
      highlight,
      other,
    };
  }

  /**
   * Finds the row of the first trace that stands for a row of this one: the same CPU, or the task of the same name and
   * id.
   */
  private rowInOther(first: Trace): (placed: Placed) => number {
    return ({ row, by }) => {
      if (!row || row.kind === "group") return -1;
      const same = by === "cpu" ? first.row("cpu", row.cpu ?? NONE) : first.twin(row);
      return same?.row ?? -1;
    };
  }

  /** Where pinned and other rows are shown. */
  private viewports(): { pinned: Viewport; main: Viewport } {
    const split = Math.min(this.pinned.height, this.height);
    const view = {
      x: GUTTER,
      width: this.plotWidth,
      window: this.app.axis.window(),
      ratio: window.devicePixelRatio || 1,
      theme: this.app.theme,
    };
    return {
      pinned: { ...view, y: 0, height: split, top: 0 },
      main: { ...view, y: split, height: this.height - split, top: this.scroller.scrollTop },
    };
  }

  /** Prepares for what is likely to be seen next: panning by half of the width, or zooming. */
  ahead(): void {
    const { pinned, main } = this.viewports();
    this.app.tiles.ahead(() => {
      this.blocks.pinned.ahead(this.pinned, this.context(), pinned);
      this.blocks.main.ahead(this.main, this.context(), main);
      if (this.hasHeat) this.heat.ahead(this.plotWidth, this.heatView());
    });
  }

  /** Paints some of the lanes that the next frame will show; whether more could be painted. */
  paint(): boolean {
    const { pinned, main } = this.viewports();
    const context = this.context();
    const more = this.blocks.pinned.prepare(this.pinned, context, pinned, BUDGET);
    return this.blocks.main.prepare(this.main, context, main, BUDGET) || more;
  }

  private drawLanes(): boolean {
    const target = fitCanvas(this.lanes, this.width, this.height);
    if (!target) return false;
    const surface = new CanvasSurface(target, this.app.theme);
    surface.rect("paper", 0, 0, this.width, this.height);
    const context = this.context();
    const { pinned, main } = this.viewports();
    this.blocks.pinned.draw(target, this.pinned, context, pinned, BUDGET);
    this.blocks.main.draw(target, this.main, context, main, BUDGET);
    this.overlay(surface, 0, main.top, main.y);
    return this.blocks.main.pending || this.blocks.pinned.pending;
  }

  /** Whether the lanes show everything that belongs there. */
  get complete(): boolean {
    return this.blocks.main.complete && this.blocks.pinned.complete;
  }

  /** Whether marks or curves are on their way. */
  get busy(): boolean {
    return this.marks.busy || this.plots.some((plot) => plot.busy);
  }

  get bytes(): number {
    return this.blocks.main.bytes + this.blocks.pinned.bytes;
  }

  private area(): Area {
    const { axis } = this.app;
    return { x: GUTTER, width: this.plotWidth, from: axis.from, nsPerPixel: axis.span / this.plotWidth };
  }

  /** The parts of both lists that are on the screen: rows, the list's coordinate at the top, and where that is. */
  private parts(y: number, top: number, split: number): [Placed[], number, number, number][] {
    return [
      [placedIn(this.main, top, this.height - split), top, y + split, this.height - split],
      [this.pinned.placed, 0, y, split],
    ];
  }

  overlay(surface: Surface, y: number, top: number, split: number): void {
    const { axis, settings, hover } = this.app;
    const context = this.context();
    const area = this.area();
    drawGrid(surface, GUTTER, y, this.plotWidth, this.height, axis.window());
    for (const [rows, from, at, height] of this.parts(y, top, split)) {
      surface.clip(GUTTER, at, this.plotWidth, height);
      this.sticky.sticky(surface, context, rows, from, at, area);
      const markArea = {
        x: GUTTER,
        width: this.plotWidth,
        window: axis.window(),
        find: (by: By, id: number) => this.places.get(`${by}:${id}`),
        y: (row: Placed) => at + row.y - from,
      };
      for (const kind of settings.marks) {
        const marks = this.marks.get(kind);
        if (marks) drawMarks(surface, marks, markArea);
      }
      surface.unclip();
    }
    this.drawSelection(surface, y);
    if (hover) surface.rect("cursor", Math.round(this.x(hover.time)), y, 1, this.height);
    this.drawPick(surface, y, top, split);
    for (const [rows, from, at, height] of this.parts(y, top, split)) drawGutter(surface, this, rows, from, at, height);
    if (split) surface.rect("soft", 0, y + split - 1, this.width, 1);
  }

  x(time: number): number {
    return GUTTER + ((time - this.app.axis.from) / this.app.axis.span) * this.plotWidth;
  }

  time(x: number): number {
    return this.app.axis.from + ((x - GUTTER) / this.plotWidth) * this.app.axis.span;
  }

  private drawSelection(surface: Surface, y: number): void {
    const { selection } = this.app.settings;
    if (!selection) return;
    const a = Math.max(GUTTER, this.x(selection.from));
    const b = Math.min(GUTTER + this.plotWidth, this.x(selection.to));
    if (b < a) return;
    surface.rect("select", a, y, b - a, this.height);
    surface.rect("accent", a, y, 1, this.height);
    surface.rect("accent", b - 1, y, 1, this.height);
  }

  private drawPick(surface: Surface, y: number, top: number, split: number): void {
    const { pick } = this.app.settings;
    if (!pick || pick.trace !== this.trace.id) return;
    const row = this.places.get(`${pick.by}:${pick.id}`);
    const x = this.x(pick.time);
    if (x >= GUTTER && x <= GUTTER + this.plotWidth) surface.rect("accent", Math.round(x), y, 1, this.height);
    if (!row) return;
    const at = row.pinned ? y + row.y : y + split + row.y - top;
    if (at < y || at > y + this.height) return;
    surface.rect("accent", GUTTER, at, this.plotWidth, 1);
    surface.rect("accent", GUTTER, at + row.height - 1, this.plotWidth, 1);
  }

  /** The row at a height of the lanes' canvas. */
  rowAt(y: number): Placed | null {
    const split = Math.min(this.pinned.height, this.height);
    const [list, at] = y < split ? [this.pinned, y] : [this.main, y - split + this.scroller.scrollTop];
    return list.placed[rowAt(list, at)] ?? null;
  }

  place(by: By, id: number): Placed | undefined {
    return this.places.get(`${by}:${id}`);
  }

  reveal(by: By, id: number): void {
    const row = this.place(by, id);
    if (!row || row.pinned) return;
    const room = this.height - this.pinned.height;
    const top = this.scroller.scrollTop;
    if (row.y < top + 4 || row.y + row.height > top + room - 4) this.scroller.scrollTop = Math.max(0, row.y - room / 2);
  }

  /** Draws the pane into an exported picture, at `y`; gives its height. */
  export(surface: Surface, y: number): number {
    const head = this.headLayout();
    this.drawHead(surface, 0, y);
    let at = y + head.height;
    for (const plot of this.plots) {
      plot.draw(surface, GUTTER, at, this.plotWidth, this.app.axis.window());
      at += COUNTER_HEIGHT;
    }
    const top = this.scroller.scrollTop;
    const split = Math.min(this.pinned.height, this.height);
    surface.clip(0, at, this.width, this.height);
    for (const [rows, from, where, height] of this.parts(at, top, split)) {
      surface.clip(GUTTER, where, this.plotWidth, height);
      this.sticky.rows(surface, this.context(), rows, from, where, this.area());
      surface.unclip();
    }
    this.overlay(surface, at, top, split);
    surface.unclip();
    return at + this.height - y;
  }
}
