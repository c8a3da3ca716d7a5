/** Curves over time, drawn by uPlot on the page's axis. */
import uPlot from "uplot";
import { h } from "./dom";
import { palette, type Style, type Theme } from "./palette";
import type { Series, Source, TraceInfo, Window } from "./source";
import { GUTTER, RIGHT } from "./geometry";
import { textWidth, type Surface } from "./surface";
import { duration } from "./units";

export const COUNTER_HEIGHT = 58;

interface Counter {
  name: string;
  title: string;
  /** The answers of the server that it draws. */
  series: { of: string; label: string; style: Style; dash?: number[] }[];
  format(value: number): string;
}

/** Three digits: 37.9, 1.25k. */
function plain(value: number): string {
  const [divisor, unit] = value >= 1e6 ? [1e6, "M"] : value >= 1e4 ? [1e3, "k"] : [1, ""];
  return `${Number((value / divisor).toPrecision(3))}${unit}`;
}

export const COUNTERS: readonly Counter[] = [
  {
    name: "runnable",
    title: "Runnable tasks",
    series: [{ of: "runnable", label: "runnable", style: "running" }],
    format: plain,
  },
  {
    name: "latency",
    title: "Wake-up latency",
    series: [
      { of: "latency_p50", label: "median", style: "running" },
      { of: "latency_p99", label: "p99", style: "more", dash: [4, 3] },
    ],
    format: duration,
  },
  {
    name: "frequency",
    title: "CPU frequency",
    series: [{ of: "frequency", label: "mean", style: "interrupt" }],
    format: (khz) => (khz >= 1e6 ? `${(khz / 1e6).toFixed(2)} GHz` : `${Math.round(khz / 1e3)} MHz`),
  },
];

export function countersOf(info: TraceInfo): Counter[] {
  return COUNTERS.filter((counter) => counter.name !== "frequency" || info.frequency);
}

/** One counter of one trace. */
export class CounterPlot {
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  private data: Series[] = [];
  private asked = "";
  private timer = 0;
  private running = 0;
  private look = "";

  constructor(
    readonly counter: Counter,
    private readonly source: Source,
    private readonly trace: number,
    private readonly changed: () => void,
    private readonly failed: (message: string) => void,
  ) {
    const legend =
      counter.series.length > 1
        ? h(
            "span",
            { class: "counter-legend" },
            ...counter.series.map(({ label, style }) => h("span", { class: `curve-${style}` }, label)),
          )
        : null;
    this.element = h(
      "div",
      { class: "counter", role: "img", "aria-label": `${counter.title} over time` },
      h("div", { class: "counter-title" }, counter.title, legend),
    );
  }

  /** Whether data are on their way. */
  get busy(): boolean {
    return this.timer !== 0 || this.running > 0;
  }

  /** Forgets the data: the trace has grown. */
  refresh(): void {
    this.asked = "";
  }

  update(window_: Window, width: number, end: number, theme: Theme): void {
    const look = `${width}/${theme}`;
    if (look !== this.look) this.build(width, theme);
    this.look = look;
    this.plot?.setScale("x", { min: window_.from, max: window_.to });
    this.want(window_, width - GUTTER - RIGHT, end);
  }

