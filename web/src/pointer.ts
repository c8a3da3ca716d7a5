/** The mouse over a pane: hover, click, selection by dragging, the wheel. */
import type { App } from "./app";
import { GUTTER } from "./geometry";
import { PIN_ZONE } from "./gutter";
import { OVERVIEW_HEIGHT } from "./overview";
import type { Pane } from "./pane";
import type { Placed } from "./rows";
import { RULER_HEIGHT } from "./ruler";
import type { Tooltip } from "./tooltip";
import { togglePin, toggleFold } from "./actions";

/** A drag begins after so many pixels. */
const SLACK = 4;

type Drag = "select" | "pan" | "window" | null;

export class Pointer {
  private drag: Drag = null;
  private startX = 0;
  private startTime = 0;
  private lastX = 0;
  private moved = false;

  constructor(
    private readonly app: App,
    private readonly pane: Pane,
    private readonly tooltip: Tooltip,
  ) {
    const { lanes, head } = pane;
    lanes.addEventListener("pointerdown", (event) => this.down(event, lanes));
    lanes.addEventListener("pointermove", (event) => this.move(event, lanes));
    lanes.addEventListener("pointerup", (event) => this.up(event, lanes));
    lanes.addEventListener("pointerleave", () => this.leave());
    lanes.addEventListener("dblclick", (event) => this.double(event));
    lanes.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    head.addEventListener("pointerdown", (event) => this.headDown(event));
    head.addEventListener("pointermove", (event) => this.headMove(event));
    head.addEventListener("pointerup", (event) => this.headUp(event));
    head.addEventListener("pointerleave", () => this.leave());
    head.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  private wheel(event: WheelEvent): void {
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey || event.altKey) {
      event.preventDefault();
      const at = this.pane.time(Math.max(GUTTER, event.offsetX));
      this.app.axis.zoom(Math.exp(event.deltaY * unit * 0.0022), at);
      return;
    }
    const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(across) > 0) {
      event.preventDefault();
      this.app.axis.pan((across * unit) / this.pane.plotWidth);
    }
  }

  private down(event: PointerEvent, target: HTMLElement): void {
    if (event.button > 1) return;
    if (event.offsetX < GUTTER) {
      this.label(event);
      return;
    }
    target.setPointerCapture(event.pointerId);
    this.drag = event.shiftKey || event.button === 1 ? "pan" : "select";
    this.begin(event);
  }

  private begin(event: PointerEvent): void {
    this.moved = false;
    this.startX = this.lastX = event.offsetX;
    this.startTime = this.pane.time(event.offsetX);
    if (this.drag === "pan") this.app.axis.remember();
  }

  /** A click on a row's label: fold or pin it, or pick its first instant. */
  private label(event: PointerEvent): void {
    const row = this.pane.rowAt(event.offsetY);
    if (!row) return;
    if (row.row && event.offsetX > GUTTER - PIN_ZONE) togglePin(this.app, row.key);
    else if (!row.row || row.row.kind === "group") toggleFold(this.app, row.key);
    else this.pick(row, Math.max(0, (this.app.axis.from + this.app.axis.to) / 2));
  }

  private pick(row: Placed, time: number): void {
    const id = row.row?.[row.by];
    if (!row.row || row.row.kind === "group" || id === undefined) return;
    this.app.pick({
      trace: this.pane.trace.id,
      by: row.by,
      id,
      time: Math.round(Math.max(0, Math.min(time, this.pane.trace.info.end))),
    });
  }

  private move(event: PointerEvent, target: HTMLElement): void {
    if (Math.abs(event.offsetX - this.startX) > SLACK) this.moved = true;
    if (this.drag === "pan") {
      this.app.axis.pan((this.lastX - event.offsetX) / this.pane.plotWidth);
      this.lastX = event.offsetX;
      return;
    }
    if (this.drag === "select" && this.moved) {
      this.select(event);
      return;
    }
    this.hover(event, target);
  }

  private select(event: PointerEvent): void {
    const now = this.pane.time(Math.max(GUTTER, Math.min(event.offsetX, GUTTER + this.pane.plotWidth)));
    const bound = (time: number) => Math.round(Math.max(0, Math.min(this.app.axis.end, time)));
    const [from, to] = [bound(Math.min(this.startTime, now)), bound(Math.max(this.startTime, now))];
    if (to > from) {
      this.app.settings.selection = { from, to };
      this.tooltip.hide();
      this.app.redraw();
    }
  }

  private hover(event: PointerEvent, target: HTMLElement): void {
    const row = this.pane.rowAt(event.offsetY);
    const inside = event.offsetX >= GUTTER && event.offsetX <= GUTTER + this.pane.plotWidth;
    target.classList.toggle("clickable", !inside && row !== null);
    const time = this.pane.time(event.offsetX);
    this.pane.hovered = row;
    this.app.hover = inside ? { trace: this.pane.trace.id, time } : null;
    if (inside && row?.row) this.tooltip.show(this.pane, row, time, event.clientX, event.clientY);
    else this.tooltip.hide();
    this.app.redraw();
  }

  private up(event: PointerEvent, target: HTMLElement): void {
    if (target.hasPointerCapture(event.pointerId)) target.releasePointerCapture(event.pointerId);
    const drag = this.drag;
    this.drag = null;
    if (drag === "select" && this.moved) {
      this.app.select(this.app.settings.selection);
    } else if (drag === "select") {
      const row = this.pane.rowAt(event.offsetY);
      if (row) this.pick(row, this.pane.time(event.offsetX));
    } else if (drag === "pan") {
      this.app.changed();
    }
  }

  private double(event: MouseEvent): void {
    const row = this.pane.rowAt(event.offsetY);
    if (row?.row && event.offsetX >= GUTTER)
      void this.tooltip.span(this.pane, row, this.pane.time(event.offsetX)).then((span) => {
        if (span) this.app.axis.show(span, 0.4);
      });
  }

  private leave(): void {
    if (this.drag) return;
    this.pane.hovered = null;
    this.app.hover = null;
    this.tooltip.hide();
    this.app.redraw();
  }

  /** In the overview a drag chooses the window; on the axis it selects. */
  private headDown(event: PointerEvent): void {
    if (event.button !== 0 || event.offsetX < GUTTER) return;
    this.pane.head.setPointerCapture(event.pointerId);
    const { ruler } = this.pane.headLayout();
    if (event.offsetY < OVERVIEW_HEIGHT) this.drag = "window";
    else if (event.offsetY >= ruler && event.offsetY < ruler + RULER_HEIGHT) this.drag = "select";
    else this.drag = "pan";
    this.begin(event);
    if (this.drag === "window") this.app.axis.remember();
  }

  private whole(x: number): number {
    return ((x - GUTTER) / this.pane.plotWidth) * this.app.axis.end;
  }

  private headMove(event: PointerEvent): void {
    if (Math.abs(event.offsetX - this.startX) > SLACK) this.moved = true;
    if (this.drag === "window" && this.moved) {
      const [a, b] = [this.whole(this.startX), this.whole(event.offsetX)];
      this.app.axis.set(Math.min(a, b), Math.max(a, b));
    } else if (this.drag === "select" && this.moved) {
      this.select(event);
    } else if (this.drag === "pan") {
      this.app.axis.pan((this.lastX - event.offsetX) / this.pane.plotWidth);
      this.lastX = event.offsetX;
    } else if (!this.drag) {
      this.heatHover(event);
    }
  }

  private heatHover(event: PointerEvent): void {
    const { heat } = this.pane.headLayout();
    if (event.offsetY < heat || event.offsetX < GUTTER || !this.app.settings.heat) {
      this.tooltip.hide();
      return;
    }
    this.app.hover = { trace: this.pane.trace.id, time: this.pane.time(event.offsetX) };
    this.tooltip.heat(this.pane, event.offsetY - heat, this.pane.time(event.offsetX), event.clientX, event.clientY);
    this.app.redraw();
  }

  private headUp(event: PointerEvent): void {
    this.pane.head.releasePointerCapture(event.pointerId);
    const drag = this.drag;
    this.drag = null;
    if (drag === "window" && !this.moved) {
      const { axis } = this.app;
      const middle = this.whole(event.offsetX);
      axis.set(middle - axis.span / 2, middle + axis.span / 2);
    }
    if (drag === "select" && this.moved) this.app.select(this.app.settings.selection);
    else this.app.changed();
  }
}
