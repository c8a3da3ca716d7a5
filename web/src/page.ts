/** The page as a whole: what is open, what is seen, and the frame in which all is drawn. */
import type { App } from "./app";
import { Axis } from "./axis";
import { fit, jump } from "./actions";
import { byId, debounce, h } from "./dom";
import { save } from "./export";
import { closeHelp, openHelp } from "./help";
import { Keys, type Commands } from "./keys";
import { settingsOf, Trace } from "./model";
import { Pane } from "./pane";
import { Panel } from "./panel/panel";
import type { Theme } from "./palette";
import { Pointer } from "./pointer";
import { Search } from "./search";
import { decode, defaults, encode, type PanelName, type Pick, type Settings } from "./settings";
import type { By, InitialView, ListItem, Source, Traces, Window } from "./source";
import { Tiles } from "./tiles";
import { Toolbar } from "./toolbar";
import { Tooltip } from "./tooltip";
import { counted, duration } from "./units";

const DARK = matchMedia("(prefers-color-scheme: dark)");

/** While other tiles are awaited, what has arrived is shown after so many ms. */
const TOGETHER = 40;

export class Page implements App, Commands {
  readonly traces: Trace[];
  readonly axis = new Axis(() => this.moved());
  readonly tiles: Tiles;
  settings: Settings = defaults();
  theme: Theme = "light";
  hover: App["hover"] = null;
  private all: Pane[] = [];
  private readonly tooltip = new Tooltip(this);
  private readonly panel: Panel;
  private readonly toolbar: Toolbar;
  private readonly searchField: Search;
  private frame = 0;
  private measured = false;
  private violations: { trace: number; item: ListItem }[] | null = null;
  private violationAt = -1;
  private readonly store = debounce(250, () => this.writeAddress());
  /** How far traces have grown while the picture was being made. */
  private readonly held = new Map<number, { end: number; events: number }>();
  /** The place that the command names, until the trace has been read that far. */
  private toPick: { place: NonNullable<InitialView["pick"]>; window: Window | null } | null = null;

  constructor(
    readonly source: Source,
    private readonly given: Traces,
  ) {
    this.traces = given.traces.map((info) => new Trace(info));
    this.tiles = new Tiles(
      source,
      () => this.arrived(),
      (message) => this.fail(message),
    );
    this.panel = new Panel(this);
    this.toolbar = new Toolbar(this, this);
    this.searchField = new Search(this);
    new Keys(this, this);
  }

  async start(): Promise<void> {
    if (!this.traces.length) throw new Error("No trace is open.");
    this.axis.end = this.end();
    this.read(location.hash);
    await Promise.all(this.traces.map((trace) => trace.load(this.source)));
    this.build();
    this.applyTheme();
    this.rearrange();
    this.all.forEach((pane, i) => (pane.scroller.scrollTop = this.settings.scroll[i] ?? 0));
    this.pickFirst(this.given);
    this.listen();
    document.body.dataset.end = String(this.axis.end);
    document.body.dataset.checked = String(this.traces.every(({ info }) => info.checked));
    document.body.dataset.reading = String(this.traces.some(({ info }) => info.reading));
    document.body.dataset.state = "ready";
  }

  /** Picks what the command names, and shows the span there if it names no window. */
  private pickFirst({ traces, view }: Traces): void {
    if (!this.toPick) return;
    const { place, window } = this.toPick;
    const id = view?.pick?.id ?? place.id;
    const info = traces[place.trace];
    if (id === null || !info || place.time > info.end || !this.traces[place.trace]?.row(place.by, id)) {
      if (info && !info.reading && !info.growing) {
        this.toPick = null;
        this.say("The trace does not have the place that the command names.");
      }
      return;
    }
    this.toPick = null;
    this.reveal(place.trace, place.by, id);
    this.pick({ trace: place.trace, by: place.by, id, time: place.time });
    if (!window) void fit(this).catch((error: Error) => this.fail(error.message));
  }

  private build(): void {
    const scale = { of: "", highest: 1 };
    this.all = this.traces.map((trace) => new Pane(this, trace, scale));
    for (const pane of this.all) {
      pane.panes = () => this.all;
      new Pointer(this, pane, this.tooltip);
      pane.scroller.addEventListener("scroll", () => this.tooltip.hide());
    }
    byId("panes").replaceChildren(
      ...this.all.map((pane, i) => (this.all.length > 1 ? this.titled(pane, i) : pane.element)),
    );
    document.title = `${this.traces.map(({ info }) => info.name).join(" and ")} · schedlab view`;
    byId("names").replaceChildren(...this.traces.map((trace) => this.nameOf(trace)));
  }

