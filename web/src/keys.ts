/** The keyboard: everything that the mouse can do. */
import { along, fit, moveTo, selectPicked, togglePin, toggleFold } from "./actions";
import type { App } from "./app";
import { stepDecision } from "./panel/decision";
import type { Pane } from "./pane";
import type { Placed } from "./rows";
import { PANELS } from "./settings";

export interface Commands {
  search(): void;
  help(): void;
  closeAll(): boolean;
  whole(): void;
  switchTheme(): void;
  link(): void;
  exportAs(kind: "png" | "svg"): void;
  violation(step: 1 | -1): void;
  panes(): Pane[];
}

/** What the help shows: keys, and what they do. */
export const KEYS: [string, [string, string][]][] = [
  [
    "Moving",
    [
      ["W S", "zoom in, out (hold)"],
      ["A D", "pan left, right (hold)"],
      ["Ctrl + wheel", "zoom at the pointer"],
      ["Shift + wheel, Shift + drag", "pan"],
      ["F", "zoom to the selection, or to the picked span"],
      ["0", "the whole trace"],
      ["Z, Shift+Z", "undo zoom, redo"],
    ],
  ],
  [
    "Rows and spans",
    [
      ["↑ ↓", "the row above, below"],
      ["← →", "the previous, next span of the row"],
      ["Page Up, Page Down", "scroll"],
      ["Space", "fold or unfold the group of the row"],
      ["P", "pin or unpin the row"],
      ["Double click", "zoom to the span"],
    ],
  ],
  [
    "Selecting",
    [
      ["Drag", "select a stretch of time"],
      ["M", "select the picked span"],
      ["Shift+M", "select what is visible"],
      ["Escape", "clear"],
    ],
  ],
  [
    "Going to the reason",
    [
      ["/", "search by task, pid, cgroup or pattern; Ctrl+Enter filters"],
      ["N, Shift+N", "the next, previous violation"],
      [", .", "the decision before, after (simulated traces)"],
      ["1 to 6", "details, selection, waits, violations, decision, A/B"],
    ],
  ],
  [
    "The page",
    [
      ["C", "copy a link to this very view"],
      ["E, Shift+E", "save as PNG, as SVG"],
      ["T", "dark or light"],
      ["?", "this help"],
    ],
  ],
];

/** Speed of holding a key: windows a second, doublings a second. */
const PAN = 1.1;
const ZOOM = 2.2;

export class Keys {
  private readonly held = new Set<string>();
  private last = 0;

  constructor(
    private readonly app: App,
    private readonly commands: Commands,
  ) {
    document.addEventListener("keydown", (event) => this.down(event));
    document.addEventListener("keyup", (event) => this.up(event.key.toLowerCase()));
    window.addEventListener("blur", () => this.held.clear());
  }

