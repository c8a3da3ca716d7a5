/** Who, what, how long and why, at the pointer. */
import type { App } from "./app";
import { byId, debounce, h } from "./dom";
import { HEAT_HEIGHT } from "./geometry";
import { heatWords } from "./heat";
import type { Pane } from "./pane";
import type { Placed } from "./rows";
import { STATE_NAMES, type At, type Window } from "./source";
import { duration, instant } from "./units";

export class Tooltip {
  private readonly element = byId("tooltip");
  private asked = 0;
  /** The last answer, so that moving within a span asks nothing. */
  private last: { pane: Pane; row: Placed; at: At } | null = null;
  private readonly ask = debounce(
    35,
    (pane: Pane, row: Placed, time: number, number: number) => void this.load(pane, row, time, number),
  );
  private place = { x: 0, y: 0 };

  constructor(private readonly app: App) {}

  hide(): void {
    this.asked++;
    this.element.hidden = true;
  }

  show(pane: Pane, row: Placed, time: number, x: number, y: number): void {
    this.place = { x, y };
    const number = ++this.asked;
    if (time < 0 || time > pane.trace.info.end || !row.row || row.row.kind === "group") {
      this.element.hidden = true;
      return;
    }
    const last = this.last;
    if (
      last &&
      last.pane === pane &&
      last.row === row &&
      time >= last.at.from &&
      time < last.at.to &&
      !pane.trace.info.growing
    ) {
      this.fill(pane, row, last.at, time);
      return;
    }
    this.ask(pane, row, time, number);
  }

  /** The span there. */
  async span(pane: Pane, row: Placed, time: number): Promise<Window | null> {
    const id = row.row?.[row.by];
    if (id === undefined) return null;
    try {
      const { from, to } = await this.app.source.at(pane.trace.id, row.by, id, time);
      return { from, to };
    } catch {
      return null;
    }
  }

  private async load(pane: Pane, row: Placed, time: number, number: number): Promise<void> {
    const id = row.row?.[row.by];
    if (id === undefined || number !== this.asked) return;
    try {
      const at = await this.app.source.at(pane.trace.id, row.by, id, time);
      this.last = { pane, row, at };
      if (number === this.asked) this.fill(pane, row, at, time);
    } catch {
      if (number === this.asked) this.element.hidden = true;
    }
  }

  private fill(pane: Pane, row: Placed, at: At, time: number): void {
    const state = STATE_NAMES[at.state] ?? "unknown";
    const who = at.task ? `${at.task.name} ${at.task.tid}` : row.title;
    const where = row.by === "cpu" ? row.title : at.cpu !== null && at.cpu !== undefined ? `CPU ${at.cpu}` : "";
    const lines = [
      h("div", { class: "tip-who" }, row.by === "cpu" && !at.task ? row.title : who),
      h(
        "div",
        { class: "tip-what" },
        h("span", { class: `swatch state-${state}` }),
        `${state}${where && where !== who ? ` on ${where}` : ""}, ${duration(at.to - at.from)}`,
      ),
    ];
    if (at.why) lines.push(h("div", { class: "tip-why" }, at.why));
    if (at.waker) {
      const waker = at.waker.task ? `${at.waker.task.name} ${at.waker.task.tid}` : "an interrupt";
      lines.push(
        h("div", { class: "tip-why" }, `Woken by ${waker}${at.waker.cpu === null ? "" : ` on CPU ${at.waker.cpu}`}`),
      );
    }
    if (at.queue !== null && at.queue !== undefined)
      lines.push(h("div", { class: "tip-why" }, `Runnable here: ${at.queue}`));
    lines.push(h("div", { class: "tip-time" }, instant(time, this.app.axis.span / 1000)));
    this.open(lines);
    pane.lanes.dataset.tip = who;
  }

  heat(pane: Pane, y: number, time: number, px: number, py: number): void {
    this.asked++;
    this.place = { x: px, y: py };
    const row = Math.floor((y / HEAT_HEIGHT) * Math.max(1, pane.heat.rows));
    const value = pane.hasHeat ? pane.heat.valueAt(pane.heatView(), pane.plotWidth, row, time) : null;
    const label = pane.heat.labels[row] ?? "";
    const text = value === null ? "unknown" : `${heatWords(this.app.settings.heat).number(value)} (mean)`;
    this.open([
      h("div", { class: "tip-who" }, label),
      h("div", {}, text),
      h("div", { class: "tip-time" }, instant(time, this.app.axis.span / 1000)),
    ]);
  }

  private open(lines: HTMLElement[]): void {
    this.element.replaceChildren(...lines);
    this.element.hidden = false;
    const box = this.element.getBoundingClientRect();
    const x = this.place.x + 16 + box.width > innerWidth ? this.place.x - box.width - 12 : this.place.x + 16;
    const y = Math.min(this.place.y + 14, innerHeight - box.height - 8);
    this.element.style.left = `${Math.max(4, x)}px`;
    this.element.style.top = `${Math.max(4, y)}px`;
  }
}