  private titled(pane: Pane, i: number): HTMLElement {
    const { info, letter } = pane.trace;
    return h(
      "div",
      { class: "pair", "data-index": i },
      h(
        "p",
        { class: "pane-title" },
        h("b", {}, letter),
        ` ${info.name}`,
        h(
          "span",
          {},
          [info.kernel, ...settingsOf(info, this.traces[i === 0 ? 1 : 0]?.info)].filter(Boolean).join(", "),
        ),
      ),
      pane.element,
    );
  }

  private nameOf(trace: Trace): HTMLElement {
    const { info } = trace;
    const parts = [
      info.kernel,
      `${info.cpus.length} ${info.cpus.length === 1 ? "CPU" : "CPUs"}`,
      duration(info.end),
      counted(info.events, "event"),
    ].filter(Boolean);
    const letter = this.traces.length > 1 ? `${trace.letter}: ` : "";
    return h(
      "span",
      { class: "name", title: `${info.kind}, ${parts.join(", ")}` },
      h("b", {}, `${letter}${info.name}`),
      this.traces.length > 1 ? null : h("span", {}, parts.join(" · ")),
      info.growing ? h("span", { class: "live" }, "recording") : null,
      info.reading
        ? h("span", { class: "live", title: "The rest of the trace is still being read." }, "reading")
        : null,
    );
  }

  /** The end of the longest trace, as far as is known. */
  private end(): number {
    return Math.max(1, ...this.traces.map(({ info }) => Math.max(info.end, info.until ?? 0)));
  }

  private listen(): void {
    addEventListener("resize", () => this.resized());
    new ResizeObserver(() => this.resized()).observe(byId("panes"));
    DARK.addEventListener("change", () => this.applyTheme());
    addEventListener("hashchange", () => {
      this.read(location.hash);
      this.applyTheme();
      this.rearrange();
      this.panel.update();
    });
    if (!this.source.live) return;
    this.source.listen({
      listening: () => this.listening(),
      grown: (id, end, events) => this.grown(id, end, events),
      ended: (id) => this.ended(id),
      checked: (id) => this.checked(id),
    });
  }

  private read(hash: string): void {
    const { settings, window: shown } = decode(hash);
    const { view } = this.given;
    this.settings = settings;
    if (!hash && view?.by) settings.shown = { cpu: view.by === "cpu", task: view.by === "task" };
    // Curves and heat maps of two traces would leave no room for lanes.
    if (!hash && this.traces.length > 1 && innerHeight < 1400) {
      settings.counters.clear();
      settings.heat = "";
      settings.panel = "diff";
    }
    const [from, to] = [view?.from ?? 0, view?.to ?? 0];
    const asked = shown ?? (to > from ? { from, to } : null);
    // What is asked for may not have been read yet.
    if (asked && this.traces.some(({ info }) => info.reading)) this.axis.end = Math.max(this.axis.end, asked.to);
    this.axis.set(asked?.from ?? from, asked?.to ?? this.axis.end);
    this.toPick = !hash && view?.pick ? { place: view.pick, window: asked } : null;
  }

  private writeAddress(): void {
    const whole = this.axis.from <= 0 && this.axis.to >= this.axis.end;
    const address = encode(
      this.settings,
      whole && !this.traces.some(({ info }) => info.growing) ? null : this.axis.window(),
    );
    history.replaceState(null, "", `#${address}`);
    document.body.dataset.address = address;
  }

  private resized(): void {
    this.measured = false;
    this.redraw();
  }

  private moved(): void {
    document.body.dataset.window = `${Math.round(this.axis.from)}-${Math.round(this.axis.to)}`;
    this.tooltip.hide();
    this.store();
    this.redraw();
  }

  redraw(): void {
    // Until the panes are there, nothing can be drawn.
    if (!this.frame && this.all.length) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    window.clearTimeout(this.later);
    this.later = 0;
    const begin = performance.now();
    if (!this.measured) {
      this.measured = true;
      for (const pane of this.all) pane.measure();
    }
    this.tiles.begin();
    let again = false;
    for (const pane of this.all) if (pane.draw()) again = true;
    this.tiles.pump();
    const complete =
      !again &&
      this.tiles.busy === 0 &&
      this.all.every((pane) => pane.complete && (pane.overview || pane.trace.info.end <= 0));
    if (complete && !document.body.dataset.firstPicture)
      document.body.dataset.firstPicture = String(Math.round(performance.now()));
    document.body.dataset.tiles = complete ? "complete" : "loading";
    const whole = complete && this.all.every((pane) => !pane.busy);
    document.body.dataset.picture = whole ? "complete" : "loading";
    if (whole) {
      this.release();
      this.ahead();
    }
    document.body.dataset.frame = (performance.now() - begin).toFixed(2);
    if (again) this.redraw();
  }