  private want(window_: Window, width: number, end: number): void {
    const span = window_.to - window_.from;
    const wanted = {
      from: Math.floor(Math.max(0, window_.from - span / 2)),
      to: Math.ceil(Math.min(end, window_.to + span / 2)),
    };
    const have = this.data[0];
    const fine =
      have &&
      have.from <= Math.max(0, window_.from) &&
      have.to >= Math.min(end, window_.to) &&
      have.to - have.from < span * 3.5;
    if ((fine && this.asked) || wanted.to <= wanted.from) return;
    const key = `${Math.round(wanted.from)}-${Math.round(wanted.to)}`;
    if (key === this.asked) return;
    this.asked = key;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      // A bin is a nanosecond at least.
      const bins = Math.min(4096, Math.max(16, Math.round(width)), wanted.to - wanted.from);
      void this.load(wanted, bins, key);
    }, 90);
  }

  private async load(window_: Window, bins: number, key: string): Promise<void> {
    this.running++;
    try {
      const data = await Promise.all(
        this.counter.series.map(({ of }) => this.source.counter(this.trace, of, window_, bins)),
      );
      if (this.asked !== key) return;
      this.data = data;
      this.plot?.setData(this.columns(), false);
      this.plot?.setScale("y", this.range());
    } catch (error) {
      this.failed(error instanceof Error ? error.message : String(error));
    } finally {
      this.running--;
      this.changed();
    }
  }

  private range(): { min: number; max: number } {
    let max = 0;
    for (const { value } of this.data) for (const one of value) if (one > max) max = one;
    return { min: 0, max: (max || 1) * 1.08 };
  }

  private columns(): uPlot.AlignedData {
    const first = this.data[0];
    if (!first) return [[], ...this.counter.series.map(() => [])] as unknown as uPlot.AlignedData;
    const bin = (first.to - first.from) / first.value.length;
    const x = Array.from(first.value, (_, i) => first.from + (i + 0.5) * bin);
    return [
      x,
      ...this.data.map(({ value }) => Array.from(value, (one) => (Number.isNaN(one) ? null : one))),
    ] as uPlot.AlignedData;
  }

  private build(width: number, theme: Theme): void {
    const colors = palette(theme);
    this.plot?.destroy();
    const axis: uPlot.Axis = {
      scale: "y",
      side: 3,
      size: GUTTER,
      gap: 6,
      stroke: colors.soft,
      font: "10px system-ui, sans-serif",
      grid: { stroke: colors.rule, width: 1 },
      ticks: { show: false },
      space: 18,
      splits: (plot) => [0, (plot.scales["y"]?.max ?? 1) / 1.08],
      values: (_, splits) => splits.map((value) => this.counter.format(value)),
    };
    this.plot = new uPlot(
      {
        width,
        height: COUNTER_HEIGHT,
        padding: [8, RIGHT, 6, 0],
        legend: { show: false },
        cursor: { show: false },
        select: { show: false, left: 0, top: 0, width: 0, height: 0 },
        scales: {
          x: { time: false, auto: false },
          y: { auto: false, range: () => [this.range().min, this.range().max] },
        },
        axes: [{ show: false }, axis],
        series: [
          {},
          ...this.counter.series.map(({ style, dash, label }): uPlot.Series => ({
            label,
            stroke: colors[style],
            width: 1.25,
            points: { show: false },
            spanGaps: false,
            ...(dash ? { dash } : { fill: `${colors[style]}22` }),
          })),
        ],
      },
      this.columns(),
      this.element,
    );
  }

  /** Into an exported picture. */
  draw(surface: Surface, x: number, y: number, width: number, window_: Window): void {
    surface.rect("paper", x, y, width, COUNTER_HEIGHT);
    surface.text("ink", this.counter.title, 12, y + 16, { size: 11 });
    const { max } = this.range();
    surface.text("soft", this.counter.format(max / 1.08), x - 6, y + 12, { size: 10, align: "right" });
    surface.text("soft", this.counter.format(0), x - 6, y + COUNTER_HEIGHT - 6, { size: 10, align: "right" });
    let left = 12;
    for (const { label, style } of this.counter.series.length > 1 ? this.counter.series : []) {
      surface.text(style, label, left, y + 30, { size: 10 });
      left += textWidth(label) + 6;
    }
    const at = (time: number) => x + ((time - window_.from) / (window_.to - window_.from)) * width;
    surface.clip(x, y, width, COUNTER_HEIGHT);
    this.data.forEach((series, k) => {
      const style = this.counter.series[k]?.style ?? "running";
      const bin = (series.to - series.from) / series.value.length;
      let run: number[] = [];
      const finish = () => {
        if (run.length > 2) surface.line(style, run, 1.25);
        run = [];
      };
      series.value.forEach((value, i) => {
        if (Number.isNaN(value)) finish();
        else
          run.push(at(series.from + (i + 0.5) * bin), y + COUNTER_HEIGHT - 6 - (value / max) * (COUNTER_HEIGHT - 14));
      });
      finish();
    });
    surface.unclip();
    surface.rect("rule", x, y + COUNTER_HEIGHT - 1, width, 1);
  }
}