  private down(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    const typing = target.matches("input, select, textarea");
    if (event.key === "Escape" && !typing) {
      if (!this.commands.closeAll()) this.clear();
      return;
    }
    if (typing || document.querySelector("dialog[open]")) return;
    if (event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey))
        this.act(event, () => this.undo(event.shiftKey));
      return;
    }
    const key = event.key.toLowerCase();
    if ("wasd".includes(key) && key.length === 1) {
      event.preventDefault();
      this.hold(key);
      return;
    }
    const action = this.action(event, key, target);
    if (action) this.act(event, action);
  }

  private act(event: KeyboardEvent, action: () => void | Promise<void>): void {
    event.preventDefault();
    const done = action();
    if (done) done.catch((error: Error) => this.app.fail(error.message));
  }

  private action(event: KeyboardEvent, key: string, target: HTMLElement): (() => void | Promise<void>) | null {
    const { app, commands } = this;
    const control = target.matches("button, a, [role=tab], summary");
    switch (key) {
      case "/":
        return () => commands.search();
      case "?":
        return () => commands.help();
      case "f":
        return () => fit(app);
      case "0":
      case "home":
        return () => commands.whole();
      case "z":
        return () => this.undo(event.shiftKey);
      case "m":
        return () => selectPicked(app, event.shiftKey);
      case "n":
        return () => commands.violation(event.shiftKey ? -1 : 1);
      case ",":
        return () => stepDecision(app, "before");
      case ".":
        return () => stepDecision(app, "after");
      case "c":
        return () => commands.link();
      case "e":
        return () => commands.exportAs(event.shiftKey ? "svg" : "png");
      case "t":
        return () => commands.switchTheme();
      case "p":
        return () => this.onRow((row) => togglePin(app, row.key));
      case "arrowup":
        return control ? null : () => this.row(-1);
      case "arrowdown":
        return control ? null : () => this.row(1);
      case "arrowleft":
        return control ? null : () => along(app, "previous");
      case "arrowright":
        return control ? null : () => along(app, "next");
      case "pageup":
        return control ? null : () => this.scroll(-1);
      case "pagedown":
        return control ? null : () => this.scroll(1);
      case " ":
        return control ? null : () => this.onRow((row, pane) => this.fold(row, pane));
      default:
        return this.tab(key);
    }
  }

  private tab(key: string): (() => void) | null {
    const name = /^[1-6]$/.test(key) ? PANELS[Number(key) - 1] : undefined;
    if (!name) return null;
    return () => this.app.openPanel(this.app.settings.panel === name ? null : name);
  }

  private clear(): void {
    if (this.app.settings.selection) this.app.select(null);
    else this.app.pick(null);
  }

  private undo(again: boolean): void {
    const { axis } = this.app;
    if (!(again ? axis.redo() : axis.undo())) this.app.say(again ? "Nothing to redo." : "Nothing to undo.");
    this.app.changed();
  }

  /** A key that moves: one step at once, and on for as long as it is held. */
  private hold(key: string): void {
    if (this.held.has(key)) return;
    if (!this.held.size) {
      this.app.axis.remember();
      this.last = performance.now();
      requestAnimationFrame(() => this.glide());
    }
    this.held.add(key);
    this.step(key, 0.08);
  }

  private up(key: string): void {
    if (this.held.delete(key) && !this.held.size) this.app.changed();
  }

  private glide(): void {
    if (!this.held.size) return;
    const now = performance.now();
    const seconds = Math.min(0.05, (now - this.last) / 1000);
    this.last = now;
    for (const key of this.held) this.step(key, seconds);
    requestAnimationFrame(() => this.glide());
  }

  private step(key: string, seconds: number): void {
    const { axis, hover } = this.app;
    const at = hover ? hover.time : (axis.from + axis.to) / 2;
    if (key === "a") axis.pan(-PAN * seconds);
    else if (key === "d") axis.pan(PAN * seconds);
    else axis.zoom(2 ** ((key === "w" ? -ZOOM : ZOOM) * seconds), at);
  }

  private pane(): Pane | undefined {
    const panes = this.commands.panes();
    const focused = panes.find((pane) => pane.lanes === document.activeElement);
    return focused ?? panes.find((pane) => pane.trace.id === this.app.settings.pick?.trace) ?? panes[0];
  }

  /** Moves to another row at the same instant. */
  private row(step: 1 | -1): void {
    const pane = this.pane();
    if (!pane) return;
    const rows = [...pane.pinned.placed, ...pane.main.placed].filter(({ row }) => row && row.kind !== "group");
    if (!rows.length) return;
    const { pick } = this.app.settings;
    const at = rows.findIndex(
      (row) => pick && pick.trace === pane.trace.id && row.by === pick.by && row.row?.[row.by] === pick.id,
    );
    const next = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))] as Placed;
    const id = next.row?.[next.by];
    if (id === undefined) return;
    pane.reveal(next.by, id);
    const time = pick?.trace === pane.trace.id ? pick.time : Math.max(0, (this.app.axis.from + this.app.axis.to) / 2);
    moveTo(this.app, { trace: pane.trace.id, by: next.by, id, time: Math.round(Math.min(time, pane.trace.info.end)) });
  }

  private scroll(step: number): void {
    const pane = this.pane();
    if (pane) pane.scroller.scrollTop += step * pane.height * 0.85;
  }

  private onRow(run: (row: Placed, pane: Pane) => void): void {
    const pane = this.pane();
    const { pick } = this.app.settings;
    const row = pane?.hovered ?? (pick && pane ? pane.place(pick.by, pick.id) : undefined);
    if (pane && row) run(row, pane);
    else this.app.say("Pick a row first: arrow keys or a click.");
  }

  /** Folds the group that the row is in, or the whole section. */
  private fold(row: Placed, pane: Pane): void {
    const rows = pane.trace.rows[row.by];
    const number = row.row?.row ?? -1;
    const group = [...rows]
      .reverse()
      .find((one) => one.kind === "group" && one.row <= number && one.row + (one.children ?? 0) >= number);
    toggleFold(this.app, group ? `${row.by === "cpu" ? "c" : "t"}:${group.row}` : `section:${row.by}`);
  }
}