  private turn = 0;
  private later = 0;

  /**
   * Paints what tiles have brought, in short turns between frames: the frame that shows it only copies then. While more
   * is on its way, what there is is shown a little later, since each frame holds the rest up.
   */
  private arrived(): void {
    this.turn ||= window.setTimeout(() => {
      this.turn = 0;
      const more = this.all.map((pane) => pane.paint()).includes(true);
      if (more) this.arrived();
      else if (!this.tiles.busy) this.redraw();
      else this.later ||= window.setTimeout(() => this.redraw(), TOGETHER);
    });
  }

  /** When all is shown and nothing has moved for a while, what panning would show next is fetched. */
  private readonly ahead = debounce(200, () => {
    for (const pane of this.all) pane.ahead();
  });

  rearrange(): void {
    this.tooltip.hide();
    for (const pane of this.all) pane.rearrange();
    this.toolbar.filters();
    this.panel.arrange();
    this.measured = false;
    document.body.dataset.rows = this.all.map((pane) => pane.main.placed.length + pane.pinned.placed.length).join(",");
    this.panel.update();
    this.changed();
  }

  changed(): void {
    this.publish();
    this.store();
    this.redraw();
  }

  /** What tests and other tools read: the state, as attributes of the body. */
  private publish(): void {
    const { pick, selection } = this.settings;
    const { dataset } = document.body;
    dataset.pick = pick ? `${pick.trace}.${pick.by}.${pick.id}.${Math.round(pick.time)}` : "";
    dataset.selection = selection ? `${selection.from}-${selection.to}` : "";
  }

  pick(pick: Pick | null): void {
    const before = this.settings.pick;
    this.settings.pick = pick;
    // The picked task alone keeps its colour on the CPUs.
    if (before?.trace !== pick?.trace || before?.by !== pick?.by || before?.id !== pick?.id)
      for (const pane of this.all) pane.recolor();
    if (pick) {
      const name = this.traces[pick.trace]?.nameOf(pick.by, pick.id) ?? "";
      if (this.settings.panel !== "decision") this.settings.panel = "details";
      byId("spoken").textContent = name;
    }
    this.panelChanged();
  }

  select(selection: Window | null): void {
    this.settings.selection = selection;
    if (selection) {
      this.settings.panel = "selection";
      byId("spoken").textContent = `Selected ${duration(selection.to - selection.from)}`;
    }
    this.panelChanged();
  }

  openPanel(panel: PanelName | null): void {
    this.settings.panel = panel;
    this.panelChanged();
  }

  private panelChanged(): void {
    if (this.panel.arrange()) this.measured = false;
    this.panel.update();
    this.changed();
  }

  reveal(trace: number, by: By, id: number): void {
    const pane = this.all[trace];
    const row = this.traces[trace]?.row(by, id);
    if (!pane || !row) return;
    if (!pane.place(by, id)) {
      this.settings.shown[by] = true;
      this.settings.collapsed.delete(`section:${by}`);
      this.settings.filter = "";
      this.settings.onlyActive = false;
      for (const group of this.traces[trace]?.rows[by] ?? []) {
        if (group.kind === "group" && group.row < row.row && group.row + (group.children ?? 0) >= row.row)
          this.settings.collapsed.delete(`${by === "cpu" ? "c" : "t"}:${group.row}`);
      }
      this.rearrange();
      pane.measure();
    }
    pane.reveal(by, id);
  }

  private grown(id: number, end: number, events: number): void {
    const trace = this.traces[id];
    if (!trace) return;
    // One picture after the other: a slow machine must get the last one done before it is asked for the next.
    if (document.body.dataset.picture !== "complete") {
      this.held.set(id, { end, events });
      return;
    }
    const old = trace.info.end;
    trace.info = { ...trace.info, end, events };
    this.tiles.grown(id, Math.min(old, end));
    void this.extend(id).catch((error: Error) => this.fail(error.message));
  }

  /** Takes the news that came while the picture was being made. */
  private release(): void {
    const held = [...this.held];
    this.held.clear();
    for (const [id, { end, events }] of held) this.grown(id, end, events);
  }

  /** Shows what has been added to a trace; a window that reached to the end still does. */
  private async extend(id: number): Promise<void> {
    const [trace, pane] = [this.traces[id], this.all[id]];
    if (!trace || !pane) return;
    const moved = await trace.load(this.source);
    for (const by of moved) this.tiles.reordered(id, by);
    const { from, span } = this.axis;
    const following = this.axis.to >= this.axis.end * 0.999;
    const end = this.end();
    if (end !== this.axis.end) {
      this.axis.end = end;
      if (following) this.axis.set(from <= 0 ? 0 : end - span, end);
    }
    pane.refresh();
    pane.rearrange();
    byId("names").replaceChildren(...this.traces.map((one) => this.nameOf(one)));
    document.body.dataset.end = String(trace.info.end);
    this.resized();
  }

  /** What is still to come may have come before the page could hear of it. */
  private listening(): void {
    for (const { id, info } of this.traces)
      if (info.reading || info.growing || !info.checked) void this.again(id, "", info.reading || info.growing);
  }

  private ended(id: number): void {
    this.held.delete(id);
    const message = this.traces[id]?.info.growing ? "The recording is complete." : "";
    void this.again(id, message, true);
  }

  private checked(id: number): void {
    void this.again(id, "", false);
  }

  /** Asks for what is said of a trace again: it has ended, or its violations are known. */
  private async again(id: number, message: string, longer: boolean): Promise<void> {
    const given = await this.source.traces();
    const info = given.traces[id];
    const [trace, pane] = [this.traces[id], this.all[id]];
    if (!info || !trace || !pane) return;
    if (longer) this.tiles.grown(id, Math.min(trace.info.end, info.end));
    trace.info = info;
    if (longer) await this.extend(id);
    this.pickFirst(given);
    this.violations = null;
    pane.showRemarks();
    pane.refresh();
    byId("names").replaceChildren(...this.traces.map((one) => this.nameOf(one)));
    document.body.dataset.checked = String(this.traces.every((one) => one.info.checked));
    document.body.dataset.reading = String(this.traces.some((one) => one.info.reading));
    if (message) this.say(message);
    this.panel.update();
    this.resized();
  }

  // What keys and buttons do.

  search(): void {
    this.searchField.focus();
  }

  help(): void {
    openHelp();
  }

  closeAll(): boolean {
    return closeHelp() || this.toolbar.close();
  }

  whole(): void {
    this.axis.jump(0, this.axis.end);
  }

  panes(): Pane[] {
    return this.all;
  }

  chosenTheme(): Theme {
    if (this.settings.theme !== "auto") return this.settings.theme;
    return DARK.matches ? "dark" : "light";
  }

  link(): void {
    this.writeAddress();
    navigator.clipboard.writeText(location.href).then(
      () => this.say("The link is in the clipboard. It holds while this command runs."),
      () => this.say("The address of the page is the link."),
    );
  }

  exportAs(kind: "png" | "svg"): void {
    save(this, this.all, kind).catch((error: Error) => this.fail(error.message));
  }

  violation(step: 1 | -1): void {
    void this.toViolation(step).catch((error: Error) => this.fail(error.message));
  }

  private async toViolation(step: 1 | -1): Promise<void> {
    if (!this.violations) {
      const lists = await Promise.all(this.traces.map(({ id }) => this.source.list(id, "violations", 1000, null)));
      this.violations = lists
        .flatMap(({ items }, trace) => items.map((item) => ({ trace, item })))
        .sort((a, b) => a.item.start - b.item.start);
      this.violationAt = step > 0 ? -1 : 0;
    }
    if (!this.violations.length) {
      this.say("No CPU was idle for a millisecond or longer while a task waited.");
      return;
    }
    this.violationAt = (this.violationAt + step + this.violations.length) % this.violations.length;
    const found = this.violations[this.violationAt];
    if (found) jump(this, found.trace, found.item);
  }

  private applyTheme(): void {
    this.theme = this.chosenTheme();
    document.documentElement.dataset.theme = this.theme;
    for (const pane of this.all) pane.recolor();
    this.redraw();
  }

  switchTheme(): void {
    this.settings.theme = this.theme === "dark" ? "light" : "dark";
    this.applyTheme();
    this.changed();
  }

  say(message: string): void {
    const element = byId("message");
    element.textContent = message;
    element.classList.remove("failed");
    this.fade();
  }

  fail(message: string): void {
    const element = byId("message");
    element.textContent = message;
    element.classList.add("failed");
    document.body.dataset.failure = message;
    this.fade();
  }

  private readonly fade = debounce(6000, () => {
    byId("message").textContent = "";
  });
}
